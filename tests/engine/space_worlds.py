"""Small real models and a made-up stream of articles: enough to fill spaces in seconds."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import numpy as np
from embedding_files import LETTERS, write_q4
from psycopg import sql

from clustering import Article
from clustering.embedding.q4 import read_q4
from clustering.embedding.sentence_folder import write_folder
from clustering.embedding.space import all_spaces
from clustering.store.session import Session
from clustering.stories.calibration import Calibration

START = datetime(2026, 3, 1, tzinfo=UTC)
# The small models are random: unrelated texts are alike to them, and only copies are one story.
STRICT = Calibration(
    match=0.97,
    attach=0.97,
    link=0.97,
    merge=0.995,
    story_gap_hours=12,
    story_age_hours=24,
    centroid_members=10,
    neighbours=10,
    time_penalty=0,
    language_penalty=0,
    chain_slack=0.01,
    match_cohesion_penalty=0,
    merge_cohesion_penalty=0,
    merge_size_penalty=0,
    cohesion_prior=0.5,
    event_link=0.97,
    event_gap_hours=168,
    event_time_penalty=0,
)


def small_model(folder, seed):
    """Write a sentence-transformers folder of a random BERT with two layers and 32 dimensions."""
    (folder / "model").mkdir(parents=True)
    (folder / "weights.bin").write_bytes(write_q4(seed).content)
    write_folder(read_q4(folder / "weights.bin"), folder / "model")
    return str(folder / "model")


def write_calibration(path, calibration=STRICT):
    values = {name: getattr(calibration, name) for name in calibration.__slots__}
    path.write_text("".join(f"{name} = {value}\n" for name, value in values.items()))
    return path


def stream(count, *, seed=0, per_hour=40, languages=("en", "de", "ru")):
    """Articles of an even stream; every third repeats an earlier title of the last hours."""
    rng = random.Random(seed)
    titles = []
    found = []
    for number in range(count):
        if number % 3 == 2:
            title = titles[-rng.randint(1, min(20, len(titles)))]
        else:
            title = " ".join("".join(rng.choices(LETTERS, k=4)) for _ in range(5))
            titles.append(title)
        found.append(
            Article(
                id=f"{seed}-{number}",
                source=f"wire {number}",
                title=title,
                language=languages[number % len(languages)],
                published_at=START + timedelta(hours=number // per_hour, minutes=number % per_hour),
            )
        )
    return found


def seen(article):
    return article.published_at


def vectors(engine, name, column="aligned"):
    """The vectors of a space by article, as float32."""
    session = engine._database.session
    (space,) = [space for space in all_spaces(session) if space.name == name]
    rows = session.connection.execute(
        f"SELECT article_id, {column} FROM {space.article_table}"
    ).fetchall()
    return {article: vector.to_numpy().astype(np.float32) for article, vector in rows}


def story_ids(engine):
    """The story of each article by its guid."""
    return {guid: place.story_id for (_, guid), place in engine.assignments().items()}


def copy_database(server, source, name):
    """Make a database of a test server from another that nobody is connected to."""
    maintenance = Session(server.dsn("postgres"))
    copy = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
    maintenance.connection.execute(copy.format(sql.Identifier(name), sql.Identifier(source)))
    maintenance.close()
