"""Where a pass put an article, and why."""

from __future__ import annotations

from typing import NamedTuple

ATTACH = "attach"
EDITOR = "editor"


class Placement(NamedTuple):
    """One decision about one article.

    Attributes:
        article_id: the article.
        story_id: the story it was put in; None where no pass placed it.
        pass_name: `match` (pass 1), `discover` (pass 2), `attach` (pass 1, for want of better),
            `none`, `editor`, or `pending`: what an edit lets go, for the passes to place again.
        score: its score against the story or its nearest article; None where there was no candidate.
        threshold: what the score had to reach; None where an editor decided.
        nearest_id: the member of the story nearest to it; None where none is among its neighbours.
    """

    article_id: int
    story_id: int | None
    pass_name: str
    score: float | None
    threshold: float | None
    nearest_id: int | None

    @property
    def attached_to(self) -> int | None:
        """The story that the article is attached to, without a part in its centroid."""
        return self.story_id if self.pass_name == ATTACH else None

    @property
    def member_of(self) -> int | None:
        """The story that the article is a member of."""
        return self.story_id if self.pass_name != ATTACH else None
