"""Runs the examples of the README and the documentation as tests."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def own_home() -> Iterator[None]:
    """Give the examples a home of their own."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as home:
        patch.setenv("STORIES_HOME", home)
        patch.delenv("STORIES_DATABASE", raising=False)
        yield


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()],
    patterns=["*.md"],
    excludes=[".venv/**", "build/**"],
    fixtures=["own_home"],
).pytest()
