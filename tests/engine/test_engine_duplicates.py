"""Duplicates, verdicts and feeds' settings through the engine: what follows for stories."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from clustering import Article
from clustering.dedup.links import LinkFilter
from clustering.engine.runs import run_lock
from clustering.errors import InvalidInput, NotFoundError, RunLocked

BODY = "The harbour wall gave way before dawn and the lower town stood under water. " * 8
STORM = "Storm Ilva floods the port of Kestrel Bay, two thousand people leave their homes"
STORM_ES = "La tormenta Ilva inunda el puerto de Kestrel Bay y desaloja a dos mil vecinos"
BASE = datetime(2026, 3, 2, tzinfo=UTC)


def article(number: float, source: str, title: str = STORM, **values) -> Article:
    values.setdefault("id", f"{source}-{number}")
    published_at = BASE + timedelta(hours=number)
    return Article(title, source=source, language="en", published_at=published_at, **values)


def seen(article: Article) -> datetime:
    return article.published_at


def ids(engine) -> dict[str, int]:
    rows = engine._database.session.connection.execute("SELECT guid, id FROM article")
    return dict(rows.fetchall())


@pytest.fixture
def flooded(engine):
    """A story of two articles, one of which has copies in two other feeds."""
    engine.ingest(
        [
            article(0, "wire", body=BODY, id="wire"),
            article(1, "diario", STORM_ES, id="diario"),
            article(2, "herald", "Flood in Kestrel Bay", body=BODY, id="herald"),
            article(3, "post", "Kestrel Bay under water", body=BODY, id="post"),
        ],
        first_seen=seen,
    )
    engine.cluster()
    (story,) = engine.stories()
    assert (story.size, story.sources) == (2, 4)
    return engine


def test_an_undone_duplicate_is_encoded_and_placed_by_the_next_run(flooded):
    known = ids(flooded)
    undone = flooded.undo_duplicates(LinkFilter(article_ids=[known["herald"]]))
    (link,) = undone.links
    assert (link.article_id, link.canonical_id) == (known["herald"], known["wire"])
    (story,) = flooded.stories()
    assert (story.size, story.sources) == (2, 3)
    report = flooded.cluster()
    assert report.counts["encoded"] == 1
    (story,) = flooded.stories()
    assert {member.guid for member in story.articles} == {"wire", "diario", "herald"}
    assert story.sources == 4
    assert [run["command"] for run in flooded.stats()["runs"]][1] == "duplicates"
    assert flooded.stats()["runs"][1]["counts"] == {"undone": 1}


def test_what_is_undone_comes_again_unchanged(flooded):
    known = ids(flooded)
    flooded.undo_pair(known["wire"], known["herald"])
    again = [article(2, "herald", "Flood in Kestrel Bay", body=BODY, id="herald")]
    assert flooded.ingest(again, first_seen=seen).counts["unchanged"] == 1
    edited = [article(2, "herald", "Flood in Kestrel Bay, town cleared", body=BODY, id="herald")]
    assert flooded.ingest(edited, first_seen=seen).counts["changed"] == 1
    assert [link.stage for link in flooded.duplicates()] == ["content"]


@pytest.mark.parametrize("wanted", [LinkFilter(), LinkFilter(taken_back=True, stage="url")])
def test_undoing_everything_is_refused(flooded, wanted):
    with pytest.raises(InvalidInput, match="which links"):
        flooded.undo_duplicates(wanted)


def test_undoing_what_is_not_there_is_refused_and_leaves_no_run(flooded):
    runs = flooded.stats()["totals"]["runs"]
    known = ids(flooded)
    with pytest.raises(NotFoundError, match="no link"):
        flooded.undo_duplicates(LinkFilter(article_ids=[known["diario"]]))
    with pytest.raises(NotFoundError, match="neither"):
        flooded.undo_pair(known["diario"], known["wire"])
    with pytest.raises(NotFoundError, match=f"both folded into {known['wire']}"):
        flooded.undo_pair(known["herald"], known["post"])
    assert flooded.stats()["totals"]["runs"] == runs


def test_a_run_s_links_are_undone_together(flooded):
    (run_id,) = {link.run_id for link in flooded.duplicates()}
    undone = flooded.undo_duplicates(LinkFilter(run_id=run_id))
    assert len(undone.links) == 2
    assert flooded.duplicates() == []
    assert len(flooded.duplicates(LinkFilter(taken_back=True))) == 2


def test_a_verdict_parts_siblings_and_recounts_sources(flooded):
    known = ids(flooded)
    flooded.judge(known["post"], known["herald"], "different", by="ann")
    assert [link.article_id for link in flooded.duplicates()] == [known["herald"]]
    (story,) = flooded.stories()
    assert story.sources == 3
    third = article(4, "tribune", "Harbour wall gone", body=BODY, id="tribune")
    assert flooded.ingest([third], first_seen=seen).counts["duplicate"] == 1
    known = ids(flooded)
    links = {link.article_id: link.canonical_id for link in flooded.duplicates()}
    assert links == {known["herald"]: known["wire"], known["tribune"]: known["wire"]}
    lapsed = flooded.duplicates(LinkFilter(taken_back=True))
    assert [link.lapsed for link in lapsed] == [True]


def test_a_verdict_that_parts_nothing_leaves_no_run(flooded):
    known = ids(flooded)
    runs = flooded.stats()["totals"]["runs"]
    flooded.judge(known["wire"], known["diario"], "same", by="ann")
    flooded.judge(known["wire"], known["diario"], "different", by="ann")
    assert flooded.stats()["totals"]["runs"] == runs
    assert len(flooded.duplicates()) == 2


def test_like_titles_wait_for_review_until_somebody_decides(engine):
    titles = ("Kestrel Bay harbour wall gives way in the storm, town cleared",) * 2
    pair = [article(hour, f"s{hour}", title) for hour, title in enumerate(titles)]
    engine.ingest(pair, first_seen=seen)
    (waits,) = engine.review()
    assert (waits.stage, waits.score, waits.verdict) == ("title", 1, None)
    engine.judge(waits.b.id, waits.a.id, "same", by="ann")
    assert engine.review() == []
    (decided,) = engine.review(decided=True)
    assert (decided.verdict, decided.judged_by) == ("same", "ann")
    assert engine.duplicates() == []
    (flags,) = engine.stats()["flags"]
    assert flags == {"stage": "title", "flags": 1, "same": 1, "different": 0}


def test_stats_count_links_by_stage_day_and_score_band(flooded):
    known = ids(flooded)
    flooded.undo_pair(known["wire"], known["herald"])
    (band,) = flooded.stats()["bands"]
    assert (band["day"], band["stage"], band["band"]) == ("2026-03-02", "content", 1)
    assert (band["articles"], band["undone"], band["threshold"]) == (1, 1, 1)


def test_only_one_run_takes_back_decides_or_sets(flooded, dsn):
    with run_lock(dsn):
        with pytest.raises(RunLocked):
            flooded.undo_duplicates(LinkFilter(stage="content"))
        with pytest.raises(RunLocked):
            flooded.judge(1, 2, "same", by="ann")
        with pytest.raises(RunLocked):
            flooded.set_feed("wire", kind="live")


# Settings of feeds


def test_settings_of_a_feed_are_kept_and_those_not_named_stay(flooded):
    after = flooded.set_feed("wire", duplicate_window=timedelta(days=14))
    assert (after.kind, after.duplicate_window) == ("normal", timedelta(days=14))
    after = flooded.set_feed("wire", kind="live", identity_params=["b", "a", "b"])
    assert after.identity_params == ("a", "b")
    assert after.duplicate_window == timedelta(days=14)
    found = {feed.address: feed for feed in flooded.feeds()}
    assert found["wire"] == after
    assert found["post"].kind == "normal"
    assert sorted(found) == ["diario", "herald", "post", "wire"]


@pytest.mark.parametrize(
    "values",
    [
        {"kind": "slow"},
        {"duplicate_window": timedelta(0)},
        {"duplicate_window": timedelta(days=400)},
        {"identity_params": ["id="]},
        {"identity_params": [""]},
        {"identity_params": ["a b"]},
    ],
)
def test_settings_that_make_no_sense_are_refused_and_nothing_is_written(flooded, values):
    before = flooded.feeds()
    with pytest.raises(InvalidInput):
        flooded.set_feed("wire", **values)
    assert flooded.feeds() == before


def test_an_unknown_feed_is_refused_unless_it_is_said_to_be_new(engine):
    with pytest.raises(NotFoundError, match="no feed 'wier'"):
        engine.set_feed("wier", kind="live")
    assert engine.feeds() == []
    engine.set_feed("wire", kind="live", new=True)
    assert [(feed.address, feed.kind) for feed in engine.feeds()] == [("wire", "live")]


def site(number: int) -> Article:
    return article(number, "shop", f"Report {number}", id=None, url=f"https://a.org/?spm={number}")


def test_identity_parameters_also_hold_for_what_is_stored(engine):
    """The site's id sits in a parameter of the tracking list; its other feed gives guids."""
    given = [
        article(n, "shop", f"Report {n}", id=f"g{n}", url=f"https://a.org/?spm={n}&gclid={n}")
        for n in range(3)
    ]
    given[1:] = [
        article(n, "shop", f"Report {n}", id=f"g{n}", url=f"https://a.org/x?spm={n}")
        for n in (1, 2)
    ]
    engine.ingest(given, first_seen=seen)
    assert [link.stage for link in engine.duplicates()] == ["url"]
    engine.set_feed("shop", identity_params=["spm"])
    assert engine.duplicates() == []
    (lapsed,) = engine.duplicates(LinkFilter(taken_back=True))
    assert lapsed.lapsed
    assert engine.stats()["totals"]["waiting"] == 3
    copy = article(5, "other", "Report 2", url="https://a.org/x?spm=2")
    engine.set_feed("other", identity_params=["spm"], new=True)
    assert engine.ingest([copy], first_seen=seen).counts["duplicate"] == 1
    assert engine.duplicates()[0].canonical_id == ids(engine)["g2"]


