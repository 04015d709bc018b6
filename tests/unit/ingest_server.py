"""A real web server on the loopback, whose pages are functions that write the answer."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Page = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Answers with the server's page for the path, and remembers the request's headers."""

    def do_GET(self) -> None:
        self.server.requests.append((self.path, dict(self.headers)))
        page = self.server.pages.get(self.path)
        try:
            if page is None:
                self.send_error(404)
            else:
                page(self)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the client has had enough, which is what some tests are about

    def start(self, status: int = 200, **headers: str) -> None:
        """Send the status and headers; `etag="x"` becomes `Etag: x`, `_` becomes `-`."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-").title(), value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Stay silent."""


class Server(ThreadingHTTPServer):
    """Has `pages` by path, and `requests`: path and headers of every request so far."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, pages: Mapping[str, Page]) -> None:
        self.pages = dict(pages)
        self.requests: list[tuple[str, dict[str, str]]] = []
        super().__init__(("127.0.0.1", 0), Handler)

    def handle_error(self, *_: object) -> None:
        """Stay silent: clients break off on purpose."""

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_port}{path}"


@contextmanager
def serving(pages: Mapping[str, Page]) -> Iterator[Server]:
    """Serve pages until the block is left."""
    with Server(pages) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def body(data: bytes, **headers: str) -> Page:
    """Return a page that answers 200 with `data`."""

    def page(handler: Handler) -> None:
        handler.start(content_length=str(len(data)), **headers)
        handler.wfile.write(data)

    return page
