"""Fitting a space on one's own corpus, and a model that nobody measured thresholds for."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from space_worlds import (
    copy_database,
    seen,
    small_model,
    story_ids,
    stream,
    vectors,
    write_calibration,
)

from clustering import Engine
from clustering.embedding.align import normalise
from clustering.engine import spaces as module
from clustering.errors import CalibrationError, SpaceError
from clustering.store.database import drop_database
from clustering.stories.background import (
    LEAST_ARTICLES,
    Background,
    carried_over,
    measure,
    reference_background,
    reference_calibration,
)

MANY = 2100


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    return small_model(tmp_path_factory.mktemp("fitted"), seed=0)


@pytest.fixture(scope="session")
def thresholds(tmp_path_factory):
    return write_calibration(tmp_path_factory.mktemp("fit_thresholds") / "strict.toml")


@pytest.fixture(scope="session")
def large_database(server, template_database, model, thresholds, tmp_path_factory):
    """A database with 2,100 articles in stories; made once and copied."""
    copy_database(server, template_database, "template_large")
    home = tmp_path_factory.mktemp("large_home")
    dsn = server.dsn("template_large")
    with Engine.open(dsn, home=home, model=model, calibration=thresholds) as engine:
        engine.ingest(stream(MANY, per_hour=50), first_seen=seen)
        engine.cluster()
    return "template_large"


@pytest.fixture
def large(server, large_database, database_numbers, tmp_path, thresholds):
    name = f"large_{next(database_numbers)}"
    copy_database(server, large_database, name)
    with Engine.open(server.dsn(name), home=tmp_path, calibration=thresholds) as engine:
        yield engine
    drop_database(server.dsn("postgres"), name)


def refuse(*_):
    raise AssertionError("nothing is to be encoded")


def spoken(engine):
    """Language by article id, as the database has it."""
    rows = engine._database.session.connection.execute("SELECT id, language FROM article")
    return dict(rows.fetchall())


def expected_fit(raw, languages):
    """The slow way: directions of the language means out, then what is left of the mean."""
    ids = sorted(raw)
    rows = np.stack([raw[article] for article in ids]).astype(np.float64)
    names = np.array([languages[article] for article in ids])
    means = np.stack(
        [
            rows[names == name].mean(axis=0)
            for name in sorted(set(names))
            if (names == name).sum() >= 50
        ]
    )
    _, sizes, directions = np.linalg.svd(means - means.mean(axis=0))
    basis = directions[: (sizes > 1e-9).sum()][:16]
    left = rows - rows @ basis.T @ basis
    return dict(zip(ids, normalise((left - left.mean(axis=0)).astype(np.float32)), strict=True))


def test_fewer_than_two_thousand_articles_are_refused_with_their_number(
    dsn, tmp_path, model, thresholds
):
    with Engine.open(dsn, home=tmp_path, model=model, calibration=thresholds) as engine:
        engine.ingest(stream(60), first_seen=seen)
        engine.cluster()
        (only,) = engine.spaces()
        with pytest.raises(SpaceError, match=f"{only.name} has 60 articles; .* takes 2000"):
            engine.fit_space()
        assert engine.spaces() == [only]


def test_a_fit_is_a_full_new_space_and_encodes_nothing(large, monkeypatch):
    monkeypatch.setattr(module.Model, "encode", refuse)
    (old,) = large.spaces()
    fitted = large.fit_space()
    assert fitted.name.endswith(f"_fit_{fitted.fit}")
    assert len(fitted.fit) == 8
    assert (fitted.active, fitted.articles, fitted.live_missing) == (False, MANY, 0)
    assert (fitted.mean_version, fitted.mean_articles) == (1, MANY)
    assert large.spaces()[0] == old
    raw = vectors(large, old.name, "raw")
    for article, vector in vectors(large, fitted.name, "raw").items():
        np.testing.assert_array_equal(vector, raw[article])


def test_a_fit_takes_languages_and_the_mean_of_the_corpus_out(large):
    languages = spoken(large)
    assert len(set(languages.values())) >= 2
    fitted = large.fit_space()
    assert fitted.language_directions >= 1
    expected = expected_fit(vectors(large, fitted.name, "raw"), languages)
    aligned = vectors(large, fitted.name)
    for article, vector in expected.items():
        assert aligned[article] == pytest.approx(vector, abs=4e-3)


def test_the_same_corpus_gives_the_same_fit(large):
    first = large.fit_space()
    assert large.fit_space() == first
    assert len(large.spaces()) == 2


def test_a_fitted_space_serves_and_its_mean_stays(large):
    before = story_ids(large)
    fitted = large.fit_space()
    aligned = vectors(large, fitted.name)
    large.activate_space(fitted.name)
    assert story_ids(large) == before
    large.ingest(stream(MANY + 900, seed=0, per_hour=50)[MANY:], first_seen=seen)
    assert large.cluster().counts["encoded"] == 900
    (now,) = [space for space in large.spaces() if space.active]
    assert (now.name, now.mean_version, now.articles) == (fitted.name, 1, MANY + 900)
    after = vectors(large, fitted.name)
    assert all((after[article] == vector).all() for article, vector in aligned.items())


def test_vectors_of_two_spaces_never_meet(large):
    """Whatever stands in the tables of another space, a run decides the same."""
    fitted = large.fit_space()
    session = large._database.session
    session.connection.execute(
        f"UPDATE article_vector_{fitted.name} SET aligned = (SELECT aligned FROM "
        f"article_vector_{fitted.name} LIMIT 1)"
    )
    more = stream(MANY + 300, per_hour=50)[MANY:]
    large.ingest(more, first_seen=seen)
    large.cluster()
    poisoned = story_ids(large)
    own = {story: guids for story, guids in by_story(poisoned).items() if len(guids) > 1}
    titles = {article.id: article.title for article in stream(MANY + 300, per_hour=50)}
    for guids in own.values():
        assert len({titles[guid] for guid in guids}) <= 2
    assert len(own) > 300


def by_story(places):
    found = {}
    for guid, story in places.items():
        if story:
            found.setdefault(story, set()).add(guid)
    return found


@pytest.fixture
def unmeasured(dsn, tmp_path, model):
    """An engine with a model that has neither offsets nor thresholds."""
    with Engine.open(dsn, home=tmp_path, model=model) as engine:
        yield engine


def test_without_thresholds_articles_are_encoded_and_wait(unmeasured):
    unmeasured.ingest(stream(200), first_seen=seen)
    with pytest.warns(UserWarning, match="takes 500 encoded articles, of which there are 200"):
        report = unmeasured.cluster()
    assert report.counts == {"encoded": 200}
    totals = unmeasured.stats()["totals"]
    assert (totals["stories"], totals["unplaced"]) == (0, 200)
    with pytest.raises(CalibrationError, match=r"no thresholds were measured for .*--calibration"):
        _ = unmeasured.calibration


def test_what_waited_is_placed_once_there_are_enough(unmeasured):
    articles = stream(LEAST_ARTICLES + 20)
    unmeasured.ingest(articles[:300], first_seen=seen)
    with pytest.warns(UserWarning, match="takes 500"):
        unmeasured.cluster()
    unmeasured.ingest(articles[300:], first_seen=seen)
    with pytest.warns(UserWarning, match="same standard scores"):
        report = unmeasured.cluster()
    assert sum(report.counts[name] for name in ("matched", "discovered", "unplaced")) >= 520
    (space,) = unmeasured.spaces()
    assert space.background is not None
    background = Background(*space.background, 520)
    expected = carried_over(reference_calibration(), reference_background(), background)
    assert unmeasured.calibration == expected
    used = unmeasured._database.session.connection.execute(
        "SELECT DISTINCT threshold FROM story_article WHERE pass IN ('match', 'none')"
    ).fetchall()
    assert used == [(pytest.approx(expected.match),)]


def test_the_background_is_that_of_the_aligned_vectors(unmeasured):
    unmeasured.ingest(stream(LEAST_ARTICLES), first_seen=seen)
    with pytest.warns(UserWarning, match="same standard scores"):
        unmeasured.cluster()
    (space,) = unmeasured.spaces()
    aligned = vectors(unmeasured, space.name)
    rows = np.stack([aligned[article] for article in sorted(aligned)])
    found = measure(rows, np.zeros(len(rows)), 0)
    assert space.background == pytest.approx((found.mean, found.deviation), abs=5e-3)
    assert abs(found.mean) < 0.1, "the mean of the corpus is taken out"


def test_the_background_is_measured_again_when_the_corpus_has_doubled(unmeasured):
    measured = []
    articles = stream(3 * LEAST_ARTICLES, per_hour=100)
    for last in (LEAST_ARTICLES, 2 * LEAST_ARTICLES - 100, 2 * LEAST_ARTICLES + 100):
        unmeasured.ingest(articles[:last], first_seen=seen)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            unmeasured.cluster()
        measured.append(unmeasured.spaces()[0].background)
    assert measured[0] == measured[1] != measured[2]


def test_a_space_with_too_few_articles_for_thresholds_does_not_serve(
    dsn, tmp_path, model, thresholds, tmp_path_factory
):
    other = small_model(tmp_path_factory.mktemp("other"), seed=3)
    with Engine.open(dsn, home=tmp_path, model=model, calibration=thresholds) as engine:
        engine.ingest(stream(60), first_seen=seen)
        engine.cluster()
        filled = engine.backfill_space(other)
    with Engine.open(dsn, home=tmp_path) as engine:
        with pytest.raises(
            SpaceError, match=r"takes 500 articles, of which .* has 60; .*--calibration"
        ):
            engine.activate_space(filled.name)
        assert [space.active for space in engine.spaces()] == [True, False]
