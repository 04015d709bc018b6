"""Reading gold and assignments, joining them, and refusing what is malformed."""

from __future__ import annotations

import gzip
import json
import os
import threading

import pytest

from clustering.errors import SourceError
from clustering.evaluation import evaluate, evaluate_rows
from clustering.evaluation.files import read_rows

GOLD = [
    {"id": "a", "language": "en", "published_at": "2026-03-01T10:00:00Z", "story": "fire"},
    {"id": "b", "language": "fr", "published_at": "2026-03-01T11:00:00Z", "story": "fire"},
    {"id": "c", "language": "en", "published_at": "2026-03-01T12:00:00Z", "story": "vote"},
    {"id": "d", "language": "de", "published_at": "2026-03-01T13:00:00Z", "story": None},
]
OUTPUT = [
    {"id": "a", "story_id": 1, "event_id": 9},
    {"id": "b", "story_id": 1, "event_id": 9},
    {"id": "c", "story_id": None, "event_id": None},
    {"id": "d", "story_id": 1, "event_id": 9},
]


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        path = tmp_path / name
        content = text if isinstance(text, bytes) else text.encode()
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return path

    return write


@pytest.fixture
def gold(write):
    return write("gold.jsonl", lines(GOLD))


@pytest.fixture
def output(write):
    return write("out.jsonl", lines(OUTPUT))


def test_files_equal_rows(gold, output):
    assert evaluate(gold, output) == evaluate_rows(GOLD, OUTPUT)
    assert evaluate(str(gold), str(output)) == evaluate(gold, output)


def test_perfect_output_scores_one(gold, output):
    found = evaluate(gold, output)
    assert found.bcubed.f1 == found.pairwise.f1 == found.ami == 1
    assert found.cross_lingual.gold_pairs == 1
    assert found.same_language.gold_pairs == 0


def test_gzip_equals_plain(write, gold, output):
    packed = evaluate(write("g.jsonl.gz", lines(GOLD)), write("o.jsonl.gz", lines(OUTPUT)))
    assert packed == evaluate(gold, output)


def test_gzip_is_told_by_its_first_bytes_and_not_by_its_name(write, gold, output):
    hidden = write("packed.jsonl", gzip.compress(lines(OUTPUT).encode()))
    assert evaluate(gold, hidden) == evaluate(gold, output)


def test_a_pipe_can_be_read(tmp_path, gold, output):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    feeder = threading.Thread(target=pipe.write_bytes, args=(gzip.compress(gold.read_bytes()),))
    feeder.start()
    assert evaluate(pipe, output) == evaluate(gold, output)
    feeder.join()


def test_blank_lines_and_a_byte_order_mark_are_allowed(write, gold, output):
    text = "\ufeff" + lines(GOLD).replace("\n", "\r\n\n  \n")
    assert evaluate(write("odd.jsonl", text), output) == evaluate(gold, output)


def test_line_numbers_count_blank_lines(write):
    rows = list(read_rows(write("odd.jsonl", '\n{"a": 1}\n\n\n[2]')))
    assert [(row.line, row.content) for row in rows] == [(2, {"a": 1}), (5, [2])]


def test_unlabelled_articles_are_left_out_even_where_they_sit_in_a_story():
    found = evaluate_rows(GOLD, OUTPUT)
    assert found.coverage.scored == 3
    assert found.coverage.unlabelled == 1
    assert found.coverage.unlabelled_placed == 1
    assert found.predicted.largest == 2
    assert [language.language for language in found.languages] == ["en", "fr"]


def test_an_unlabelled_article_in_a_story_of_its_own_kind_is_not_beside_scored_ones():
    noise = [{"id": name, "story": None} for name in "xy"]
    together = [{"id": name, "story_id": 77} for name in "xy"]
    found = evaluate_rows([*GOLD, *noise], OUTPUT + together)
    assert (found.coverage.unlabelled, found.coverage.unlabelled_placed) == (3, 1)


def test_unlabelled_articles_can_be_scored_as_stories_of_their_own(gold, output):
    found = evaluate(gold, output, score_unlabelled=True)
    assert found == evaluate_rows(GOLD, OUTPUT, score_unlabelled=True)
    assert (found.coverage.scored, found.coverage.unlabelled) == (4, 0)
    assert found.bcubed.precision == pytest.approx((2 / 3 + 2 / 3 + 1 + 1 / 3) / 4)
    assert found.bcubed.recall == 1


