"""Named SQL statements, read from the package data in `sql/` and checked when they are loaded.

A file holds statements, each under a line `-- name: what it does`. Parameters are `%(name)s`. What
depends on the space and cannot be a parameter (its tables, their dimension and bounds) is `{name}`:
text becomes a quoted identifier, anything else a literal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from psycopg import sql

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_HEADING = re.compile(r"^-- (?P<name>[a-z][a-z0-9_]*): (?P<purpose>.+)$", re.MULTILINE)
_PARAMETER = re.compile(r"%\((\w+)\)s")
_PART = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of `sql/`.

    Attributes:
        name: unique over all files.
        purpose: the comment in its heading.
        text: the SQL, with `%(name)s` parameters and `{name}` identifiers.
        parameters: names of the parameters.
        parts: names of the identifiers and literals.
    """

    name: str
    purpose: str
    text: str
    parameters: frozenset[str]
    parts: frozenset[str]

    def compose(self, parts: Mapping[str, object]) -> sql.Composed:
        """Return the statement with its identifiers and literals quoted and put in.

        Raises:
            KeyError: a part of the statement is not given.
        """
        named = {name: _part(parts[name]) for name in self.parts}
        return sql.SQL(self.text).format(**named)


def parse(text: str) -> Iterator[Statement]:
    """Yield the statements of one file's text.

    Raises:
        ValueError: text stands before the first heading, or a statement is empty.
    """
    head, *parts = _HEADING.split(text)
    if _code(head):
        raise ValueError(f"SQL before the first heading: {_code(head)[:60]!r}")
    for name, purpose, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        yield _statement(name, purpose, body)


@cache
def statements() -> Mapping[str, Statement]:
    """Return every statement of `sql/` by name.

    Raises:
        ValueError: two statements share a name, or a file is malformed.
    """
    found: dict[str, Statement] = {}
    for file in sorted(files("clustering.sql").iterdir(), key=lambda file: file.name):
        if file.name.endswith(".sql"):
            for statement in parse(file.read_text(encoding="utf-8")):
                if statement.name in found:
                    raise ValueError(f"two statements are called {statement.name}")
                found[statement.name] = statement
    return found


def _statement(name: str, purpose: str, body: str) -> Statement:
    text = body.strip().removesuffix(";")
    if not _code(text):
        raise ValueError(f"statement {name} is empty")
    parameters = frozenset(_PARAMETER.findall(text))
    return Statement(name, purpose, text, parameters, frozenset(_PART.findall(text)))


def _part(value: object) -> sql.Composable:
    return sql.Identifier(value) if isinstance(value, str) else sql.Literal(value)


def _code(text: str) -> str:
    return re.sub(r"--[^\n]*", "", text).strip()
