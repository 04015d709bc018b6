"""Tasks, tail and export through the engine and the command line, on stories that the passes made."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import fields
from datetime import UTC, datetime, timedelta

import pytest

from clustering import Article, Engine
from clustering.engine.tasking import LeasedStory
from clustering.errors import ExportError, LeaseLost
from clustering.export import FORMATS
from clustering.store.session import Session
from clustering.stories.reading import Duplicate, Merged, Story, StoryArticle

STORM = [
    ("en", "Storm Ilva floods the port of Kestrel Bay, two thousand people leave their homes"),
    ("es", "La tormenta Ilva inunda el puerto de Kestrel Bay y desaloja a dos mil vecinos"),
    ("de", "Sturm Ilva überflutet den Hafen von Kestrel Bay, zweitausend Menschen fliehen"),
]
CHESS = [
    ("en", "Chess: Marit Oskel beats the champion in the final game and takes the title"),
    ("es", "Ajedrez: Marit Oskel vence al campeón en la última partida y gana el título"),
]
BODY = "The harbour wall gave way before dawn and the lower town stood under water. " * 8


def article(number, language, title, **values):
    time = datetime(2026, 3, 2, number % 20, tzinfo=UTC)
    known = {"id": str(number), "source": f"wire {number}", "language": language} | values
    return Article(title=title, published_at=time, **known)


@pytest.fixture
def two(engine):
    """An engine with two stories: a storm with three articles and a copy, chess with two."""
    storm = [article(n, *row) for n, row in enumerate(STORM)]
    chess = [article(10 + n, *row) for n, row in enumerate(CHESS)]
    first = article(3, "en", STORM[0][1] + ", day two", body=BODY)
    copy = article(4, "en", "Flood in Kestrel Bay", body=BODY, source="Kestrel Herald")
    engine.play([*storm, *chess, first, copy])
    assert sorted(story.size for story in engine.stories()) == [2, 4]
    return engine


def test_the_loop_of_the_contract(two):
    for story in two.pending("score", limit=50):
        assert isinstance(story, LeasedStory)
        assert len(story.articles) == story.size
        assert story.centroid.shape == (384,)
        two.complete("score", story, result={"score": story.size, "languages": story.languages})
    assert two.pending("score") == []
    assert [(s.size, s.score) for s in two.summaries(sort="score")] == [(4, 4), (2, 2)]
    (task, _) = two.tasks("score", state="done")
    assert task.result["languages"] == ["en", "es"]


def test_a_story_that_grew_comes_again_with_what_changed_and_what_came_of_it(two):
    for story in two.pending("score"):
        two.complete("score", story, result={"score": 1})
    news = "Échecs : Marit Oskel bat le champion dans la dernière partie et remporte le titre"
    two.ingest([article(12, "fr", news)], first_seen=lambda found: found.published_at)
    two.cluster()
    (story,) = two.pending("score", languages=["fr"])
    assert set(story.lease.changes) >= {"grew", "language"}
    assert story.lease.earlier == {"score": 1}
    assert story.absorbed_results == {}
    assert story.size == len(story.articles) == 3


def test_failures_are_kept_from_one_task_to_the_other(two):
    (story,) = two.pending("translate", min_size=3)
    two.fail("translate", story, TimeoutError("after 30 s"))
    assert two.pending("translate", min_size=3) == []
    assert len(two.pending("score")) == 2
    with pytest.raises(LeaseLost):
        two.fail("translate", story, "again")
    assert two.retry("translate", [story.id]) == 1
    (story,) = two.pending("translate", min_size=3)
    two.fail("translate", story, "refused", permanent=True)
    assert [(task.state, task.error) for task in two.tasks("translate")] == [("failed", "refused")]


def test_a_lease_is_for_the_task_that_it_was_asked_for(two):
    (story,) = two.pending("score", limit=1)
    with pytest.raises(ValueError, match="leased for score, not for translate"):
        two.complete("translate", story, result={})
    two.complete("score", story, result={})


def test_a_merge_between_leasing_and_reading_gives_the_lease_back(two, monkeypatch):
    """The story is gone when its articles are read: as a run in another process may have it."""
    from clustering.engine import tasking

    absorbed = min(story.id for story in two.summaries())
    survivor = max(story.id for story in two.summaries())
    whole = tasking.find_stories

    def merged_meanwhile(session, story_ids):
        with closing(Session(two.dsn)) as run:
            change = "UPDATE story SET merged_into = %s WHERE id = %s"
            run.connection.execute(change, [survivor, absorbed])
        return whole(session, story_ids)

    monkeypatch.setattr(tasking, "find_stories", merged_meanwhile)
    two._database.session.execute("latest_change")
    found = two.pending("score")
    assert {story.id for story in found} <= {absorbed, survivor}
    states = {task.story_id: task.state for task in two.tasks("score")}
    assert all(states[story.id] == "leased" for story in found)
    assert all(
        states[story_id] == "waiting" for story_id in states.keys() - {story.id for story in found}
    )


def test_subscribing_begins_now_and_changes_begin_anywhere(two):
    told = list(two.changes())
    assert [change.kind for change in told] == ["new", "new"]
    assert list(two.changes(told[0].change)) == told[1:]
    found = two.subscribe()
    two.ingest(
        [article(13, "en", CHESS[0][1] + ", fans cheer")], first_seen=lambda a: a.published_at
    )
    two.cluster()
    change = next(found)
    assert (change.kind, change.size) == ("changed", 3)
    found.close()


def test_an_export_has_articles_links_and_scores(two, tmp_path):
    for story in two.pending("score", min_size=3):
        two.complete("score", story, result={"score": 2.5, "novelty": 1})
    path = tmp_path / "stories.jsonl"
    assert two.export(path) == 2
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert [row["latest_time"] for row in rows] == sorted(row["latest_time"] for row in rows)
    storm = next(row for row in rows if row["size"] == 4)
    assert storm["scores"] == {"score": 2.5, "score.novelty": 1.0}
    story = two.story(storm["id"])
    assert [part["title"] for part in storm["articles"]] == [a.title for a in story.articles]
    (copy,) = [copy for part in storm["articles"] for copy in part["duplicates"]]
    assert (copy["title"], copy["stage"]) == ("Flood in Kestrel Bay", "content")
    assert storm["first_time"] == "2026-03-02T00:00:00Z"
    assert storm.keys() == {field.name for field in fields(Story)} - {"centroid"} | {"scores"}


def test_parquet_holds_what_json_lines_hold(two, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    for story in two.pending("score", min_size=3):
        two.complete("score", story, result={"score": 2.5})
    assert [two.export(tmp_path / name, file_format=name) for name in FORMATS] == [2, 2]
    rows = [json.loads(line) for line in (tmp_path / "jsonl").read_text("utf-8").splitlines()]
    table = parquet.read_table(tmp_path / "parquet", use_threads=False)
    found = [{**row, "scores": dict(row["scores"])} for row in table.to_pylist()]
    assert json.loads(json.dumps(found, default=iso)) == rows


def iso(value):
    return value.isoformat().replace("+00:00", "Z")


def test_the_parquet_schema_has_every_field_of_the_records():
    """A field that is added to a record and not to the schema would be dropped in silence."""
    pytest.importorskip("pyarrow")
    from clustering.export import parquet

    def names(record):
        return {field.name for field in fields(record)}

    assert set(parquet.SCHEMA.names) == names(Story) - {"centroid"} | {"scores"}
    for struct, record in (
        (parquet._ARTICLE, StoryArticle),
        (parquet._DUPLICATE, Duplicate),
        (parquet._ABSORBED, Merged),
    ):
        assert {field.name for field in struct} == names(record)


def test_an_export_in_pages_has_each_story_once(two, tmp_path, monkeypatch):
    from clustering.stories import reading

    monkeypatch.setattr(reading, "_EXPORT_PAGE", 1)
    two._database.session.connection.execute("UPDATE story SET latest_time = '2026-03-02 12:00Z'")
    assert two.export(tmp_path / "all") == 2
    ids = [json.loads(line)["id"] for line in (tmp_path / "all").read_text("utf-8").splitlines()]
    assert ids == sorted(story.id for story in two.summaries())
    assert two.export(tmp_path / "some", min_size=3) == 1
    assert two.export(tmp_path / "late", since=datetime(2026, 3, 3, tzinfo=UTC)) == 0
    assert two.export(tmp_path / "early", until=datetime(2026, 3, 1, tzinfo=UTC)) == 0
    assert (tmp_path / "early").read_bytes() == b""


def test_a_file_appears_whole_or_not_at_all(two, tmp_path, monkeypatch):
    from clustering.engine import exporting

    path = tmp_path / "stories.jsonl"
    path.write_text("what was there\n")
    scores = exporting.scores

    def broken(session, story_ids):
        raise RuntimeError("the power fails")

    monkeypatch.setattr(exporting, "scores", broken)
    with pytest.raises(RuntimeError, match="power fails"):
        two.export(path)
    assert path.read_text() == "what was there\n"
    assert list(tmp_path.iterdir()) == [path]
    monkeypatch.setattr(exporting, "scores", scores)
    assert two.export(path) == 2


def test_what_cannot_be_written_is_one_clear_error(two, tmp_path):
    with pytest.raises(ExportError, match="no format csv; use one of jsonl, parquet"):
        two.export(tmp_path / "a", file_format="csv")
    with pytest.raises(ExportError, match=r"cannot write .*No such file"):
        two.export(tmp_path / "none" / "a")
    assert len(list(two.stories())) == 2, "the connection can still be used"


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize("file_format", FORMATS)
def test_the_memory_of_an_export_does_not_grow_with_the_stories(two, tmp_path, file_format):
    if file_format == "parquet":
        pytest.importorskip("pyarrow")
    few = _peak_mib(two, tmp_path, file_format)
    _copy_stories(two, 3000)
    many = _peak_mib(two, tmp_path, file_format)
    size = (tmp_path / "out").stat().st_size / 2**20
    print(
        f"{file_format}: peak {few:.0f} MiB of 2 stories, {many:.0f} of 3,002, file {size:.0f} MiB"
    )
    assert many - few < 40


def _peak_mib(engine, folder, file_format):
    program = (
        "from clustering.cli.main import stories\n"
        f"stories.main(['export', '--out', {str(folder / 'out')!r}, '--format', {file_format!r}, "
        f"'--database', {engine.dsn!r}], standalone_mode=False)\n"
        "print(*(line for line in open('/proc/self/status') if line.startswith('VmHWM')))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    return int(done.stdout.split("VmHWM:")[1].split()[0]) / 1024


def _copy_stories(engine, count):
    """Stories of two articles each with bodies of 10 kB."""
    session = engine._database.session
    vectors = session.part("story_vectors")
    for text in (
        (
            "INSERT INTO story (first_time, latest_time, size, languages, sources, headline_id, run_id) "
            "SELECT first_time, latest_time + n * interval '1 s', 2, languages, sources, headline_id, run_id "
            f"FROM story, generate_series(1, {count}) n WHERE id = 1"
        ),
        (
            "INSERT INTO article (feed_id, guid, title, body, language, language_confidence, event_time, first_seen, "
            "entry_hash, encode_due, run_id) SELECT 1, 'n' || n, 'Title', (SELECT string_agg(md5(n::text || k), '') "
            "FROM generate_series(1, 320) k), 'en', 1, now(), now(), gen_random_uuid(), false, 1 "
            f"FROM generate_series(1, {2 * count}) n"
        ),
        (
            "INSERT INTO story_article (article_id, event_time, story_id, placed_in, pass, score, threshold, run_id) "
            "SELECT id, event_time, s, s, 'match', 1, .5, 1 FROM article, LATERAL (SELECT 3 + (substr(guid, 2)::int - 1) / 2 AS s) x "
            "WHERE guid LIKE 'n%'"
        ),
        (
            f"INSERT INTO {vectors} SELECT (jsonb_populate_record(v, jsonb_build_object('story_id', s.id))).* "
            f"FROM {vectors} v, story s WHERE v.story_id = 1 AND s.id > 2"
        ),
    ):
        session.connection.execute(text)


def test_tasks_on_the_command_line(two, stories):
    assert "no such tasks" in stories("tasks", "list").err
    one, other = two.pending("score", min_size=1)
    two.complete("score", one, result={"score": 7.25})
    two.fail("score", other, "it said\x1b[31m no", permanent=True)
    ran = stories("tasks", "list", "score")
    assert ran.out.split("\n")[0].split() == [
        "task",
        "story",
        "state",
        "failures",
        "due",
        "(UTC)",
        "error",
    ]
    assert "it said" in ran.out
    assert "\x1b" not in ran.out
    (failed,) = stories("tasks", "list", "--state", "failed", "--json").document
    assert (failed["story_id"], failed["attempts"]) == (other.id, 1)
    assert stories("tasks", "retry", "score", one.id, "--json").document == {"retried": 0}
    assert stories("tasks", "retry", "score").out == "1 to be tried again\n"
    wrong = stories("tasks", "retry", "No Name")
    assert wrong.status == 2
    assert "no name of a task" in wrong.err


def test_stories_sorted_by_a_score_on_the_command_line(two, stories):
    for story in two.pending("score"):
        two.complete("score", story, result={"score": 1 / story.size, "odd": story.size})
    rows = stories("list", "--sort", "score").out.splitlines()
    assert rows[0].split()[:3] == ["story", "score", "articles"]
    assert [row.split()[1] for row in rows[1:]] == ["0.5", "0.25"]
    document = stories("list", "--sort", "score.odd", "--json").document
    assert [row["score"] for row in document] == [4, 2]
    assert "no story has a score none" in stories("list", "--sort", "none").err
    assert stories("list").out.splitlines()[0].split()[:2] == ["story", "articles"]


def test_tail_prints_json_lines_and_takes_up_where_it_stopped(two, stories):
    lines = [json.loads(line) for line in stories("tail", "--no-follow").out.splitlines()]
    assert [line["kind"] for line in lines] == ["new", "new"]
    assert {line["size"] for line in lines} == {2, 4}
    ran = stories("tail", "--no-follow", "--after", lines[0]["change"])
    assert [json.loads(line) for line in ran.out.splitlines()] == lines[1:]


def test_tail_follows_until_it_is_stopped(two):
    command = [sys.executable, "-m", "clustering", "tail", "--after", "0", "--database", two.dsn]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as tail:
        assert [json.loads(tail.stdout.readline())["kind"] for _ in range(2)] == ["new", "new"]
        time.sleep(0.5)
        two._database.session.connection.execute("UPDATE story SET size = size + 1 WHERE size = 2")
        start = time.perf_counter()
        line = json.loads(tail.stdout.readline())
        assert (line["kind"], line["size"]) == ("changed", 3)
        assert time.perf_counter() - start < 10
        tail.send_signal(2)
        assert tail.wait(30) == 130
        assert tail.stderr.read().split("\n")[-2:] == ["stories: stopped", ""]


def test_an_export_on_the_command_line(two, stories, tmp_path):
    ran = stories("export", "--out", tmp_path / "a.jsonl", "--json")
    assert (ran.status, ran.document) == (0, {"stories": 2})
    ran = stories("export", "--out", "/dev/stdout")
    assert len(ran.out.splitlines()) == 2
    assert ran.err == "2 stories\n"
    ran = stories("export", "--out", tmp_path / "none" / "a")
    assert (ran.status, len(ran.err.splitlines())) == (1, 1)
    assert stories("export").status == 2


def test_two_engines_share_the_work(two, model_home):
    with Engine.open(two.dsn, home=model_home) as other:
        (mine,) = two.pending("score", limit=1)
        (theirs,) = other.pending("score", limit=9, lease=timedelta(hours=1))
        assert mine.id != theirs.id
        assert other.pending("score") == []
