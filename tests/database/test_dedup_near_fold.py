from __future__ import annotations

from datetime import timedelta
from itertools import permutations

import pytest
from worlds import START, at

from clustering.dedup.cascade import fold
from clustering.dedup.flags import LEAST_TITLE_OVERLAP, LabelledTitle, flagged_pairs
from clustering.dedup.keys import keys_of
from clustering.dedup.near import LEAST_OVERLAP, Body, overlap
from clustering.dedup.sketches import sketch_overlap, title_sketch
from clustering.ingest.upsert import Entry, Key, add, content_of, update
from clustering.records import Article

WIRE = (
    "The river rose two metres overnight and the lower town of Brenn was cleared before dawn. "
    "Mayor Ada Holm said that nobody had been hurt. Engineers watched the dam through the night, and "
    "the army brought sandbags, boats and tents for those who could not stay with friends. Schools will "
    "be closed until Friday. The weather service expects more rain in the hills, though less than what "
    "fell on Monday, when a month of it came down within a few hours and the bridge had to be shut."
)
MORE = " It was opened again at noon."
REPORT = (
    "{} beat {} {} in front of a full house on Saturday to go third in the table. The hosts went ahead "
    "after a quarter of an hour with a shot from the edge of the box, and the visitors never found a way "
    "back into the match although they had most of the ball. It was a deserved win against a side that "
    "has lost its last three away games, the coach said after the final whistle. A header shortly before "
    "the end made sure of the points. Both sides are back in action next weekend, when the leaders come."
)


def entry(world, article: Article, hours: float = 0) -> Entry:
    key = Key(world.feed(article.source), article.id or f"guid {next(world.numbers)}")
    return Entry(key, content_of(article), keys_of(article), "en", 1.0, at(hours), at(hours))


def store(world, article: Article, hours: float = 0) -> int:
    """Store an article as ingest does."""
    (stored,) = add(world.session, [entry(world, article, hours)], world.run_id())
    return stored


def folded(world, *new: int) -> dict[int, tuple[int, str]]:
    run_id = world.run_id()
    with world.session.transaction():
        links = fold(world.session, list(new), run_id)
    return {link.article_id: (link.canonical_id, link.stage) for link in links}


def flags(world) -> dict[tuple[int, int], float]:
    return {
        (row.a_id, row.b_id): row.score
        for row in world.sql("SELECT a_id, b_id, score FROM review_flag")
    }


def article(number: int, body: str, title: str | None = None, source: str | None = None) -> Article:
    return Article(
        title or f"Headline number {number} of outlet {number}",
        url=f"https://s{number}.org/{number}",
        source=source or f"s{number}",
        body=body,
    )


@pytest.mark.parametrize("changed", [WIRE.replace("sandbags", "blankets"), WIRE + MORE])
def test_a_near_copy_is_folded_and_its_link_says_how_near(world, changed):
    one = store(world, article(1, WIRE))
    assert folded(world, one) == {}
    other = store(world, article(2, changed), 2)
    assert folded(world, other) == {other: (one, "simhash")}
    (link,) = world.sql("SELECT * FROM duplicate_link")
    assert (link.article_id, link.canonical_id, link.stage) == (other, one, "simhash")
    assert link.score == pytest.approx(overlap(Body(WIRE), Body(changed)))
    assert link.threshold == pytest.approx(LEAST_OVERLAP)
    assert LEAST_OVERLAP <= link.score < 1
    assert link.run_id == world.one("SELECT max(id) FROM run")
    assert world.one("SELECT encode_due FROM article WHERE id = %s", other) is False


def test_exact_copies_are_left_to_the_stage_before(world):
    one, other = store(world, article(1, WIRE)), store(world, article(2, f"{WIRE} (Reuters)"), 1)
    assert folded(world, one, other) == {other: (one, "content")}


def test_match_reports_of_other_matches_stay(world):
    one = store(world, article(1, REPORT.format("Rovers", "City", "2-1")))
    other = store(world, article(2, REPORT.format("Albion", "Town", "3-0")), 1)
    assert folded(world, one, other) == {}


@pytest.mark.parametrize(
    ("hours", "together"), [(48, True), (48.1, False), (-48, True), (-49, False)]
)
def test_near_copies_are_folded_within_the_window(world, hours, together):
    one = store(world, article(1, WIRE))
    folded(world, one)
    other = store(world, article(2, WIRE + MORE), hours)
    earlier, later = (one, other) if hours > 0 else (other, one)
    assert folded(world, other) == ({later: (earlier, "simhash")} if together else {})


def test_a_slow_feed_finds_what_resurfaces_after_two_weeks(world):
    one = store(world, article(1, WIRE))
    folded(world, one)
    world.feed("slow")
    world.sql("UPDATE feed SET duplicate_window = '20 days' WHERE address = 'slow'")
    usual = store(world, article(4, WIRE + MORE, source="usual"), 24 * 14)
    assert folded(world, usual) == {}
    world.sql("DELETE FROM article WHERE id = %s", usual)
    near = store(world, article(2, WIRE + MORE, source="slow"), 24 * 14)
    same = store(world, article(3, WIRE, source="slow"), 24 * 14)
    assert folded(world, near, same) == {same: (one, "content"), near: (one, "simhash")}


def test_a_body_too_short_is_never_folded_by_its_text(world):
    stub = "Subscribe to read on, from one euro a week. " * 7
    ids = [store(world, article(n, f"{stub} {n}")) for n in range(3)]
    assert len(stub) < 400
    assert folded(world, *ids) == {}


def test_one_wire_text_in_four_feeds_is_one_article(world):
    texts = [
        WIRE,
        f"{WIRE} (AFP)",
        f"{WIRE}{MORE}",
        WIRE.replace("boats", "ropes") + "\nBy our staff",
    ]
    ids = [store(world, article(n, text), n) for n, text in enumerate(texts)]
    found = folded(world, *ids)
    assert {chief for chief, _ in found.values()} == {ids[0]}
    assert [found[a][1] for a in ids[1:]] == ["content", "simhash", "simhash"]


def drifting() -> list[str]:
    """Three bodies, each near the next, the first and last too far apart."""
    middle = WIRE + MORE
    return [
        WIRE,
        middle,
        f"{middle} Most families went home, and trains to the coast run again, said Iva Kern of the railway company.",
    ]


def test_what_drifts_is_folded_into_nothing_that_it_is_far_from(world):
    bodies = drifting()
    assert overlap(Body(bodies[0]), Body(bodies[2])) < LEAST_OVERLAP
    assert overlap(Body(bodies[1]), Body(bodies[2])) >= LEAST_OVERLAP
    ids = [store(world, article(n, body), n) for n, body in enumerate(bodies)]
    assert folded(world, *ids) == {ids[1]: (ids[0], "simhash")}
    again = store(world, article(9, bodies[2].replace("Most", "Many")), 4)
    assert folded(world, again) == {again: (ids[2], "simhash")}


def test_a_copy_of_a_duplicate_is_compared_with_what_that_stands_for(world):
    """The canonical article is outside the window, the copy in between is not."""
    one = store(world, article(1, WIRE))
    folded(world, one)
    between = store(world, article(2, WIRE + MORE), 40)
    folded(world, between)
    late = store(world, article(3, WIRE + MORE.replace("noon", "night")), 80)
    assert folded(world, late) == {late: (one, "simhash")}


def test_the_order_of_a_batch_does_not_matter(world):
    bodies = [*drifting(), WIRE.replace("sandbags", "blankets")]
    outcomes = set()
    for order in permutations(range(4)):
        world.sql("TRUNCATE review_flag, duplicate_link, article RESTART IDENTITY CASCADE")
        ids = {n: store(world, article(n, bodies[n]), n) for n in order}
        names = {stored: n for n, stored in ids.items()}
        found = folded(world, *ids.values())
        outcomes.add(tuple(sorted((names[a], names[c], stage) for a, (c, stage) in found.items())))
    assert outcomes == {((1, 0, "simhash"), (3, 0, "simhash"))}


def test_batches_one_by_one_and_together_agree(world):
    bodies = [WIRE, WIRE + MORE, WIRE.replace("boats", "ropes")]
    ids, single = [], {}
    for number, body in enumerate(bodies):
        ids.append(store(world, article(number, body), number))
        single |= folded(world, ids[-1])
    world.sql("TRUNCATE duplicate_link")
    assert (
        folded(world, *ids) == single == {ids[1]: (ids[0], "simhash"), ids[2]: (ids[0], "simhash")}
    )


def test_rows_of_an_older_schema_are_passed_over(world):
    old = world.article(0, body=WIRE, title="River rises in Brenn")
    new = store(world, article(2, WIRE + MORE, title="River rises in Brenn"), 1)
    assert folded(world, new, old) == {}
    assert flags(world) == {}


def test_an_edited_article_is_found_by_what_it_says_now(world):
    first = entry(world, article(1, REPORT.format("Rovers", "City", "2-1")))
    (stored,) = add(world.session, [first], world.run_id())
    update(
        world.session,
        {stored: entry(world, article(1, WIRE, title="River rises in Brenn"))},
        world.run_id(),
    )
    copy = store(world, article(2, WIRE + MORE, title="Another one"), 1)
    like = store(world, article(3, "", title="River rises in Brenn"), 1)
    assert folded(world, copy, like) == {copy: (stored, "simhash")}
    assert flags(world) == {(stored, like): 1.0}


def test_like_titles_are_flagged_and_never_folded(world):
    one = store(world, article(1, "", title="Osaka lights the cauldron at Tokyo opening"))
    other = store(
        world, article(2, "", title="Osaka lights the cauldron at Tokyo opening ceremony"), 5
    )
    apart = store(world, article(3, "", title="Sprinter Osei wins the hundred metres in Tokyo"), 5)
    assert folded(world, one, other, apart) == {}
    (flag,) = world.sql("SELECT * FROM review_flag")
    assert (flag.a_id, flag.b_id, flag.stage) == (one, other, "title")
    assert flag.score == pytest.approx(5 / 6)
    assert flag.threshold == pytest.approx(LEAST_TITLE_OVERLAP)
    assert flag.run_id == world.one("SELECT max(id) FROM run")