def test_articles_in_no_story_are_not_one_cluster():
    gold = [{"id": name, "story": "s"} for name in "abc"]
    found = evaluate_rows(gold, [{"id": name, "story_id": None} for name in "abc"])
    assert found.bcubed.precision == 1
    assert found.bcubed.recall == pytest.approx(1 / 3)
    assert found.predicted.singletons == found.coverage.unplaced == 3


def test_missing_articles_count_as_unplaced_and_are_named():
    gold = [{"id": f"n{i}", "story": i % 2} for i in range(9)]
    assignments = [{"id": "n0", "story_id": 4}, {"id": "n2", "story_id": None}]
    found = evaluate_rows(gold, assignments)
    assert (found.coverage.unplaced, found.coverage.missing) == (8, 7)
    assert found.coverage.missing_examples == ("n1", "n3", "n4", "n5", "n6")
    assert found.predicted.singletons == 9


def test_a_missing_article_that_is_unlabelled_is_not_reported():
    found = evaluate_rows(GOLD, OUTPUT[:3])
    assert (found.coverage.missing, found.coverage.unlabelled_placed) == (0, 0)


def test_unknown_articles_are_ignored_and_counted():
    strangers = [{"id": f"z{i}", "story_id": 1} for i in range(3)]
    found, before = evaluate_rows(GOLD, OUTPUT + strangers), evaluate_rows(GOLD, OUTPUT)
    assert found.coverage.unknown == 3
    assert (found.bcubed, found.predicted) == (before.bcubed, before.predicted)


def test_no_assignment_at_all_is_all_singletons(write, gold):
    found = evaluate(gold, write("empty.jsonl", ""))
    assert found.coverage.missing == 3
    assert found.bcubed.precision == 1
    assert found.pairwise.recall == 0


def test_integers_and_strings_name_the_same_things():
    gold = [{"id": 1, "story": 7}, {"id": "2", "story": "7"}]
    found = evaluate_rows(gold, [{"id": "1", "story_id": 5}, {"id": 2, "story_id": "5"}])
    assert found.coverage.missing == found.coverage.unknown == 0
    assert found.pairwise.common_pairs == 1


@pytest.mark.parametrize(
    "row", [{"id": "a", "story": 1}, {"id": "a", "language": None, "story": 1}]
)
def test_a_language_that_is_not_stated_is_undetermined(row):
    found = evaluate_rows([row], [])
    assert [language.language for language in found.languages] == ["und"]


def test_an_assignment_may_repeat_itself():
    assert evaluate_rows(GOLD, OUTPUT * 2) == evaluate_rows(GOLD, OUTPUT)


def test_an_article_in_two_stories_is_refused(write, gold):
    doubled = write("out.jsonl", lines([*OUTPUT, {"id": "b", "story_id": 2}]))
    with pytest.raises(SourceError, match=r"out\.jsonl:5: id 'b' is in story '1' and in story '2'"):
        evaluate(gold, doubled)


def test_an_article_in_a_story_and_in_none_is_refused(write, gold):
    doubled = write("out.jsonl", lines([*OUTPUT, {"id": "b", "story_id": None}]))
    with pytest.raises(SourceError, match=r"out\.jsonl:5: .* in story None"):
        evaluate(gold, doubled)


def test_a_gold_id_may_repeat_its_story_and_counts_once(write, gold, output):
    doubled = write("gold.jsonl", lines([*GOLD, GOLD[1]]))
    assert evaluate(doubled, output) == evaluate(gold, output)


def test_a_gold_id_with_two_stories_is_refused(write, output):
    doubled = write("gold.jsonl", "\n" + lines([*GOLD, {**GOLD[1], "story": "another"}]))
    with pytest.raises(SourceError, match=r"gold\.jsonl:6: id 'b' stands in line 3 with another"):
        evaluate(doubled, output)