def test_guids_made_of_addresses_follow_the_identity_parameters(engine):
    pages = [
        article(n, "shop", f"Report {n}", id=None, url=f"https://a.org/{n}?spm={n}&icid={n}")
        for n in range(3)
    ]
    assert engine.ingest(pages, first_seen=seen).counts["new"] == 3
    engine.set_feed("shop", identity_params=["icid", "spm"])
    assert engine.ingest(pages, first_seen=seen).counts["unchanged"] == 3
    assert "https://a.org/2?icid=2&spm=2" in ids(engine)
    engine.set_feed("shop", identity_params=[])
    assert engine.ingest(pages, first_seen=seen).counts["unchanged"] == 3


def test_guids_that_would_become_one_stay_two(engine):
    engine.set_feed("shop", identity_params=["spm"], new=True)
    pages = [
        article(n, "shop", f"Report {n}", id=None, url=f"https://a.org/x?spm={n}") for n in range(2)
    ]
    engine.ingest(pages, first_seen=seen)
    engine.set_feed("shop", identity_params=[])
    assert sorted(ids(engine)) == ["https://a.org/x", "https://a.org/x?spm=1"]


def test_setting_what_is_set_changes_nothing(engine):
    engine.set_feed("shop", identity_params=["spm"], new=True)
    query = "SELECT xmin::text FROM feed"
    before = engine._database.session.connection.execute(query).fetchall()
    engine.set_feed("shop", identity_params=["spm"], kind="normal", new=True)
    assert engine._database.session.connection.execute(query).fetchall() == before
    assert engine.stats()["totals"]["runs"] == 0


