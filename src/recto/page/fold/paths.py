"""Path normalisation (R4): two spellings of one file get one name. Works on text only, without disk access."""

from __future__ import annotations

import re
from dataclasses import dataclass

from recto.conversation.memo import cache_results

# Longer paths are not cached, to bound memory.
KNOWN_CHARACTERS = 512
DRIVE = re.compile(r"[A-Za-z]:(?=/|$)")


@dataclass(frozen=True, kw_only=True)
class Project:
    """The root of relative paths, and whether its disk is case-sensitive.

    The form of the root decides which paths are absolute, on any host: with `F:/work` they are Windows paths.
    """

    root: str | None = None
    case_sensitive: bool = True


@dataclass(frozen=True, kw_only=True)
class _Split:
    anchor: str
    steps: tuple[str, ...]


def normalise(path: str, project: Project) -> str:
    """Return the normal form of a path: relative to the root without `.`, `..` and trailing separator."""
    return cached_name(path, project) if len(path) <= KNOWN_CHARACTERS else _normalised(path, project)


@cache_results(16_384)
def cached_name(path: str, project: Project) -> str:
    """Return the cached normal name of a short path."""
    return _normalised(path, project)


def _normalised(path: str, project: Project) -> str:
    name = _inside(path, project) if project.root else None
    if name is None:
        split = _split(path, windows=project.root is None or _is_windows(project.root))
        name = split.anchor + "/".join(split.steps) or "."
    return name if project.case_sensitive else name.casefold()


def _inside(path: str, project: Project) -> str | None:
    root_text = project.root or ""
    windows = _is_windows(root_text)
    root, target = _split(root_text, windows=windows), _split(path, windows=windows)
    if not target.anchor:
        target = _Split(anchor=root.anchor, steps=_walk(root.steps + target.steps, anchored=bool(root.anchor)))
    elif windows and target.anchor == "/":
        target = _Split(anchor=root.anchor, steps=target.steps)
    depth = len(root.steps)
    fold = str if project.case_sensitive else str.casefold
    same_start = [fold(step) for step in target.steps[:depth]] == [fold(step) for step in root.steps]
    if target.anchor != root.anchor or not same_start:
        return None
    return "/".join(target.steps[depth:]) or "."


def _split(path: str, *, windows: bool) -> _Split:
    text = path.replace("\\", "/")
    drive = DRIVE.match(text) if windows else None
    if drive:
        anchor, rest = drive[0].upper() + "/", text[drive.end() :]
    elif windows and text.startswith("//"):
        anchor, rest = "//", text
    else:
        anchor, rest = ("/" if text.startswith("/") else ""), text
    steps = tuple(step for step in rest.split("/") if step not in ("", "."))
    return _Split(anchor=anchor, steps=_walk(steps, anchored=bool(anchor)))


def _walk(steps: tuple[str, ...], *, anchored: bool) -> tuple[str, ...]:
    walked: list[str] = []
    for step in steps:
        if step != "..":
            walked.append(step)
        elif walked and walked[-1] != "..":
            walked.pop()
        elif not anchored:
            walked.append(step)
    return tuple(walked)


def _is_windows(root: str) -> bool:
    text = root.replace("\\", "/")
    return bool(DRIVE.match(text)) or (root.startswith("\\\\"))
