"""Spaces: every stored vector belongs to one, and vectors of two spaces never meet in a query."""

from __future__ import annotations

import hashlib
import re
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from clustering.errors import ModelError, NotFoundError, SpaceError

if TYPE_CHECKING:
    from clustering.embedding.corpus import Learned
    from clustering.store.session import Session

# `article_vector_NAME_YYYYMMDD` has to fit into the 63 bytes of an identifier.
_MAX_NAME_CHARS = 38


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
        alignment: version of the language offsets and general mean; `none` where there are none.
        fit: version of a domain mean fitted on the user's own corpus, which then stays; empty where
            the mean is learned as articles come.
    """

    name: str
    model: str
    revision: str
    dimension: int
    prefix: str
    recipe: str
    alignment: str
    fit: str = ""

    def serves(self, wanted: Space) -> bool:
        """Tell whether what is encoded as `wanted` may be searched in this space."""
        return replace(self, name=wanted.name, fit=wanted.fit) == wanted

    @property
    def article_table(self) -> str:
        """Name of the table of the space's article vectors."""
        return f"article_vector_{self.name}"

    @property
    def story_table(self) -> str:
        """Name of the table of the space's story centroids."""
        return f"story_vector_{self.name}"


def space_name(model: str, version: str) -> str:
    """Return the name of the space that a model and a version (of alignment or fit) make.

    A hub name or a path gets six digits of its digest: the last part alone may not be unique.
    """
    short = model.rstrip("/").split("/")[-1]
    digest = f"_{hashlib.sha256(model.encode()).hexdigest()[:6]}" if "/" in model else ""
    end = f"{digest}_{version}"
    slug = re.sub(r"[^a-z0-9]+", "_", f"{short[: _MAX_NAME_CHARS - len(end)]}{end}".lower())
    return slug.strip("_")


def use_space(session: Session, space: Space) -> Space:
    """Make a session work in the active space, which is made when the database has none yet.

    Args:
        session: any.
        space: what the session's model encodes.

    Returns:
        The active space.

    Raises:
        ModelError: the database's articles are encoded in another space.
    """
    active = active_space(session)
    if active is None:
        make_space(session, space, active=True)
        active = space
    elif not active.serves(space):
        raise ModelError(
            f"this database's articles are encoded with {active.model} (space {active.name}), "
            f"not with {space.model} (space {space.name}); run with --model {active.model}, or fill "
            f"a space for the other model with `stories space backfill {space.model}`"
        )
    bind_space(session, active)
    return active


def active_space(session: Session) -> Space | None:
    """Return the space that serves, or None in a database that never encoded anything."""
    return next(iter(session.records(Space, "active_space")), None)


def all_spaces(session: Session) -> list[Space]:
    """Return every space, the oldest first."""
    return session.records(Space, "all_spaces")


def find_space(session: Session, name: str) -> Space:
    """Return a space by its name.

    Raises:
        NotFoundError: there is none of that name.
    """
    found = session.records(Space, "space_named", name=name)
    if not found:
        known = ", ".join(space.name for space in all_spaces(session)) or "none yet"
        raise NotFoundError(f"there is no space {name}; spaces of this database: {known}")
    return found[0]


def bind_active_space(session: Session) -> None:
    """Let a session read the vectors of the active space, where the database has one yet."""
    space = active_space(session)
    if space:
        bind_space(session, space)


def bind_space(session: Session, space: Space) -> None:
    """Let a session work on the vectors of one space and on no other's."""
    _bind(session, space)
    session.register_vectors()


def make_space(
    session: Session,
    space: Space,
    *,
    active: bool,
    learned: Learned | None = None,
) -> None:
    """Make a space with empty tables, unless there is one of that name.

    Args:
        session: outside a transaction.
        space: the new space.
        active: whether it serves at once.
        learned: domain mean and language directions to begin with; None for a mean of zeros.
    """
    basis = learned.basis if learned else None
    with session.transaction():
        session.execute("lock_migrations")
        if session.records(Space, "space_named", name=space.name):
            return  # another process made it while we waited
        _define(session, space)
        session.execute(
            "add_space",
            **asdict(space),
            active=active,
            mean=learned.mean.tolist() if learned else [0.0] * space.dimension,
            basis=None if basis is None else basis.tolist(),
            articles=learned.articles if learned else 0,
        )


def drop_space(session: Session, space: Space) -> None:
    """Drop a space with all its vectors; articles and stories stay.

    Raises:
        SpaceError: it is the active one.
    """
    with session.transaction():
        session.execute("lock_migrations")
        if not session.execute("forget_space", space=space.name):
            raise SpaceError(
                f"{space.name} is the active space; activate another one before it is dropped"
            )
        parts = {"article_vectors": space.article_table, "story_vectors": space.story_table}
        session.define("drop_article_vectors", **parts)
        session.define("drop_story_vectors", **parts)


def _bind(session: Session, space: Space) -> None:
    session.bind(
        article_vectors=space.article_table, story_vectors=space.story_table, space=space.name
    )


def _define(session: Session, space: Space) -> None:
    for statement in (
        "make_article_vectors",
        "index_article_vectors",
        "index_article_times",
        "make_story_vectors",
        "index_story_vectors",
    ):
        session.define(
            statement,
            dimension=space.dimension,
            article_vectors=space.article_table,
            story_vectors=space.story_table,
        )
