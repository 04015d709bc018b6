"""The running refit: one transaction, the live window only, nothing encoded again; and what a space learns."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from worlds import DIMENSION, FAR_FUTURE, SPACE, World, at

from clustering.embedding import backlog as backlog_module
from clustering.embedding import domain
from clustering.embedding.align import Alignment, identity_alignment, normalise
from clustering.embedding.backlog import Backlog
from clustering.embedding.corpus import learn, space_centre
from clustering.embedding.filling import Fill, like_spaces
from clustering.embedding.space import (
    Space,
    all_spaces,
    bind_space,
    drop_space,
    find_space,
    make_space,
    use_space,
)
from clustering.errors import ModelError, NotFoundError, SpaceError

SPAN = timedelta(hours=10)
LEDE_CHARS = 10
NOW = at(1000)


def raw_of(titles):
    """Unit vectors that depend on the title alone and have much in common."""
    numbers = [int(title.split()[-1]) for title in titles]
    rows = [np.random.default_rng(number).normal(size=DIMENSION) + 1 for number in numbers]
    return normalise(np.stack(rows).astype(np.float32))


class Encoding:
    """Encodes and remembers how much."""

    def __init__(self):
        self.encoded = 0

    def __call__(self, titles, ledes):
        self.encoded += len(titles)
        return raw_of(titles)


def clearing(world, realigned, encode=None):
    return Backlog(
        session=world.session,
        encode=encode or Encoding(),
        centre=identity_alignment().centre,
        lede_chars=LEDE_CHARS,
        live_span=SPAN,
        realigned=realigned,
    )


def aligned(world, table="article_vector_tiny"):
    rows = world.sql(f"SELECT article_id, raw, aligned FROM {table} ORDER BY article_id")
    return {row[0]: (row[1].to_numpy(), row[2].to_numpy()) for row in rows}


@pytest.fixture
def chunks(monkeypatch):
    monkeypatch.setattr(backlog_module, "CHUNK_ARTICLES", 20)
    monkeypatch.setattr(domain, "UNALIGNED_PRIOR_ARTICLES", 0.0001)


def test_a_refit_aligns_the_live_window_and_leaves_what_is_older(world, chunks):
    for number in range(40):
        world.article(number)
    told = []
    clearing(world, told.append).clear(FAR_FUTURE, NOW, lambda _: None)
    means = world.sql("SELECT mean FROM domain_mean ORDER BY version")
    assert len(means) == 3
    # The first article of the second chunk is at hour 20: from hour 10 on, all has the last mean.
    assert told == [at(0) - SPAN, at(20) - SPAN]
    for place, (raw, searched) in enumerate(aligned(world).values()):
        mean = np.array(means[1 if place < 10 else 2][0])
        expected = normalise((raw - mean)[None].astype(np.float32))[0]
        assert searched == pytest.approx(expected, abs=2e-3), place


def test_a_refit_encodes_nothing_again(world, chunks):
    for number in range(40):
        world.article(number)
    encode = Encoding()
    clearing(world, lambda _: None, encode).clear(FAR_FUTURE, NOW, lambda _: None)
    assert encode.encoded == 40


def test_a_refit_that_fails_leaves_everything_as_it_was(world, chunks):
    for number in range(40):
        world.article(number)
    seen = []

    def fail_the_second_time(since):
        seen.append(since)
        if len(seen) == 2:
            raise RuntimeError("killed")

    def first_chunk(_):
        before.update(world.snapshot())

    before = {}
    with pytest.raises(RuntimeError, match="killed"):
        clearing(world, fail_the_second_time).clear(FAR_FUTURE, NOW, first_chunk)
    assert world.snapshot() == before
    clearing(world, lambda _: None).clear(FAR_FUTURE, NOW, lambda _: None)
    assert world.one("SELECT count(*) FROM article_vector_tiny") == 40
    assert world.one("SELECT max(version) FROM domain_mean") == 3


def with_offsets():
    rng = np.random.default_rng(5)
    return Alignment(
        languages=("de", "en"),
        offsets=rng.normal(0, 0.1, (2, 2, DIMENSION)).astype(np.float32),
        domain_means=rng.normal(0, 0.1, (2, DIMENSION)).astype(np.float32),
        neutral_basis=np.eye(DIMENSION, dtype=np.float32)[:1],
        version="v1",
    )


def fill(world, count, languages=("en",), hours=1.0):
    articles = [
        world.article(
            number * hours, language=languages[number % len(languages)], body="x" * (number % 9)
        )
        for number in range(count)
    ]
    clearing(world, lambda _: None).clear(FAR_FUTURE, NOW, lambda _: None)
    return articles


def test_a_model_with_offsets_learns_what_they_leave(world):
    fill(world, 50, ("en", "de", "xx"))
    alignment = with_offsets()
    learned = learn(world.session, alignment, LEDE_CHARS, 1000)
    rows = world.sql(
        "SELECT v.raw, a.language, length(a.body) FROM article_vector_tiny v JOIN article a ON a.id = v.article_id"
    )
    raw = np.stack([row[0].to_numpy() for row in rows]).astype(np.float32)
    centred = alignment.centre(raw, [row[1] for row in rows], [row[2] for row in rows])
    assert learned.basis is None
    assert learned.articles == 50
    np.testing.assert_allclose(learned.mean, centred.mean(axis=0), atol=1e-6)


def test_only_the_latest_articles_are_learned_from(world):
    articles = fill(world, 50)
    learned = learn(world.session, identity_alignment(), LEDE_CHARS, 20)
    # The article before the latest twenty shows from when on they are, and comes along.
    latest = aligned(world)
    expected = np.stack([latest[article][0] for article in articles[-21:]]).astype(np.float64)
    assert learned.articles == 21
    np.testing.assert_allclose(learned.mean, expected.mean(axis=0), atol=1e-6)


def test_a_space_without_directions_is_centred_by_its_alignment_alone(world):
    alignment = with_offsets()
    assert space_centre(world.session, alignment) == alignment.centre


OTHER = replace(SPACE, name="other", fit="f1")
WIDE = Space("wide", "wide", "1", 3, "", "by hand", "none")


def filler(world, space, encode):
    make_space(world.session, space, active=False)
    bind_space(world.session, space)
    return Fill(
        session=world.session,
        encode=encode,
        centre=identity_alignment().centre,
        like=like_spaces(world.session, all_spaces(world.session)),
        lede_chars=LEDE_CHARS,
    )


def test_a_like_space_is_filled_from_raw_vectors(world, chunks):
    fill(world, 50)
    encode = Encoding()
    told = []
    assert filler(world, OTHER, encode).run(at(0), told.append) == 50
    assert encode.encoded == 0
    assert sum(told) == 50
    before, after = aligned(world), aligned(world, "article_vector_other")
    assert before.keys() == after.keys()
    for article, (raw, searched) in after.items():
        np.testing.assert_array_equal(raw, before[article][0])
        assert searched == pytest.approx(normalise(raw[None].astype(np.float32))[0], abs=1e-3)


def test_only_what_no_like_space_has_is_encoded(world):
    articles = fill(world, 30)
    world.sql("DELETE FROM article_vector_tiny WHERE article_id = ANY (%s)", articles[:7])
    world.sql("UPDATE article_vector_tiny SET revision = 0 WHERE article_id = %s", articles[20])
    encode = Encoding()
    assert filler(world, OTHER, encode).run(at(0), lambda _: None) == 30
    assert encode.encoded == 8
    found = aligned(world, "article_vector_other")
    titles = dict(world.sql("SELECT id, title FROM article"))
    for article, (raw, _) in found.items():
        assert raw == pytest.approx(raw_of([titles[article]])[0], abs=1e-3)


def test_filling_begins_with_the_latest_and_takes_what_comes_meanwhile(world, monkeypatch):
    from clustering.embedding import filling

    monkeypatch.setattr(filling, "CHUNK_ARTICLES", 10)
    fill(world, 30)
    times = []

    def chunk(count):
        times.append(world.one("SELECT min(event_time) FROM article_vector_other"))
        if len(times) == 1:
            late = world.article(100)
            world.sql("UPDATE article SET encode_due = false WHERE id = %s", late)
            world.sql(
                "INSERT INTO story_article (article_id, event_time) VALUES (%s, %s)", late, at(100)
            )

    assert filler(world, OTHER, Encoding()).run(at(5), chunk) == 26
    assert times == [at(20), at(10), at(5), at(5)]


def test_another_model_never_gets_raw_vectors(world):
    fill(world, 5)
    make_space(world.session, WIDE, active=False)
    bind_space(world.session, WIDE)
    assert like_spaces(world.session, all_spaces(world.session)) == []


def test_spaces_of_two_dimensions_live_side_by_side(world):
    make_space(world.session, WIDE, active=False)
    assert [space.name for space in all_spaces(world.session)] == ["tiny", "wide"]
    assert find_space(world.session, "wide") == WIDE
    assert use_space(world.session, SPACE) == SPACE
    with pytest.raises(ModelError, match="stories space backfill wide"):
        use_space(world.session, WIDE)


def test_making_a_space_twice_changes_nothing(world):
    before = world.snapshot()
    make_space(world.session, SPACE, active=True)
    assert world.snapshot() == before


def test_only_a_space_that_does_not_serve_is_dropped(world):
    make_space(world.session, WIDE, active=False)
    drop_space(world.session, WIDE)
    with pytest.raises(NotFoundError, match="no space wide"):
        find_space(world.session, "wide")
    before = world.snapshot()
    with pytest.raises(SpaceError, match="active space"):
        drop_space(world.session, SPACE)
    assert world.snapshot() == before


def test_a_fresh_database_gets_the_space_that_is_asked_for_first(session):
    world = World(session)
    assert world.one("SELECT name FROM space WHERE active") == "tiny"
    assert session.part("article_vectors") == "article_vector_tiny"
    assert session.part("space") == "tiny"
