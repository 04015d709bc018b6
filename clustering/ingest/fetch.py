"""Feeds over HTTP: several at once, every one bounded in time and size, none stopping another."""

from __future__ import annotations

import socket
import ssl
import threading
import zlib
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Self

from clustering.ingest.charset import canonical
from clustering.ingest.streams import GZIP_MAGIC, reason, too_large
from clustering.ingest.trouble import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import httpx

    from clustering.records import Feed

_ACCEPTED = (
    "application/rss+xml, application/atom+xml, application/feed+json, application/rdf+xml, "
    "application/xml;q=0.9, text/xml;q=0.9, text/x-opml;q=0.9, */*;q=0.5"
)
_AUTO_HEADER = 47  # zlib: window of 32 KiB, gzip or zlib told by the header
_REMEDIES = {
    401: "the feed wants a login; put user:password@ into its address or leave it out",
    403: "the server refuses this reader; ask the publisher or leave the feed out",
    404: "check the address; the feed may have moved",
    410: "the feed is gone for good; leave it out",
    429: "fetch less often",
}


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """How much a feed may take.

    Attributes:
        max_bytes: size of a document after decompression, from the net or from a file; JSON Lines
            in files and on standard input have no limit.
        total_seconds: from the start of the request to the last byte, redirects included. Looking
            up the host's name is bounded by the system's resolver alone.
        connect_seconds: until a connection stands, for each address of the host.
        redirects: how many are followed.
        parallel: number of connections.
        max_entries: entries read of one feed; the rest is refused.
    """

    max_bytes: int = 10_000_000
    total_seconds: float = 30.0
    connect_seconds: float = 10.0
    redirects: int = 5
    parallel: int = 8
    max_entries: int = 10_000


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server sent.

    Attributes:
        url: address of the document, after redirects.
        data: the body, decompressed.
        charset: parameter of the content type.
        etag: validator for the next request.
        last_modified: likewise.
    """

    url: str
    data: bytes
    charset: str | None
    etag: str | None
    last_modified: str | None


class Fetcher:
    """Fetches addresses in a pool of threads; use it as a context manager."""

    def __init__(self, validators: Mapping[str, Feed], limits: FetchLimits) -> None:
        """Prepare; nothing is opened before the first `submit`.

        Args:
            validators: what is known of feeds from last time, by address.
            limits: bounds for every fetch.
        """
        self._validators = validators
        self._limits = limits
        self._pool: ThreadPoolExecutor | None = None
        self._client: httpx.Client | None = None
        self._closing = threading.Event()

    def submit(self, address: str) -> Future[Answer | None]:
        """Start to fetch; the result is None if nothing changed since last time.

        The future raises `Refused` if the document cannot be had.
        """
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._limits.parallel, "fetch")
            self._client = _client(self._limits)
        return self._pool.submit(self._fetch, address)

    def _fetch(self, address: str) -> Answer | None:
        if self._closing.is_set() or self._client is None:
            raise Refused("not fetched", "run again")
        return fetch(self._client, address, self._validators.get(address), self._limits)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Drop what has not started, wait for what has (at most `total_seconds`)."""
        self._closing.set()
        if self._pool is not None and self._client is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._client.close()


def _client(limits: FetchLimits) -> httpx.Client:
    import httpx  # noqa: PLC0415 - loaded when first needed

    return httpx.Client(
        headers={
            "User-Agent": f"story-clustering/{version('story-clustering')} (feed reader)",
            "Accept": _ACCEPTED,
            "Accept-Encoding": "gzip",
        },
        timeout=httpx.Timeout(limits.total_seconds, connect=limits.connect_seconds),
        # A connection kept alive would hide its socket from the deadline.
        limits=httpx.Limits(max_keepalive_connections=0),
        follow_redirects=False,
    )


def fetch(
    client: httpx.Client, address: str, known: Feed | None, limits: FetchLimits
) -> Answer | None:
    """Fetch one document.

    Args:
        client: as this module makes it.
        address: http or https.
        known: the feed as known from last time, for a conditional request.
        limits: bounds.

    Returns:
        None if the server says that nothing changed.

    Raises:
        Refused: for whatever goes wrong, with its reason.
    """
    import httpx  # noqa: PLC0415 - loaded when first needed

    with _deadline(limits.total_seconds) as deadline:
        try:
            request = client.build_request(
                "GET", address, headers=_conditions(known), extensions={"trace": deadline.watch}
            )
            answer = _follow(client, request, limits)
        except Refused:
            if not deadline.passed:
                raise
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            if not deadline.passed:
                raise _explained(error, limits) from error
        if deadline.passed:
            raise Refused(
                f"no complete answer within {limits.total_seconds:g} seconds",
                "try later; leave the feed out if it stays slow",
            )
        return answer


def _conditions(known: Feed | None) -> dict[str, str]:
    """Return the headers that ask for the document only if it changed."""
    if known is None:
        return {}
    headers = {"If-None-Match": known.etag, "If-Modified-Since": known.last_modified}
    return {name: text for name, text in headers.items() if text and text.isascii()}


def _follow(client: httpx.Client, request: httpx.Request, limits: FetchLimits) -> Answer | None:
    """Send a request and those that redirects ask for, whose bodies are not read."""
    for _ in range(limits.redirects + 1):
        response = client.send(request, stream=True)
        try:
            if response.next_request is None:
                return _answer(response, limits)
            request = response.next_request
        finally:
            response.close()
        if request.url.scheme not in {"http", "https"}:
            raise Refused(
                f"redirected to an address that is no http ({str(request.url)[:80]})",
                "check the address; leave the feed out",
            )
    raise Refused(f"more than {limits.redirects} redirects", "check the address in a browser")


