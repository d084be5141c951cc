"""How fast files come in, go out and are read, beside the disk and beside a peer. A missed goal is told."""

from __future__ import annotations

import argparse
import hashlib
import http.client
import json
import os
import platform
import socket
import statistics
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from goal import Goal
from processes import Process, scratch, start_model, start_recto
from reading import reading_goals
from traffic import TOKEN

UPLOADS = "/api/v1/agent/attachments?agent=docs"
# As long as curl's and browsers' are: a longer one is found faster.
BOUNDARY = "------------------------d74496d66958873e"
MEGABYTE, PIECE = 10**6, 2**20
OF_DISK, OF_HASH, SMALL_PER_CORE = 30.0, 85.0, 1_000
# Seconds until a server that does not answer is given up.
PATIENCE = 300
SMALL_BYTES, SMALL_AT_ONCE = 1_000, 8
SETTINGS = {"RECTO_USER_BYTES": "0", "RECTO_UPLOAD_FILES": "1000"}


class Options(argparse.Namespace):
    """What the command line says."""

    megabytes: int
    small: int
    rounds: int
    full: bool
    alone: bool
    scratch: Path | None
    json: Path | None


def main() -> None:
    """Measure, print, and write the figures down where asked."""
    options = _options()
    print(f"{platform.python_implementation()} {platform.python_version()}, {os.cpu_count()} cores", flush=True)
    with scratch(options.scratch) as folder:
        model = start_model(Path(folder) / "model", 0)
        level = {"RECTO_SYNCHRONOUS": "FULL" if options.full else "NORMAL"}
        recto = start_recto(Path(folder) / "recto", model.port, SETTINGS | level)
        try:
            goals = [*_large(options, Path(folder), recto), *_small(options, recto)]
        finally:
            recto.stop()
            model.stop()
        goals += reading_goals(Path(folder), options.rounds, with_peer=not options.alone)
    print("\n".join(map(str, goals)))
    missed = [goal.name for goal in goals if goal.verdict == "MISSED"]
    print(f"Missed: {'; '.join(missed)}" if missed else "Every goal that was measured is met.")
    if options.json:
        rows = [asdict(goal) | {"verdict": goal.verdict} for goal in goals]
        options.json.write_text(json.dumps({"goals": rows}, indent=2) + "\n", encoding="utf-8")


def _options() -> Options:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=256, help="size of the large file (256)")
    parser.add_argument("--small", type=int, default=1_000, help="how many small files (1,000)")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is done; the middle counts (5)")
    parser.add_argument("--full", action="store_true", help="with synchronous=FULL, beside a write with fsync")
    parser.add_argument("--alone", action="store_true", help="without MarkItDown, which is installed at first use")
    parser.add_argument("--scratch", type=Path, help="folder for files; the disk that is measured")
    parser.add_argument("--json", type=Path, help="write the figures there too")
    return parser.parse_args(namespace=Options())


def _large(options: Options, folder: Path, recto: Process) -> Iterator[Goal]:
    """One large file: to the disk, through SHA-256 alone, to the server, and back. Each round has bytes of its own.

    By default neither the plain write nor the upload is made to survive a power cut; with `--full` both are.
    """
    disk, alone, up, down = list[float](), list[float](), list[float](), list[float]()
    before = recto.memory()[1]
    for number in range(options.rounds):
        pieces, path = _pieces(options.megabytes, number), folder / f"large-{number}.txt"
        count = sum(map(len, pieces))
        disk.append(count / MEGABYTE / _write(path, pieces, sync=options.full))
        alone.append(count / MEGABYTE / _hash(pieces))
        seconds, url = _upload(recto.port, path)
        up.append(count / MEGABYTE / seconds)
        down.append(count / MEGABYTE / _download(url, count))
        path.unlink()
    plain, hashed, upload_seconds = statistics.median(disk), statistics.median(alone), statistics.median(up)
    yield Goal(name="plain write", value=plain, unit="MB/s")
    yield Goal(name="SHA-256 alone", value=hashed, unit="MB/s")
    yield Goal(name="upload", value=upload_seconds, unit="MB/s")
    yield Goal(name="upload of plain write", value=100 * upload_seconds / plain, unit="%", least=OF_DISK)
    yield Goal(name="upload of SHA-256 alone", value=100 * upload_seconds / hashed, unit="%", least=OF_HASH)
    yield Goal(name="download", value=statistics.median(down), unit="MB/s")
    yield Goal(name="memory, peak, beyond that before", value=recto.memory()[1] - before, unit="MB")