MALFORMED_GOLD = {
    "not json": (b'{"id": ', r"not JSON: Expecting value"),
    "no object": (b'["a", "fire"]', r"not an object but list"),
    "a number": (b"12", r"not an object but int"),
    "null": (b"null", r"not an object but NoneType"),
    "no id": (b'{"story": "s"}', r"no id; give it"),
    "null id": (b'{"id": null, "story": "s"}', r"id is null or empty"),
    "empty id": (b'{"id": "", "story": "s"}', r"id is null or empty"),
    "boolean id": (b'{"id": true, "story": "s"}', r"id is True"),
    "no story": (b'{"id": "z"}', r"no story; give it, or null"),
    "list story": (b'{"id": "z", "story": ["s"]}', r"story is \['s'\]"),
    "fraction story": (b'{"id": "z", "story": 1.5}', r"story is 1\.5"),
    "number language": (b'{"id": "z", "story": "s", "language": 3}', r"language is 3"),
    "latin-1": (b'{"id": "z", "story": "\xe9t\xe9"}', r"not UTF-8: "),
    "deep": (b"[" * 200_000, r"not JSON: "),
    "long number": (b'{"id": ' + b"9" * 5000 + b"}", r"not JSON: "),
}


@pytest.mark.parametrize("name", MALFORMED_GOLD)
def test_malformed_gold_is_refused_with_file_and_line(write, output, name):
    content, message = MALFORMED_GOLD[name]
    path = write("bad.jsonl", lines(GOLD).encode() + b"\n" + content + b"\n")
    with pytest.raises(SourceError, match=rf"bad\.jsonl:6: {message}") as caught:
        evaluate(path, output)
    assert "\n" not in str(caught.value)


MALFORMED_OUTPUT = {
    "no story": ({"id": "c", "event_id": 1}, "no story_id; give it, or null"),
    "boolean": ({"id": "c", "story_id": False}, "story_id is False"),
    "object": ({"id": "c", "story_id": {}}, r"story_id is \{\}"),
    "no id": ({"story_id": 1}, "no id"),
}


@pytest.mark.parametrize("name", MALFORMED_OUTPUT)
def test_malformed_output_is_refused_with_file_and_line(write, gold, name):
    row, message = MALFORMED_OUTPUT[name]
    path = write("bad.jsonl.gz", lines([OUTPUT[0], row]))
    with pytest.raises(SourceError, match=rf"bad\.jsonl\.gz:2: {message}"):
        evaluate(gold, path)


def test_malformed_rows_in_memory_are_named_by_list_and_number():
    with pytest.raises(SourceError, match="gold rows:2: no story"):
        evaluate_rows([GOLD[0], {"id": "b"}], OUTPUT)
    with pytest.raises(SourceError, match="assignments:1: no story_id"):
        evaluate_rows(GOLD, [{"id": "a"}])
    with pytest.raises(SourceError, match="gold rows:1: not an object but str"):
        evaluate_rows(["a"], OUTPUT)


@pytest.mark.parametrize("text", ["", "\n\n", lines([GOLD[3]])])
def test_gold_without_a_labelled_article_is_refused(write, output, text):
    with pytest.raises(SourceError, match=r"gold\.jsonl: no article with a story to score"):
        evaluate(write("gold.jsonl", text), output)


def test_no_rows_are_refused():
    with pytest.raises(SourceError, match="gold rows: no article with a story to score"):
        evaluate_rows([], [])
    with pytest.raises(SourceError, match="no article"):
        evaluate_rows([], [], score_unlabelled=True)


def test_a_file_that_is_not_there_is_refused(tmp_path, gold):
    with pytest.raises(SourceError, match=r"absent\.jsonl: cannot be read: No such file"):
        evaluate(gold, tmp_path / "absent.jsonl")


def test_a_folder_is_refused(tmp_path, output):
    with pytest.raises(SourceError, match="cannot be read: Is a directory"):
        evaluate(tmp_path, output)


def test_a_truncated_gzip_is_refused(write, output):
    packed = gzip.compress(lines(GOLD).encode())
    with pytest.raises(SourceError, match=r"cut\.jsonl: damaged gzip after line 0"):
        evaluate(write("cut.jsonl", packed[: len(packed) // 2]), output)


def test_a_gzip_with_a_wrong_checksum_is_refused(write, output):
    packed = bytearray(gzip.compress(lines(GOLD).encode()))
    packed[-6] ^= 0xFF
    with pytest.raises(SourceError, match=r"bad\.jsonl: damaged gzip after line 4: CRC"):
        evaluate(write("bad.jsonl", bytes(packed)), output)


def test_a_gzip_with_damaged_blocks_is_refused(write, output):
    packed = bytearray(gzip.compress(lines(GOLD).encode()))
    packed[10:30] = b"\xff" * 20
    with pytest.raises(SourceError, match=r"bad\.jsonl: damaged gzip"):
        evaluate(write("bad.jsonl", bytes(packed)), output)
