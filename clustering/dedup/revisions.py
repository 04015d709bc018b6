"""What the cascade makes of articles whose text or address was edited.

A link says that a duplicate, as it reads now, repeats what its canonical article said. So an edit of the
duplicate may end it, an edit of the canonical article does not.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clustering.dedup.cascade import still_copies
from clustering.dedup.links import DuplicateLink, LinkFilter, find_links, retract

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clustering.store.session import Session


@dataclass(frozen=True, slots=True)
class Reconsidered:
    """What edits did to links.

    Attributes:
        again: ids of the edited articles that are no duplicates now, for the cascade to see again.
        bereft: ids of canonical articles that lost a duplicate.
    """

    again: list[int]
    bereft: list[int]


def reconsider(session: Session, edited_ids: Sequence[int], run_id: int) -> Reconsidered:
    """End the links that edits left nothing of.

    Args:
        session: inside a transaction, with the edits written.
        edited_ids: ids of articles whose text or address changed.
        run_id: run that the edits are recorded under.
    """
    if not edited_ids:
        return Reconsidered([], [])
    edited = set(edited_ids)
    links = find_links(session, LinkFilter(article_ids=list(edited_ids)))
    held = [link for link in links if link.article_id in edited]
    standing = _standing(session, held)
    over = [link for link in held if link.article_id not in standing]
    bereft = retract(session, over, run_id, lapsed=True) if over else []
    duplicates = {link.article_id for link in held} - {link.article_id for link in over}
    return Reconsidered([article for article in edited_ids if article not in duplicates], bereft)


def _standing(session: Session, links: Sequence[DuplicateLink]) -> set[int]:
    """Return the duplicates whose link would be made again by its stage."""
    by_stage: defaultdict[str, list[int]] = defaultdict(list)
    for link in links:
        by_stage[link.stage].append(link.article_id)
    found = (still_copies(session, stage, ids) for stage, ids in by_stage.items())
    return {article for articles in found for article in articles}
