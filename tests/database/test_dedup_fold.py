from __future__ import annotations

from itertools import permutations
from uuid import UUID

import pytest
from worlds import at, turned

from clustering.dedup.cascade import Link, fold
from clustering.dedup.keys import keys_of
from clustering.records import Article

WIRE = "The river rose two metres overnight and the lower town was cleared before dawn. " * 6


def store(world, article: Article, hours: float = 0) -> int:
    keys = keys_of(article)
    return world.article(
        hours,
        source=article.source,
        title=article.title,
        body=article.body,
        url=article.url,
        entry_hash=keys.entry_hash,
        url_hash=keys.url_hash,
        content_hash=keys.content_hash,
    )


def folded(world, *new: int) -> dict[int, tuple[int, str]]:
    """Fold one batch; returns canonical and stage by duplicate."""
    run_id = world.run_id()
    with world.session.transaction():
        links = fold(world.session, list(new), run_id)
    assert all(isinstance(link, Link) for link in links)
    return {link.article_id: (link.canonical_id, link.stage) for link in links}


def canonicals(world) -> dict[int, int]:
    """Canonical by duplicate, as the database has it; none may lead to another duplicate."""
    found = dict(
        world.sql("SELECT article_id, canonical_id FROM duplicate_link WHERE retracted_at IS NULL")
    )
    assert not found.keys() & set(found.values()), "a duplicate leads to another duplicate"
    return found


def test_articles_with_nothing_in_common_stay(world):
    one = store(world, Article("Flood", url="https://a.org/1", body=WIRE))
    other = store(world, Article("Fire", url="https://a.org/2", body=WIRE.replace("river", "sea")))
    assert folded(world, one, other) == {}
    assert canonicals(world) == {}


def test_a_reissued_guid_is_the_same_entry_however_much_later(world):
    entry = Article("Flood", source="a", url="https://a.org/1", body="Short.")
    old = store(world, entry)
    assert folded(world, old) == {}
    again = store(world, entry, hours=24 * 400)
    assert folded(world, again) == {again: (old, "entry")}


def test_an_equal_entry_of_another_feed_without_an_address_is_no_duplicate(world):
    one = store(world, Article("Weather", source="a", body="Sunny."))
    other = store(world, Article("Weather", source="b", body="Sunny."))
    assert folded(world, one, other) == {}


def test_a_tracking_twin_is_folded_across_feeds(world):
    one = store(world, Article("Flood", source="a", url="https://www.a.org/1?utm_source=rss"))
    other = store(world, Article("Flood!", source="b", url="http://a.org/1/#top"), hours=900)
    assert folded(world, one, other) == {other: (one, "url")}


def test_ids_in_the_query_hold_articles_apart(world):
    one = store(world, Article("Flood", url="https://a.org/read?id=1"))
    other = store(world, Article("Fire", url="https://a.org/read?id=2"))
    assert folded(world, one, other) == {}


@pytest.mark.parametrize(("hours", "together"), [(0, True), (48, True), (48.1, False)])
def test_a_syndicated_copy_is_folded_within_the_window(world, hours, together):
    one = store(world, Article("Flood", source="a", url="https://a.org/1", body=WIRE))
    assert folded(world, one) == {}
    copy = Article("Town cleared", source="b", url="https://b.org/9", body=f"{WIRE} (Reuters)")
    other = store(world, copy, hours)
    assert folded(world, other) == ({other: (one, "content")} if together else {})


def test_a_slow_feed_has_a_wider_window(world):
    one = store(world, Article("Flood", source="a", url="https://a.org/1", body=WIRE))
    other = store(world, Article("Flood", source="slow", url="https://s.org/1", body=WIRE), 100)
    world.sql("UPDATE feed SET duplicate_window = '7 days' WHERE address = 'slow'")
    assert folded(world, one, other) == {other: (one, "content")}


def test_an_earlier_copy_that_comes_late_stands_while_nothing_rests_on_the_other(world):
    stored = store(world, Article("Flood", source="a", url="https://a.org/1", body=WIRE), hours=10)
    copy = store(world, Article("Flood", source="a", url="https://a.org/1?fbclid=2"), hours=11)
    assert folded(world, stored, copy) == {copy: (stored, "url")}
    earlier = store(world, Article("Flood", source="b", url="https://b.org/1", body=WIRE), hours=2)
    assert folded(world, earlier) == {stored: (earlier, "content")}
    assert canonicals(world) == {stored: earlier, copy: earlier}
    due = dict(world.sql("SELECT id, encode_due FROM article"))
    assert due == {earlier: True, stored: False, copy: False}


def test_an_encoded_article_stands_before_an_earlier_copy_that_comes_late(world):
    stored = store(world, Article("Flood", source="a", url="https://a.org/1", body=WIRE), hours=10)
    assert folded(world, stored) == {}
    world.embed([(stored, at(10), turned(0))])
    earlier = store(world, Article("Flood", source="b", url="https://b.org/1", body=WIRE), hours=2)
    assert folded(world, earlier) == {earlier: (stored, "content")}


def test_two_batches_are_folded_as_one_would_be(world):
    batch = [
        Article("Flood", source=f"s{number}", url=f"https://s{number}.org/1", body=WIRE)
        for number in range(4)
    ]
    hours = (3, 1, 0, 2)
    for split in range(1, 4):
        world.sql("TRUNCATE duplicate_link, article RESTART IDENTITY CASCADE")
        ids = [store(world, article, at) for article, at in zip(batch, hours, strict=True)]
        folded(world, *ids[:split])
        folded(world, *ids[split:])
        assert canonicals(world) == {ids[0]: ids[2], ids[1]: ids[2], ids[3]: ids[2]}


