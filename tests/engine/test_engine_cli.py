"""The command line in processes of its own: output, exit status, bad input, bad databases."""

from __future__ import annotations

import gzip
import json
import random
import shutil
import subprocess
from contextlib import contextmanager

import pytest
from command_line import CommandLine

from clustering.engine.runs import run_lock
from clustering.store.embedded import EmbeddedServer
from clustering.store.migrations import migrations

COMMANDS = [
    "demo",
    "run",
    "ingest",
    "cluster",
    "list",
    "show",
    "why",
    "events",
    "stats",
    "replay",
    "evaluate",
    "tune",
    "init",
    "db",
    "feeds",
    "duplicates",
    "review",
    "tasks",
    "tail",
    "export",
    "space",
]
GOOD = json.dumps({"id": "good", "title": "A good row goes through", "source": "wire"})
LONG = json.dumps({"id": "long", "title": "A body of ten megabytes", "body": "x" * 10_000_000})
BAD_LINES = [
    ("{not json", "not JSON"),
    ('{"id": "a"}', "title"),
    ('{"title": "neither id nor address"}', "url"),
    ('{"id": "b", "title": "t", "published_at": "yesterday"}', "published_at"),
    ('{"id": "c", "title": "t", "published_at": "1970-01-01T00:00:00Z"}', "published_at"),
    ('{"id": "d", "title": "t", "published_at": "2099-01-01T00:00:00Z"}', "published_at"),
    ('{"id": "e", "title": "nul \\u0000"}', "NUL"),
    ('{"id": "f", "title": "surrogate \\ud800"}', "surrogate"),
    (LONG, "body"),
    (b'{"id": "g", "title": "\xff"}', "UTF-8"),
]


def test_help_names_every_command(stories):
    ran = stories("--help")
    assert ran.status == 0
    listed = [line.split()[0] for line in ran.out.split("Commands:")[1].strip().splitlines()]
    assert [name for name in listed if name in COMMANDS] == COMMANDS


def test_bad_rows_are_refused_by_file_and_line_and_the_rest_goes_through(stories, write):
    path = write("rows.jsonl", GOOD, *(line for line, _ in BAD_LINES))
    ran = stories("ingest", path, "--json")
    assert ran.status == 3
    assert ran.document["counts"] == {
        "new": 1,
        "changed": 0,
        "unchanged": 0,
        "duplicate": 0,
        "rejected": len(BAD_LINES),
    }
    for number, (refusal, (_, reason)) in enumerate(
        zip(ran.document["refusals"], BAD_LINES, strict=True), start=2
    ):
        assert refusal.startswith(f"{path}:{number}: ")
        assert reason in refusal
        assert f"stories: refused {path}:{number}: " in ran.err


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"<!doctype html><html><body><p>Not a feed</p></body></html>", "HTML"),
        (gzip.compress(GOOD.encode() + b"\n" * 2, mtime=0)[:-6], "gzip"),
    ],
)
def test_a_source_that_is_no_source_is_refused_by_name(stories, write, content, reason):
    path, good = write("source.xml", content), write("good.jsonl", GOOD)
    ran = stories("ingest", path, path.parent, path.parent / "missing", good, "--json")
    assert ran.status == 3
    assert ran.document["counts"]["new"] == 1
    refusals = ran.document["refusals"]
    assert any(text.startswith(str(path)) and reason.lower() in text.lower() for text in refusals)
    assert any(text.startswith(f"{path.parent}: ") for text in refusals)
    assert any(text.startswith(f"{path.parent / 'missing'}: ") for text in refusals)


def test_a_feed_in_koi8r_under_a_false_prolog_is_read_and_named(stories, write, tmp_path):
    title = "Сильный шторм затопил порт и оставил без света две тысячи домов на побережье"
    feed = (
        '<?xml version="1.0" encoding="utf-8"?><rss version="2.0"><channel><title>Вестник побережья</title>'
        "<link>https://vestnik.example.org/</link>"
        + "".join(
            f"<item><guid>{n}</guid><title>{title}, день {n}</title></item>" for n in range(4)
        )
        + "</channel></rss>"
    )
    path = write("vestnik.xml", feed.encode("koi8-r"))
    ran = stories("ingest", path, "--json")
    assert ran.status == 3
    assert ran.document["counts"]["new"] == 4
    assert "koi8-r" in ran.document["refusals"][0].lower()


def test_json_lines_come_on_standard_input(stories):
    ran = stories("ingest", "-", "--json", stdin=f"{GOOD}\n".encode())
    assert (ran.status, ran.document["counts"]["new"]) == (0, 1)


def test_the_hourly_job_from_file_to_stories(stories, write, sample_lines):
    path = write("day.jsonl", *sample_lines[:40])
    ran = stories("run", path, "--json")
    assert ran.status == 0
    assert ran.document["run_id"] == 1
    assert ran.document["counts"]["stories"] > 0
    assert {"ingest", "encode", "match", "discover", "merge"} <= ran.document["seconds"].keys()
    assert ran.err == ""
    listed = stories("list", "--json").document
    assert listed
    shown = stories("show", listed[0]["id"])
    assert listed[0]["headline"][:20] in shown.out
    assert shown.out.count("pass ") >= listed[0]["size"]
    assert "needs 0." in shown.out
    assert "run 1" in shown.out
    whole = stories("show", listed[0]["id"], "--json").document
    assert len(whole["articles"]) == listed[0]["size"]
    stats = stories("stats", "--json").document
    assert (
        stats["totals"]["articles"]
        == ran.document["counts"]["new"] + ran.document["counts"]["duplicate"]
    )
    assert "placements by pass" in stories("stats").out
    again = stories("run", path)
    assert again.out.startswith("nothing to do: 0 new")


