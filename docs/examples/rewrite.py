"""Rewrites the headlines of new and changed stories with any OpenAI-compatible endpoint.

    python docs/examples/rewrite.py http://localhost:8000/v1 my-model

A complete worker: run as many as you like. The key, where the endpoint wants one, is in OPENAI_API_KEY.
"""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Protocol

import httpx

from clustering import Engine

if TYPE_CHECKING:
    from clustering.engine.tasking import LeasedStory

TASK = "rewrite"
MOST_TITLES = 12
PROMPT = (
    "These headlines report one event. Write one plain headline in English, and nothing else.\n\n"
)


class Chat(Protocol):
    """Answers a prompt; anything with this method will do, a local model or a stub in a test."""

    def answer(self, prompt: str) -> str:
        """Return the answer to a prompt."""
        ...


class Endpoint:
    """An OpenAI-compatible endpoint.

    Args:
        address: up to and without `/chat/completions`.
        model: name of the model there.
        key: sent as a bearer token; empty for none.
    """

    def __init__(self, address: str, model: str, key: str = "") -> None:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = httpx.Client(base_url=address, headers=headers, timeout=60)
        self._model = model

    def answer(self, prompt: str) -> str:
        """Return the answer to a prompt.

        Raises:
            httpx.HTTPError: the endpoint cannot be reached or says no.
        """
        messages = [{"role": "user", "content": prompt}]
        reply = self._client.post(
            "/chat/completions", json={"model": self._model, "messages": messages}
        )
        reply.raise_for_status()
        return str(reply.json()["choices"][0]["message"]["content"]).strip()


def rewrite(engine: Engine, chat: Chat) -> int:
    """Rewrite every story that waits for it; returns how many were rewritten.

    What the endpoint refuses (4xx) is not tried again until `stories tasks retry rewrite`; when it is
    down or busy, the story waits a minute, then two, and so on.
    """
    done = 0
    while stories := engine.pending(TASK, limit=10):
        for story in stories:
            done += _rewrite(engine, chat, story)
    return done


def _rewrite(engine: Engine, chat: Chat, story: LeasedStory) -> bool:
    titles = [article.title for article in story.articles][:MOST_TITLES]
    try:
        headline = chat.answer(PROMPT + "\n".join(titles))
    except httpx.HTTPStatusError as error:
        status = error.response.status_code
        engine.fail(TASK, story, error, permanent=400 <= status < 500 and status != 429)
        return False
    except httpx.HTTPError as error:
        engine.fail(TASK, story, error)
        return False
    engine.complete(TASK, story, result={"headline": headline, "titles": len(titles)})
    return True


def main() -> None:
    """Rewrite what waits, then end; cron starts it again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("model")
    parser.add_argument("--database")
    given = parser.parse_args()
    with Engine.open(given.database) as engine:
        chat = Endpoint(given.address, given.model, os.environ.get("OPENAI_API_KEY", ""))
        print(rewrite(engine, chat), "headlines")


if __name__ == "__main__":
    main()