def _answer(response: httpx.Response, limits: FetchLimits) -> Answer | None:
    """Read a final response."""
    if response.status_code == 304:
        return None
    if response.status_code != 200:
        phrase = f"HTTP {response.status_code} {response.reason_phrase}".strip()
        later = "try later" if response.status_code >= 500 else "check the address"
        raise Refused(f"the server answers {phrase}", _REMEDIES.get(response.status_code, later))
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    return Answer(
        url=str(response.url),
        data=decoded(response.iter_raw(), coding, limits.max_bytes),
        charset=_charset(response.headers.get("content-type", "")),
        etag=response.headers.get("etag"),
        last_modified=response.headers.get("last-modified"),
    )


def _charset(content_type: str) -> str | None:
    """Return the charset parameter, if it is an encoding at all."""
    for parameter in content_type.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset" and canonical(value):
            return value.strip().strip("\"'")
    return None


def decoded(chunks: Iterable[bytes], coding: str, max_bytes: int) -> bytes:
    """Undo a content coding, holding no more than `max_bytes` and a little.

    Args:
        chunks: the body as it was sent.
        coding: `identity`, `gzip`, `x-gzip` or `deflate`.
        max_bytes: of the result; and of what was sent, as a stream may decompress to nothing.

    Raises:
        Refused: if there is more, or the coding is another one or damaged.
    """
    if coding not in {"", "identity", "gzip", "x-gzip", "deflate"}:
        raise Refused(
            f"the answer is coded as {coding[:40]!r}, which was not asked for", "tell the publisher"
        )
    parts = _bounded(chunks, max_bytes)
    if coding in {"gzip", "x-gzip", "deflate"}:
        parts = _bounded(_inflated(parts, max_bytes), max_bytes)
    return b"".join(parts)


def _bounded(parts: Iterable[bytes], max_bytes: int) -> Iterator[bytes]:
    left = max_bytes
    for part in parts:
        left -= len(part)
        if left < 0:
            raise too_large(max_bytes)
        yield part


def _inflated(parts: Iterable[bytes], max_bytes: int) -> Iterator[bytes]:
    """Decompress in pieces of at most `max_bytes` and one; gzip may have several members."""
    inflater = zlib.decompressobj(_AUTO_HEADER)
    try:
        for part in parts:
            rest = part
            while rest:
                if inflater.eof and not rest.startswith(GZIP_MAGIC):
                    return
                inflater = zlib.decompressobj(_AUTO_HEADER) if inflater.eof else inflater
                yield inflater.decompress(rest, max_bytes + 1)
                rest = inflater.unused_data or inflater.unconsumed_tail
    except zlib.error as error:
        raise Refused(f"the answer is damaged ({error})", "try later") from error
    if not inflater.eof:
        raise Refused("the compressed answer breaks off", "try later")


class _Deadline:
    """Shuts a fetch's socket when its time is over, wherever the fetch stands.

    httpx's timeouts hold for every single read: a server that sends a byte now and then would
    never run into them.
    """

    def __init__(self) -> None:
        self.passed = False
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()

    def watch(self, event: str, info: dict[str, Any]) -> None:
        """Note the connection's socket; a trace function (httpcore's `trace` extension)."""
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            with self._lock:
                self._socket = info["return_value"].get_extra_info("socket")
                passed = self.passed
            if passed:
                self._shut()

    def expire(self) -> None:
        """End the fetch."""
        with self._lock:
            self.passed = True
        self._shut()

    def _shut(self) -> None:
        if self._socket is not None:
            with suppress(OSError):
                # not SSLSocket.shutdown, which would pull the TLS state from under the reader
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


@contextmanager
def _deadline(seconds: float) -> Iterator[_Deadline]:
    """Give a deadline that expires after `seconds` unless the block is left before."""
    deadline = _Deadline()
    timer = threading.Timer(seconds, deadline.expire)
    timer.daemon = True
    timer.start()
    try:
        yield deadline
    finally:
        timer.cancel()


def _explained(error: Exception, limits: FetchLimits) -> Refused:
    """Say in plain words why a fetch failed."""
    for cause in _causes(error):
        if isinstance(cause, socket.gaierror):
            return Refused("the host's name cannot be resolved", "check the address and network")
        if isinstance(cause, ConnectionRefusedError):
            return Refused("the server refuses the connection", "check the address and its port")
        if isinstance(cause, ssl.SSLError):
            return Refused(f"no secure connection ({reason(cause)})", "check the certificate")
    return _explained_by_kind(error, limits)


def _explained_by_kind(error: Exception, limits: FetchLimits) -> Refused:
    import httpx  # noqa: PLC0415 - loaded when first needed

    if isinstance(error, httpx.ConnectTimeout):
        return Refused(f"no connection within {limits.connect_seconds:g} seconds", "try later")
    if isinstance(error, httpx.TimeoutException):
        return Refused(f"no complete answer within {limits.total_seconds:g} seconds", "try later")
    if isinstance(error, httpx.InvalidURL | httpx.UnsupportedProtocol):
        return Refused(f"no usable address ({error})", "check the address")
    return Refused(f"the answer broke off ({reason(error)})", "try later")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Give an error and the errors behind it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
