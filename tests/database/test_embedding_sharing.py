"""Leases of articles to encode: no two get the same, a dead worker's are taken over, the run gets all in order."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from threading import Thread
from uuid import uuid4

import numpy as np
import pytest
from worlds import DIMENSION, FAR_FUTURE, SPACE, at, turned

from clustering.embedding import sharing as sharing_module
from clustering.embedding.backlog import Backlog
from clustering.embedding.sharing import RUN, Sharing
from clustering.embedding.space import bind_space
from clustering.store.session import Session

LEDE_CHARS = 100


class Encoder:
    """Gives each title the direction that its number says, and remembers what it was asked."""

    def __init__(self) -> None:
        self.titles: list[str] = []

    def __call__(self, titles, ledes) -> np.ndarray:
        assert len(titles) == len(ledes)
        self.titles += titles
        return np.stack([turned(int(title.split()[-1]) * 7) for title in titles])


class Broken(Encoder):
    def __call__(self, titles, ledes):
        raise RuntimeError("no memory")


@pytest.fixture
def due(world):
    """Seven articles that wait to be encoded, in order of time."""
    return [world.article(hours=number) for number in range(7)]


@pytest.fixture
def few(monkeypatch):
    """Leases of three articles, and a look every hundredth of a second."""
    monkeypatch.setattr(sharing_module, "LEASE_ARTICLES", 3)
    monkeypatch.setattr(sharing_module, "POLL_SECONDS", 0.01)


def worker(world, encode=None, **settings) -> Sharing:
    return Sharing(world.session, encode or Encoder(), **settings)


def rows(world):
    return world.session.rows(
        "articles_due", as_of=FAR_FUTURE, now=FAR_FUTURE, lede_chars=LEDE_CHARS, most=100
    )


def held(world) -> dict[int, bool]:
    """The leased articles, and whether each has its vector."""
    found = world.sql("SELECT article_id, raw IS NOT NULL FROM encoding ORDER BY article_id")
    return dict(found)


def backlog(world, encode) -> Backlog:
    return Backlog(
        session=world.session,
        encode=encode,
        centre=lambda raw, _languages, _ledes: raw,
        lede_chars=LEDE_CHARS,
        live_span=timedelta(days=3),
        realigned=lambda _: None,
    )


def test_workers_share_what_waits_in_order_of_time(world, due, few):
    one, other = worker(world), worker(world)
    assert [one.work(LEDE_CHARS), other.work(LEDE_CHARS), one.work(LEDE_CHARS)] == [3, 3, 1]
    assert other.work(LEDE_CHARS) == 0
    assert held(world) == dict.fromkeys(due, True)
    assert len(one.encode.titles) == 4
    assert one.encode.titles[:3] == ["Title 1", "Title 2", "Title 3"]


def test_a_run_takes_over_what_workers_handed_in(world, due, few):
    worker(world).work(LEDE_CHARS)
    own = Encoder()
    assert backlog(world, own).clear(FAR_FUTURE, at(100), lambda _: None) == 7
    assert own.titles == ["Title 4", "Title 5", "Title 6", "Title 7"]
    vectors = dict(world.sql("SELECT article_id, raw FROM article_vector_tiny"))
    for number, article in enumerate(due, start=1):
        assert vectors[article].to_numpy() == pytest.approx(turned(number * 7), abs=1e-3)
    assert held(world) == {}


def test_vectors_are_those_of_one_encoder_whoever_encodes(world, due, few):
    alone = Sharing(world.session, Encoder(), RUN).gather(rows(world))
    world.sql("DELETE FROM encoding")
    worker(world).work(LEDE_CHARS)
    together = Sharing(world.session, Encoder(), RUN).gather(rows(world))
    np.testing.assert_allclose(alone, together, atol=1e-3)
    assert together.dtype == np.float32
    assert together.shape == (7, DIMENSION)


def test_a_run_waits_for_a_live_worker_and_takes_what_it_hands_in(world, due, few):
    busy = worker(world)
    leased = world.session.rows("lease_due", lede_chars=LEDE_CHARS, most=3, **busy._who())
    own, naps = Encoder(), []

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 3:
            busy._hand_in(leased, busy._encoded(leased))

    Sharing(world.session, own, RUN).gather(rows(world), sleep)
    assert len(naps) == 3
    assert own.titles == ["Title 4", "Title 5", "Title 6", "Title 7"]


def test_a_dead_workers_articles_are_taken_over_when_its_lease_ends(world, due, few):
    dead = worker(world, lease=timedelta(seconds=0.2))
    world.session.rows("lease_due", lede_chars=LEDE_CHARS, most=3, **dead._who())
    own = Encoder()
    Sharing(world.session, own, RUN).gather(rows(world))
    assert sorted(own.titles) == [f"Title {number}" for number in range(1, 8)]
    # What the dead worker hands in after all is too late, and changes nothing.
    before = world.sql("SELECT * FROM encoding ORDER BY article_id")
    late = [row for row in rows(world) if row.id in due[:3]]
    dead._hand_in(late, np.stack([turned(90)] * 3))
    assert world.sql("SELECT * FROM encoding ORDER BY article_id") == before


def test_another_worker_takes_over_too(world, due, few):
    dead = worker(world, lease=timedelta(seconds=0))
    world.session.rows("lease_due", lede_chars=LEDE_CHARS, most=3, **dead._who())
    living = worker(world)
    assert [living.work(LEDE_CHARS) for _ in range(4)] == [3, 3, 1, 0]


def test_what_a_killed_run_had_leased_the_next_run_takes_at_once(world, due, few):
    killed = Sharing(world.session, Encoder(), RUN)
    assert len(killed._take(rows(world))) == 7
    own = Encoder()
    naps = []
    Sharing(world.session, own, RUN).gather(rows(world), naps.append)
    assert len(own.titles) == 7
    assert not naps


def test_articles_of_a_worker_that_fails_are_free_again(world, due, few):
    with pytest.raises(RuntimeError, match="no memory"):
        worker(world, Broken()).work(LEDE_CHARS)
    assert held(world) == {}


def test_letting_go_keeps_what_was_handed_in(world, due, few):
    own = worker(world)
    own.work(LEDE_CHARS)
    world.session.rows("lease_due", lede_chars=LEDE_CHARS, most=2, **own._who())
    assert len(held(world)) == 5
    own.release()
    assert held(world) == dict.fromkeys(due[:3], True)


def test_a_text_edited_after_it_was_encoded_is_encoded_again(world, due, few):
    worker(world).work(LEDE_CHARS)
    world.sql("UPDATE article SET revision = 2, title = 'Title 50' WHERE id = %s", due[0])
    own = Encoder()
    backlog(world, own).clear(FAR_FUTURE, at(100), lambda _: None)
    assert "Title 50" in own.titles
    assert world.one("SELECT revision FROM article_vector_tiny WHERE article_id = %s", due[0]) == 2


def test_a_worker_encodes_an_edited_text_anew(world, due, few):
    own = worker(world)
    own.work(LEDE_CHARS)
    world.sql("UPDATE article SET revision = 2, title = 'Title 50' WHERE id = %s", due[0])
    assert own.work(LEDE_CHARS) == 3
    assert own.encode.titles[3] == "Title 50"


def test_what_is_no_longer_to_be_encoded_is_forgotten(world, due, few):
    worker(world).work(LEDE_CHARS)
    world.sql("UPDATE article SET encode_due = false WHERE id = %s", due[1])
    assert backlog(world, Encoder()).clear(FAR_FUTURE, at(100), lambda _: None) == 6
    assert held(world) == {}


def test_vectors_of_another_space_are_not_taken(world, due, few):
    worker(world).work(LEDE_CHARS)
    world.sql(
        "INSERT INTO space (name, model, revision, dimension, prefix, recipe, alignment, fit, active, running_mean) "
        "SELECT 'other', model, revision, dimension, prefix, recipe, alignment, fit, false, running_mean FROM space"
    )
    world.sql("UPDATE encoding SET space_id = (SELECT id FROM space WHERE name = 'other')")
    own = Encoder()
    Sharing(world.session, own, RUN).gather(rows(world))
    assert len(own.titles) == 7


def test_live_articles_wait_for_their_hour(world, few):
    article = world.article(hours=0)
    world.sql(
        "UPDATE article SET live_since = event_time, encoded_at = now() WHERE id = %s", article
    )
    assert worker(world).work(LEDE_CHARS) == 0
    world.sql("UPDATE article SET encoded_at = now() - interval '2 hours'")
    assert worker(world).work(LEDE_CHARS) == 1


def test_many_workers_at_once_encode_everything_once(world, dsn, few):
    count = 120
    for number in range(count):
        world.article(hours=number / 10)
    encoders = [Encoder() for _ in range(4)]

    def work(encode: Encoder) -> None:
        with closing(Session(dsn)) as session:
            bind_space(session, SPACE)
            sharing = Sharing(session, encode, uuid4())
            while sharing.work(LEDE_CHARS):
                pass

    threads = [Thread(target=work, args=(encode,)) for encode in encoders]
    for thread in threads:
        thread.start()
    own = Encoder()
    total = backlog(world, own).clear(FAR_FUTURE, at(100), lambda _: None)
    for thread in threads:
        thread.join()
    assert total == count
    told = own.titles + [title for encode in encoders for title in encode.titles]
    assert sorted(told) == sorted(f"Title {number}" for number in range(1, count + 1))
    assert held(world) == {}
