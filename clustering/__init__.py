"""story-clustering: turns a stream of news articles in many languages into stories.

from clustering import Article, Engine

with Engine.open() as engine:
engine.ingest([Article(title="…", url="https://…")])
engine.run()
for story in engine.stories(min_size=2):
print(story.headline, story.languages)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from clustering.errors import StoriesError
from clustering.records import Article, Feed, Refusal

if TYPE_CHECKING:
    from clustering.dedup.links import LinkFilter
    from clustering.engine import Engine
    from clustering.engine.runs import RunReport
    from clustering.engine.workbench import Workbench
    from clustering.events.reading import Event
    from clustering.stories.reading import Story, StoryArticle

__version__ = "0.1.0"

__all__ = [
    "Article",
    "Engine",
    "Event",
    "Feed",
    "LinkFilter",
    "Refusal",
    "RunReport",
    "StoriesError",
    "Story",
    "StoryArticle",
    "Workbench",
]

# Imported when first asked for: numpy, scipy and psycopg take a third of a second.
_LAZY = {
    "Engine": "clustering.engine",
    "Event": "clustering.events.reading",
    "LinkFilter": "clustering.dedup.links",
    "RunReport": "clustering.engine.runs",
    "Story": "clustering.stories.reading",
    "StoryArticle": "clustering.stories.reading",
    "Workbench": "clustering.engine.workbench",
}


def __getattr__(name: str) -> object:
    """Import a public name that is expensive to have."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)
