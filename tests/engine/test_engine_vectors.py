"""Vectors of a corpus: encoded once, kept, handed out again, and aligned as the engine aligns them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from clustering import Article
from clustering.embedding.align import normalise
from clustering.engine.model import Model
from clustering.engine.progress import Silent
from clustering.engine.vectors import Recalled, aligned_vectors, corpus_texts, corpus_vectors
from clustering.errors import SourceError
from clustering.settings import DEFAULT_MODEL

STORED = """
    SELECT a.guid, v.aligned::text FROM {} v JOIN article a ON a.id = v.article_id
"""


@pytest.fixture(scope="session")
def encoding_model(model_home):
    return Model(DEFAULT_MODEL, model_home)


@pytest.fixture
def unloaded(model_home):
    """The same model, its weights not loaded."""
    return Model(DEFAULT_MODEL, model_home)


@pytest.fixture
def few(sample_articles):
    """Ten articles, one text twice."""
    return [*sample_articles[:9], sample_articles[3]]


@pytest.fixture
def kept(encoding_model, few, tmp_path):
    """A folder with the vectors of the ten, and the vectors."""
    folder = tmp_path / "deep" / "vectors"
    return folder, corpus_vectors(encoding_model, few, folder, Silent())


class Counting(Silent):
    """Keeps the stages that were begun."""

    def __init__(self):
        self.stages = []

    def stage(self, name, total):
        self.stages.append((name, total))
        return super().stage(name, total)


def test_vectors_are_those_of_the_model_in_order(encoding_model, few):
    progress = Counting()
    found = corpus_vectors(encoding_model, few, None, progress)
    expected = encoding_model.encode([a.title for a in few], [a.body for a in few])
    assert (found.shape, found.dtype) == ((10, 384), np.float32)
    assert np.einsum("nd,nd->n", found, expected).min() > 0.999
    assert (found[3] == found[9]).all()
    assert progress.stages == [("encode", 9)], "a text that comes twice is encoded once"


def test_kept_vectors_are_not_encoded_again(kept, unloaded, few):
    folder, vectors = kept
    progress = Counting()
    again = corpus_vectors(unloaded, few, folder, progress)
    assert (again == vectors).all()
    assert "encoder" not in vars(unloaded), "no weights were loaded"
    assert progress.stages == []
    assert [path.suffix for path in folder.iterdir()] == [".npz"]


def test_the_order_of_articles_is_that_asked_for(kept, encoding_model, few):
    folder, vectors = kept
    turned = corpus_vectors(encoding_model, few[::-1], folder, Silent())
    assert np.einsum("nd,nd->n", turned[::-1], vectors).min() > 0.999
    assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize(
    "change", [{"prefix": "passage: "}, {"revision": "other"}, {"lede_chars": 40}]
)
def test_another_recipe_has_a_file_of_its_own(kept, encoding_model, model_home, few, change):
    folder, vectors = kept
    other = Model(DEFAULT_MODEL, model_home)
    other.card = replace(other.card, **change)
    other.encoder = encoding_model.encoder
    found = corpus_vectors(other, few, folder, Silent())
    assert len(list(folder.iterdir())) == 2
    assert (found == vectors).all() == ("lede_chars" not in change)


def damage_bytes(path):
    path.write_bytes(path.read_bytes()[:1000])


def damage_count(path):
    np.savez(path, vectors=np.zeros((4, 384), np.float32))


def damage_name(path):
    np.savez(path, other=np.zeros((9, 384), np.float32))


def damage_type(path):
    np.savez(path, vectors=np.zeros((9, 384)))


@pytest.mark.parametrize("damage", [damage_bytes, damage_count, damage_name, damage_type])
def test_a_damaged_file_is_refused_by_name(kept, unloaded, few, damage):
    folder, _ = kept
    (path,) = folder.iterdir()
    damage(path)
    with pytest.raises(SourceError, match=rf"{path.name}.*delete the file"):
        corpus_vectors(unloaded, few, folder, Silent())


def test_a_folder_that_cannot_be_written_is_refused(encoding_model, few, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SourceError, match="cannot keep vectors in"):
        corpus_vectors(encoding_model, few, tmp_path / "file" / "vectors", Silent())


def test_no_article_has_no_vector(encoding_model, tmp_path):
    assert corpus_vectors(encoding_model, [], tmp_path, Silent()).shape == (0, 384)


def test_recalled_vectors_come_by_text():
    known = Recalled(["a", "b", "c"], np.eye(3, dtype=np.float32))
    assert known.dimension == 3
    assert known.encode(["c", "a", "c"]).tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 1]]
    with pytest.raises(KeyError):
        known.encode(["d"])


def test_a_replay_on_recalled_vectors_loads_no_model(engine, encoding_model, few, tmp_path):
    texts = corpus_texts(encoding_model.card, few)
    vectors = corpus_vectors(encoding_model, few, tmp_path, Silent())
    report = engine.play(few, encoder=Recalled(texts, vectors))
    assert report.counts["encoded"] == 9
    assert "encoder" not in vars(engine.model)


def test_aligned_vectors_are_those_that_the_engine_ends_with(
    engine, encoding_model, sample_articles
):
    some = [article for article in sample_articles if article.id != "live"][:60]
    raw = corpus_vectors(encoding_model, some, None, Silent())
    engine.play(some, encoder=Recalled(corpus_texts(encoding_model.card, some), raw))
    session = engine._database.session
    rows = session.connection.execute(STORED.format(session.part("article_vectors"))).fetchall()
    stored = {guid: np.fromstring(text[1:-1], sep=",") for guid, text in rows}
    ours = dict(zip([a.id for a in some], aligned_vectors(encoding_model, some, raw), strict=True))
    # The mean in force moves when it is .01 off, so that both differ by no more than that.
    cosines = [float(ours[guid] @ vector) for guid, vector in stored.items()]
    assert len(cosines) >= 50
    assert min(cosines) > 0.999
    unaligned = dict(zip([a.id for a in some], raw, strict=True))
    assert max(float(unaligned[guid] @ vector) for guid, vector in stored.items()) < 0.99


def test_what_a_corpus_has_in_common_is_taken_out(unloaded):
    rng = np.random.default_rng(5)
    raw = normalise((3 * rng.normal(size=384) + rng.normal(size=(3000, 384))).astype(np.float32))
    articles = [Article(title=f"Result of match {n}", language="en") for n in range(3000)]
    aligned = aligned_vectors(unloaded, articles, raw)
    centred = unloaded.alignment.centre(raw, ["en"] * 3000, [0] * 3000)
    # The general mean counts as 1,000 articles, so that a quarter of what they share stays.
    expected = normalise(centred - np.float32(0.75) * centred.mean(axis=0))
    assert np.abs(aligned - expected).max() < 1e-5
    before, after = (np.linalg.norm(v.mean(axis=0)) for v in (normalise(centred), aligned))
    assert before > 0.9
    assert after < 0.8
    assert "encoder" not in vars(unloaded)
