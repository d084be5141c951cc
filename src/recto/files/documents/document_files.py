"""Cached documents in a folder: where each is, how it gets its name, and what is removed. Follows no link in there.

A document is a folder of three files. It is written under a name of its own and named in one go when it is whole.
Where bytes were deleted, a file stands for a while in the place of the folder of all that was made of them.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from recto.conversation.document import Extent
from recto.files.documents.document_index import Index
from recto.files.parsing.ports import PARSER_VERSION
from recto.files.storage.blobs import is_ours
from recto.files.storage.unfinished import PRIVATE, PRIVATE_FOLDER, Disk
from recto.ids import new_id

TEXT, ELEMENTS, INDEX = "text", "elements", "index"
STAGED = "incoming"
# None of another process is read for as long: a document nobody has written to since is nobody's.
STAGED_SECONDS = 3_600
NAMED_TRIES = 3
READ_NOW_BYTES = 2**17
# Only some systems can say whether bytes are in memory.
_NOW: int | None = getattr(os, "RWF_NOWAIT", None)
_BINARY = getattr(os, "O_BINARY", 0)
# A pipe that somebody put in a file's place must not be waited for.
_READING = os.O_RDONLY | _BINARY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_WRITING = os.O_RDWR | os.O_CREAT | os.O_EXCL | _BINARY
_HASHED = re.compile(r"[0-9a-f]{32}")
_NAME = re.compile(r"([0-9a-f]{64})-(\d+)-[0-9a-f]{16}")


class AppendFile:
    """A file that is read anywhere and added to at its end. Closed when nobody has it any more."""

    def __init__(self, path: Path, flags: int) -> None:
        self._file = os.open(path, flags, PRIVATE)
        self._lock = threading.Lock()
        weakref.finalize(self, os.close, self._file)
        if not stat.S_ISREG(os.fstat(self._file).st_mode):
            raise FileNotFoundError(f"{path.name} is no file")

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return os.fstat(self._file).st_size

    def read(self, start: int, end: int) -> bytes:
        """The bytes from `start` up to `end`. Raises ValueError where the file is shorter."""
        with self._lock:
            os.lseek(self._file, start, os.SEEK_SET)
            pieces: list[bytes] = []
            rest = end - start
            while rest and (piece := os.read(self._file, rest)):
                pieces.append(piece)
                rest -= len(piece)
        if rest:
            raise ValueError("the file is shorter than it was")
        return b"".join(pieces)

    def read_now(self, start: int, end: int) -> bytes | None:
        """The same bytes if that takes no wait for the disk: a thread would take many times as long as this."""
        if _NOW is None or end - start > READ_NOW_BYTES:
            return None
        found = bytearray(end - start)
        try:
            count = os.preadv(self._file, [found], start, _NOW)
        except OSError:
            return None
        return bytes(found) if count == len(found) else None

    def add(self, data: bytes) -> None:
        """Add bytes at the end."""
        rest = memoryview(data)
        with self._lock:
            os.lseek(self._file, 0, os.SEEK_END)
            while rest:
                rest = rest[os.write(self._file, rest) :]

    def keep(self, disk: Disk) -> None:
        """Bring it to the disk."""
        disk.keep(self._file)


@dataclass(frozen=True, kw_only=True)
class DocumentKey:
    """What a cached document was made of and how. Users share nothing; the threads of one share all.

    Equal bytes of one user are one blob, so what was made of them stands under it and goes with it.
    """

    owner: str
    blob: str
    sha256: str
    format: str
    # All else that shapes the text: languages, limits.
    manner: str = ""

    @property
    def path(self) -> str:
        """Where it is in the folder of all. The names in it say nothing of whose or what it is."""
        manner = hashlib.sha256(f"{self.format}\0{self.manner}".encode()).hexdigest()[:16]
        return f"{_blob_name(self.blob)}/{_bytes_name(self.sha256)}-{PARSER_VERSION}-{manner}"


@dataclass(frozen=True, kw_only=True)
class DocumentFiles:
    """The open files of a document, and the folder they are in."""

    folder: Path
    text: AppendFile
    elements: AppendFile


class DocumentFolder:
    """All cached documents. Nothing here waits for anything but the disk."""

    def __init__(self, folder: Path, *, sync: Callable[[int], None] = os.fsync) -> None:
        self._folder = folder
        self._staged = folder / STAGED
        self._disk = Disk(sync)

    def find(self, key: DocumentKey) -> tuple[DocumentFiles, Index, Extent] | None:
        """A document that is there and whole. A damaged one is not there."""
        folder = self._folder / key.path
        try:
            if not (_is_folder(folder.parent) and _is_folder(folder)):
                return None
            found = AppendFile(folder / INDEX, _READING)
            index, extent = Index.load(found.read(0, found.size))
            text, elements = [AppendFile(folder / name, _READING) for name in (TEXT, ELEMENTS)]
        except (OSError, ValueError, KeyError, TypeError, OverflowError):
            return None
        if (text.size, elements.size) != (index.lengths.text_bytes, index.lengths.element_bytes):
            return None
        return DocumentFiles(folder=folder, text=text, elements=elements), index, extent

    def begin(self) -> DocumentFiles:
        """The files of a document that is about to be read."""
        self._disk.make_folder(self._staged)
        folder = self._staged / new_id()
        folder.mkdir(mode=PRIVATE_FOLDER)
        text, elements = [AppendFile(folder / name, _WRITING) for name in (TEXT, ELEMENTS)]
        return DocumentFiles(folder=folder, text=text, elements=elements)

    def name(self, key: DocumentKey, files: DocumentFiles, index: bytes, now: float) -> bool:
        """Give a document that is read to its end its name. False: it was deleted, or others were always faster."""
        files.text.keep(self._disk)
        files.elements.keep(self._disk)
        written = AppendFile(files.folder / INDEX, _WRITING)
        written.add(index)
        written.keep(self._disk)
        os.utime(files.folder / INDEX, (now, now))
        self._disk.keep_folder(files.folder)
        target = self._folder / key.path
        for _ in range(NAMED_TRIES):
            if _written(target.parent) is not None:
                return False
            self._disk.make_folder(target.parent)
            with suppress(OSError):
                files.folder.rename(target)
                self._disk.keep_folder(target.parent)
                return True
            # Another process made the same, or this one is damaged: it goes, whoever reads it has it open.
            self._put_away(target)
        return False

    def touch(self, key: DocumentKey, now: float) -> None:
        """Say that a document was used."""
        with suppress(OSError):
            os.utime(self._folder / key.path / INDEX, (now, now), follow_symlinks=False)

    def blobs(self) -> list[str]:
        """The blobs that something was made of."""
        return [folder.name for folder in _folders(self._folder) if is_ours(folder.name)]

    def forget(self, blobs: Iterable[str]) -> None:
        """Remove what was made of some bytes, in whatever manner. What is being made of them gets no name any more."""
        for blob in blobs:
            place = self._folder / _blob_name(blob)
            try:
                self._disk.make_folder(self._staged)
                self._bar(place)
            except OSError:
                # A disk that is full takes not even an empty file.
                remove(place)

    def clean(self, *, oldest: float, most_bytes: int | None, stale: float, ours: frozenset[Path]) -> int:
        """Remove what was last used before `oldest`, the least used over `most_bytes`, and leftovers before `stale`.

        `ours` are being written now. Says how many documents and leftovers were removed.
        """
        self._unbar(stale)
        gone = [one for one in _folders(self._staged) if one not in ours and _newest(one) < stale]
        kept: list[tuple[float, int, Path]] = []
        for document in self._named():
            used = _used(document)
            if used is None or used[0] < oldest:
                gone.append(document)
            else:
                kept.append((*used, document))
        size = 0
        for _, bytes, document in sorted(kept, reverse=True):
            size += bytes
            if most_bytes is not None and size > most_bytes:
                gone.append(document)
        for folder in gone:
            remove(folder)
            if folder.parent != self._staged:
                with suppress(OSError):
                    folder.parent.rmdir()
        return len(gone)

    def _bar(self, place: Path) -> None:
        """Put a file in the place of a folder: no other process can name a document in there."""
        for _ in range(NAMED_TRIES):
            try:
                os.close(os.open(place, _WRITING, PRIVATE))
            except FileExistsError:
                if _written(place) is None:
                    self._put_away(place)
                    continue
                os.utime(place, follow_symlinks=False)
            return
        remove(place)

    def _unbar(self, stale: float) -> None:
        with suppress(OSError):
            for place in list(self._folder.iterdir()):
                written = _written(place) if _is_blob(place.name) else None
                if written is not None and written < stale:
                    place.unlink(missing_ok=True)

    def _put_away(self, folder: Path) -> None:
        """Remove a folder whose name is wanted at once."""
        with suppress(OSError):
            unnamed = self._staged / new_id()
            folder.rename(unnamed)
            remove(unnamed)

    def _named(self) -> Iterator[Path]:
        for blob in _folders(self._folder):
            if _is_blob(blob.name):
                yield from _folders(blob)


def remove(folder: Path) -> None:
    """Remove a folder and what is in it; of a link, the link. Who reads in it can go on."""
    if folder.is_symlink() or folder.is_file():
        with suppress(OSError):
            folder.unlink()
        return
    shutil.rmtree(folder, ignore_errors=True)


def _is_blob(name: str) -> bool:
    return is_ours(name) or _HASHED.fullmatch(name) is not None


def _blob_name(blob: str) -> str:
    """The blob's own name, so that it can be asked for; of a blob that goes by another one, a name that is none."""
    return blob if is_ours(blob) else hashlib.sha256(f"blob\0{blob}".encode()).hexdigest()[:32]


def _bytes_name(sha256: str) -> str:
    return hashlib.sha256(f"bytes\0{sha256}".encode()).hexdigest()


def _is_folder(path: Path) -> bool:
    return stat.S_ISDIR(path.lstat().st_mode)


def _written(path: Path) -> float | None:
    """When a file was last written; None where there is none."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    return found.st_mtime if stat.S_ISREG(found.st_mode) else None


def _folders(folder: Path) -> Iterator[Path]:
    """What is in a folder and is a folder itself."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return
    yield from (folder / name for name in names)


def _used(document: Path) -> tuple[float, int] | None:
    """When a document was last used, and its bytes; None for what is none of this version."""
    named = _NAME.fullmatch(document.name)
    if named is None or int(named[2]) != PARSER_VERSION:
        return None
    try:
        stats = [(document / name).lstat() for name in (INDEX, TEXT, ELEMENTS)]
    except OSError:
        return None
    return stats[0].st_mtime, sum(one.st_size for one in stats)


def _newest(folder: Path) -> float:
    """When anything in a folder was last written."""
    times = [0.0]
    for path in (folder, folder / TEXT, folder / ELEMENTS):
        with suppress(OSError):
            times.append(path.lstat().st_mtime)
    return max(times)
