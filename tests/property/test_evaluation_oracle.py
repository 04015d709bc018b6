"""Every score against a slow, obvious version that looks at each pair of articles."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_mutual_info_score

from clustering.evaluation import evaluate_rows
from clustering.evaluation.languages import (
    by_language,
    by_language_pair,
    cross_lingual,
    pair_tables,
    same_language,
)
from clustering.evaluation.scores import (
    adjusted_mutual_information,
    bcubed,
    bcubed_by_article,
    contingency,
    in_gold_stories,
    pair_score,
    pairwise,
)
from clustering.evaluation.sizes import partition_shape

LANGUAGES = ("en", "fr", "pt-BR", "zh")


@st.composite
def two_partitions(draw, largest=24):
    """Two label lists of one length: from all singletons to one blob, and anything between."""
    n = draw(st.integers(1, largest))
    clusters = draw(st.integers(1, n))
    labels = st.one_of(
        st.lists(st.integers(0, clusters - 1), min_size=n, max_size=n),
        st.just(list(range(n))),
        st.just([0] * n),
    )
    return draw(labels), draw(labels)


@st.composite
def corpora(draw):
    """Rows of articles: gold story, output story (None: in none) and language of each."""
    article = st.tuples(
        st.one_of(st.none(), st.integers(0, 4)),
        st.one_of(st.none(), st.integers(0, 4)),
        st.sampled_from(LANGUAGES),
    )
    rows = draw(st.lists(article, min_size=1, max_size=24))
    return [(0, rows[0][1], rows[0][2]), *rows[1:]]  # one article at least is labelled


def harmonic(precision, recall):
    return 0.0 if 0 in (precision, recall) else 2 / (1 / precision + 1 / recall)


def slow_bcubed(gold, predicted, only=None):
    """Average over articles by comparing each with every other."""
    everyone = range(len(gold))
    chosen = [i for i in everyone if only is None or only[i]]
    precision = recall = 0.0
    for i in chosen:
        both = sum(gold[i] == gold[j] and predicted[i] == predicted[j] for j in everyone)
        precision += both / sum(predicted[i] == predicted[j] for j in everyone)
        recall += both / sum(gold[i] == gold[j] for j in everyone)
    return precision / len(chosen), recall / len(chosen)


def slow_pairs(gold, predicted, wanted=lambda i, j: True):
    """Count pairs joined in gold, in the output, and in both."""
    pairs = [(i, j) for i, j in combinations(range(len(gold)), 2) if wanted(i, j)]
    in_gold = {(i, j) for i, j in pairs if gold[i] == gold[j]}
    in_output = {(i, j) for i, j in pairs if predicted[i] == predicted[j]}
    return len(in_gold), len(in_output), len(in_gold & in_output)


def between(tags, one, other):
    return lambda i, j: {tags[i], tags[j]} == {one, other}


def slow_information(gold, predicted):
    n = len(gold)
    both, ours, theirs = (
        Counter(zip(gold, predicted, strict=True)),
        Counter(gold),
        Counter(predicted),
    )
    return sum(c / n * math.log(n * c / (ours[g] * theirs[p])) for (g, p), c in both.items())


def slow_entropy(labels):
    n = len(labels)
    return -sum(c / n * math.log(c / n) for c in Counter(labels).values())


def check_pairs(score, counts):
    gold_pairs, predicted_pairs, common = counts
    assert (score.gold_pairs, score.predicted_pairs, score.common_pairs) == counts
    assert score.precision == pytest.approx(common / predicted_pairs if predicted_pairs else 1)
    assert score.recall == pytest.approx(common / gold_pairs if gold_pairs else 1)
    assert score.f1 == pytest.approx(harmonic(score.precision, score.recall))


@given(two_partitions())
def test_bcubed_equals_comparing_all_articles(partitions):
    gold, predicted = partitions
    precision, recall = slow_bcubed(gold, predicted)
    score = bcubed(gold, predicted)
    assert score.precision == pytest.approx(precision)
    assert score.recall == pytest.approx(recall)
    assert score.f1 == pytest.approx(harmonic(precision, recall))


@given(two_partitions())
def test_bcubed_of_gold_stories_keeps_the_clusters_whole(partitions):
    gold, predicted = partitions
    several = [gold.count(label) > 1 for label in gold]
    assert in_gold_stories(gold).tolist() == several
    if any(several):
        precision, recall = slow_bcubed(gold, predicted, only=several)
        score = bcubed(gold, predicted, only=in_gold_stories(gold))
        assert score.precision == pytest.approx(precision)
        assert score.recall == pytest.approx(recall)


@given(two_partitions())
def test_pairwise_equals_counting_all_pairs(partitions):
    check_pairs(pairwise(*partitions), slow_pairs(*partitions))


@settings(deadline=None)
@given(two_partitions(largest=5))
def test_adjusted_information_equals_the_mean_over_all_permutations(partitions):
    gold, predicted = partitions
    shuffles = list(permutations(predicted))
    expected = sum(slow_information(gold, shuffle) for shuffle in shuffles) / len(shuffles)
    ceiling = (slow_entropy(gold) + slow_entropy(predicted)) / 2
    found = adjusted_mutual_information(gold, predicted)
    if ceiling - expected < 1e-9:  # sizes that leave one partition only: both are it
        assert found == 1
    else:
        information = slow_information(gold, predicted)
        assert found == pytest.approx((information - expected) / (ceiling - expected), abs=1e-9)


@settings(deadline=None)
@given(two_partitions(largest=60))
def test_adjusted_information_equals_the_one_of_scikit_learn(partitions):
    ours = adjusted_mutual_information(*partitions)
    assert ours == pytest.approx(adjusted_mutual_info_score(*partitions), abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_adjusted_information_equals_scikit_learn_on_a_large_skewed_stream(seed):
    rng = np.random.default_rng(seed)
    gold = np.minimum(rng.zipf(1.5, 5000), 900)
    predicted = np.where(rng.random(5000) < 0.6, gold, rng.integers(0, 3000, 5000))
    ours = adjusted_mutual_information(gold, predicted)
    assert ours == pytest.approx(adjusted_mutual_info_score(gold, predicted), abs=1e-9)
    assert 0.1 < ours < 0.95


@given(two_partitions())
def test_shape_counts_clusters(partitions):
    labels, _ = partitions
    sizes = Counter(labels).values()
    stories = [size for size in sizes if size > 1]
    shape = partition_shape(labels)
    assert shape.stories == len(stories)
    assert shape.singletons == sum(size == 1 for size in sizes)
    assert shape.mean_size == pytest.approx(sum(stories) / len(stories) if stories else 0)
    assert shape.largest == max(sizes)
    assert shape.largest_share == pytest.approx(max(sizes) / len(labels))
    for band in shape.bands:
        inside = [size for size in sizes if band.least <= size <= (band.most or len(labels))]
        assert (band.stories, band.articles) == (len(inside), sum(inside))
    assert sum(band.articles for band in shape.bands) == len(labels)


@given(two_partitions(), st.randoms(use_true_random=False))
def test_contingency_accounts_for_every_article(partitions, random):
    gold, predicted = partitions
    table = contingency(gold, predicted)
    n = len(gold)
    assert table.gold_sizes.sum() == table.predicted_sizes.sum() == table.cell_sizes.sum() == n
    assert len(table.cell_sizes) == len(set(zip(gold, predicted, strict=True)))
    i = random.randrange(n)
    cell = table.article_cell[i]
    same = sum(pair == (gold[i], predicted[i]) for pair in zip(gold, predicted, strict=True))
    assert table.cell_sizes[cell] == same
    assert table.gold_sizes[table.cell_gold[cell]] == gold.count(gold[i])
    assert table.predicted_sizes[table.cell_predicted[cell]] == predicted.count(predicted[i])


@given(two_partitions(), st.data())
def test_language_scores_equal_looking_at_each_pair(partitions, data):
    gold, predicted = partitions
    n = len(gold)
    tags = data.draw(st.lists(st.sampled_from(LANGUAGES), min_size=n, max_size=n))
    tables = pair_tables(gold, predicted, tags)
    check_pairs(same_language(tables), slow_pairs(gold, predicted, lambda i, j: tags[i] == tags[j]))
    check_pairs(cross_lingual(tables), slow_pairs(gold, predicted, lambda i, j: tags[i] != tags[j]))
    expected = {}
    for one, other in combinations(sorted(set(tags)), 2):
        counts = slow_pairs(gold, predicted, between(tags, one, other))
        if counts[0]:
            expected[one, other] = counts
    found = by_language_pair(tables)
    assert {score.languages for score in found} == set(expected)
    for score in found:
        check_pairs(score.pairs, expected[score.languages])
    sizes = [score.pairs.gold_pairs for score in found]
    assert sizes == sorted(sizes, reverse=True)


@given(two_partitions(), st.data())
def test_bcubed_by_language_averages_over_that_language_alone(partitions, data):
    gold, predicted = partitions
    n = len(gold)
    tags = data.draw(st.lists(st.sampled_from(LANGUAGES), min_size=n, max_size=n))
    scores = by_language(gold, predicted, tags)
    assert Counter(tags) == {score.language: score.articles for score in scores}
    for score in scores:
        precision, recall = slow_bcubed(gold, predicted, [tag == score.language for tag in tags])
        assert score.bcubed.precision == pytest.approx(precision)
        assert score.bcubed.recall == pytest.approx(recall)
    counts = [score.articles for score in scores]
    assert counts == sorted(counts, reverse=True)


@given(two_partitions(), st.randoms(use_true_random=False))
def test_row_order_and_label_names_change_nothing(partitions, random):
    gold, predicted = partitions
    order = random.sample(range(len(gold)), len(gold))
    renamed = [f"story {7 - label}" for label in gold]
    shuffled = [renamed[i] for i in order], [1000 - predicted[i] for i in order]
    assert pairwise(*shuffled) == pairwise(gold, predicted)
    assert adjusted_mutual_information(*shuffled) == pytest.approx(
        adjusted_mutual_information(gold, predicted)
    )
    before, after = bcubed_by_article(gold, predicted), bcubed_by_article(*shuffled)
    for one, other in zip(before, after, strict=True):
        assert other.tolist() == [one[i] for i in order]


@given(two_partitions())
def test_changing_sides_swaps_precision_and_recall(partitions):
    gold, predicted = partitions
    one, other = bcubed(gold, predicted), bcubed(predicted, gold)
    assert (one.precision, one.recall) == pytest.approx((other.recall, other.precision))
    pairs, swapped = pairwise(gold, predicted), pairwise(predicted, gold)
    assert (pairs.precision, pairs.recall) == (swapped.recall, swapped.precision)
    assert adjusted_mutual_information(gold, predicted) == pytest.approx(
        adjusted_mutual_information(predicted, gold), abs=1e-9
    )


@given(two_partitions())
def test_scores_are_perfect_only_for_equal_partitions(partitions):
    gold, predicted = partitions
    pairs = list(combinations(range(len(gold)), 2))
    equal = all((gold[i] == gold[j]) == (predicted[i] == predicted[j]) for i, j in pairs)
    assert (bcubed(gold, predicted).f1 > 1 - 1e-12) == equal
    assert (pairwise(gold, predicted).f1 == 1) == equal
    assert (adjusted_mutual_information(gold, predicted) > 1 - 1e-9) == equal


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50))
def test_pair_scores_stay_between_0_and_1(gold_pairs, predicted_pairs, common):
    common = min(common, gold_pairs, predicted_pairs)
    score = pair_score(gold_pairs, predicted_pairs, common)
    assert 0 <= score.precision <= 1
    assert 0 <= score.recall <= 1
    assert min(score.precision, score.recall) - 1e-12 <= score.f1
    assert score.f1 <= max(score.precision, score.recall) + 1e-12


@given(corpora(), st.booleans())
def test_rows_with_nulls_equal_the_slow_scores_on_what_is_labelled(corpus, score_unlabelled):
    gold_rows = [
        {"id": str(i), "language": language, "story": gold}
        for i, (gold, _, language) in enumerate(corpus)
    ]
    assignments = [
        {"id": i, "story_id": story, "event_id": None} for i, (_, story, _) in enumerate(corpus)
    ]
    found = evaluate_rows(gold_rows, assignments, score_unlabelled=score_unlabelled)
    kept = [
        (gold if gold is not None else f"alone {i}", story if story is not None else f"alone {i}")
        for i, (gold, story, _) in enumerate(corpus)
        if score_unlabelled or gold is not None
    ]
    gold, predicted = [pair[0] for pair in kept], [pair[1] for pair in kept]
    precision, recall = slow_bcubed(gold, predicted)
    assert (found.bcubed.precision, found.bcubed.recall) == pytest.approx((precision, recall))
    check_pairs(found.pairwise, slow_pairs(gold, predicted))
    assert found.coverage.scored == len(kept)
    assert found.coverage.unlabelled == len(corpus) - len(kept)
    assert found.coverage.unplaced == sum(str(story).startswith("alone") for story in predicted)
    assert found.gold.stories + found.gold.singletons == len(set(gold))
    assert found.predicted.stories + found.predicted.singletons == len(set(predicted))
    assert sum(language.articles for language in found.languages) == len(kept)
    both = found.same_language.gold_pairs + found.cross_lingual.gold_pairs
    assert both == found.pairwise.gold_pairs
