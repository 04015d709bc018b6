"""Scores worked out by hand, the constraints of the field, extremes, and speed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from clustering import evaluation
from clustering.evaluation import PRF
from clustering.evaluation.languages import by_language, by_language_pair, pair_tables
from clustering.evaluation.result import Coverage, Scored, score
from clustering.evaluation.scores import (
    adjusted_mutual_information,
    bcubed,
    bcubed_by_article,
    codes,
    contingency,
    in_gold_stories,
    pair_score,
    pairwise,
    prf,
)
from clustering.evaluation.sizes import partition_shape

TWO_ARRAYS = (contingency, bcubed_by_article, bcubed, pairwise, adjusted_mutual_information)

# Bagga and Baldwin (1998): twelve mentions in chains of 5, 2 and 5. The first response joins the
# chain of 2 with a chain of 5, the second joins the two chains of 5.
CHAINS = list("aaaaabbccccc")
SMALL_MISTAKE = list("xxxxxyyyyyyy")
LARGE_MISTAKE = list("xxxxxyyxxxxx")


def nobody(n):
    return Coverage(n, 0, 0, 0, 0, (), 0)


def undated(gold, predicted, tags):
    return Scored(gold, predicted, tags, np.full(len(gold), np.nan))


def test_bcubed_of_the_first_published_response():
    found = bcubed(CHAINS, SMALL_MISTAKE)
    assert found.precision == pytest.approx((5 * 1 + 2 * 2 / 7 + 5 * 5 / 7) / 12)  # 76 %
    assert found.recall == 1
    assert round(found.precision, 2) == 0.76


def test_bcubed_of_the_second_published_response_is_lower():
    found = bcubed(CHAINS, LARGE_MISTAKE)
    assert found.precision == pytest.approx((10 * 5 / 10 + 2 * 1) / 12)  # 58 %
    assert found.recall == 1
    assert round(found.precision, 2) == 0.58


def test_bcubed_by_article_of_the_published_response():
    precision, recall = bcubed_by_article(CHAINS, SMALL_MISTAKE)
    assert precision == pytest.approx([1] * 5 + [2 / 7] * 2 + [5 / 7] * 5)
    assert recall == pytest.approx([1] * 12)


def test_f1_is_of_the_means_and_not_the_mean_of_f1():
    gold, predicted = [0, 0, 0, 1], [0, 1, 1, 1]
    # precision 1, 2/3, 2/3, 1/3; recall 1/3, 2/3, 2/3, 1
    found = bcubed(gold, predicted)
    assert (found.precision, found.recall) == pytest.approx((2 / 3, 2 / 3))
    assert found.f1 == pytest.approx(2 / 3)
    each = [(1 * 1 / 3) / (4 / 3) * 2, 2 / 3, 2 / 3, (1 / 3 * 1) / (4 / 3) * 2]
    assert sum(each) / 4 != pytest.approx(found.f1)


def test_pairwise_of_the_published_response():
    found = pairwise(CHAINS, SMALL_MISTAKE)
    assert (found.gold_pairs, found.predicted_pairs, found.common_pairs) == (21, 31, 21)
    assert found.precision == pytest.approx(21 / 31)
    assert found.recall == 1
    assert found.f1 == pytest.approx(2 * 21 / (21 + 31))


def test_adjusted_information_by_hand():
    # gold {1,2},{3,4}; output {1,2,3},{4}: MI = H(1/2) - (3/4) H(1/3). Of the four places of the
    # lone article each gives the same MI, so the expectation equals it and nothing is left.
    assert adjusted_mutual_information([0, 0, 1, 1], [0, 0, 0, 1]) == pytest.approx(0, abs=1e-12)
    # gold = output = {1,2},{3,4} is one of three equally likely matchings: MI is ln 2 in it and 0
    # in the other two.
    crossed = adjusted_mutual_information([0, 0, 1, 1], [0, 1, 0, 1])
    assert crossed == pytest.approx((0 - np.log(2) / 3) / (np.log(2) - np.log(2) / 3))
    assert crossed == pytest.approx(-0.5)


# The four constraints of Amigó et al. (2009), section 3: the second output of each is better.
CONSTRAINTS = {
    "homogeneity": ("aaabbb", "111111", "111222"),
    "completeness": ("aaaabb", "112233", "111133"),
    "rag bag": ("aaaabcdefg", "1111122222", "1111222222"),
    "size against quantity": ("aabbccdddd", "1234560000", "1122330004"),
}


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_bcubed_meets_the_constraints_of_amigo(name):
    gold, worse, better = (list(labels) for labels in CONSTRAINTS[name])
    assert bcubed(gold, better).f1 > bcubed(gold, worse).f1


def test_pairwise_breaks_the_rag_bag_constraint_which_is_why_bcubed_leads():
    gold, clean_spoilt, bag_spoilt = (list(labels) for labels in CONSTRAINTS["rag bag"])
    assert bcubed(gold, bag_spoilt).precision > bcubed(gold, clean_spoilt).precision
    assert pairwise(gold, bag_spoilt).precision < pairwise(gold, clean_spoilt).precision


def test_all_singletons():
    gold, alone = [0, 0, 0, 1, 1, 2], list(range(6))
    assert bcubed(gold, alone).precision == 1
    assert bcubed(gold, alone).recall == pytest.approx((3 / 3 + 2 / 2 + 1) / 6)
    pairs = pairwise(gold, alone)
    assert (pairs.precision, pairs.recall, pairs.f1) == (1, 0, 0)
    assert adjusted_mutual_information(gold, alone) == pytest.approx(0, abs=1e-12)


def test_one_blob():
    gold, blob = [0, 0, 0, 1, 1, 2], [7] * 6
    assert bcubed(gold, blob).recall == 1
    assert bcubed(gold, blob).precision == pytest.approx((9 + 4 + 1) / 36)
    pairs = pairwise(gold, blob)
    assert (pairs.precision, pairs.recall) == (pytest.approx(4 / 15), 1)
    assert adjusted_mutual_information(gold, blob) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("labels", [[5], [1, 2, 3], [4, 4, 4], [0, 0, 1], ["é", "e", "é"]])
def test_equal_partitions_are_perfect(labels):
    assert bcubed(labels, labels) == PRF(1, 1, 1)
    assert pairwise(labels, labels).f1 == 1
    assert adjusted_mutual_information(labels, labels) == 1


def test_blob_against_singletons():
    assert pairwise([1, 1, 1], [1, 2, 3]).f1 == 0
    assert pairwise([1, 2, 3], [1, 1, 1]).f1 == 0
    assert adjusted_mutual_information([1, 1, 1], [1, 2, 3]) == pytest.approx(0, abs=1e-12)


def test_an_article_of_a_gold_singleton_spoils_the_story_it_was_put_into():
    gold, predicted = ["a", "a", "b"], [1, 1, 1]
    found = bcubed(gold, predicted, only=in_gold_stories(gold))
    assert found.precision == pytest.approx(2 / 3)
    assert found.recall == 1


def test_pair_score_without_pairs():
    assert pair_score(0, 0, 0).f1 == 1
    nothing_to_find, nothing_found = pair_score(0, 3, 0), pair_score(3, 0, 0)
    assert (nothing_to_find.precision, nothing_to_find.recall) == (0, 1)
    assert (nothing_found.precision, nothing_found.recall) == (1, 0)
    assert nothing_to_find.f1 == nothing_found.f1 == 0


def test_prf_of_two_zeros_is_zero():
    assert prf(0.0, 0.0) == PRF(0.0, 0.0, 0.0)


def test_scores_are_frozen():
    with pytest.raises(FrozenInstanceError):
        prf(0.5, 0.5).precision = 1.0


@pytest.mark.parametrize("function", TWO_ARRAYS)
def test_empty_labels_are_refused(function):
    with pytest.raises(ValueError, match="at least one article"):
        function([], [])


@pytest.mark.parametrize("function", TWO_ARRAYS)
def test_labels_of_two_lengths_are_refused(function):
    with pytest.raises(ValueError, match="3 gold labels but 2 predicted"):
        function([1, 1, 2], [1, 1])


@pytest.mark.parametrize("function", [codes, partition_shape, in_gold_stories])
def test_a_table_of_labels_is_refused(function):
    with pytest.raises(ValueError, match=r"not of shape \(2, 2\)"):
        function([[1, 2], [3, 4]])


def test_averaging_over_no_article_is_refused():
    with pytest.raises(ValueError, match="no article is selected"):
        bcubed([1, 2], [1, 2], only=np.array([False, False]))


@pytest.mark.parametrize("function", [pair_tables, by_language])
def test_too_few_languages_are_refused(function):
    with pytest.raises(ValueError, match="3 articles but 2 languages"):
        function([1, 2, 3], [1, 2, 3], ["en", "fr"])


def test_codes_number_labels_of_any_kind():
    assert codes(["b", "a", "b"]).tolist() == [1, 0, 1]
    assert codes([-5, 10**15, -5]).tolist() == [0, 1, 0]
    assert codes([3]).dtype == np.int64


def test_language_pairs_by_hand():
    gold = ["s", "s", "s", "t", "t", "u"]
    tags = ["en", "en", "fr", "fr", "de", "en"]
    predicted = [1, 2, 1, 3, 3, 3]
    tables = pair_tables(gold, predicted, tags)
    assert tables.names == ("de", "en", "fr")
    assert tables.gold.tolist() == [[0, 0, 1], [0, 1, 2], [0, 0, 0]]
    assert tables.predicted.tolist() == [[0, 1, 1], [0, 0, 2], [0, 0, 0]]
    assert tables.common.tolist() == [[0, 0, 1], [0, 0, 1], [0, 0, 0]]
    found = by_language_pair(tables)
    assert [score.languages for score in found] == [("en", "fr"), ("de", "fr")]
    assert (found[0].pairs.precision, found[0].pairs.recall) == (1 / 2, 1 / 2)


def test_languages_with_equal_counts_are_in_order_of_their_tags():
    scores = by_language([1, 2, 3, 4, 5], [1, 1, 1, 1, 1], ["fr", "zh", "de", "zh", "fr"])
    assert [score.language for score in scores] == ["fr", "zh", "de"]


def test_shape_by_hand():
    shape = partition_shape(list("aaabbcd"))
    assert (shape.stories, shape.singletons, shape.largest) == (2, 2, 3)
    assert shape.mean_size == 2.5
    assert shape.largest_share == pytest.approx(3 / 7)
    assert partition_shape([1, 2, 3]).mean_size == 0


def test_bands_hold_every_size_once():
    sizes = [1, 1, 2, 3, 4, 5, 9, 10, 19, 20, 49, 50, 99, 100, 250]
    shape = partition_shape(np.repeat(np.arange(len(sizes)), sizes))
    assert [(band.least, band.most) for band in shape.bands] == [
        (1, 1), (2, 2), (3, 4), (5, 9), (10, 19), (20, 49), (50, 99), (100, None),
    ]  # fmt: skip
    assert [band.stories for band in shape.bands] == [2, 1, 2, 2, 2, 2, 2, 2]
    assert [band.articles for band in shape.bands] == [2, 2, 7, 14, 29, 69, 149, 350]


def test_gold_of_singletons_alone_has_no_score_of_stories():
    found = score(undated([1, 2, 3], [1, 1, 3], ["en"] * 3), nobody(3))
    assert found.bcubed_stories is None
    assert found.to_dict()["bcubed_stories"] is None


def test_to_dict_survives_json():
    found = score(undated(list("aabb"), [1, 1, 1, 2], ["en", "fr", "en", "de"]), nobody(4))
    plain = found.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["bcubed"] == {
        "precision": found.bcubed.precision,
        "recall": found.bcubed.recall,
        "f1": found.bcubed.f1,
    }
    assert plain["cross_lingual"]["gold_pairs"] == 2
    assert plain["language_pairs"][0]["languages"] == ["de", "en"]


def test_a_hundred_thousand_articles_take_seconds():
    rng = np.random.default_rng(7)
    n = 100_000
    gold = np.minimum(rng.zipf(1.6, n), 40_000)
    predicted = np.where(rng.random(n) < 0.5, gold, np.arange(n))  # half are alone
    tags = np.array([f"l{i}" for i in range(80)])[rng.integers(0, 80, n)].tolist()
    score(undated(gold[:100], predicted[:100], tags[:100]), nobody(100))  # imports are not timed
    start = time.perf_counter()
    found = score(undated(gold, predicted, tags), nobody(n))
    assert time.perf_counter() - start < 10  # 0.2 s alone on one core; quadratic would be hours
    assert found.predicted.singletons > 40_000
    assert 0 < found.bcubed.f1 < 1


def test_public_names_are_sorted_and_exist():
    assert set(evaluation.__all__) == {
        "PRF", "Evaluation", "evaluate", "evaluate_rows", "format_evaluation",
    }  # fmt: skip
    assert all(hasattr(evaluation, name) for name in evaluation.__all__)


def test_importing_evaluation_loads_neither_scipy_nor_scikit_learn():
    code = (
        "import sys, clustering.evaluation; print({'scipy', 'sklearn', 'torch'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
