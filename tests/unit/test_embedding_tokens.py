"""The tokenizer made of a weight file, against a slow one written out here."""

from __future__ import annotations

import pytest
from embedding_files import CHARACTERS, PIECES, write_q4
from hypothesis import given
from hypothesis import strategies as st

from clustering.embedding.q4 import read_q4
from clustering.embedding.tokens import build_tokenizer, character_map, double_array

KEYS = st.binary(min_size=1, max_size=4).filter(lambda key: 0 not in key)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    path = tmp_path_factory.mktemp("tokens") / "weights.bin"
    path.write_bytes(write_q4().content)
    return build_tokenizer(read_q4(path))


def look_up(units, key):
    """Walk a double array as darts-clone does; None where the key is not in it."""

    def child(place, label):
        unit = units[place]
        return place ^ (unit >> 10) << ((unit & 1 << 9) >> 6) ^ label

    place = 0
    for byte in key:
        place = child(place, byte)
        if place >= len(units) or units[place] & (1 << 31 | 0xFF) != byte:
            return None
    if not units[place] >> 8 & 1:
        return None
    return units[child(place, 0)] & ((1 << 31) - 1)


@given(st.dictionaries(KEYS, st.integers(0, 2**31 - 1), max_size=60), st.lists(KEYS, max_size=20))
def test_double_array_holds_its_keys_and_no_others(values, others):
    units = double_array(values)
    assert all(unit < 2**32 for unit in units)
    for key in [*values, *others]:
        assert look_up(units, key) == values.get(key)


def test_character_map_has_size_array_and_texts():
    packed = character_map({"a": "x", "b": "", "c": "x"})
    size = int.from_bytes(packed[:4], "little")
    units = [int.from_bytes(packed[at : at + 4], "little") for at in range(4, 4 + size, 4)]
    texts = packed[4 + size :]
    assert texts == b"x\0\0"
    assert [look_up(units, key) for key in (b"a", b"b", b"c", b"d")] == [0, 2, 0, None]


def slow_tokens(text):
    """Replace characters one by one, fold spaces, mark words, take the most probable split."""
    mapped = "".join(CHARACTERS.get(character, character) for character in text)
    while "  " in mapped:
        mapped = mapped.replace("  ", " ")
    marked = mapped.replace(" ", "\u2581")
    if marked and not marked.startswith("\u2581"):
        marked = "\u2581" + marked
    scores = {piece: (score, number) for number, (piece, score) in enumerate(PIECES)}
    unknown = min(score for _, score in PIECES) - 10
    best = [(0.0, [])]
    for end in range(1, len(marked) + 1):
        ways = [(best[end - 1][0] + unknown, [*best[end - 1][1], 3])]
        for start in range(end):
            if marked[start:end] in scores:
                score, number = scores[marked[start:end]]
                ways.append((best[start][0] + score, [*best[start][1], number]))
        best.append(max(ways))
    return [0, *fold_unknown(best[-1][1]), 2]


def fold_unknown(numbers):
    """Unknown characters in a row are one token, as SentencePiece has it."""
    return [
        number
        for place, number in enumerate(numbers)
        if number != 3 or place == 0 or numbers[place - 1] != 3
    ]


@given(st.text(alphabet="abcstorm fi\t\n\x07\ufb01\u0301\u00aa:жя", max_size=30))
def test_tokens_are_those_of_the_slow_tokenizer(tokenizer, text):
    assert tokenizer.encode(text).ids == slow_tokens(text)


def test_marks_after_a_replaced_letter_are_kept(tokenizer):
    pieces = tokenizer.encode("\ufb01\u0301").tokens
    assert pieces == ["<s>", "\u2581", "fi", "\u0301", "</s>"]


def test_marks_after_a_replaced_letter_are_kept_inside_a_word(tokenizer):
    assert tokenizer.encode("a\u00aa\u0301").tokens[-3:] == ["a", "\u0301", "</s>"]


def test_trailing_space_is_kept_and_runs_are_folded(tokenizer):
    assert tokenizer.encode("storm \t ").tokens == ["<s>", "\u2581storm", "\u2581", "</s>"]


def test_saved_tokenizer_gives_the_same(tokenizer, tmp_path):
    from tokenizers import Tokenizer

    path = tmp_path / "tokenizer.json"
    tokenizer.save(str(path))
    text = "storm \ufb01\u0301 жaж \x07 query:"
    assert Tokenizer.from_file(str(path)).encode(text).ids == tokenizer.encode(text).ids
