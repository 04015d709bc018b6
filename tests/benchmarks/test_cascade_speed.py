"""The benchmark of the cascade on a small history: it finds what it hid, and the cost is that of a day."""

from __future__ import annotations

from collections import Counter
from random import Random

import cascade
import pytest
from cascade import FEEDS, KINDS, NOW, Writer, history, measure

from clustering.dedup.keys import keys_of

STORED, CANDIDATES = 6_000, 1_000


@pytest.fixture
def small_days(monkeypatch):
    """Days of 300 articles, so that most of the history is older than any window."""
    monkeypatch.setattr(cascade, "A_DAY", 300)


def test_the_benchmark_finds_its_copies_and_flags_in_time(session, small_days):
    session.register_vectors()
    found = measure(session, STORED, CANDIDATES)
    print(found)
    assert session.connection.execute("SELECT count(*) FROM article").fetchone()[0] == 7_000
    for stage in ("entry", "url", "content", "simhash"):
        expected = KINDS[stage] * CANDIDATES
        assert found["links"][stage] == pytest.approx(expected, rel=0.5)
    assert found["flags"] >= 0.5 * KINDS["title"] * CANDIDATES
    # A day of 11,000 has 20 s on two idle cores; these share theirs with other tests.
    assert found["seconds"]["fold"] < 10


def test_a_history_is_in_order_and_only_its_last_days_have_bodies(small_days):
    writer = Writer(Random(1))
    rows = list(history(writer, 2_000))
    times = [stored.event_time for stored, _ in rows]
    assert times == sorted(times)
    assert max(times) < NOW
    recent = [stored for stored, _ in rows if stored.article.body]
    assert len(recent) == pytest.approx(4 * 300, abs=2)
    assert all(stored.event_time > NOW - cascade.RECENT for stored in recent)
    assert {int(stored.article.source) for stored, _ in rows} == set(range(FEEDS))


def test_each_kind_of_copy_is_one_for_its_stage_alone():
    writer = Writer(Random(2))
    original = writer.article()
    keys = keys_of(original)
    for kind in KINDS.keys() - {"new", "title"}:
        copy = keys_of(writer.copy(kind, original))
        same = Counter(
            entry=copy.entry_hash == keys.entry_hash,
            url=copy.url_hash == keys.url_hash,
            content=copy.content_hash == keys.content_hash,
        )
        if kind == "entry":
            assert same["entry"]
        else:
            assert same == Counter(
                {**dict.fromkeys(same, 0), **({kind: 1} if kind in same else {})}
            )
    assert keys_of(writer.article()).content_hash != keys.content_hash