def test_a_flag_names_its_pair_once_whichever_came_first(world):
    titles = ["Osaka lights the cauldron in Tokyo"] * 3
    late, early = (
        store(world, article(n, "", title=titles[n]), hours) for n, hours in ((0, 9), (1, 1))
    )
    folded(world, late)
    folded(world, early)
    folded(world, early, late)
    assert flags(world) == {(late, early): 1.0}


def test_what_is_folded_is_not_flagged(world):
    title = "Osaka lights the cauldron in Tokyo"
    one = store(world, article(1, WIRE, title=title))
    copy = store(world, article(2, WIRE, title=title), 1)
    assert folded(world, one, copy) == {copy: (one, "content")}
    third = store(world, article(3, "", title=title), 2)
    folded(world, third)
    assert flags(world) == {(one, third): 1.0}


@pytest.mark.parametrize(
    ("one", "other", "flagged"),
    [
        ("東京五輪の開会式で大坂が聖火台に点火した", "東京五輪の開会式で大坂が聖火台に点火", True),
        (
            "東京五輪の開会式で大坂が聖火台に点火した",
            "大雨で川の水位が上昇し町の住民が避難した",
            False,
        ),
        ("Olympics", "OLYMPICS!", True),
        ("Gold for Norway", "Gold for Norway - North Wire", True),
        ("", "", False),
    ],
)
def test_titles_of_any_script_and_length(world, one, other, flagged):
    ids = [
        store(world, Article(title, url=f"https://a.org/{n}", source=f"s{n}"))
        for n, title in enumerate((one, other))
    ]
    folded(world, *ids)
    assert bool(flags(world)) == flagged


def test_the_database_flags_what_the_evaluation_flags(world, data):
    """A day of og2021: the statement and the model of it in memory agree on every pair and score."""
    from clustering.engine.corpus import corpus_rows

    rows = [row.article for row in corpus_rows(data / "og2021.jsonl")][2_000:2_700]
    entries = []
    for number, row in enumerate(rows):
        key = Key(world.feed(row.source), str(number))
        time = row.published_at
        entries.append(Entry(key, content_of(row), keys_of(row), "en", 1.0, time, time))
    added = add(world.session, entries, world.run_id())
    for first in range(0, len(added), 150):
        assert folded(world, *added[first : first + 150]) == {}
    number_of = {row.id: int(row.guid) for row in world.sql("SELECT id, guid FROM article")}
    found = {tuple(sorted((number_of[a], number_of[b]))): s for (a, b), s in flags(world).items()}
    titles = [LabelledTitle(row.title, row.published_at, None) for row in rows]
    expected = set(flagged_pairs(titles, timedelta(hours=48), LEAST_TITLE_OVERLAP))
    assert found.keys() == expected
    assert len(found) > 200
    for (a, b), score in found.items():
        sketches = title_sketch(rows[a].title), title_sketch(rows[b].title)
        assert score == pytest.approx(sketch_overlap(*sketches))


@pytest.mark.parametrize(
    ("hours", "flagged"), [(47.9, True), (48, True), (48.1, False), (200, False)]
)
def test_like_titles_are_flagged_within_the_window(world, hours, flagged):
    """Whatever spans of four days the two lie in."""
    title = "Osaka lights the cauldron in Tokyo"
    for shift in range(0, 96, 24):
        world.sql("TRUNCATE review_flag, duplicate_link, article RESTART IDENTITY CASCADE")
        one = store(world, article(1, "", title=title), shift)
        other = store(world, article(2, "", title=title), shift + hours)
        folded(world, other)
        assert bool(flags(world)) == flagged, (START, shift, one)


def test_a_copy_is_found_among_the_variants_of_a_template(world):
    reports = [REPORT.format(f"Team{n}", f"Side{n}", f"{n}-{n + 1}") for n in range(60)]
    ids = [store(world, article(n, body)) for n, body in enumerate(reports)]
    assert folded(world, *ids) == {}
    copy = store(world, article(99, reports[41].replace("whistle", "whistles")))
    assert folded(world, copy) == {copy: (ids[41], "simhash")}


def test_only_so_many_variants_are_compared_and_the_nearest_first(world):
    reports = [REPORT.format(f"Team{n}", f"Side{n}", f"{n}-{n + 1}") for n in range(30)]
    ids = [store(world, article(n, body)) for n, body in enumerate(reports)]

    def found(most):
        rows = world.session.rows("simhash_twins", article_ids=[ids[0]], radius=16, most=most)
        return [row.other_id for row in rows]

    keys = [keys_of(article(n, body)) for n, body in enumerate(reports)]
    far = [((k.simhash ^ keys[0].simhash) & (2**64 - 1)).bit_count() for k in keys]
    assert len(found(100)) > 10
    assert set(found(10)) == set(sorted(found(100), key=lambda a: (far[ids.index(a)], a))[:10])
