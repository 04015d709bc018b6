"""The evaluation as text: aligned, short, and safe to print."""

from __future__ import annotations

import pytest

from clustering.evaluation import evaluate_rows, format_evaluation

PLAIN_GOLD = [
    {"id": 1, "language": "en", "story": "a"},
    {"id": 2, "language": "en", "story": "a"},
    {"id": 3, "language": "fr", "story": "a"},
    {"id": 4, "language": "fr", "story": "b"},
]
PLAIN_OUTPUT = [
    {"id": 1, "story_id": 1},
    {"id": 2, "story_id": 1},
    {"id": 3, "story_id": 2},
    {"id": 4, "story_id": 2},
]


def large():
    """Return rows of 30 languages with everything that the report can mention."""
    gold = [
        {"id": i, "language": f"l{i % 30}", "story": i % 100, "published_at": "2026-03-01T10:00Z"}
        for i in range(3000)
    ]
    noise = [{"id": f"n{i}", "language": "xx", "story": None} for i in range(1500)]
    output = [{"id": i, "story_id": i % 50, "pass": f"p{i % 7}"} for i in range(2990)]
    strangers = [{"id": f"s{i}", "story_id": 3} for i in range(4)]
    placed = [{"id": f"n{i}", "story_id": 3} for i in range(1200)]
    return evaluate_rows([*gold, *noise], output + strangers + placed)


def row(report, name):
    return next(line for line in report.splitlines() if line.startswith(name)).split()


def test_report_of_a_worked_example():
    report = format_evaluation(evaluate_rows(PLAIN_GOLD, PLAIN_OUTPUT))
    # precision 1, 1, 1/2, 1/2; recall 2/3, 2/3, 1/3, 1
    assert row(report, "B-cubed ")[1:] == ["0.750", "0.667", "0.706"]
    # without article 4: precision 1, 1, 1/2; recall 2/3, 2/3, 1/3
    assert row(report, "B-cubed, stories")[-3:] == ["0.833", "0.556", "0.667"]
    assert row(report, "Pairwise")[1:] == ["0.500", "0.333", "0.400", "3"]
    assert row(report, "  same language")[2:] == ["0.500", "1.000", "0.667", "1"]
    assert row(report, "  across languages")[2:] == ["1.000", "0.000", "0.000", "2"]
    assert row(report, "Gold")[1:] == ["1", "3.0", "3", "75.0%", "1"]
    assert row(report, "Output")[1:] == ["2", "2.0", "2", "50.0%", "0"]
    bands = [line.split() for line in report.splitlines()[11:14]]
    assert bands[0][4:] == ["1", "2", "3-4", "5-9", "10-19", "20-49", "50-99", "100+"]
    assert bands[1] == ["Gold", "1", "0", "3", "0", "0", "0", "0", "0"]
    assert bands[2] == ["Output", "0", "4", "0", "0", "0", "0", "0", "0"]
    assert row(report, "en fr")[2:] == ["1.000", "0.000", "0.000", "2"]
    assert row(report, "Articles scored")[2:] == ["4"]


def test_the_most_important_figure_comes_first():
    titles = [line.split("  ")[0] for line in format_evaluation(large()).splitlines()]
    order = ["B-cubed", "Pairwise", "Gold", "B-cubed by language", "Largest language pairs"]
    places = [titles.index(title) for title in [*order, "Articles scored"]]
    assert places == sorted(places)
    assert places[0] == 1


def test_the_largest_report_fits_51_lines_of_80_columns():
    lines = format_evaluation(large()).splitlines()
    assert 40 < len(lines) <= 51
    assert max(map(len, lines)) <= 80
    assert all(line == line.rstrip() for line in lines)


def test_columns_are_aligned():
    lines = format_evaluation(large()).splitlines()
    blocks = "\n".join(lines).split("\n\n")
    scores = blocks[0].splitlines()
    for title in ("precision", "recall", "F1"):
        end = scores[0].index(title) + len(title)
        assert all(line[:end].rstrip() == line[:end] for line in scores[1:-1])
        assert all(line[end : end + 1] in ("", " ") for line in scores[1:-1])
    sizes = blocks[1].splitlines()
    for block in (sizes[:3], sizes[3:], *(blocks[place].splitlines() for place in (2, 3, 5))):
        assert len(block) > 1
        assert len({len(line) for line in block}) == 1


def test_what_was_not_scored_is_reported():
    report = format_evaluation(large())
    assert row(report, "Articles scored") == ["Articles", "scored", "3,000"]
    assert row(report, "  missing in the output")[-1] == "10"
    assert "    2990, 2991, 2992\n" in report
    assert row(report, "Unlabelled, left out")[-1] == "1,500"
    assert row(report, "  in scored stories")[-1] == "1,200"
    assert row(report, "Not in gold, ignored")[-1] == "4"
    assert row(report, "languages not shown")[-1] == "24"


@pytest.mark.parametrize(
    "absent", ["missing", "Unlabelled", "Not in gold", "not shown", "Largest language pairs"]
)
def test_what_did_not_happen_is_not_mentioned(absent):
    gold = [article | {"language": "en"} for article in PLAIN_GOLD]
    assert absent not in format_evaluation(evaluate_rows(gold, PLAIN_OUTPUT))
    assert absent in format_evaluation(large())


def test_gold_of_singletons_alone_has_no_row_of_stories():
    gold = [article | {"story": article["id"]} for article in PLAIN_GOLD]
    assert "stories of 2+" not in format_evaluation(evaluate_rows(gold, PLAIN_OUTPUT))


def test_text_of_others_cannot_reach_the_terminal_as_control_codes():
    gold = [
        {"id": "\x1b[2J", "language": "e\x07n", "story": 1},
        {"id": "x" * 500, "language": "y" * 500, "story": 1},
    ]
    report = format_evaluation(evaluate_rows(gold, []))
    assert report.replace("\n", "").isprintable()
    assert "\\x1b[2J" in report
    assert max(map(len, report.splitlines())) <= 80
