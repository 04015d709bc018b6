"""Near copies on ntrex.jsonl, through the engine's own ingest: twins folded, different documents never."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest
from twins import ASKED

from clustering.dedup.flags import FlagScores
from clustering.engine import Engine
from clustering.engine.corpus import corpus_rows
from clustering.engine.flags import flags_report

if TYPE_CHECKING:
    from clustering.records import Article

LEAST_CHARS = 1_000
SEED = 11


@pytest.fixture(scope="module")
def documents(data):
    """All of NTREX, each with an address and a source of its own."""
    articles = [row.article for row in corpus_rows(data / "ntrex.jsonl")]
    assert len(articles) == 5_913
    return [
        replace(article, source=f"feed {number % 40}") for number, article in enumerate(articles)
    ]


@pytest.fixture
def engine(dsn, model_home):
    with Engine.open(dsn, home=model_home) as opened:
        yield opened


def take_in(engine: Engine, articles: list[Article]) -> Counter[str]:
    """Ingest; each article is seen when it was published. Returns the stages of the links made."""
    session = engine._database.session
    latest = session.connection.execute(
        "SELECT coalesce(max(id), 0) FROM duplicate_link"
    ).fetchone()
    engine.ingest(articles, first_seen=lambda article: article.published_at)
    rows = session.connection.execute(
        "SELECT stage FROM duplicate_link WHERE id > %s", tuple(latest)
    )
    return Counter(row.stage for row in rows)


def links(engine: Engine) -> dict[str, tuple[str, str]]:
    rows = engine._database.session.connection.execute(
        "SELECT a.guid, c.guid AS chief, d.stage FROM duplicate_link d "
        "JOIN article a ON a.id = d.article_id JOIN article c ON c.id = d.canonical_id"
    )
    return {row.guid: (row.chief, row.stage) for row in rows}


def twin_of(kind, article: Article, others: list[Article], random: Random) -> Article:
    """A twin that comes from elsewhere, under a title, guid and address of its own."""
    other = random.choice([one for one in others if one is not article and len(one.body) > 300])
    made = kind(article, other, random)
    name = f"{article.id}/{kind.__name__}"
    return replace(made, id=name, url=f"https://twins.example/{name}", source="elsewhere")


def check_reach(engine, originals, pool):
    """Fold twins of each kind into stored originals; returns the shares folded, each into its own."""
    by_language = defaultdict(list)
    for article in pool:
        by_language[article.language].append(article)
    random = Random(SEED)
    assert take_in(engine, originals) == {}, "different documents were folded"
    telling = [article for article in originals if len(article.body) > LEAST_CHARS]
    shares = {}
    for kind, asked in ASKED.items():
        twins = [twin_of(kind, one, by_language[one.language], random) for one in telling]
        stages = take_in(engine, twins)
        found = links(engine)
        right = [twin for twin, one in zip(twins, telling, strict=True) if twin.id in found]
        for twin, one in zip(twins, telling, strict=True):
            if twin.id in found:
                assert found[twin.id][0] == one.id, f"{twin.id} was folded into {found[twin.id]}"
        shares[kind.__name__] = len(right) / len(telling)
        print(
            f"{kind.__name__}: {shares[kind.__name__]:.4f} of {len(telling)}, asked {asked}, {dict(stages)}"
        )
    for kind, asked in ASKED.items():
        assert shares[kind.__name__] >= asked
    return shares


def test_twins_are_folded_and_documents_are_not(engine, documents):
    sample = Random(SEED).sample(documents, 200)
    # Of the closest languages all versions: translations are no duplicates of each other.
    close = [one for one in documents if one.language in {"hr", "bs", "sr", "pt", "pt-BR"}]
    check_reach(engine, list({one.id: one for one in sample + close[::3]}.values()), documents)


@pytest.mark.slow
def test_twins_of_all_documents_are_folded_and_no_two_documents_are(engine, documents):
    check_reach(engine, documents, documents)


def test_flags_on_og2021_are_right_and_complete(data):
    scores = flags_report(data / "og2021.jsonl")
    assert isinstance(scores, FlagScores)
    print(
        f"of {scores.flags} flags {scores.precision:.4f} are right, of {scores.equal} equal titles {scores.recall:.4f} flagged"
    )
    assert scores.flags > 5_000
    assert scores.equal > 3_000
    assert scores.precision >= 0.9
    assert scores.recall >= 0.9
