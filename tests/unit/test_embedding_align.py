"""Taking language and domain out of vectors, against the formula written out row by row."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustering.embedding.align import (
    UNALIGNED,
    Alignment,
    alignment_path,
    identity_alignment,
    load_alignment,
    normalise,
    read_alignment,
    without_span,
    write_alignment,
)
from clustering.embedding.cards import ModelCard, load_card
from clustering.errors import ModelError

DIMENSION = 12
LANGUAGES = ("de", "en", "zh-Hans", "zh-Hant")
TAGS = ["de", "en-US", "zh-TW", "zh", "und", "", None, "xx"]
PLACE = {"de": 0, "en-US": 1, "zh-TW": 3, "zh": 2}


def example(seed=0):
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(DIMENSION, 3)))[0].T
    return Alignment(
        languages=LANGUAGES,
        offsets=rng.normal(0, 0.2, (2, 4, DIMENSION)).astype(np.float32),
        domain_means=rng.normal(0, 0.2, (2, DIMENSION)).astype(np.float32),
        neutral_basis=basis.astype(np.float32),
        version="example",
    )


def unit_rows(count, seed=1):
    return normalise(np.random.default_rng(seed).normal(size=(count, DIMENSION)).astype(np.float32))


def slow(alignment, raw, tag, chars):
    """Align one vector with plain sums."""
    share = 0.5
    if chars is not None:
        share = (1 - math.exp(-min(chars, 600) / 200)) / (1 - math.exp(-3))

    def mixed(ends):
        return [(1 - share) * float(a) + share * float(b) for a, b in zip(*ends, strict=True)]

    left = [float(x) - m for x, m in zip(raw, mixed(alignment.domain_means), strict=True)]
    if tag in PLACE:
        offset = mixed(alignment.offsets[:, PLACE[tag]])
        left = [x - o for x, o in zip(left, offset, strict=True)]
    else:
        for row in alignment.neutral_basis.tolist():
            along = sum(x * b for x, b in zip(left, row, strict=True))
            left = [x - along * b for x, b in zip(left, row, strict=True)]
    length = math.sqrt(sum(x * x for x in left))
    return [x / length for x in left]


@given(
    st.lists(
        st.tuples(st.sampled_from(TAGS), st.integers(0, 5000)),
        max_size=8,
    ),
    st.integers(0, 99),
)
def test_aligned_rows_are_those_of_the_formula(rows, seed):
    alignment = example(seed)
    raw = unit_rows(len(rows), seed)
    tags, chars = [tag for tag, _ in rows], [count for _, count in rows]
    aligned = alignment.apply(raw, tags, chars)
    middle = alignment.apply(raw, tags)
    assert aligned.shape == middle.shape == raw.shape
    assert aligned.dtype == middle.dtype == np.float32
    for place, tag in enumerate(tags):
        expected = slow(alignment, raw[place], tag, chars[place])
        np.testing.assert_allclose(aligned[place], expected, atol=2e-6)
        np.testing.assert_allclose(middle[place], slow(alignment, raw[place], tag, None), atol=2e-6)


def test_a_row_does_not_depend_on_the_others():
    alignment, raw = example(), unit_rows(40)
    tags = [TAGS[place % len(TAGS)] for place in range(40)]
    chars = [17 * place for place in range(40)]
    together = alignment.apply(raw, tags, chars)
    for place in range(40):
        only = slice(place, place + 1)
        alone = alignment.apply(raw[only], tags[only], chars[only])
        assert alone.tobytes() == together[only].tobytes()


def test_the_input_is_not_changed():
    raw = unit_rows(8)
    before = raw.copy()
    for alignment in (example(), identity_alignment()):
        alignment.apply(raw, TAGS)
    np.testing.assert_array_equal(raw, before)


def test_a_longer_lede_moves_steadily_from_one_end_to_the_other():
    alignment = example()
    raw = np.repeat(unit_rows(1), 5, axis=0)
    aligned = alignment.apply(raw, ["de"] * 5, [0, 100, 250, 600, 6000])
    ends = [
        normalise(raw[:1] - alignment.offsets[k, :1] - alignment.domain_means[k]) for k in (0, 1)
    ]
    np.testing.assert_allclose(aligned[0], ends[0][0], atol=1e-6)
    np.testing.assert_allclose(aligned[3], ends[1][0], atol=1e-6)
    np.testing.assert_array_equal(aligned[3], aligned[4])
    steps = np.linalg.norm(aligned - ends[1], axis=1)
    assert (np.diff(steps[:4]) < 0).all()


@pytest.mark.parametrize(
    ("tags", "chars"), [(["de"], None), (["de"] * 3, None), (["de"] * 2, [1]), (["de"], [1, 2])]
)
def test_unequal_numbers_are_refused(tags, chars):
    with pytest.raises(ValueError, match="differ in number"):
        example().apply(unit_rows(2), tags, chars)


def test_no_vectors_are_no_vectors():
    assert example().apply(unit_rows(0), []).shape == (0, DIMENSION)


def test_without_offsets_vectors_are_only_scaled():
    raw = 3 * unit_rows(4)
    aligned = identity_alignment().apply(raw, ["de", "en", "", None], [0, 1, 2, 3])
    np.testing.assert_allclose(aligned, normalise(raw))
    assert identity_alignment().version == UNALIGNED


def test_normalise_leaves_a_row_of_zeros():
    rows = np.array([[3, 4], [0, 0]], np.float32)
    np.testing.assert_allclose(normalise(rows), [[0.6, 0.8], [0, 0]])


@given(st.integers(0, 5), st.integers(0, 99))
def test_what_is_taken_out_is_gone_and_the_rest_stays(rank, seed):
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(DIMENSION, DIMENSION)))[0].T.astype(np.float32)
    vectors = rng.normal(size=(3, DIMENSION)).astype(np.float32)
    rest = without_span(vectors, basis[:rank])
    np.testing.assert_allclose(rest @ basis[:rank].T, 0, atol=1e-5)
    np.testing.assert_allclose(rest @ basis[rank:].T, vectors @ basis[rank:].T, atol=1e-5)


def test_an_alignment_survives_a_file(tmp_path):
    path = tmp_path / "x.npz"
    write_alignment(example(), path)
    back = read_alignment(path)
    assert (back.languages, back.version) == (LANGUAGES, "example")
    for name in ("offsets", "domain_means", "neutral_basis"):
        np.testing.assert_array_equal(getattr(back, name), getattr(example(), name))


def test_equal_alignments_are_equal_files(tmp_path):
    for name in ("a", "b"):
        write_alignment(example(), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("content", [b"", b"nonsense", b"PK\x03\x04nonsense"])
def test_a_file_that_is_no_alignment_is_refused(tmp_path, content):
    path = tmp_path / "x.npz"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"x\.npz are not valid"):
        read_alignment(path)


def test_a_file_without_its_parts_is_refused(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, languages=np.array(["de"]))
    with pytest.raises(ModelError, match=r"not valid: .*offsets"):
        read_alignment(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ModelError, match=r"cannot read the offsets .*gone\.npz"):
        read_alignment(tmp_path / "gone.npz")


def test_a_model_without_offsets_is_not_aligned(tmp_path):
    for name in ("bge-m3", "someone/model"):
        assert load_alignment(load_card(name), tmp_path).version == UNALIGNED


def test_a_folder_does_not_get_the_offsets_of_a_card_with_its_name(tmp_path):
    folder = tmp_path / "multilingual-e5-small"
    folder.mkdir()
    (folder / "modules.json").write_text("[]")
    assert load_alignment(load_card(str(folder))).version == UNALIGNED


@pytest.mark.parametrize("name", ["multilingual-e5-small", "bge-m3", "someone/model"])
def test_an_alignment_of_ones_own_goes_first(tmp_path, name):
    card = ModelCard(name=name, source="x", dimension=DIMENSION)
    path = alignment_path(card, tmp_path)
    path.parent.mkdir()
    write_alignment(example(), path)
    assert load_alignment(card, tmp_path).version == "example"


def test_offsets_for_vectors_of_another_length_are_refused():
    card = ModelCard(name="multilingual-e5-small", source="bundled", dimension=1024)
    with pytest.raises(ModelError, match="for vectors of 384 numbers, the card says 1024"):
        load_alignment(card)


def test_the_shipped_alignment_fits_the_default_model():
    alignment = load_alignment(load_card("multilingual-e5-small"))
    assert len(alignment.languages) == 81
    assert alignment.offsets.shape == (2, 81, 384)
    assert alignment.domain_means.shape == (2, 384)
    np.testing.assert_allclose(
        alignment.neutral_basis @ alignment.neutral_basis.T, np.eye(16), atol=1e-5
    )
    assert np.abs(alignment.offsets.mean(axis=1)).max() < 1e-3
    assert alignment.offsets.dtype == alignment.domain_means.dtype == np.float32
