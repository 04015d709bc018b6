"""Fitting language offsets on vectors whose offsets are known."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustering.embedding import fit
from clustering.embedding.cards import ModelCard
from clustering.errors import SourceError

DIMENSION = 6
LANGUAGES = ["ar", "de", "en", "fr", "ja"]


def parallel(seed=0, events=30, noise=0.0):
    """Return vectors of shape (2, n, d), their languages and events, and the true offsets."""
    rng = np.random.default_rng(seed)
    offsets = rng.normal(0, 1, (2, len(LANGUAGES), DIMENSION))
    offsets -= offsets.mean(axis=1, keepdims=True)
    said = rng.normal(2, 1, (2, events, DIMENSION))
    language, event = np.divmod(np.arange(len(LANGUAGES) * events), events)
    vectors = said[:, event] + offsets[:, language]
    vectors += rng.normal(0, noise or 1e-9, vectors.shape)
    names = [LANGUAGES[number] for number in language]
    return vectors, names, [f"event {number}" for number in event], offsets, said


def test_complete_text_gives_means_of_languages_less_the_mean_over_languages():
    vectors, languages, events, *_ = parallel(noise=0.3)
    number = {name: place for place, name in enumerate(LANGUAGES)}
    language = np.array([number[name] for name in languages])
    event = np.unique(events, return_inverse=True)[1]
    offsets, said = fit.fit_offsets(vectors[0], language, event)
    rows = vectors[0].reshape(len(LANGUAGES), -1, DIMENSION)
    np.testing.assert_allclose(offsets, rows.mean(axis=1) - rows.mean(axis=(0, 1)), atol=1e-6)
    np.testing.assert_allclose(said.mean(axis=0), rows.mean(axis=(0, 1)), atol=1e-6)


@given(st.integers(0, 50), st.data())
def test_missing_translations_do_not_bend_the_offsets(seed, data):
    vectors, languages, events, offsets, said = parallel(seed, events=12)
    lost = data.draw(st.sets(st.integers(0, len(languages) - 1), max_size=20))
    kept = [place for place in range(len(languages)) if place not in lost]
    # One event in every language and one language in every event hold all together.
    kept = sorted({*kept, *range(12), *range(0, len(languages), 12)})
    alignment = fit.fit_alignment(
        vectors[:, kept].astype(np.float64),
        [languages[place] for place in kept],
        [events[place] for place in kept],
    )
    np.testing.assert_allclose(alignment.offsets, offsets, atol=1e-4)
    np.testing.assert_allclose(alignment.domain_means, said.mean(axis=1), atol=1e-4)


def test_least_squares_is_that_of_a_general_solver():
    vectors, languages, events, *_ = parallel(noise=0.5, events=8)
    kept = np.array([place for place in range(len(languages)) if place % 3 or place < 8])
    language = np.unique(languages, return_inverse=True)[1][kept]
    event = np.unique(events, return_inverse=True)[1][kept]
    design = np.hstack([np.eye(len(LANGUAGES))[language], np.eye(8)[event]])
    solution = np.linalg.lstsq(design, vectors[0][kept], rcond=None)[0]
    expected = solution[: len(LANGUAGES)] - solution[: len(LANGUAGES)].mean(axis=0)
    offsets, _ = fit.fit_offsets(vectors[0][kept], language, event)
    np.testing.assert_allclose(offsets, expected, atol=1e-5)


def test_a_thin_language_is_drawn_toward_zero():
    vectors, languages, events, offsets, _ = parallel(noise=2.0, events=200, seed=3)
    kept = [p for p, name in enumerate(languages) if name != "ja" or events[p] == "event 1"]
    aligned = fit.fit_alignment(
        vectors[:, kept], [languages[p] for p in kept], [events[p] for p in kept]
    )
    thin = np.linalg.norm(aligned.offsets[:, -1], axis=1)
    unshrunk = vectors[:, kept[-1]] - vectors[:, [events.index("event 1")]].mean(axis=1)
    assert (thin < 0.7 * np.linalg.norm(unshrunk, axis=1)).all()
    # What the thin one brings into the mean moves all of the others alike.
    between = aligned.offsets[:, 1:4] - aligned.offsets[:, :1]
    np.testing.assert_allclose(between, offsets[:, 1:4] - offsets[:, :1], atol=0.6)


def test_factors_follow_the_number_of_rows():
    language = np.repeat([0, 1, 2], [1, 4, 400])
    rng = np.random.default_rng(0)
    residuals = rng.normal(0, 1, (405, 50))
    offsets = rng.normal(0, 1, (3, 50))
    factors = fit.shrink_factors(residuals, offsets, language)
    noise = (residuals**2).sum(axis=1).mean()
    spread = (offsets**2).sum(axis=1).mean() - noise * (1 + 1 / 4 + 1 / 400) / 3
    np.testing.assert_allclose(factors, [n / (n + noise / spread) for n in (1, 4, 400)])


def test_offsets_that_are_all_noise_are_dropped():
    language = np.array([0, 1])
    factors = fit.shrink_factors(np.full((2, 3), 9.0), np.full((2, 3), 0.1), language)
    np.testing.assert_array_equal(factors, [0, 0])


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12))
def test_group_means_are_means(raw_groups):
    names = sorted(set(raw_groups))
    group = np.array([names.index(name) for name in raw_groups])
    values = np.random.default_rng(0).normal(size=(len(group), 2))
    means = fit.group_means(values, group)
    for number in range(len(names)):
        np.testing.assert_allclose(means[number], values[group == number].mean(axis=0))


@pytest.mark.parametrize(("count", "rank", "kept"), [(9, 3, 3), (3, 16, 2), (1, 16, 0), (20, 9, 5)])
def test_main_directions_are_orthonormal_and_span_the_most(count, rank, kept):
    points = np.random.default_rng(1).normal(size=(count, 5)) * [5, 4, 3, 2, 1]
    basis = fit.main_directions(points, rank)
    assert basis.shape == (kept, 5)
    np.testing.assert_allclose(basis @ basis.T, np.eye(kept), atol=1e-9)
    variance = np.linalg.eigvalsh(np.cov(points.T, bias=True))[::-1] if count > 1 else np.zeros(5)
    centred = points - points.mean(axis=0)
    held = ((centred @ basis.T) ** 2).sum() / count
    assert held == pytest.approx(variance[:kept].sum())


def test_the_version_names_the_numbers():
    vectors, languages, events, *_ = parallel()
    first, again = (fit.fit_alignment(vectors, languages, events) for _ in range(2))
    other = fit.fit_alignment(vectors * 1.01, languages, events)
    assert first.version == again.version != other.version


def test_the_order_of_the_rows_does_not_matter():
    vectors, languages, events, *_ = parallel(noise=0.2)
    order = np.random.default_rng(0).permutation(len(languages))
    first = fit.fit_alignment(vectors, languages, events)
    mixed = fit.fit_alignment(
        vectors[:, order], [languages[p] for p in order], [events[p] for p in order]
    )
    assert first.languages == mixed.languages
    np.testing.assert_allclose(first.offsets, mixed.offsets, atol=1e-6)


@pytest.mark.parametrize("count", [0, 2, 3])
def test_unequal_numbers_are_refused_in_a_fit(count):
    with pytest.raises(ValueError, match="differ in number"):
        fit.fit_alignment(np.zeros((2, count, 3)), ["de"], ["a"])


class LengthEncoder:
    """A small real encoder: counts of letters, and the length."""

    dimension = 27

    def encode(self, texts):
        counts = [[text.lower().count(chr(97 + k)) for k in range(26)] for text in texts]
        lengths = [[len(text)] for text in texts]
        return np.hstack([counts, lengths]).astype(np.float32)


def rows(languages=("de", "en"), documents=3):
    return [
        {
            "id": f"doc:{number}:{language}",
            "title": f"title {number} {language}",
            "body": "word " * (5 + number),
            "language": language,
        }
        for number in range(documents)
        for language in languages
    ]


def test_titles_and_ledes_are_encoded_apart():
    card = ModelCard(name="x", source="x", lede_chars=10)
    alignment = fit.fit_rows(rows(), card, LengthEncoder())
    assert alignment.languages == ("de", "en")
    lengths = alignment.domain_means[:, -1]
    np.testing.assert_allclose(lengths, [len("title 0 de"), len("title 0 de\n") + 10])


def write_rows(path, content):
    path.write_text("".join(json.dumps(row) + "\n" for row in content))
    return path


def test_parallel_text_is_read(tmp_path):
    assert fit.read_parallel(write_rows(tmp_path / "p.jsonl", rows())) == rows()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"id": "a:de"}\n', r"p\.jsonl:1: needs id, title, body and language"),
        ("not json\n", "cannot read parallel text"),
        ("[1]\n", "cannot read parallel text"),
    ],
)
def test_parallel_text_that_is_wrong_is_refused(tmp_path, text, reason):
    path = tmp_path / "p.jsonl"
    path.write_text(text)
    with pytest.raises(SourceError, match=reason):
        fit.read_parallel(path)


def test_missing_parallel_text_is_refused(tmp_path):
    with pytest.raises(SourceError, match="cannot read parallel text"):
        fit.read_parallel(tmp_path / "gone.jsonl")
