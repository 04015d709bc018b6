"""The engine on a fresh database with the real model, and the command line in a process of its own."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest
from command_line import CommandLine

from clustering.engine import Engine
from clustering.engine.demo import sample_day


@pytest.fixture
def engine(dsn, model_home):
    with Engine.open(dsn, home=model_home) as opened:
        yield opened


@pytest.fixture
def stories(dsn, model_home):
    return CommandLine(dsn, model_home)


@pytest.fixture(scope="session")
def sample_articles():
    return sample_day()


@pytest.fixture(scope="session")
def sample_lines():
    """The sample day as written, without dates, as an hourly job would meet it today."""
    text = (files("clustering.sample") / "sample_day.jsonl").read_text("utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    return [json.dumps({**row, "published_at": None}, ensure_ascii=False) for row in rows]


@pytest.fixture
def write(tmp_path):
    """Write lines into a file and return its path."""

    def written(name, *lines):
        path = tmp_path / name
        path.write_bytes(b"\n".join(x if isinstance(x, bytes) else x.encode() for x in lines))
        return path

    return written
