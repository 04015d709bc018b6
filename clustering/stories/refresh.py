"""Keeping what follows from a story's members up to date: centroid, extent, languages, sources, headline."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from clustering.store.session import Session
    from clustering.stories.calibration import Calibration


def refresh(session: Session, story_ids: Iterable[int], calibration: Calibration) -> None:
    """Recompute the centroids of stories whose members changed, and all that readers see of them."""
    ids = sorted(set(story_ids))
    if ids:
        session.execute("refresh_centroids", story_ids=ids, members=calibration.centroid_members)
        relist(session, ids)


def relist(session: Session, story_ids: Iterable[int]) -> None:
    """Recompute what readers see of stories that articles were attached to or taken from."""
    ids = sorted(set(story_ids))
    if ids:
        session.execute("refresh_stories", story_ids=ids)


def recount_sources(session: Session, article_ids: Sequence[int]) -> None:
    """Recount the sources of the stories that some articles are in, after duplicates joined them."""
    if article_ids:
        session.execute("recount_sources", article_ids=list(article_ids))
