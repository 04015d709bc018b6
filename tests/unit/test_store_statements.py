from __future__ import annotations

import re
from importlib.resources import files

import psycopg
import pytest

from clustering.store.migrations import migrations
from clustering.store.statements import parse, statements

GOOD = """-- What this file is about.

-- one: gives one
SELECT 1;

-- two: gives what is asked for
-- a comment of its own
SELECT %(what)s, %(what)s::text FROM {table} WHERE x = ANY (%(ids)s);
"""


def test_statements_of_a_file():
    one, two = parse(GOOD)
    assert (one.name, one.purpose, one.text) == ("one", "gives one", "SELECT 1")
    assert (one.parameters, one.parts) == (frozenset(), frozenset())
    assert two.parameters == {"what", "ids"}
    assert two.parts == {"table"}
    assert two.text.startswith("-- a comment of its own\nSELECT")


def test_a_file_may_hold_no_statement():
    assert list(parse("-- nothing here yet\n")) == []
    assert list(parse("")) == []


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1;\n-- one: gives one\nSELECT 1;",
        "-- One: a heading must be lower case\nSELECT 1;",
        "-- one:\nSELECT 1;",
    ],
)
def test_sql_before_the_first_heading_is_refused(text):
    with pytest.raises(ValueError, match="before the first heading"):
        list(parse(text))


@pytest.mark.parametrize("body", ["", ";", "-- only a comment\n", "\n\n;\n"])
def test_an_empty_statement_is_refused_by_name(body):
    with pytest.raises(ValueError, match="statement hollow is empty"):
        list(parse(f"-- hollow: nothing\n{body}\n-- full: one\nSELECT 1;"))


def test_parts_are_quoted_and_values_are_literals():
    (statement,) = parse("-- make: makes\nCREATE TABLE {table} (x halfvec({dimension}));")
    composed = statement.compose({"table": 'odd "name', "dimension": 8, "unused": 1})
    assert composed.as_string() == 'CREATE TABLE "odd ""name" (x halfvec(8))'


def test_a_missing_part_is_named():
    (statement,) = parse("-- look: looks\nSELECT FROM {table};")
    with pytest.raises(KeyError, match="table"):
        statement.compose({})


def test_every_statement_of_the_package_parses_and_composes():
    assert len(statements()) > 60
    parts = {name: name for statement in statements().values() for name in statement.parts}
    for name, statement in statements().items():
        assert statement.name == name
        assert statement.purpose[0].islower() or statement.purpose[0].isupper()
        assert statement.compose(parts).as_string()


def test_no_statement_is_two():
    for name, statement in statements().items():
        code = re.sub(r"--[^\n]*|'[^']*'", "", statement.text)
        assert ";" not in code, name


def test_every_statement_is_used_and_every_name_used_is_there():
    source = "\n".join(
        file.read_text(encoding="utf-8")
        for folder in (
            "store",
            "dedup",
            "stories",
            "ingest",
            "embedding",
            "engine",
            "cli",
            "tasks",
            "events",
        )
        for file in files("clustering").joinpath(folder).iterdir()
        if file.name.endswith(".py")
    )
    stages = {f"{stage}_twins" for stage in ("entry", "url", "content")}
    unused = [name for name in statements() if f'"{name}"' not in source and name not in stages]
    assert unused == []
    called = re.findall(r"\.(?:execute|rows|value|define|copy)\(\s*\"([a-z_]+)\"", source)
    assert set(called) <= statements().keys()


def test_migrations_are_numbered_from_one():
    assert [step.number for step in migrations()] == list(range(1, len(migrations()) + 1))
    assert all(step.text.strip() for step in migrations())


def test_composing_needs_no_connection():
    composed = statements()["has_database"].compose({})
    assert isinstance(composed, psycopg.sql.Composed)
