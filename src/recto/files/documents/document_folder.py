"""The folder of cached documents: a folder for each blob, with a file for each way to parse it. Follows no links.

A complete document is renamed to its final name. Forgetting a blob removes its folder, so that later renames fail.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from recto.conversation.document import Extent
from recto.files.documents.cached_document import DAMAGE
from recto.files.documents.document_file import LAYOUT, DocumentFile
from recto.files.parsing.ports import PARSER_VERSION
from recto.files.storage.blobs import is_ours
from recto.files.storage.staged_file import Disk
from recto.ids import new_id

STAGED = ".part"
# Seconds without a write after which a staged file is a leftover.
STAGED_SECONDS = 3_600
_VERSION = f"{PARSER_VERSION}.{LAYOUT}"
_NAME = re.compile(rf"[0-9a-f]{{64}}-{re.escape(_VERSION)}-[0-9a-f]{{16}}")
_HASH = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, kw_only=True)
class DocumentKey:
    """The bytes of a document and the way to parse them. Threads of a user share documents; users do not."""

    owner: str
    blob: str
    sha256: str
    format: str
    # Other options that change the text: languages, limits.
    options: str = ""

    @property
    def path(self) -> str:
        """The path below the cache folder. It reveals neither the owner nor the content."""
        options = hashlib.sha256(f"{self.format}\0{self.options}".encode()).hexdigest()[:16]
        bytes = hashlib.sha256(f"bytes\0{self.sha256}".encode()).hexdigest()
        return f"{_folder_name(self.blob)}/{bytes}-{_VERSION}-{options}"


class DocumentFolder:
    """All cached documents. Its methods block on the disk."""

    def __init__(self, folder: Path, *, sync: Callable[[int], None] = os.fsync) -> None:
        self._folder = folder
        self._disk = Disk(sync)

    def find(self, key: DocumentKey) -> tuple[DocumentFile, Extent] | None:
        """Return a complete document; None if it is missing or damaged."""
        path = self._folder / key.path
        with suppress(OSError, OverflowError, *DAMAGE):
            if stat.S_ISDIR(path.parent.lstat().st_mode):
                return DocumentFile.load(path)
        return None

    def stage(self, key: DocumentKey) -> DocumentFile:
        """Make the staged file of a document."""
        folder = (self._folder / key.path).parent
        self._disk.make_folder(folder)
        return DocumentFile(folder / f"{new_id()}{STAGED}")

    def keep(self, key: DocumentKey, file: DocumentFile, extent: Extent, now: float) -> bool:
        """Finish a staged file and rename it. Return False if the blob was deleted meanwhile."""
        file.finish(extent, self._disk)
        path = self._folder / key.path
        try:
            os.utime(file.path, (now, now))
            file.path.replace(path)
        except FileNotFoundError:
            return False
        self._disk.keep_folder(path.parent)
        return True

    def touch(self, key: DocumentKey, now: float) -> None:
        """Record a use of a document."""
        with suppress(OSError):
            os.utime(self._folder / key.path, (now, now), follow_symlinks=False)

    def blobs(self) -> list[str]:
        """Return the blobs with cached documents."""
        return [path.name for path in _children(self._folder) if is_ours(path.name)]

    def forget(self, blobs: Iterable[str]) -> None:
        """Delete all documents of some blobs, staged ones included."""
        for blob in blobs:
            # Rename the folder first, so that no staged file can be renamed into it during the removal.
            removed = self._folder / new_id().replace("-", "_")
            with suppress(OSError):
                (self._folder / _folder_name(blob)).rename(removed)
                remove(removed)

    def clean(self, *, oldest: float, most_bytes: int | None, stale: float, staged: frozenset[Path]) -> int:
        """Delete documents last used before `oldest`, the least recently used over `most_bytes`, and leftovers.

        Leftovers are files of other versions, and staged files that are unchanged since `stale`. Files in `staged`
        belong to this process and are not deleted.
        """
        documents, garbage = list[tuple[float, int, Path]](), list[Path]()
        for child in _children(self._folder):
            is_blob = (is_ours(child.name) or _HASH.fullmatch(child.name)) and not child.is_symlink() and child.is_dir()
            for path in _children(child) if is_blob else [child]:
                with suppress(OSError):
                    status = path.lstat()
                    if _NAME.fullmatch(path.name) and status.st_mtime >= oldest:
                        documents.append((status.st_mtime, status.st_size, path))
                    elif path not in staged and (path.suffix != STAGED or status.st_mtime < stale):
                        garbage.append(path)
        size = 0
        for _, bytes, path in sorted(documents, reverse=True):
            size += bytes
            garbage += [path] if most_bytes is not None and size > most_bytes else []
        for path in garbage:
            remove(path)
            if path.parent != self._folder:
                with suppress(OSError):
                    path.parent.rmdir()
        return len(garbage)


def remove(path: Path) -> None:
    """Delete a file, a link, or a folder with its content. Readers with an open file can continue."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def _folder_name(blob: str) -> str:
    # A name that we did not make might contain a path.
    return blob if is_ours(blob) else hashlib.sha256(f"blob\0{blob}".encode()).hexdigest()[:32]


def _children(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []
