"""Settings of feeds: reading and changing them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clustering.dedup.keys import url_hash
from clustering.dedup.revisions import reconsider
from clustering.engine.intake import made_guid
from clustering.engine.opened import Opened
from clustering.errors import NotFoundError
from clustering.ingest.settings import (
    changed_settings,
    find_settings,
    load_settings,
    store_settings,
)
from clustering.ingest.upsert import feed_ids
from clustering.stories.refresh import recount_sources

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import timedelta

    from clustering.engine.runs import Run
    from clustering.records import FeedSettings
    from clustering.store.session import Session

_PAGE_ARTICLES = 2_000


class Feeds(Opened):
    """The part of the engine that knows the feeds."""

    def feeds(self) -> list[FeedSettings]:
        """Return the settings of all feeds, by address."""
        return load_settings(self._database.session)

    def set_feed(
        self,
        address: str,
        *,
        identity_params: Iterable[str] | None = None,
        duplicate_window: timedelta | None = None,
        kind: str | None = None,
        new: bool = False,
    ) -> FeedSettings:
        """Change settings of a feed; what is None stays. Returns the settings in force.

        Other identity parameters also hold for the feed's stored articles: their addresses are
        compared anew, and those that were folded by an address that is no longer theirs are articles
        of their own again.

        Args:
            address: the feed's address, or the name that JSON Lines rows give as source.
            identity_params: query parameters that name an article on the feed's site.
            duplicate_window: time within which two articles of like text are one.
            kind: `live` where an entry is one address whose text changes; else `normal`.
            new: the feed was not read yet; it is added.

        Raises:
            NotFoundError: no feed has that address, and it is not said to be new.
            InvalidInput: a value makes no sense.
            RunLocked: another run works on the database.
        """
        with self._working("feeds") as run, run.session.transaction():
            before = self._find(address, new=new)
            after = changed_settings(
                before,
                identity_params=identity_params,
                duplicate_window=duplicate_window,
                kind=kind,
            )
            store_settings(run.session, after)
            if after.identity_params != before.identity_params:
                _rekey(run, before, after)
        return after

    def _find(self, address: str, *, new: bool) -> FeedSettings:
        session = self._database.session
        if new:
            feed_ids(session, [address])
        found = find_settings(session, address)
        if found is None:
            raise NotFoundError(
                f"there is no feed {address!r}; `stories feeds list` shows those there are, "
                "--new adds one that was not read yet"
            )
        return found


def _rekey(run: Run, before: FeedSettings, after: FeedSettings) -> None:
    """Hash the addresses of a feed's articles anew, and end the links that rested on the old hashes."""
    old, new = frozenset(before.identity_params), frozenset(after.identity_params)
    touched: list[int] = []
    for page in _pages(run.session, after.address):
        hashes = {row.id: url_hash(row.url, new) for row in page}
        other = [row.id for row in page if hashes[row.id] != row.url_hash]
        run.session.execute(
            "rekey_articles", article_ids=other, url_hashes=[hashes[article] for article in other]
        )
        _rename(run.session, page, old, new)
        touched += other
    if touched:
        recount_sources(run.session, reconsider(run.session, touched, run.id).bereft)


def _pages(session: Session, address: str) -> Iterator[Sequence[Any]]:
    after = ""
    while page := session.rows(
        "articles_of_feed", address=address, after=after, most=_PAGE_ARTICLES
    ):
        yield page
        after = page[-1].guid


def _rename(
    session: Session, page: Sequence[Any], old: frozenset[str], new: frozenset[str]
) -> None:
    """Let guids that were made of addresses be what the next fetch will make of them."""
    made = [row for row in page if row.guid == made_guid(row.url, old)]
    names = {
        made_guid(row.url, new): row.id
        for row in reversed(made)
        if row.guid != made_guid(row.url, new)
    }
    session.execute("rename_articles", article_ids=list(names.values()), guids=list(names))
