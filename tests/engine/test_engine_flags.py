from __future__ import annotations

import json

import pytest

from clustering.engine.flags import flags_report, format_flags
from clustering.errors import SourceError

TITLE = "Osaka lights the cauldron in Tokyo"


def gold_row(number, title, story, hours=0, **more):
    at = f"2026-03-0{1 + hours // 24}T{hours % 24:02}:00:00Z"
    row = {"id": str(number), "title": title, "story": story, "language": "en", "published_at": at}
    return json.dumps(row | more)


@pytest.fixture
def gold(write):
    """Five rows of one title or nearly, one of them a story of its own, one three days later."""
    return write(
        "gold.jsonl",
        gold_row(1, TITLE, "a"),
        gold_row(2, f"{TITLE.upper()} - North Wire", "a", 5),
        gold_row(3, f"{TITLE} tonight", "b", 6),
        gold_row(4, TITLE, "a", 72),
        gold_row(5, "Sprinter Osei wins the hundred metres", "c", 7),
        gold_row(6, TITLE, None, 8),
    )


def test_flags_are_scored_against_the_gold_stories(gold):
    scores = flags_report(gold)
    # Labelled pairs: 1-2, 1-3, 2-3; equal titles within 48 hours: 1-2, 1-6, 2-6.
    assert (scores.flags, scores.right) == (3, 1)
    assert (scores.equal, scores.equal_flagged) == (3, 3)
    assert (scores.precision, scores.recall) == (pytest.approx(1 / 3), 1.0)
    assert format_flags(scores).splitlines() == [
        "Flags of like titles     3 pairs, 0.333 of one gold story",
        "Equal titles within 48 h 3 pairs, 1.000 flagged",
    ]


def test_evaluate_prints_both_figures(stories, write, gold):
    out = write("out.jsonl", *(json.dumps({"id": str(n), "story_id": n}) for n in range(1, 7)))
    printed = stories("evaluate", gold, out).out
    assert "3 pairs, 0.333 of one gold story" in printed
    assert "3 pairs, 1.000 flagged" in printed
    flags = stories("evaluate", gold, out, "--json").document["title_flags"]
    assert flags["precision"] == pytest.approx(1 / 3)
    assert flags["recall"] == 1.0
    assert (flags["flags"], flags["equal_title_pairs"]) == (3, 3)


@pytest.mark.parametrize(
    "rows",
    [
        [{"id": 1, "story": "a"}, {"id": 2, "story": "a"}],
        [{"id": n, "story": "a", "title": TITLE} for n in (1, 2)],
        [{"id": n, "story": "a", "title": TITLE, "published_at": "soon"} for n in (1, 2)],
        [{"id": n, "story": "a", "title": n, "published_at": "2026-03-01"} for n in (1, 2)],
        [{"id": n, "story": "a", "title": f"{n}", "published_at": "2026-03-01"} for n in (1, 2)],
        [[1, 2], "text"],
    ],
)
def test_gold_without_titles_to_compare_has_no_flags(write, rows):
    assert flags_report(write("gold.jsonl", *map(json.dumps, rows))) is None


def test_evaluate_says_nothing_of_flags_where_there_are_none(stories, write):
    gold = write(
        "gold.jsonl", *(json.dumps({"id": n, "story": "a", "language": "en"}) for n in (1, 2))
    )
    out = write("out.jsonl", *(json.dumps({"id": n, "story_id": 1}) for n in (1, 2)))
    assert "Flags" not in stories("evaluate", gold, out).out
    assert "title_flags" not in stories("evaluate", gold, out, "--json").document


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(SourceError, match=r"gone\.jsonl"):
        flags_report(tmp_path / "gone.jsonl")
