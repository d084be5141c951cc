"""Parsing of prompt input: commands, @paths, pastes and double presses. Pure."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from recto.cli.translation import _

COMMAND = re.compile(r"^/([a-z]+)(?:\s+(.*))?$", re.DOTALL)
# A path follows an @ at the start of a word, or after a character of a script without spaces.
WIDE_PUNCTUATION = "，。；：！？（）「」『』【】《》、…"
AT = rf"(?<![^\s{WIDE_PUNCTUATION}\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef])@"
# Paths with spaces or punctuation are quoted.
FILE = re.compile(rf'{AT}(?:"([^"\n]+)"|([^\s{WIDE_PUNCTUATION}]+))')
TRAILING_PUNCTUATION = ".,;:!?)]}\"'"
PATH_PREFIX = re.compile(rf'{AT}(?:"([^"\n]*)|([^"\s{WIDE_PUNCTUATION}]*))$')


PastedFile: TypeAlias = tuple[str, bytes]


@dataclass(frozen=True, kw_only=True)
class TypedCommand:
    """A command and its argument."""

    name: str
    argument: str = ""


@dataclass(frozen=True, kw_only=True)
class TypedMessage:
    """A message and the paths in it."""

    text: str
    paths: tuple[str, ...] = ()
    # Pastes sent as files, and the unexpanded input.
    pasted: Sequence[PastedFile] = ()
    raw_text: str = ""


def parse_input(text: str) -> TypedCommand | TypedMessage | None:
    """Parse input; return None if it is empty."""
    text = text.strip()
    if not text:
        return None
    if match := COMMAND.match(text):
        return TypedCommand(name=f"/{match[1]}", argument=(match[2] or "").strip())
    paths = [one[1] or one[2].rstrip(TRAILING_PUNCTUATION) for one in FILE.finditer(text)]
    return TypedMessage(text=text, paths=tuple(dict.fromkeys(filter(None, paths))))


def command_help() -> Mapping[str, str]:
    """Return the commands with their descriptions."""
    return {
        "/agents": _("Choose the agent"),
        "/skills": _("Choose the skill for your next message"),
        "/model": _("Show the model"),
        "/files": _("List uploaded and changed files"),
        "/context": _("Show the content of the next page"),
        "/explain": _("Show an earlier model call: /explain N (1 is the newest)"),
        "/compact": _("Summarise older messages now"),
        "/rollback": _("Go back to an earlier message (Esc Esc)"),
        "/undo": _("Undo the last rollback"),
        "/fork": _("Continue in a copy of this thread"),
        "/approve": _("Review tool calls that need approval"),
        "/resume": _("Open another thread"),
        "/new": _("Start a new thread"),
        "/cost": _("Show tokens and price of this thread"),
        "/help": _("Show keys and commands"),
        "/quit": _("Quit (Ctrl-D)"),
    }


def find_path_prefix(before: str) -> str | None:
    """Return the path being typed after an @, if any."""
    match = PATH_PREFIX.search(before)
    return (match[1] or match[2] or "") if match else None


def quote_path(path: str) -> str:
    """Return a path as typed after an @, quoted if necessary."""
    return path if FILE.fullmatch(f"@{path}") and path == path.rstrip(TRAILING_PUNCTUATION) else f'"{path}"'


def is_double(before: float | None, now: float, milliseconds: int) -> bool:
    """Return True if two presses are close enough."""
    return before is not None and (now - before) * 1000 <= milliseconds


@dataclass(frozen=True, kw_only=True)
class Pastes:
    """Long pasted texts, by the chip that stands for each in the input. Sending replaces chips by their texts."""

    texts: Mapping[str, str] = field(default_factory=dict[str, str])

    def add(self, text: str, lines: int, label: str) -> tuple[Pastes, str]:
        """Add a text. Return the pastes and the text to insert, a chip if it has more than `lines` lines."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        count = text.count("\n") + 1
        if count <= lines:
            return self, text
        chip = label.format(number=len(self.texts) + 1, lines=count)
        return replace(self, texts={**self.texts, chip: text}), chip

    def expand(self, text: str) -> str:
        """Replace chips by their texts."""
        for chip, pasted in self.texts.items():
            text = text.replace(chip, pasted)
        return text

    def send(self, text: str, most: int) -> tuple[str, Sequence[PastedFile]]:
        """Return the text to send, and files. The longest pastes become files until the text fits `most` characters."""
        files = list[PastedFile]()
        within = {chip: pasted for chip, pasted in self.texts.items() if chip in text}
        for chip in sorted(within, key=lambda chip: len(within[chip]), reverse=True):
            if len(Pastes(texts=within).expand(text)) <= most:
                break
            files.append((f"pasted-{list(self.texts).index(chip) + 1}.txt", within.pop(chip).encode()))
        return Pastes(texts=within).expand(text), files


def match_paths(names: Sequence[str], prefix: str) -> Sequence[str]:
    """Return matching paths, prefix matches first."""
    low = prefix.lower()
    first = [name for name in names if name.lower().startswith(low)]
    return [*first, *[name for name in names if low in name.lower() and name not in first]]


# Skipped folders, and the lifetime of a file listing.
SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "recto-data"})
FRESH_SECONDS = 3.0
MAX_COMPLETIONS = 50


class ChatCompleter(Completer):
    """Completes commands and paths."""

    def __init__(self, folder: Path, max_files: int) -> None:
        self._folder, self._max_files = folder, max_files
        self._listing: tuple[float, Sequence[str]] = (0.0, ())

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:  # noqa: ARG002 - the library passes it
        """Yield completions at the cursor."""
        before = document.text_before_cursor
        if before.startswith("/") and not any(character.isspace() for character in before):
            for name, help in command_help().items():
                if name.startswith(before):
                    yield Completion(name, start_position=-len(before), display_meta=help)
            return
        prefix = find_path_prefix(before)
        if prefix is None:
            return
        at, paths = self._listing
        if time.monotonic() - at > FRESH_SECONDS:
            paths = tuple(_files_under(self._folder, self._max_files))
            self._listing = time.monotonic(), paths
        for path in list(match_paths(paths, prefix))[:MAX_COMPLETIONS]:
            quote = '"' if before.endswith(f'"{prefix}') else ""
            text = f'"{path}"' if quote else quote_path(path)
            yield Completion(text, start_position=-len(quote + prefix), display=path)


def _files_under(folder: Path, max_files: int) -> Iterator[str]:
    count = 0
    for path, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in SKIPPED_FOLDERS)
        for name in sorted(files):
            if count == max_files:
                return
            if not name.startswith("."):
                count += 1
                yield Path(path, name).relative_to(folder).as_posix()