def _pieces(megabytes: int, number: int) -> Sequence[bytes]:
    """Text that is no other round's."""
    line = f"round {number}: the quick brown fox jumps over the lazy dog\n".encode()
    piece = (line * (PIECE // len(line) + 1))[:PIECE]
    return [piece] * max(1, megabytes * MEGABYTE // PIECE)


def _write(path: Path, pieces: Sequence[bytes], *, sync: bool) -> float:
    """Seconds to write the bytes, and to have them on the disk."""
    start = time.perf_counter()
    with path.open("wb", buffering=0) as out:
        for piece in pieces:
            out.write(piece)
        if sync:
            os.fsync(out.fileno())
    return time.perf_counter() - start


def _hash(pieces: Sequence[bytes]) -> float:
    """Seconds to hash the bytes, which every upload does, in one thread that does nothing else."""
    start, digest = time.perf_counter(), hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return time.perf_counter() - start


def _heading(name: str) -> bytes:
    return f'--{BOUNDARY}\r\ncontent-disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode()


def _head(port: int, length: int) -> bytes:
    fields = {
        "host": f"127.0.0.1:{port}",
        "authorization": f"Bearer {TOKEN}",
        "content-type": f"multipart/form-data; boundary={BOUNDARY}",
        "content-length": str(length),
    }
    lines = [f"POST {UPLOADS} HTTP/1.1", *[f"{name}: {value}" for name, value in fields.items()]]
    return "\r\n".join((*lines, "", "")).encode()


def _entries(connection: socket.socket) -> Sequence[dict[str, str]]:
    """What became of the files; one that was refused ends the bench."""
    answer = http.client.HTTPResponse(connection)
    answer.begin()
    entries: Sequence[dict[str, str]] = json.loads(answer.read())["attachments"]
    for entry in entries:
        if "error" in entry:
            raise SystemExit(f"A file was refused: {entry}")
    return entries


def _post(port: int, form: bytes) -> Sequence[dict[str, str]]:
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        connection.sendall(_head(port, len(form)) + form)
        return _entries(connection)


def _upload(port: int, path: Path) -> tuple[float, str]:
    """Seconds until the answer, and the url in it. The system sends the file by itself: the client costs little."""
    heading, end = _heading(path.name), f"\r\n--{BOUNDARY}--\r\n".encode()
    length = len(heading) + path.stat().st_size + len(end)
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection, path.open("rb") as file:
        start = time.perf_counter()
        connection.sendall(_head(port, length) + heading)
        connection.sendfile(file)
        connection.sendall(end)
        entries = _entries(connection)
        return time.perf_counter() - start, entries[0]["url"]


def _download(url: str, size: int) -> float:
    split = urlsplit(url)
    connection = http.client.HTTPConnection(split.hostname or "", split.port, timeout=PATIENCE)
    start = time.perf_counter()
    connection.request("GET", f"{split.path}?{split.query}")
    answer = connection.getresponse()
    room, count = bytearray(PIECE), 0
    while got := answer.readinto(room):
        count += got
    duration = time.perf_counter() - start
    connection.close()
    if (answer.status, count) != (200, size):
        raise SystemExit(f"A file came back as {answer.status} with {count} of {size} bytes.")
    return duration


def _small(options: Options, recto: Process) -> Iterator[Goal]:
    """Many small files: one in each upload, then as many as an upload may have."""
    cores = os.cpu_count() or 1
    alone = statistics.median([_rate(options.small, 1, recto.port, number) for number in range(options.rounds)])
    together = statistics.median([_rate(options.small, 100, recto.port, number) for number in range(options.rounds)])
    yield Goal(name="small files, one in an upload", value=alone, unit="/s")
    yield Goal(name="small files, 100 in an upload", value=together, unit="/s")
    yield Goal(name="the same, for each core", value=together / cores, unit="/s", least=SMALL_PER_CORE / cores)


def _rate(count: int, in_one: int, port: int, number: int) -> float:
    stamp = f"{in_one}-{number}-{time.time_ns()}"
    forms = [_form(range(at, min(at + in_one, count)), stamp) for at in range(0, count, in_one)]
    with ThreadPoolExecutor(SMALL_AT_ONCE) as senders:
        start = time.perf_counter()
        answers = list(senders.map(partial(_post, port), forms))
        duration = time.perf_counter() - start
    got = sum(map(len, answers))
    if got != count:
        raise SystemExit(f"{got} of {count} files were taken.")
    return count / duration


def _form(numbers: range, stamp: str) -> bytes:
    bodies = [f"file {number} of {stamp}\n".encode().ljust(SMALL_BYTES, b".") for number in numbers]
    parts = [_heading(f"small-{number}.txt") + body for number, body in zip(numbers, bodies, strict=True)]
    return b"\r\n".join((*parts, f"--{BOUNDARY}--\r\n".encode()))


if __name__ == "__main__":
    main()
