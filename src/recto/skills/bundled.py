"""Files of a skill that the model reads on demand.

Hidden files, large files and files outside the folder are rejected.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from itertools import islice
from pathlib import Path, PurePosixPath

from recto.errors import ToolError
from recto.skills.safe_path import UnreadableFile, leads_out, read_within
from recto.skills.skill import BundledFile, Skill

MOST_FILES = 500
DEEPEST = 8
READ_BYTES = 1_048_576
# Maximum characters of an unknown path that are compared with known paths.
LONGEST_PATH = 1_024
MAX_LISTED = 20
BYTECODE_FOLDER = "__pycache__"


def bundled_files(folder: Path, is_other: Callable[[tuple[str, ...]], bool]) -> tuple[BundledFile, ...]:
    """Return the files below a skill's folder, sorted. Return at most MOST_FILES + 1, so that callers can detect more.

    `is_other` returns True for the path of a file that has another role in the skill.
    """
    files = islice(
        (file for file in _walk(folder, folder, ()) if not is_other(tuple(file.path.split("/")))), MOST_FILES + 1
    )
    return tuple(sorted(files, key=lambda file: file.path))


def _walk(root: Path, folder: Path, above: tuple[str, ...]) -> Iterator[BundledFile]:
    try:
        with os.scandir(folder) as scan:
            entries = sorted(scan, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        names = (*above, entry.name)
        if not is_offered(names):
            continue
        try:
            # Skip a linked folder, because it may lead out of the folder or repeat another one.
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(root, Path(entry.path), names)
            elif entry.is_file() and not (entry.is_symlink() and leads_out(root, Path(entry.path))):
                yield BundledFile(path="/".join(names), size=entry.stat().st_size)
        except OSError:
            continue


def is_offered(names: tuple[str, ...]) -> bool:
    """Return True if a file at this path may be read: no name is hidden or contains control characters."""
    return len(names) <= DEEPEST and all(
        name.isprintable() and not name.startswith(".") and name != BYTECODE_FOLDER and "\\" not in name
        for name in names
    )


def read_bundled(skill: Skill, path: str) -> bytes:
    """Read a file of the skill's folder. Raise ToolError, which lists the existing files, for any other path."""
    names = PurePosixPath(path).parts
    if not names or names[0] == "/" or not is_offered(names):
        raise ToolError(_unknown(skill, path))
    file = skill.folder.joinpath(*names)
    try:
        raw = read_within(skill.folder, file, READ_BYTES)
    except UnreadableFile as error:
        is_listed = any(listed_file.path == "/".join(names) for listed_file in skill.files)
        text = f"{_quote_path(path)} of skill {skill.name!r}: {error}" if is_listed else _unknown(skill, path)
        raise ToolError(text) from error
    if len(raw) > READ_BYTES:
        text = f"{_quote_path(path)} of skill {skill.name!r} has more than {READ_BYTES} bytes, too many to read."
        raise ToolError(f"{text} Go on without it.")
    return raw


def _unknown(skill: Skill, path: str) -> str:
    """Return the message for an unknown or forbidden path. The message does not reveal which of them it is."""
    paths = [file.path for file in skill.files]
    plain = path[:LONGEST_PATH].strip("/")
    inside = [candidate for candidate in paths if candidate.startswith(f"{plain}/")] if plain else []
    same_name = [candidate for candidate in paths if candidate.rpartition("/")[2] == plain.rpartition("/")[2]]
    near = inside or same_name or get_close_matches(plain, paths, n=5)
    there_are = f"Did you mean: {_format_paths(near)}" if near else f"Its files: {_format_paths(paths)}"
    missing = f"Skill {skill.name!r} has no file {_quote_path(path)}."
    return f"{missing} {there_are}. Ask for one of them by its path as it stands."


def _format_paths(paths: list[str]) -> str:
    more = f" and {len(paths) - MAX_LISTED} more" if len(paths) > MAX_LISTED else ""
    return (", ".join(paths[:MAX_LISTED]) or "none but SKILL.md") + more


def _quote_path(path: str) -> str:
    return repr(path if len(path) <= MAX_LISTED * 5 else f"{path[: MAX_LISTED * 5]} ...")
