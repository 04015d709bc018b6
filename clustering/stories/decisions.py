"""Writing decisions down: placements and merges, of passes and of editors alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clustering.store.session import Session
    from clustering.stories.placement import Placement

_COLUMNS = ("article_id", "story_id", "pass", "score", "threshold", "nearest_id")


def record_placements(session: Session, decided: Sequence[Placement], run_id: int) -> set[int]:
    """Write where articles are put; returns the stories that they were in."""
    values = dict(zip(_COLUMNS, map(list, zip(*decided, strict=True)), strict=True))
    return {row.story_id for row in session.rows("place_articles", run_id=run_id, **values)}


def record_merges(
    session: Session,
    found: Sequence[tuple[int, int, float | None]],
    threshold: float | None,
    run_id: int,
) -> None:
    """Let stories become part of others; what follows from the survivors' members is left to `refresh`.

    Args:
        session: inside a transaction.
        found: absorbed story, survivor and score of each merge; no score where an editor merges.
        threshold: what the scores had to reach.
        run_id: run that merges.
    """
    absorbed, survivors, scores = map(list, zip(*found, strict=True))
    both = {"absorbed_id": absorbed, "survivor_id": survivors}
    session.execute("merge_stories", **both, score=scores, threshold=threshold, run_id=run_id)
    session.execute("redirect_stories", **both)
    session.execute("move_members", **both)
    session.execute("drop_centroids", absorbed_id=absorbed)
