"""What went wrong in published systems, each as a feed would bring it: ingest and cascade on a real database."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from clustering.engine.intake import take_in
from clustering.engine.runs import Run
from clustering.ingest.settings import changed_settings, find_settings, store_settings
from clustering.ingest.upsert import feed_ids
from clustering.records import Article

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
WIRE = (
    "The harbour wall of {} gave way before dawn and the lower town stood under two metres of water. "
    "Crews had warned of cracks in the masonry since the storms of last autumn. "
    "The mayor asked the army for boats, and the hospital moved its patients to the upper floors. "
    "Trains will not run before Thursday, the operator said, and schools stay closed. "
    "The river is expected to crest in the night, a metre above the record of 1953."
)


@pytest.fixture
def feed(session):
    """Bring articles as one fetch at an hour; returns counts of the run."""
    return lambda articles, hours=0.0: fetch(session, articles, hours)


def fetch(session, articles, hours=0.0) -> dict[str, int]:
    run = Run(session, "test", {})
    take_in(run, articles, lambda _: NOON + timedelta(hours=hours))
    return {name: count for name, count in run.counts.items() if count}


def settings(session, address, **changes) -> None:
    feed_ids(session, [address])
    store_settings(session, changed_settings(find_settings(session, address), **changes))


def links(session) -> list[tuple[str, str, str]]:
    """Guids of duplicates and of their canonical articles, and the stage."""
    rows = session.connection.execute(
        "SELECT a.guid, c.guid AS into_guid, d.stage FROM duplicate_link d JOIN article a ON a.id = d.article_id "
        "JOIN article c ON c.id = d.canonical_id WHERE d.retracted_at IS NULL ORDER BY a.id"
    )
    return [tuple(row) for row in rows]


def column(session, name: str) -> list:
    return [row[0] for row in session.connection.execute(f"SELECT {name} FROM article ORDER BY id")]


def snapshot(session) -> list:
    tables = ("article", "duplicate_link", "feed", "review_flag")
    return [
        sorted(
            row[0]
            for row in session.connection.execute(f"SELECT xmin::text || t::text FROM {name} t")
        )
        for name in tables
    ]


# Guids


def archive(fetch_number: int) -> list[Article]:
    return [
        Article(
            f"Report {n} of the archive",
            id=f"{fetch_number}-{n}",
            url=f"https://a.org/{n}",
            source="a",
            body=f"Body of report {n}.",
            published_at=NOON - timedelta(hours=n),
        )
        for n in range(600)
    ]


def test_an_archive_of_600_under_fresh_guids_is_duplicates_and_its_next_fetch_writes_nothing(
    session, feed
):
    assert feed(archive(1)) == {"new": 600}
    assert feed(archive(2)) == {"duplicate": 600}
    assert len(links(session)) == 600
    assert {stage for _, _, stage in links(session)} == {"entry"}
    before = snapshot(session)
    assert feed(archive(2)) == {"unchanged": 600}
    assert feed(archive(1)) == {"unchanged": 600}
    assert snapshot(session) == before
    # each stands for one: no article but the first of its text waits to be encoded
    assert sum(column(session, "encode_due")) == 600


def test_guids_are_of_their_feed_whatever_they_look_like(session, feed):
    articles = [
        Article(f"Flood {guid!r}", id=guid, source=source)
        for source in ("a", "b")
        for guid in ("7", "/news/7", "0", "7 ")
    ]
    assert feed(articles) == {"new": 8}
    assert feed(articles) == {"unchanged": 8}


def test_a_missing_guid_is_the_normalised_address_else_title_and_date(session, feed):
    first = [Article("Flood", url="https://www.a.org/1?utm_source=x"), Article("Fire")]
    again = [Article("Flood", url="http://a.org/1#top"), Article("Fire")]
    assert feed(first) == {"new": 2}
    assert sorted(column(session, "guid")) == ["Fire None", "https://a.org/1"]
    assert feed(again) == {"changed": 1, "unchanged": 1}
    dated = Article("Fire", published_at=NOON)
    assert feed([dated]) == {"duplicate": 1}, "another guid, but nothing else that is new"
    assert feed([dated]) == {"unchanged": 1}


def test_an_edit_raises_the_revision_and_merges_into_the_row(session, feed):
    report = Article("Flood", id="7", source="a", body="One.", published_at=NOON)
    feed([report])
    assert feed([replace(report, body="Two.")], 1) == {"changed": 1}
    assert (column(session, "revision"), column(session, "body")) == ([2], ["Two."])


# Addresses


@pytest.mark.parametrize(
    "variant",
    [
        "http://www.a.org/flood",
        "https://a.org/flood/",
        "https://A.ORG:443/flood#comments",
        "https://a.org/flood?utm_source=rss&utm_medium=feed",
        "https://a.org/flood?fbclid=IwAR0",
        "https://a.org/flood?UTM_Campaign=x&gclid=7",
        "https://a.org/%66lood",
    ],
)
def test_a_tracking_variant_is_the_same_article(session, feed, variant):
    feed([Article("Flood", id="1", url="https://a.org/flood", source="a")])
    assert feed([Article("Flood!", id="2", url=variant, source="b")], 1) == {"duplicate": 1}
    assert links(session) == [("2", "1", "url")]


@pytest.mark.parametrize(
    "name", ["id", "p", "article", "story", "docid", "idx", "a_id", "n", "ref"]
)
def test_an_id_in_the_query_never_collapses_a_site(session, feed, name):
    site = [
        Article(f"Report {n}", url=f"https://a.org/read?{name}={n}", source="a") for n in range(5)
    ]
    assert feed(site) == {"new": 5}
    assert links(session) == []


def test_an_id_in_a_parameter_that_looks_like_tracking_is_kept_where_the_feed_says_so(
    session, feed
):
    site = [Article(f"Report {n}", url=f"https://a.org/?spm={n}", source="a") for n in range(3)]
    settings(session, "a", identity_params=["spm"])
    assert feed(site) == {"new": 3}
    assert feed(site) == {"unchanged": 3}
    assert links(session) == []
    others = [replace(article, source="b", id=f"b{n}") for n, article in enumerate(site)]
    # The other feed says nothing of spm: for it the site has one address.
    assert feed(others[:1]) == {"new": 1}


# Texts


def test_paywall_stubs_are_not_duplicates(session, feed):
    stub = "Subscribe to read the rest of this report. Already a subscriber? Sign in."
    articles = [
        Article(f"Report {n}", id=str(n), url=f"https://a.org/{n}", source="a", body=stub)
        for n in range(20)
    ]
    assert feed(articles) == {"new": 20}
    assert links(session) == []


def test_the_same_wire_text_in_four_feeds_is_one_article_with_three_duplicates(session, feed):
    articles = [
        Article(
            title,
            id=f"{source}-1",
            url=f"https://{source}.org/1",
            source=source,
            body=WIRE.format("Kestrel Bay") + ending,
            published_at=NOON - timedelta(hours=hours),
        )
        for source, title, hours, ending in (
            ("herald", "Flood in Kestrel Bay", 1, ""),
            ("wire", "Harbour wall gives way", 3, " (Reuters)"),
            ("post", "Army boats for flooded town", 2, " — North Wire"),
            ("tribune", "Record crest expected", 0, ""),
        )
    ]
    assert feed(articles) == {"new": 1, "duplicate": 3}
    assert {canonical for _, canonical, _ in links(session)} == {"wire-1"}


@pytest.mark.parametrize(("window", "together"), [(None, False), (timedelta(days=15), True)])
def test_a_story_that_resurfaces_after_two_weeks_in_a_slow_feed(session, feed, window, together):
    text = WIRE.format("Kestrel Bay")
    feed([Article("Flood", id="1", url="https://a.org/1", source="a", body=text)])
    if window:
        settings(session, "monthly", duplicate_window=window)
    late = Article("The flood", id="2", url="https://m.org/2", source="monthly", body=text)
    counts = feed([late], 24 * 14)
    assert counts == ({"duplicate": 1} if together else {"new": 1})


# Live blogs


def update(n: int, guid: str | None = None, source: str = "blog") -> Article:
    """The blog after its n-th update, whose text is long enough to be compared."""
    return Article(
        f"Storm live: update {n}",
        id=guid,
        url=f"https://blog.org/live/storm?utm_content={n}#update-{n}",
        source=source,
        body=f"Update {n}: " + WIRE.format(f"town number {n}"),
        published_at=NOON + timedelta(minutes=10 * n),
    )


def test_a_live_feed_is_keyed_by_address_whatever_guid_an_update_has(session, feed):
    settings(session, "blog", kind="live")
    assert feed([update(1, "g1")]) == {"new": 1}
    for n in range(2, 12):
        assert feed([update(n, f"g{n}")], n / 6) == {"changed": 1}
    assert column(session, "guid") == ["g1"]
    assert column(session, "title") == ["Storm live: update 11"]
    assert column(session, "revision") == [11]
    assert links(session) == []


def test_a_live_feed_that_lists_all_updates_is_one_article_with_the_latest(session, feed):
    settings(session, "blog", kind="live")
    newest_first = [update(n, f"g{n}") for n in range(9, 0, -1)]
    assert feed(newest_first) == {"new": 1, "changed": 8}
    assert column(session, "title") == ["Storm live: update 9"]
    before = snapshot(session)
    assert feed(newest_first) == {"unchanged": 9}
    assert snapshot(session) == before


def test_other_addresses_of_a_live_feed_are_other_articles(session, feed):
    settings(session, "blog", kind="live")
    one, other = update(1, "g1"), replace(update(2, "g2"), url="https://blog.org/live/quake")
    bare = [Article("No address", id="x", source="blog"), Article("None", id="y", source="blog")]
    assert feed([one, other, *bare]) == {"new": 4}


def test_a_live_text_is_no_ones_duplicate_by_its_text(session, feed):
    settings(session, "blog", kind="live")
    text = WIRE.format("Kestrel Bay")
    feed([replace(update(1, "g1"), body=text)])
    assert feed([Article("Flood", id="2", url="https://a.org/2", source="a", body=text)]) == {
        "new": 1
    }
    mirrored = replace(update(3, "m1", source="mirror"), body="Of the mirror.")
    assert feed([mirrored]) == {"duplicate": 1}
    assert links(session) == [("m1", "g1", "url")]


def test_a_feed_that_turns_live_goes_on_with_the_article_it_has(session, feed):
    feed([update(1, "g1")])
    feed([update(2, "g2")], 1)
    assert links(session) == [("g2", "g1", "url")]
    settings(session, "blog", kind="live")
    assert feed([update(3, "g3"), update(2, "g2")], 2) == {"changed": 2}
    assert column(session, "title") == ["Storm live: update 3", "Storm live: update 2"]
    assert column(session, "live_since")[0] is not None


def test_an_article_that_is_edited_again_and_again_becomes_live(session, feed):
    report = update(0, "g1")
    feed([report])
    for n in range(1, 4):
        feed([update(n, "g1")], n)
        assert column(session, "live_since") == [None]
    feed([update(4, "g1")], 4)
    assert column(session, "live_since") == [NOON + timedelta(hours=4)]
    # From now on a fresh guid at its address is an edit of it.
    assert feed([update(5, "fresh")], 5) == {"changed": 1}
    assert column(session, "title") == ["Storm live: update 5"]
    assert column(session, "content_hash") == [None]


def test_corrections_over_days_make_nothing_live(session, feed):
    feed([update(0, "g1")])
    for n in range(1, 9):
        feed([replace(update(n, "g1"), published_at=NOON + timedelta(hours=13 * n))], 13 * n)
    assert column(session, "revision") == [9]
    assert column(session, "live_since") == [None]


def test_an_address_given_again_and_again_under_fresh_guids_becomes_live(session, feed):
    feed([update(0, "g0")])
    for n in range(1, 5):
        assert feed([update(n, f"g{n}")], n) == {"duplicate": 1}
    for n in range(5, 9):
        assert feed([update(n, f"g{n}")], n) == {"changed": 1}
    assert len(column(session, "id")) == 5
    assert column(session, "title")[0] == "Storm live: update 8"


def test_a_reissued_archive_makes_nothing_live(session, feed):
    for number in range(7):
        feed(archive(number)[:3], number)
    assert set(column(session, "live_since")) == {None}


# Edits


def copy_of(number: int, **changes: object) -> Article:
    plain = Article(
        f"Flood {number}",
        id=str(number),
        url=f"https://s{number}.org/1",
        source=f"s{number}",
        body=WIRE.format("Kestrel Bay"),
        published_at=NOON + timedelta(minutes=number),
    )
    return replace(plain, **changes)


def test_a_duplicate_whose_text_becomes_another_is_its_own_article_again(session, feed):
    assert feed([copy_of(1), copy_of(2)]) == {"new": 1, "duplicate": 1}
    own = "Our reporter spent the night in the gym of the school with the families of the lower town. "
    assert feed([copy_of(2, body=own * 6)], 1) == {"changed": 1}
    assert links(session) == []
    assert column(session, "encode_due") == [True, True]
    assert feed([copy_of(2)], 2) == {"changed": 1}
    assert links(session) == [("2", "1", "content")]
    assert column(session, "encode_due") == [True, False]


def test_a_duplicate_whose_edit_leaves_it_a_copy_keeps_its_link(session, feed):
    feed([copy_of(1), copy_of(2)])
    feed([copy_of(2, title="Another headline", author="A. Nother")], 1)
    assert session.value("totals") is not None
    count = session.connection.execute("SELECT count(*) FROM duplicate_link").fetchone()[0]
    assert (links(session), count) == ([("2", "1", "content")], 1)


def test_an_edit_of_the_canonical_article_leaves_its_copies(session, feed):
    feed([copy_of(1), copy_of(2)])
    feed([copy_of(1, body="Withdrawn.")], 1)
    assert links(session) == [("2", "1", "content")]


def test_a_tracking_twin_stays_a_duplicate_however_its_text_changes(session, feed):
    feed([Article("Flood", id="1", url="https://a.org/1", source="a")])
    twin = Article("Flood", id="2", url="https://a.org/1?gclid=2", source="b")
    feed([twin], 1)
    feed([replace(twin, title="Flood: the latest", body="More.")], 2)
    assert links(session) == [("2", "1", "url")]


def test_an_article_that_becomes_a_copy_is_folded_while_nothing_rests_on_it(session, feed):
    feed([copy_of(1), copy_of(2, body="Breaking: flood. More to follow.")])
    assert links(session) == []
    feed([copy_of(2)], 1)
    assert links(session) == [("2", "1", "content")]
    assert column(session, "encode_due") == [True, False]
