"""Spaces: every stored vector belongs to one, and vectors of two spaces never meet in a query."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING

from clustering.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clustering.store.session import Session

_MAX_NAME_CHARS = 40


@dataclass(frozen=True, slots=True)
class Space:
    """What makes two vectors comparable.

    Attributes:
        name: part of the names of the space's tables; lower case, digits and underscores.
        model: name of the model's card, hub name or path.
        revision: revision of the model's weights, empty where it has none.
        dimension: length of a vector.
        prefix: put before each text.
        recipe: what of an article is encoded.
        alignment: version of the language offsets and domain mean; `none` where there are none.
    """

    name: str
    model: str
    revision: str
    dimension: int
    prefix: str
    recipe: str
    alignment: str


def space_name(model: str, alignment: str) -> str:
    """Return the name of the space that a model and an alignment make."""
    slug = re.sub(r"[^a-z0-9]+", "_", f"{model.rstrip('/').split('/')[-1]}_{alignment}".lower())
    return slug.strip("_")[-_MAX_NAME_CHARS:]


def use_space(session: Session, space: Space) -> None:
    """Make a session work in a space, which is made when the database has none yet.

    Raises:
        ModelError: the database's articles are encoded in another space.
    """
    active = session.records(Space, "active_space")
    if active and active[0].name != space.name:
        raise ModelError(
            f"this database's articles are encoded with {active[0].model} (space {active[0].name}), "
            f"not with {space.model} (space {space.name}); run with --model {active[0].model}, "
            "or use another database for another model"
        )
    session.bind(
        article_vectors=f"article_vector_{space.name}", story_vectors=f"story_vector_{space.name}"
    )
    if not active:
        _make(session, space)
    session.register_vectors()


def bind_active_space(session: Session) -> None:
    """Let a session read the vectors of the active space, where the database has one yet."""
    for space in session.records(Space, "active_space"):
        _bind(session, space)
        session.register_vectors()


def make_partitions(session: Session, event_times: Iterable[datetime]) -> None:
    """Make the day partitions that some times (UTC) fall into, where they are missing."""
    parent = session.part("article_vectors")
    days = {moment.astimezone(UTC).date() for moment in event_times}
    by_name = {f"{parent}_{day:%Y%m%d}": day for day in sorted(days)}
    for (name,) in session.rows("missing_partitions", names=list(by_name)):
        first = datetime.combine(by_name[name], time(), UTC)
        last = first + timedelta(days=1)
        session.define("make_partition", partition=name, first=first, last=last)


def _bind(session: Session, space: Space) -> None:
    session.bind(
        article_vectors=f"article_vector_{space.name}", story_vectors=f"story_vector_{space.name}"
    )


def _make(session: Session, space: Space) -> None:
    with session.transaction():
        session.execute("lock_migrations")
        if session.records(Space, "space_named", name=space.name):
            return  # another process made it while we waited
        for statement in (
            "make_article_vectors",
            "index_article_vectors",
            "index_article_times",
            "make_story_vectors",
            "index_story_vectors",
        ):
            session.define(statement, dimension=space.dimension)
        session.execute("add_space", **asdict(space))
