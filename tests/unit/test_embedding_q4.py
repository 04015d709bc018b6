"""The reader of 4-bit weight files, against files that the tests write."""

from __future__ import annotations

import numpy as np
import pytest
from embedding_files import CHARACTERS, HIDDEN, PIECES, shapes, write_q4
from hypothesis import given
from hypothesis import strategies as st

from clustering.embedding import q4
from clustering.errors import ModelError


@pytest.fixture(scope="module")
def written():
    return write_q4()


@pytest.fixture
def path(tmp_path, written):
    file = tmp_path / "weights.bin"
    file.write_bytes(written.content)
    return file


def test_header_and_vocabulary_are_read(path):
    parsed = q4.read_q4(path)
    assert (parsed.shape.hidden, parsed.shape.layers, parsed.shape.heads) == (HIDDEN, 2, 2)
    assert parsed.shape.epsilon == pytest.approx(1e-12)
    assert parsed.special == {"bos": 0, "eos": 2, "pad": 1, "unk": 3}
    assert parsed.pieces == PIECES
    assert parsed.characters == CHARACTERS


def test_every_tensor_has_its_values(path, written):
    parsed = q4.read_q4(path)
    assert parsed.tensors.keys() == written.matrices.keys()
    for name, meant in written.matrices.items():
        np.testing.assert_allclose(parsed.tensor(name, "float32"), meant.ravel(), rtol=1e-6)


def test_matrices_are_expanded_in_parts(path, written, monkeypatch):
    monkeypatch.setattr(q4, "CHUNK_BLOCKS", 7)
    name, shape = next(shapes())
    found = q4.read_q4(path).tensor(name, "float32").reshape(shape)
    np.testing.assert_allclose(found, written.matrices[name], rtol=1e-6)


@given(st.binary(min_size=16, max_size=16), st.floats(-100, 100, width=16))
def test_a_block_is_sixteen_low_nibbles_then_sixteen_high(nibbles, scale):
    block = np.array([(scale, list(nibbles))], dtype=q4.BLOCK)
    slow = [((byte & 15) - 8) * scale for byte in nibbles]
    slow += [((byte >> 4) - 8) * scale for byte in nibbles]
    np.testing.assert_allclose(q4.expand_blocks(block)[0], slow, rtol=1e-6)


def test_unknown_tensor_is_named(path):
    with pytest.raises(ModelError, match="no tensor nonsense"):
        q4.read_q4(path).tensor("nonsense", "float32")


@pytest.mark.parametrize("start", [b"GGUF", b"", b"E5S1"])
def test_another_format_is_refused(tmp_path, start):
    file = tmp_path / "other.bin"
    file.write_bytes(start)
    with pytest.raises(ModelError, match=r"other\.bin is no E5S1 weight file"):
        q4.read_q4(file)


def test_another_version_is_refused(tmp_path, written):
    file = tmp_path / "weights.bin"
    file.write_bytes(written.content[:4] + b"\x02" + written.content[5:])
    with pytest.raises(ModelError, match="version 2"):
        q4.read_q4(file)


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3])
def test_a_file_cut_in_its_head_is_refused(tmp_path, written, share):
    file = tmp_path / "weights.bin"
    head = written.content.index(b"l1.oln.b")
    file.write_bytes(written.content[: int(head * share)])
    with pytest.raises(ModelError, match="is no E5S1 weight file"):
        q4.read_q4(file)


def test_a_file_cut_in_its_weights_is_refused(tmp_path, written):
    file = tmp_path / "weights.bin"
    file.write_bytes(written.content[:-8])
    parsed = q4.read_q4(file)
    with pytest.raises(ModelError, match=r"ends inside tensor l1\.oln\.b"):
        parsed.tensor("l1.oln.b", "float32")