def test_a_replay_can_be_evaluated(stories, write, sample_articles, tmp_path):
    rows = [
        {
            "id": str(n),
            "title": a.title,
            "body": a.body,
            "language": a.language,
            "source": a.source,
            "published_at": a.published_at.isoformat(),
            "story": a.title[:1],
        }
        for n, a in enumerate(sample_articles[:30])
    ]
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    path, out = write("corpus.jsonl", *lines, "no json"), tmp_path / "out.jsonl"
    ran = stories("replay", path, "--every", "2h", "--assignments", out)
    assert ran.status == 3
    assigned = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["id"] for row in assigned] == [*(row["id"] for row in rows), None]
    assert all(row.keys() == {"id", "story_id", "event_id", "pass"} for row in assigned)
    gold = write("gold.jsonl", *lines)
    out.write_text("".join(json.dumps(row) + "\n" for row in assigned[:-1]))
    scores = stories("evaluate", gold, out, "--json").document
    assert 0 < scores["bcubed"]["f1"] <= 1
    assert "B-cubed" in stories("evaluate", gold, out).out
    assert stories("list", "--json").document == [], "a replay leaves the database alone"


@pytest.mark.parametrize(
    "arguments",
    [
        ("run",),
        ("show", "x"),
        ("list", "--since", "soon"),
        ("nothing",),
        ("replay", "missing.jsonl"),
    ],
)
def test_wrong_usage_exits_2(stories, arguments):
    ran = stories(*arguments)
    assert ran.status == 2
    assert "Traceback" not in ran.err


def test_a_second_run_at_once_exits_4(stories, dsn, write):
    with run_lock(dsn):
        ran = stories("run", write("a.jsonl", GOOD))
    assert ran.status == 4
    assert ran.err.splitlines() == [
        "stories: another run works on this database; try again when it has finished"
    ]


def test_an_unknown_story_exits_1(stories):
    ran = stories("show", 9)
    assert (ran.status, ran.out) == (1, "")
    assert "there is no story 9" in ran.err


@pytest.mark.parametrize(
    "dsn_given",
    ["postgresql://127.0.0.1:1/none", "host=/nowhere dbname=x", "postgresql://[::1", "x=y z"],
)
def test_a_wrong_dsn_is_one_line_and_exits_1(stories, dsn_given):
    ran = stories("list", "--database", dsn_given)
    assert (ran.status, ran.out) == (1, "")
    assert len(ran.err.splitlines()) == 1
    assert ran.err.startswith("stories: ")
    assert "--database" in ran.err or "postgresql://" in ran.err


def test_a_server_without_pgvector_or_with_an_old_one_is_refused_in_one_line(
    stories, server, tmp_path_factory, homes
):
    from clustering.store.database import make_database
    from clustering.store.session import Session

    for name, version, reason in (("bare", None, "no pgvector"), ("old", "0.7.4", "0.7.4")):
        make_database(server.dsn("postgres"), name)
        folder = homes / f"control-{name}" / "extension"
        folder.mkdir(parents=True)
        if version:
            (folder / "vector.control").write_text(
                f"default_version = '{version}'\nrelocatable = true\n"
            )
        session = Session(server.dsn("postgres"))
        session.connection.execute(
            f"ALTER DATABASE {name} SET extension_control_path = '{folder.parent}'"
        )
        session.close()
        ran = stories("init", "--database", server.dsn(name))
        assert ran.status == 1, ran.out
        assert len(ran.err.splitlines()) == 1
        assert reason in ran.err


def test_a_full_disk_is_one_line_and_leaves_nothing_half_written(homes, write, sample_lines):
    with small_disk(homes / "small", megabytes=140) as home:
        stories = CommandLine(None, home)
        assert stories("init").status == 0
        (home / "ballast").write_bytes(b"\0" * _free_bytes(home, leave=2_000_000))
        rows = [
            json.dumps({"id": str(n), "title": f"{n}", "body": random.randbytes(4000).hex()})
            for n in range(1500)
        ]
        ran = stories("ingest", write("large.jsonl", *rows))
        assert ran.status == 1
        assert len(ran.err.splitlines()) == 1
        (home / "ballast").unlink()
        assert stories("stats", "--json").document["totals"]["articles"] % 500 == 0
        EmbeddedServer(home).stop()


@contextmanager
def small_disk(folder, *, megabytes):
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    if (
        shutil.which("mount") is None
        or subprocess.run(mount, check=False, capture_output=True).returncode
    ):
        pytest.skip("a small disk cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def _free_bytes(folder, *, leave):
    return max(0, shutil.disk_usage(folder).free - leave)


def test_init_says_which_schema_is_in_place(stories):
    assert stories("init", "--json").document == {"schema": len(migrations())}


def test_the_embedded_server_runs_on_after_db_dsn_until_db_stop(homes):

    stories = CommandLine(None, homes / "kept")
    dsn = stories("db", "dsn").out.strip()
    assert EmbeddedServer(homes / "kept").is_running()
    assert stories("list", "--database", dsn).status == 0
    assert stories("stats").status == 0
    assert EmbeddedServer(homes / "kept").is_running()
    assert stories("db", "stop").out == "stopped\n"
    assert not EmbeddedServer(homes / "kept").is_running()
    assert stories("db", "stop").out == "it was not running\n"


def test_the_demo_shows_stories_and_can_be_asked_why(dsn, model_home, stories):
    ran = stories("demo")
    assert ran.status == 0
    assert ran.err == ""
    rows = [line for line in ran.out.splitlines() if line.startswith("#")]
    assert len(rows) >= 15
    assert "stories show ID --database" in ran.out
    demo = ran.out.strip().rsplit("--database ", 1)[1].strip("'")
    first = rows[0].split()[0].lstrip("#")
    assert "pass 1 match" in stories("show", first, "--database", demo).out