def test_stubs_are_not_folded_by_their_text(world):
    one = store(world, Article("Flood", source="a", url="https://a.org/1", body="Subscribe."))
    other = store(world, Article("Fire", source="a", url="https://a.org/2", body="Subscribe."))
    assert folded(world, one, other) == {}


def test_a_chain_of_copies_leads_to_its_first(world):
    """Each copy is within the window of the one before, not of the first."""
    ids = []
    for number in range(4):
        copy = Article("Flood", source=f"s{number}", url=f"https://s{number}.org/1", body=WIRE)
        ids.append(store(world, copy, hours=40 * number))
        folded(world, ids[-1])
    assert canonicals(world) == dict.fromkeys(ids[1:], ids[0])


def test_a_chain_in_one_batch_is_the_same_as_one_by_one(world):
    ids = [
        store(
            world,
            Article("Flood", source=f"s{number}", url=f"https://s{number}.org/1", body=WIRE),
            hours=40 * number,
        )
        for number in range(4)
    ]
    assert folded(world, *ids) == dict.fromkeys(ids[1:], (ids[0], "content"))


def test_a_later_stage_moves_what_an_earlier_one_folded(world):
    """Two copies of an entry arrive in one batch; the one that stands has a twin stored before."""
    stored = store(world, Article("Flood", source="a", url="https://a.org/1"))
    folded(world, stored)
    entry = Article("Flood news", source="b", url="https://a.org/1?utm_source=b")
    first, second = store(world, entry, 1), store(world, entry, 2)
    assert first < second
    folded(world, first, second)
    assert canonicals(world) == {first: stored, second: stored}


def test_a_later_stage_moves_what_the_url_stage_folded(world):
    stored = store(world, Article("Flood", source="a", url="https://a.org/1", body=WIRE))
    folded(world, stored)
    one = store(world, Article("Town", source="b", url="https://b.org/1", body=WIRE), 1)
    two = store(world, Article("Rise", source="c", url="https://b.org/1?utm_medium=x"), 2)
    folded(world, one, two)
    assert canonicals(world) == {one: stored, two: stored}


def test_stages_see_only_what_is_left(world):
    entry = Article("Flood", source="a", url="https://a.org/1", body=WIRE)
    ids = [store(world, entry, hours) for hours in (0, 1)]
    assert folded(world, *ids) == {ids[1]: (ids[0], "entry")}
    assert world.one("SELECT count(*) FROM duplicate_link") == 1


def test_a_link_says_stage_score_threshold_and_run(world):
    one = store(world, Article("Flood", source="a", url="https://a.org/1"))
    other = store(world, Article("Flood!", source="b", url="https://a.org/1"))
    folded(world, one, other)
    (link,) = world.sql("SELECT * FROM duplicate_link")
    latest_run = world.one("SELECT max(id) FROM run")
    assert (link.article_id, link.canonical_id, link.stage) == (other, one, "url")
    assert (link.score, link.threshold, link.run_id) == (1, 1, latest_run)
    assert link.retracted_at is None


def test_a_duplicate_is_never_encoded_and_its_row_stays(world):
    one = store(world, Article("Flood", source="a", url="https://a.org/1"))
    other = store(world, Article("Flood!", source="b", url="https://a.org/1"))
    folded(world, one, other)
    due = dict(world.sql("SELECT id, encode_due FROM article"))
    assert due == {one: True, other: False}


def test_a_retracted_link_counts_no_more(world):
    one = store(world, Article("Flood", source="a", url="https://a.org/1"))
    other = store(world, Article("Flood!", source="b", url="https://a.org/1"), 1)
    folded(world, one, other)
    world.sql("UPDATE duplicate_link SET retracted_at = now()")
    third = store(world, Article("Flood?", source="c", url="https://a.org/1"), 2)
    assert folded(world, third) == {third: (one, "url")}


def test_an_empty_batch_changes_nothing(world):
    assert folded(world) == {}


def test_the_order_of_a_batch_does_not_matter(world):
    batch = [
        Article("Flood", source="a", url="https://a.org/1", body=WIRE),
        Article("Flood", source="a", url="https://a.org/1", body=WIRE),
        Article("Town", source="b", url="https://b.org/1", body=WIRE),
        Article("Rise", source="c", url="https://b.org/1?fbclid=1"),
    ]
    outcomes = set()
    for number, order in enumerate(permutations(range(4))):
        world.sql("TRUNCATE duplicate_link, article RESTART IDENTITY CASCADE")
        ids = {place: store(world, batch[place], hours=place) for place in order}
        names = {article: place for place, article in ids.items()}
        run = list(ids.values()) if number % 2 else sorted(ids.values(), reverse=True)
        folded(world, *run)
        chiefs = canonicals(world)
        outcomes.add(tuple(sorted((names[a], names[b]) for a, b in chiefs.items())))
    assert outcomes == {((1, 0), (2, 0), (3, 0))}


def test_hashes_reach_the_database_whole(world):
    largest = UUID(int=2**128 - 1)
    one = world.article(source="a", url_hash=largest)
    other = world.article(source="b", url_hash=largest)
    near = world.article(source="c", url_hash=UUID(int=2**128 - 2))
    assert folded(world, one, other, near) == {other: (one, "url")}
