"""Every statement of sql/ is understood by the server on the migrated schema with a space made."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from psycopg import sql
from psycopg.types.json import Jsonb

from clustering.store.statements import statements

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
# A value of each type that a parameter is cast to.
BY_TYPE = {
    "bigint": 1,
    "integer": 1,
    "real": 0.5,
    "double precision": 0.5,
    "text": "x",
    "timestamptz": NOON,
    "uuid": UUID(int=1),
    "interval": timedelta(hours=1),
    "boolean": True,
}
# Values of parameters that stand without a cast; every other one is a number.
BY_NAME = {
    **dict.fromkeys(("address", "name", "model", "revision", "prefix", "recipe"), "x"),
    **dict.fromkeys(("alignment", "command", "outcome", "stage", "value"), "x"),
    **dict.fromkeys(("kind", "verdict", "judged_by"), "x"),
    **dict.fromkeys(("fit", "space"), "x"),
    "active": False,
    **dict.fromkeys(
        (
            "first",
            "last",
            "window_first",
            "window_last",
            "searched_from",
            "searched_to",
            "since",
            "as_of",
        ),
        NOON,
    ),
    **dict.fromkeys(
        ("after_time", "before_time", "live_from", "live_to", "started_at", "origin"), NOON
    ),
    **dict.fromkeys(("first_time", "latest_time"), NOON),
    **dict.fromkeys(("gap", "age", "step", "span"), timedelta(hours=1)),
    **dict.fromkeys(("settings", "counts", "seconds"), Jsonb({})),
    "setting": "work_mem",
    **dict.fromkeys(("token",), UUID(int=1)),
    **dict.fromkeys(("result",), Jsonb({})),
    **dict.fromkeys(("task", "error", "state", "score"), "x"),
}
PLANNED = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")
DEFINITIONS = ("ALTER", "CREATE", "DROP", "COPY", "LISTEN", "SET")


def code(text: str) -> str:
    return re.sub(r"--[^\n]*", "", text).strip()


def sample(text: str, name: str) -> object:
    """A value of the type that the statement wants for a parameter."""
    casts = re.findall(rf"%\({name}\)s::(double precision|[a-z]+)(\[\])?", text)
    if casts:
        kind, listed = casts[0]
        return [BY_TYPE[kind]] if listed else BY_TYPE[kind]
    if re.search(rf"ANY \(%\({name}\)s\)", text):
        return ["x"] if name == "addresses" else [1]
    return BY_NAME.get(name, 1)


def by_first_word(words: tuple[str, ...]) -> list[str]:
    return [name for name, found in statements().items() if code(found.text).startswith(words)]


def test_every_statement_is_planned_or_defines_something():
    assert sorted(by_first_word(PLANNED) + by_first_word(DEFINITIONS)) == sorted(statements())


@pytest.fixture
def parts(world):
    """Bindings of the tiny space."""
    own = {name: world.session.part(name) for name in ("article_vectors", "story_vectors")}
    return {**own, "raw_source": own["article_vectors"]}


def test_the_server_can_plan_every_query(world, parts):
    broken = {}
    for name in by_first_word(PLANNED):
        statement = statements()[name]
        values = {key: sample(statement.text, key) for key in statement.parameters}
        explained = sql.SQL("EXPLAIN ") + statement.compose(parts)
        try:
            world.session.connection.execute(explained, values or None)
        except Exception as error:  # noqa: BLE001 - all that are broken shall be named at once
            broken[name] = str(error)
    assert broken == {}


def test_every_definition_can_be_made_in_a_second_space(world):
    session = world.session
    session.bind(article_vectors="other_articles", story_vectors="other_stories")
    made = [name for name in by_first_word(("CREATE",)) if "database" not in name]
    order = sorted(made, key=lambda name: (name.startswith("index"), name == "make_partition"))
    first, last = NOON, NOON + timedelta(days=1)
    for name in order:
        session.define(
            name, dimension=4, partition="other_day", first=first, last=last, trial="other_events"
        )
    indexes = session.connection.execute(
        "SELECT count(*) FROM pg_indexes WHERE tablename = 'other_day'"
    ).fetchone()[0]
    assert indexes == 3
