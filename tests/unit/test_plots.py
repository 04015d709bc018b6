"""Charts: what is drawn is what was given."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from plain_calibration import PLAIN

from clustering import plots
from clustering.engine.workbench import PairTable
from clustering.evaluation.curves import threshold_curve
from clustering.plots.similarities import median_table
from clustering.plots.stories import flattened
from clustering.stories.search import Trial


@pytest.fixture
def pairs():
    """Eight pairs: five of one story, in two languages; aligned cosines tell the kinds apart."""
    same = np.array([1, 1, 1, 1, 1, 0, 0, 0], bool)
    return PairTable(
        raw=np.array([0.9, 0.8, 0.85, 0.9, 0.8, 0.88, 0.84, 0.7], np.float32),
        aligned=np.array([0.9, 0.7, 0.8, 0.6, 0.65, 0.2, 0.1, 0.0], np.float32),
        hours=np.arange(8, dtype=float),
        same=same,
        languages=np.array([("en", "en")] * 3 + [("en", "ja")] * 2 + [("en", "ja")] * 3),
    )


def units(count, dimension=8, seed=3):
    rows = np.random.default_rng(seed).normal(size=(count, dimension)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_curves_count_what_a_threshold_keeps(pairs):
    curve = threshold_curve(pairs.aligned, pairs.same, steps=10)
    for threshold, precision, recall in zip(
        curve.thresholds, curve.precision, curve.recall, strict=True
    ):
        kept = pairs.aligned >= threshold
        assert precision == pytest.approx(pairs.same[kept].mean())
        assert recall == pytest.approx(kept[pairs.same].mean())
    assert curve.best[1] == 1
    assert 0.2 < curve.best[0] <= 0.6


def test_f1_of_nothing_is_zero_and_without_stories_there_is_no_curve(pairs):
    assert threshold_curve(pairs.raw, pairs.same).f1.min() >= 0
    with pytest.raises(ValueError, match="no pair is of one story"):
        threshold_curve(pairs.raw, np.zeros(8, bool))


def test_both_histograms_hold_both_kinds(pairs):
    figure = plots.similarity_histograms(pairs, threshold=0.5)
    before, after = figure.axes
    assert [axes.get_title() for axes in (before, after)] == ["Before alignment", "After alignment"]
    for axes in (before, after):
        assert len(axes.containers) == 2
        for bars in axes.containers:
            areas = [bar.get_height() * bar.get_width() for bar in bars]
            assert sum(areas) == pytest.approx(1)
    assert [line.get_xdata()[0] for line in after.lines] == [0.5]


def test_curves_are_drawn_as_counted(pairs):
    figure = plots.threshold_curves(pairs)
    for axes, cosines in zip(figure.axes, (pairs.raw, pairs.aligned), strict=True):
        curve = threshold_curve(cosines, pairs.same)
        for line, values in zip(
            axes.lines, (curve.precision, curve.recall, curve.f1), strict=False
        ):
            assert np.allclose(line.get_ydata(), values)
    assert figure.axes[1].texts[0].get_text().startswith("F1 1.00 at")


def test_a_table_of_languages_has_medians_and_gaps(pairs):
    cosines, languages = pairs.aligned[pairs.same], pairs.languages[pairs.same]
    table = median_table(cosines, languages, ["en", "ja"])
    assert table[0, 0] == pytest.approx(0.8)
    assert np.isnan(table[0, 1])  # two pairs are too few
    assert np.isnan(table[1, 1])


def test_languages_are_named_on_both_axes(pairs):
    figure = plots.language_pairs(pairs)
    for axes in figure.axes:
        assert [label.get_text() for label in axes.get_xticklabels()] == ["en", "ja"]
        assert [text.get_text() for text in axes.texts]


def test_a_plateau_shows_each_value_and_the_one_in_force():
    tried = [Trial(replace(PLAIN, match=value), 1 - value) for value in (0.3, 0.4, 0.5)]
    ages = [Trial(replace(PLAIN, story_age_hours=value), 0.5) for value in (24, 48)]
    figure = plots.plateau({"match": tried, "story_age_hours": ages}, PLAIN)
    one, other = figure.axes
    assert one.lines[0].get_xdata().tolist() == [0.3, 0.4, 0.5]
    assert one.lines[0].get_ydata().tolist() == pytest.approx([0.7, 0.6, 0.5])
    assert one.lines[1].get_xdata()[0] == PLAIN.match
    assert (one.get_xlabel(), other.get_xlabel()) == ("cosine", "hours")


def test_sizes_are_ranked():
    figure = plots.story_sizes([7, 7, 7, 1, 2, 2], [0, 0, 0, 0, 1, 1])
    gold, engine = figure.axes[0].lines
    assert engine.get_ydata().tolist() == [3, 2, 1]
    assert gold.get_ydata().tolist() == [4, 2]
    assert engine.get_xdata().tolist() == [1, 2, 3]


def test_a_map_has_a_colour_for_each_story_and_grey_for_the_rest():
    stories = [1, 1, 1, 2, 2, 3, 4]
    titles = ["one", "1", "uno", "two", "2", "three", "four"]
    figure = plots.day_map(units(7), stories, titles)
    alone, one, two = figure.axes[0].collections
    assert [len(part.get_offsets()) for part in (alone, one, two)] == [2, 3, 2]
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == [
        "alone",
        "one",
        "two",
    ]


def test_near_articles_are_near_on_the_map_and_it_is_the_same_each_time():
    vectors = np.repeat(np.eye(4, 8, dtype=np.float32), 10, axis=0) + 0.05 * units(40)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    points = flattened(vectors)
    group = np.arange(40) // 10
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    assert (group[apart.argmin(axis=1)] == group).mean() > 0.9
    assert np.array_equal(points, flattened(vectors))


def test_a_matrix_puts_groups_side_by_side():
    vectors = units(5)
    groups = ["b", "a", "b", "a", "b"]
    figure = plots.similarity_matrix(vectors, groups, "A title")
    (axes, _) = figure.axes
    order = [1, 3, 0, 2, 4]
    assert np.allclose(axes.images[0].get_array(), vectors[order] @ vectors[order].T, atol=1e-6)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]
    assert axes.lines[0].get_ydata()[0] == 1.5


def test_a_story_is_named_by_a_title_that_can_be_drawn(tmp_path):
    titles = ["ভূমিকম্প", "Überschwemmung", "地震", "заголовок", "洪水", "中央銀行"]
    figure = plots.day_map(units(6), [1, 1, 2, 2, 3, 3], titles)
    texts = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert texts == ["alone", "Überschwemmung", "заголовок", "▯▯"]
    figure.savefig(tmp_path / "map.png")  # a missing glyph would be a warning, and that an error


def test_every_chart_is_a_figure_that_a_notebook_shows(pairs):
    figure = plots.threshold_curves(pairs)
    assert isinstance(figure, Figure)
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_without_matplotlib_the_extra_is_named():
    program = (
        "import sys; sys.modules['matplotlib.figure'] = None\n"
        "try:\n    from clustering import plots\nexcept Exception as error: print(repr(error))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "PlotError" in done.stdout
    assert "story-clustering[notebook]" in done.stdout
