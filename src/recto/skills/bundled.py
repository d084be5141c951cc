"""Files that a skill brings along, read on demand. Refuses what leads out of its folder, is hidden or too large."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from itertools import islice
from pathlib import Path, PurePosixPath

from recto.errors import ToolError
from recto.skills.safe_path import UnreadableFile, leads_out, read_within
from recto.skills.skill import BundledFile, Skill

MOST_FILES = 500
DEEPEST = 8
READ_BYTES = 1_048_576
# As much of a path as is compared with others.
LONGEST_PATH = 1_024
SHOWN = 20
MADE = "__pycache__"


def bundled_files(folder: Path, is_other: Callable[[tuple[str, ...]], bool]) -> tuple[BundledFile, ...]:
    """Files below a skill's folder by their paths: at most MOST_FILES and one, so that more can be told from all.

    `is_other` says of the names on the way to a file whether it is read as something else.
    """
    found = islice((file for file in _walk(folder, folder, ()) if not is_other(_names(file))), MOST_FILES + 1)
    return tuple(sorted(found, key=_path))


def _walk(root: Path, folder: Path, above: tuple[str, ...]) -> Iterator[BundledFile]:
    for entry in _entries(folder):
        names = (*above, entry.name)
        if not is_offered(names):
            continue
        try:
            # A folder that is a link stands elsewhere too, or leads out.
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(root, Path(entry.path), names)
            elif entry.is_file() and not (entry.is_symlink() and leads_out(root, Path(entry.path))):
                yield BundledFile(path="/".join(names), size=entry.stat().st_size)
        except OSError:
            continue


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """What is in a folder, by name; nothing where it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=_name)
    except OSError:
        return []


def _name(entry: os.DirEntry[str]) -> str:
    return entry.name


def _names(file: BundledFile) -> tuple[str, ...]:
    return tuple(file.path.split("/"))


def _path(file: BundledFile) -> str:
    return file.path


def is_offered(names: tuple[str, ...]) -> bool:
    """Whether a file with these names on the way to it may be read at all: none is hidden, or could forge a line."""
    return len(names) <= DEEPEST and all(
        name.isprintable() and not name.startswith(".") and name != MADE and "\\" not in name for name in names
    )


def read_bundled(skill: Skill, path: str) -> bytes:
    """The bytes of a file of the skill's folder. Raises ToolError, which says what there is instead."""
    names = PurePosixPath(path).parts
    if not names or names[0] == "/" or not is_offered(names):
        raise ToolError(_unknown(skill, path))
    file = skill.folder.joinpath(*names)
    try:
        raw = read_within(skill.folder, file, READ_BYTES)
    except UnreadableFile as error:
        is_listed = any(known.path == "/".join(names) for known in skill.files)
        text = f"{_shown(path)} of skill {skill.name!r}: {error}" if is_listed else _unknown(skill, path)
        raise ToolError(text) from error
    if len(raw) > READ_BYTES:
        text = f"{_shown(path)} of skill {skill.name!r} has more than {READ_BYTES} bytes, too many to read."
        raise ToolError(f"{text} Go on without it.")
    return raw


def _unknown(skill: Skill, path: str) -> str:
    """What is said of a path that leads nowhere, or nowhere one may go: both sound the same."""
    paths = [file.path for file in skill.files]
    plain = path[:LONGEST_PATH].strip("/")
    inside = [known for known in paths if known.startswith(f"{plain}/")] if plain else []
    near = inside or _same_name(plain, paths) or get_close_matches(plain, paths, n=5)
    there_are = f"Did you mean: {_listed(near)}" if near else f"Its files: {_listed(paths)}"
    return (
        f"Skill {skill.name!r} has no file {_shown(path)}. {there_are}. Ask for one of them by its path as it stands."
    )


def _same_name(path: str, paths: Iterable[str]) -> list[str]:
    last = path.rpartition("/")[2]
    return [known for known in paths if known.rpartition("/")[2] == last]


def _listed(paths: list[str]) -> str:
    more = f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else ""
    return (", ".join(paths[:SHOWN]) or "none but SKILL.md") + more


def _shown(path: str) -> str:
    return repr(path if len(path) <= SHOWN * 5 else f"{path[: SHOWN * 5]} ...")
