"""Everything that articles come from, read as one stream of records."""

from __future__ import annotations

import io
import re
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import urljoin, urlsplit

from clustering.ingest.charset import settle_encoding
from clustering.ingest.dates import DateBounds
from clustering.ingest.entries import ParsedFeed, Setting, to_article
from clustering.ingest.fetch import Answer, Fetcher, FetchLimits
from clustering.ingest.jsonfeed import read_json_feed
from clustering.ingest.jsonl import nothing_in_it, read_json_lines
from clustering.ingest.kinds import kind_of
from clustering.ingest.opml import Outline, read_opml
from clustering.ingest.safexml import document_of
from clustering.ingest.streams import (
    buffered,
    gunzipped,
    open_file,
    peek,
    read_whole,
    unzipped,
)
from clustering.ingest.tags import normalise_tag
from clustering.ingest.trouble import Refused
from clustering.ingest.xmlfeed import ROOTS, read_xml_feed
from clustering.records import Article, Feed, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Future
    from datetime import datetime

    Record = Article | Feed | Refusal

STDIN = "-"
# Addresses that are being fetched or wait to be read, ahead of the one that is read. A feed that
# hangs holds up those behind it only when so many have come in.
_AHEAD = 64
_FEED_LINK = re.compile(
    r"<link\b(?=[^>]*\balternate\b)(?=[^>]*application/(?:rss|atom)\+xml)"
    r"[^>]*\bhref\s*=\s*[\"']([^\"'>]+)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Job:
    """One source.

    Attributes:
        source: as it was named: `-`, a path or an address.
        address: set if it is fetched.
        path: set if it is a file.
        listed: how an OPML list describes it.
    """

    source: str
    address: str | None = None
    path: Path | None = None
    listed: Outline | None = None


@dataclass(frozen=True, slots=True)
class _Document:
    """A document in memory: `answer` is set if it was fetched."""

    job: _Job
    data: bytes
    answer: Answer | None = None


@dataclass(frozen=True, slots=True)
class _Reader:
    """What reading takes; `seen` holds the addresses and paths read so far."""

    stdin: BinaryIO
    fetcher: Fetcher
    limits: FetchLimits
    bounds: DateBounds
    seen: set[str] = field(default_factory=set)


def read_sources(  # noqa: PLR0913 - each is a thing of its own
    sources: Sequence[str],
    *,
    stdin: BinaryIO,
    validators: Mapping[str, Feed],
    limits: FetchLimits,
    now: datetime,
    bounds: DateBounds | None = None,
) -> Iterator[Article | Feed | Refusal]:
    """Give the articles of all sources, in their order, as they are read.

    What a document is, its content decides: JSON Lines, RSS, Atom, RDF, JSON Feed or OPML, plain
    or gzipped. Files of JSON Lines are streamed in constant memory. Several addresses are fetched
    at once; the order stays that of the sources, so that the same input gives the same stream.

    Args:
        sources: paths, http or https addresses, `-` for JSON Lines on `stdin`. Each is read once.
        stdin: bytes of standard input; left open.
        validators: feeds as known from last time, by address, for conditional requests.
        limits: bounds of what is fetched and of whole documents.
        now: time of the run; timezone-aware.
        bounds: dates that are believed; by default from 1990 to a day after `now`.

    Yields:
        Articles, and after those of a feed its `Feed`, so that its validators are stored only
        once its articles are. A `Refusal` for each thing that could not be read. A feed that
        did not change since last time yields nothing.
    """
    with Fetcher(validators, limits) as fetcher:
        reader = _Reader(stdin, fetcher, limits, bounds or DateBounds.around(now))
        yield from _read_jobs(map(_job, sources), reader, listed=False)


def _job(source: str) -> _Job:
    if source == STDIN:
        return _Job(source)
    address = _http(source)
    return _Job(_shown(source), address=address, path=None if address else Path(source))


def _shown(path: str | Path) -> str:
    r"""Return a path as text that can be stored: bytes that are no UTF-8 become `\udce9`."""
    return str(path).encode(errors="backslashreplace").decode()


def _http(source: str) -> str | None:
    """Return the http address of a source, None if it is none; `feed:` is read as http."""
    address = re.sub(
        r"^feed:(?://)?(?=https?://)|^feed:(?=//)", "", source.strip(), flags=re.IGNORECASE
    )
    address = f"http:{address}" if address.startswith("//") else address
    return address if re.match(r"https?://", address, re.IGNORECASE) else None


def _read_jobs(jobs: Iterable[_Job], reader: _Reader, *, listed: bool) -> Iterator[Record]:
    """Read jobs in their order; what goes wrong with one stops no other."""
    for job, future in _submitted(_unseen(jobs, reader), reader.fetcher):
        try:
            yield from _read_job(job, future, reader, listed=listed)
        except Refused as refused:
            yield refused.at(job.source)


def _unseen(jobs: Iterable[_Job], reader: _Reader) -> Iterator[_Job]:
    """Leave out what was read before."""
    for job in jobs:
        key = job.address or (str(job.path.absolute()) if job.path else STDIN)
        if key not in reader.seen:
            reader.seen.add(key)
            yield job


def _submitted(
    jobs: Iterable[_Job], fetcher: Fetcher
) -> Iterator[tuple[_Job, Future[Answer | None] | None]]:
    """Start fetches ahead of the job that is read."""
    ahead: deque[tuple[_Job, Future[Answer | None] | None]] = deque()
    for job in jobs:
        ahead.append((job, fetcher.submit(job.address) if job.address else None))
        if len(ahead) > _AHEAD:
            yield ahead.popleft()
    while ahead:
        yield ahead.popleft()


def _read_job(
    job: _Job, future: Future[Answer | None] | None, reader: _Reader, *, listed: bool
) -> Iterator[Record]:
    if future is not None:
        answer = future.result()
        if answer is not None:
            data = gunzipped(answer.data, reader.limits.max_bytes)
            yield from _read_document(_Document(job, data, answer), reader, listed=listed)
    elif job.path is not None:
        yield from _read_file(job, job.path, reader, listed=listed)
    else:
        stream = buffered(reader.stdin)
        try:
            yield from read_json_lines(unzipped(stream), job.source, reader.bounds)
        finally:
            stream.detach()


def _read_file(job: _Job, path: Path, reader: _Reader, *, listed: bool) -> Iterator[Record]:
    """Read a file; JSON Lines as a stream, everything else as a whole."""
    with open_file(path) as opened:
        stream = unzipped(opened)
        if kind_of(peek(stream), path.name) == "lines":
            yield from read_json_lines(stream, job.source, reader.bounds)
            return
        data = read_whole(stream, reader.limits.max_bytes)
    yield from _read_document(_Document(job, data), reader, listed=listed)


def _read_document(document: _Document, reader: _Reader, *, listed: bool) -> Iterator[Record]:
    """Read a document in memory by its kind.

    Raises:
        Refused: if it is none of the known kinds.
    """
    source = document.job.source
    kind = kind_of(document.data, urlsplit(source).path if document.answer else source)
    if kind == "lines":
        stream = buffered(io.BytesIO(document.data))
        yield from read_json_lines(stream, source, reader.bounds)
    elif kind == "json":
        feed = read_json_feed(document.data, reader.limits.max_entries)
        yield from _feed_records(feed, document, reader)
    elif kind == "xml":
        yield from _read_xml(document, reader, listed=listed)
    elif kind == "empty":
        raise nothing_in_it()
    else:
        raise Refused("neither a feed nor OPML nor JSON Lines", "check the source")


def _read_xml(document: _Document, reader: _Reader, *, listed: bool) -> Iterator[Record]:
    """Read a feed or an OPML list."""
    answer, source = document.answer, document.job.source
    reading = settle_encoding(document.data, answer.charset if answer else None)
    xml = document_of(reading.text)
    if xml.root not in ROOTS | {"opml"}:
        raise _no_feed(xml.root, xml.text, answer)
    if reading.complaint:
        remedy = "ask the publisher to declare it; check that the text is right"
        yield Refusal(source, None, reading.complaint, remedy)
    if xml.root == "opml":
        if listed:
            raise Refused("an OPML list inside an OPML list", "name its feeds in the outer list")
        yield from _read_jobs(_listed_jobs(read_opml(xml), document), reader, listed=True)
    else:
        feed = read_xml_feed(xml, answer.url if answer else None, reader.limits.max_entries)
        yield from _feed_records(feed, document, reader)


def _no_feed(root: str, text: str, answer: Answer | None) -> Refused:
    """Return the refusal of XML or HTML that is no feed; a page often names its feed."""
    if root != "html":
        return Refused(f"XML, but no feed (its root is <{root[:40]}>)", "check the source")
    found = _FEED_LINK.search(text)
    if found is None:
        return Refused("an HTML page, not a feed", "look for the feed's address on the page")
    address = urljoin(answer.url if answer else "", found[1])
    return Refused("an HTML page, not a feed", f"its feed seems to be {address[:200]}")


def _listed_jobs(outlines: Iterable[Outline], document: _Document) -> Iterator[_Job]:
    """Give the jobs of an OPML list; only a list on disk may name files."""
    for outline in outlines:
        address = _http(outline.address)
        if address is None and document.answer is not None:
            address = _http(urljoin(document.answer.url, outline.address))
        if address is not None:
            yield _Job(outline.address, address=address, listed=outline)
        elif document.job.path is not None:
            path = document.job.path.parent / outline.address
            yield _Job(_shown(path), path=path, listed=outline)
        else:
            yield _Job(outline.address, address=outline.address, listed=outline)


def _feed_records(feed: ParsedFeed, document: _Document, reader: _Reader) -> Iterator[Record]:
    """Give a feed's articles, what was refused of it, and last the feed itself."""
    job, answer, listed = document.job, document.answer, document.job.listed
    key = job.address or feed.self_url or feed.site_url or _shown((job.path or Path()).absolute())
    language = normalise_tag(feed.language) or (listed.language if listed else None)
    base = answer.url if answer else feed.site_url or feed.self_url
    setting = Setting(key, base, language, reader.bounds)
    for number, entry in enumerate(feed.entries, start=1):
        article = to_article(entry, setting)
        yield article or Refusal(
            job.source, None, f"entry {number} has neither a title nor a text", "tell the publisher"
        )
    yield from _shortfalls(feed, job.source)
    yield Feed(
        address=key,
        title=feed.title or (listed.title if listed else None),
        language=language,
        etag=answer.etag if answer else None,
        last_modified=answer.last_modified if answer else None,
    )


def _shortfalls(feed: ParsedFeed, source: str) -> Iterator[Refusal]:
    """Give the refusals that concern the feed's entries as a whole."""
    if feed.left_out:
        reason = f"{feed.left_out:,} entries after the first {len(feed.entries):,} are left out"
        yield Refusal(source, None, reason, "raise max_entries, or send them as JSON Lines")
    elif not feed.entries:
        yield Refusal(source, None, "a feed without entries", "see whether it is still written")
