"""Commands about feeds, duplicates and review, in processes of their own."""

from __future__ import annotations

import json

import pytest

TITLE = "Harbour wall of Kestrel Bay gives way before dawn and the lower town is cleared"


@pytest.fixture
def stored(stories, write):
    """Two articles of one address and two of like titles, by guid; nothing is encoded."""
    rows = [
        {"id": "one", "source": "a", "title": "Flood", "url": "https://a.org/1"},
        {"id": "two", "source": "b", "title": "Flood!", "url": "https://a.org/1?utm_source=b"},
        {"id": "three", "source": "c", "title": TITLE},
        {"id": "four", "source": "d", "title": TITLE},
    ]
    path = write("rows.jsonl", *map(json.dumps, rows))
    assert stories("ingest", path).status == 0
    return stories


def test_feeds_are_listed_and_set(stored):
    assert [row["address"] for row in stored("feeds", "list", "--json").document] == list("abcd")
    arguments = ("--identity-param", "p", "--identity-param", "id", "--duplicate-window", "14d")
    ran = stored("feeds", "set", "a", *arguments, "--kind", "live", "--json")
    assert ran.document == {
        "address": "a",
        "title": None,
        "language": None,
        "kind": "live",
        "duplicate_window_hours": 336,
        "identity_params": ["id", "p"],
    }
    listed = stored("feeds", "list").out
    assert listed.split("\n")[1].split() == ["live", "336", "h", "id", "p", "a"]
    assert (
        stored("feeds", "set", "a", "--no-identity-params", "--json").document["identity_params"]
        == []
    )
    assert "normal" in stored("feeds", "set", "new feed", "--new").out


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("set", "nobody", "--kind", "live"), "no feed 'nobody'"),
        (("set", "a", "--kind", "slow"), "slow"),
        (("set", "a", "--duplicate-window", "soon"), "no span of time"),
        (("set", "a", "--duplicate-window", "9999d"), "366 days"),
        (("set", "a", "--identity-param", "id=7"), "no name of a query parameter"),
        (("set", "a", "--identity-param", "id", "--no-identity-params"), "contradict"),
        (("set",), "ADDRESS"),
    ],
)
def test_wrong_settings_are_refused_with_a_reason(stored, arguments, reason):
    ran = stored("feeds", *arguments)
    assert ran.status in {1, 2}
    assert reason in ran.err
    assert "Traceback" not in ran.err


def test_duplicates_are_listed_and_undone(stored):
    (link,) = stored("duplicates", "list", "--json").document
    assert (link["stage"], link["source"], link["canonical_title"]) == ("url", "b", "Flood")
    shown = stored("duplicates", "list", "--stage", "url", "--since", "1h").out
    assert "url: score 1.00, needs 1.00, run 1" in shown
    assert stored("duplicates", "list", "--stage", "content").err == "no such duplicates\n"
    pair = (link["canonical_id"], link["article_id"])
    ran = stored("duplicates", "undo", "--pair", *pair, "--json")
    assert ran.document["run_id"] == 2
    assert [undone["id"] for undone in ran.document["undone"]] == [link["id"]]
    assert "undone" in stored("duplicates", "list", "--undone").out
    again = stored("duplicates", "undo", "--pair", *pair)
    assert (again.status, again.out) == (1, "")
    assert "neither" in again.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("undo",),
        ("undo", "--pair", "1"),
        ("undo", "--pair", "1", "2", "--stage", "url"),
        ("list", "--stage", "guess"),
        ("list", "--article", "first"),
    ],
)
def test_wrong_usage_of_duplicates_exits_2(stored, arguments):
    ran = stored("duplicates", *arguments)
    assert ran.status == 2
    assert "Traceback" not in ran.err


def test_flagged_pairs_are_listed_and_decided(stored):
    (pair,) = stored("review", "list", "--json").document
    assert (pair["a"]["source"], pair["b"]["source"], pair["stage"]) == ("c", "d", "title")
    assert stored("review", "list").out.count(TITLE) == 2
    ids = (pair["b"]["id"], pair["a"]["id"])
    ran = stored("review", "decide", *ids, "different", "--by", "ann", "--json")
    assert ran.document == {"articles": sorted(ids), "verdict": "different", "by": "ann"}
    assert stored("review", "list", "--json").document == []
    assert stored("review", "list").err == "no pair waits\n"
    assert "different, says ann" in stored("review", "list", "--decided").out
    assert stored("review", "decide", ids[0], ids[0], "same").status == 2
    assert stored("review", "decide", ids[0], 999, "same").status == 1
    assert stored("review", "decide", *ids, "alike").status == 2


def test_stats_show_bands_and_flags(stored):
    out = stored("stats").out
    assert "duplicates by score band" in out
    bands = stored("stats", "--json").document["bands"]
    assert [(band["stage"], band["band"], band["articles"]) for band in bands] == [("url", 1, 1)]
    assert stored("stats", "--json").document["flags"] == [
        {"stage": "title", "flags": 1, "same": 0, "different": 0}
    ]
