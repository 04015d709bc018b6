"""The complete examples of the documentation, against a server that answers as an OpenAI-compatible one does."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from clustering import Article

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "rewrite.py"


class FakeEndpoint(BaseHTTPRequestHandler):
    """Answers with the number of headlines it was given; refuses and fails where it is told to."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, self.headers.get("Authorization"), body))
        prompt = body["messages"][0]["content"]
        status = next((code for word, code in self.server.troubles.items() if word in prompt), 200)
        titles = prompt.split("\n\n")[1].splitlines()
        reply = {
            "choices": [{"message": {"role": "assistant", "content": f" {len(titles)} titles\n"}}]
        }
        content = json.dumps(reply if status == 200 else {"error": "no"}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@contextmanager
def endpoint(troubles=None):
    with ThreadingHTTPServer(("127.0.0.1", 0), FakeEndpoint) as server:
        server.asked, server.troubles = [], troubles or {}
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def address(server):
    return f"http://127.0.0.1:{server.server_address[1]}/v1"


@pytest.fixture
def two_stories(engine):
    engine.ingest(
        Article(title=title, url=f"https://{site}.example.org/{number}", language="en")
        for number, titles in enumerate(
            [
                (
                    "Storm Ilva floods the port of Kestrel Bay",
                    "Kestrel Bay port flooded by storm Ilva",
                ),
                (
                    "Central bank of Karvelia cuts its rate",
                    "Karvelia central bank cuts rate by half a point",
                ),
            ]
        )
        for site, title in zip(("wire", "paper"), titles, strict=True)
    )
    engine.run()
    assert len(list(engine.stories())) == 2
    return engine


def rewritten(engine, server, model="small"):
    done = subprocess.run(
        [sys.executable, EXAMPLE, address(server), model, "--database", engine.dsn],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "", "OPENAI_API_KEY": "secret", "STORIES_HOME": str(engine.settings.home)},
    )
    return done.stdout.strip()


def states(engine):
    return sorted((task.state, task.error) for task in engine.tasks("rewrite"))


def test_every_story_is_rewritten_once(two_stories):
    with endpoint() as server:
        assert rewritten(two_stories, server) == "2 headlines"
        assert rewritten(two_stories, server) == "0 headlines"
    assert len(server.asked) == 2
    for path, key, body in server.asked:
        assert path == "/v1/chat/completions"
        assert key == "Bearer secret"
        assert body["model"] == "small"
    results = [task.result for task in two_stories.tasks("rewrite", state="done")]
    assert results == [{"headline": "2 titles", "titles": 2}] * 2


def test_a_refusal_is_for_good_and_an_outage_is_not(two_stories):
    with endpoint({"Karvelia": 400, "Ilva": 503}) as server:
        assert rewritten(two_stories, server) == "0 headlines"
        assert rewritten(two_stories, server) == "0 headlines"
    assert len(server.asked) == 2, "the one is given up, the other waits a minute"
    (failed, waiting) = states(two_stories)
    assert failed[0] == "failed"
    assert "400" in failed[1]
    assert waiting[0] == "waiting"
    assert "503" in waiting[1]
    assert two_stories.retry("rewrite") == 2
    with endpoint() as server:
        assert rewritten(two_stories, server) == "2 headlines"


def test_an_endpoint_that_is_gone_loses_nothing(two_stories):
    with endpoint() as server:
        pass
    assert rewritten(two_stories, server) == "0 headlines"
    assert [state for state, _ in states(two_stories)] == ["waiting", "waiting"]
