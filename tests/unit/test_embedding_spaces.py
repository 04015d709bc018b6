"""Names of spaces, what serves whom, and what is learned from a corpus without a database."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustering.embedding import corpus
from clustering.embedding.cards import card_names, load_card
from clustering.embedding.corpus import Learned, language_span
from clustering.embedding.domain import (
    PRIOR_ARTICLES,
    UNALIGNED_PRIOR_ARTICLES,
    DomainMean,
    first_domain_mean,
)
from clustering.embedding.space import Space, space_name

SPACE = Space("a_v1", "a", "1", 4, "query: ", "title", "v1")


@given(st.text(min_size=1, max_size=80), st.sampled_from(["none", "06c7bb02a90c", "fit_1a2b3c4d"]))
def test_names_fit_into_those_of_tables(model, version):
    name = space_name(model, version)
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789_")
    assert name.endswith(version)
    assert len(f"article_vector_{name}_20261201") <= 63
    assert len(f"story_vector_{name}") <= 63


def test_the_default_space_is_called_as_it_always_was():
    assert (
        space_name("multilingual-e5-small", "06c7bb02a90c") == "multilingual_e5_small_06c7bb02a90c"
    )


def test_folders_of_the_same_last_name_have_spaces_of_their_own():
    assert space_name("/srv/one/model", "none") != space_name("/srv/two/model", "none")
    assert space_name("org/name", "none") != space_name("other/name", "none")
    assert space_name("/srv/one/model", "none").startswith("model_")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model", "b"),
        ("revision", "2"),
        ("dimension", 5),
        ("prefix", ""),
        ("recipe", "title and body"),
        ("alignment", "v2"),
    ],
)
def test_a_space_serves_only_what_is_encoded_the_same_way(field, value):
    fitted = replace(SPACE, name="a_fit_1", fit="1")
    assert fitted.serves(SPACE)
    assert not fitted.serves(replace(SPACE, **{field: value}))


@pytest.mark.parametrize("name", sorted(set(card_names()) - {"multilingual-e5-small"}))
def test_models_of_the_hub_are_pinned_to_a_commit(name):
    revision = load_card(name).revision
    assert len(revision) == 40
    assert set(revision) <= set("0123456789abcdef")


def test_the_span_of_languages_takes_them_out():
    rng = np.random.default_rng(0)
    offsets = rng.normal(size=(3, 8))
    means = {name: offsets[place] for place, name in enumerate(("de", "en", "ru"))}
    basis = language_span(means, dict.fromkeys(means, corpus.LEAST_OF_A_LANGUAGE))
    assert basis.shape == (2, 8)
    np.testing.assert_allclose(basis @ basis.T, np.eye(2), atol=1e-9)
    left = offsets - offsets @ basis.T @ basis
    np.testing.assert_allclose(left, left[[0, 0, 0]], atol=1e-9)


@pytest.mark.parametrize("counts", [{"en": 900, "de": 49}, {"en": 900}])
def test_a_language_with_few_articles_spans_nothing(counts):
    means = {name: np.eye(4)[place] for place, name in enumerate(counts)}
    assert language_span(means, counts).shape == (0, 4)


def test_sums_by_language_are_those_of_everything():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(400, 5)).astype(np.float32)
    languages = [("en", "de")[place % 3 == 0] for place in range(400)]
    sums = corpus._Sums()
    for start in range(0, 400, 90):
        sums.add(rows[start : start + 90], languages[start : start + 90])
    plain = sums.learned(with_basis=False)
    assert plain.basis is None
    assert plain.articles == 400
    np.testing.assert_allclose(plain.mean, rows.mean(axis=0, dtype=np.float64), atol=1e-7)
    spanned = sums.learned(with_basis=True)
    german = np.array(languages) == "de"
    between = rows[german].mean(axis=0) - rows[~german].mean(axis=0)
    direction = between / np.linalg.norm(between)
    assert abs(spanned.basis[0] @ direction) == pytest.approx(1, abs=1e-5)
    expected = plain.mean - (plain.mean @ direction) * direction
    np.testing.assert_allclose(spanned.mean, expected, atol=1e-5)


def test_a_version_is_that_of_all_numbers():
    one = Learned(np.ones(3), None, 2000)
    assert one.version("v1") == Learned(np.ones(3), None, 5000).version("v1")
    assert one.version("v1") != one.version("v2")
    assert one.version("v1") != replace(one, mean=np.full(3, 1.01)).version("v1")
    assert one.version("v1") != replace(one, basis=np.eye(3)[:1]).version("v1")
    assert len(one.version("v1")) == 8


def test_a_fixed_mean_learns_and_stays():
    state = replace(first_domain_mean(3, "v1"), fixed=True)
    moved = state.take(np.ones((9000, 3), np.float32)).refitted()
    assert moved.version == 1
    assert not moved.mean.any()
    assert moved.articles == 9000


@pytest.mark.parametrize(
    ("alignment", "prior"), [("none", UNALIGNED_PRIOR_ARTICLES), ("v1", PRIOR_ARTICLES)]
)
def test_the_general_mean_weighs_less_where_there_is_none(alignment, prior):
    state = first_domain_mean(3, alignment).take(np.ones((100, 3), np.float32)).refitted()
    np.testing.assert_allclose(state.mean, 100 / (100 + prior))
    assert isinstance(state, DomainMean)
