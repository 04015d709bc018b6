"""What a full disk does, on a real file system of a few megabytes."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from server_users import ask

from clustering.errors import ServerFull
from clustering.store.embedded import EmbeddedServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Path]:
    """A folder on a file system of its own, where this account may mount one."""
    folder.mkdir(exist_ok=True)
    if shutil.which("mount") is None:
        pytest.skip("no mount command: a small disk cannot be made")
    options = f"size={megabytes}m,mode=755"
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder]
    mounted = subprocess.run(mount, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"this account may not mount a small disk: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def grow(folder: Path, megabytes: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={megabytes}m", folder], check=True)


def test_a_home_on_a_full_disk_is_said_in_one_line_and_works_once_there_is_room(homes):
    with small_disk(homes / "tiny", 8) as disk:
        server = EmbeddedServer(disk / "home")
        with pytest.raises(ServerFull, match=r"the disk is full.*free some space") as caught:
            server.start()
        assert "\n" not in str(caught.value)
        grow(disk, 400)
        server.start()
        assert ask(server) == 1
        server.close()


@pytest.fixture
def full_table(server, session, homes):
    """A table on a disk of its own that has room for little."""
    with small_disk(homes / "tablespace", 2) as disk:
        shutil.chown(disk, server._user)
        session.connection.execute(f"CREATE TABLESPACE tiny LOCATION '{disk}'")
        session.connection.execute(
            "CREATE TABLE crowded (article_id bigint, event_time timestamptz, revision int, "
            "raw text, aligned text) TABLESPACE tiny"
        )
        session.bind(article_vectors="crowded")
        yield session
        session.connection.execute("DROP TABLE crowded")
        session.connection.execute("DROP TABLESPACE tiny")


def rows(count: int):
    types = ("int8", "timestamptz", "int4", "text", "text")
    return types, ((number, None, 1, "x" * 1000, "y" * 900) for number in range(count))


def test_a_batch_that_finds_the_disk_full_is_rolled_back(full_table):
    session = full_table
    session.copy("copy_vectors", *rows(10))

    def too_much():
        with session.transaction():
            session.execute("add_feeds", addresses=["a"])
            session.copy("copy_vectors", *rows(5000))

    with pytest.raises(ServerFull, match=r"out of space.*rolled back.*run again") as caught:
        too_much()
    assert "\n" not in str(caught.value)
    assert session.rows("feed_ids", addresses=["a"]) == []
    assert session.connection.execute("SELECT count(*) FROM crowded").fetchone()[0] == 10


def test_the_session_goes_on_once_there_is_room(full_table, homes):
    with pytest.raises(ServerFull):
        full_table.copy("copy_vectors", *rows(5000))
    grow(homes / "tablespace", 64)
    assert full_table.copy("copy_vectors", *rows(5000)) == 5000
