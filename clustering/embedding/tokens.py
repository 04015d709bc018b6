"""Builds the tokenizer of a 4-bit weight file as a `tokenizers` object.

The file's engine replaces characters one by one, folds runs of spaces, puts a word mark in the
place of spaces and before the text, and takes the most probable split into pieces. The same comes
out of `tokenizers` with two precautions.

- Its `Precompiled` normaliser looks at a whole grapheme before it looks at single characters, and
  then swallows the marks that follow a replaced letter. A control character put before each mark
  (and deleted by the map itself) makes each character a grapheme of its own.
- `Precompiled` takes its map as a double array (Aoe 1989, in the layout of the darts-clone
  library), which `double_array` builds.
"""

from __future__ import annotations

import struct
from collections import deque
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tokenizers import Tokenizer, normalizers

    from clustering.embedding.q4 import Q4File

# A trie's node: child by byte; under zero, the value of the key that ends here.
_Node = dict[int, "_Node | int"]

WORD_MARK = "\u2581"
SEPARATOR = "\x01"
# The places before characters that extend a grapheme: marks, joiners, what is newer than the
# expression's Unicode and may be a mark, and the vowels of Thai and Lao and half-width voiced marks
# of Japanese, which Unicode counts as letters. Not the start of the text: what is inserted there
# stays out of reach of the normalisers that follow.
BEFORE_EXTENDERS = r"(?<=[\s\S])(?=[\p{M}\p{Cn}\u200c\u200d\u0e33\u0eb3\uff9e\uff9f])"
SPECIAL_PIECES = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")


def build_tokenizer(source: Q4File) -> Tokenizer:
    """Return the tokenizer of a weight file, beginning and end of sequence included.

    Args:
        source: the parsed file.

    Returns:
        A `tokenizers.Tokenizer` that gives the ids of the file's own engine.
    """
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, processors  # noqa: PLC0415 - heavy

    names = {role: source.pieces[number][0] for role, number in source.special.items()}
    tokenizer = Tokenizer(models.Unigram(source.pieces, source.special["unk"], byte_fallback=False))
    tokenizer.normalizer = _normalizer(source.characters)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(WORD_MARK, prepend_scheme="always")
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{names['bos']} $A {names['eos']}",
        special_tokens=[(names[role], source.special[role]) for role in ("bos", "eos")],
    )
    present = {piece for piece, _ in source.pieces}
    tokenizer.add_special_tokens(
        [AddedToken(piece, normalized=False) for piece in SPECIAL_PIECES if piece in present]
    )
    return tokenizer


def _normalizer(characters: Mapping[str, str]) -> normalizers.Normalizer:
    from tokenizers import Regex, normalizers  # noqa: PLC0415 - heavy

    return normalizers.Sequence(
        [
            normalizers.Replace(Regex(BEFORE_EXTENDERS), SEPARATOR),
            normalizers.Precompiled(character_map({**characters, SEPARATOR: ""})),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )


def character_map(characters: Mapping[str, str]) -> bytes:
    """Pack replacements of single characters as SentencePiece does.

    Args:
        characters: replacement by character.

    Returns:
        Size of the double array in bytes (32 bit), the double array, and the replacements, each
        ended by a zero byte.
    """
    texts = bytearray()
    places: dict[str, int] = {}
    for text in characters.values():
        if text not in places:
            places[text] = len(texts)
            texts += text.encode() + b"\0"
    array = double_array({key.encode(): places[text] for key, text in characters.items()})
    return struct.pack("<I", 4 * len(array)) + struct.pack(f"<{len(array)}I", *array) + texts


def double_array(values: Mapping[bytes, int]) -> list[int]:
    """Build the double array of a trie.

    A node is a 32-bit unit: its label in the low byte, whether a key ends there in bit 8, and
    from bit 10 the number that, XOR the node's place and the next byte, gives the child's place.
    A key's value stands in a child of label zero, marked by the top bit.

    Args:
        values: number below 2**31 by key; no key holds a zero byte.

    Returns:
        The units, a multiple of 256 of them.
    """
    units = {0: 0}
    bases: set[int] = set()
    pending: deque[tuple[int, _Node]] = deque([(0, _trie(values))])
    while pending:
        place, children = pending.popleft()
        base = _free_base(children, units, bases)
        bases.add(base)
        units[place] |= (base ^ place) << 10 | (0 in children) << 8
        for label, child in children.items():
            if isinstance(child, int):
                units[base ^ label] = child | 1 << 31
            else:
                units[base ^ label] = label
                pending.append((base ^ label, child))
    return [units.get(place, 0) for place in range((max(units) | 255) + 1)]


def _trie(values: Mapping[bytes, int]) -> _Node:
    root: _Node = {}
    for key, value in values.items():
        node = root
        for byte in key:
            child = node.setdefault(byte, {})
            assert isinstance(child, dict)  # noqa: S101 - only label zero holds a number
            node = child
        node[0] = value
    return root


def _free_base(labels: Iterable[int], units: Mapping[int, int], bases: set[int]) -> int:
    """Return the first base that no node has and whose places for `labels` are all free.

    Units name no parent, so that two nodes with one base would own each other's children.
    """
    start = max(bases, default=0) & ~255
    return next(
        base
        for base in count(start)
        if base not in bases and all(base ^ label not in units for label in labels)
    )