# Live articles


def blog(minutes: int, guid: str | None = None) -> Article:
    return article(
        minutes / 60,
        "blog",
        f"Storm Ilva live: {minutes} minutes on",
        id=guid or f"u{minutes}",
        url="https://blog.org/live/ilva",
        body="Update. " * (1 + minutes),
    )


def test_a_live_article_is_encoded_at_most_once_an_hour(engine):
    engine.set_feed("blog", kind="live", new=True)
    engine.ingest([blog(0)], first_seen=seen)
    assert engine.cluster().counts["encoded"] == 1
    for minutes in (10, 20, 30):
        engine.ingest([blog(minutes)], first_seen=seen)
    assert engine.stats()["totals"]["waiting"] == 1
    session = engine._database.session
    # As if it had been encoded in this hour, whatever the clock did meanwhile.
    session.connection.execute("UPDATE article SET encoded_at = now() + interval '1 hour'")
    assert engine.cluster().run_id is None, "nothing may be written meanwhile"
    session.connection.execute("UPDATE article SET encoded_at = now() - interval '1 hour'")
    assert engine.cluster().counts["encoded"] == 1
    assert engine.stats()["totals"]["waiting"] == 0


def test_a_replay_encodes_a_live_article_by_the_corpus_own_clock(engine):
    """Updates every ten minutes over three hours, in steps of ten minutes."""
    engine.set_feed("blog", kind="live", new=True)
    report = engine.play(
        [blog(minutes) for minutes in range(0, 180, 10)], every=timedelta(minutes=10)
    )
    assert report.counts["new"] == 1
    assert report.counts["changed"] == 17
    assert report.counts["encoded"] == 3


def test_an_article_that_is_not_live_is_encoded_with_each_edit(engine):
    report = engine.play(
        [blog(minutes, guid="one") for minutes in range(0, 40, 10)], every=timedelta(minutes=10)
    )
    assert report.counts["encoded"] == 4
