"""What may complete a word: commands behind a / at the beginning, files of the folder behind an @."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from recto.cli.chat.seen.chat_words import ChatWords
from recto.cli.chat.typed import matching, path_begun, path_typed

# Folders that nobody means, and how long a listing is good for.
SKIPPED = frozenset({"node_modules", "__pycache__", "recto-data"})
FRESH_SECONDS = 3.0
OFFERED = 50


class ChatCompleter(Completer):
    """Completes commands and paths."""

    def __init__(self, words: ChatWords, folder: Path, most: int) -> None:
        self._words, self._folder, self._most = words, folder, most
        self._listed: tuple[float, Sequence[str]] = (0.0, ())

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:  # noqa: ARG002 - the library passes it
        """What may stand where the cursor is."""
        before = document.text_before_cursor
        if before.startswith("/") and not any(character.isspace() for character in before):
            for name, help in self._words.commands.items():
                if name.startswith(before):
                    yield Completion(name, start_position=-len(before), display_meta=help)
            return
        begun = path_begun(before)
        if begun is None:
            return
        for path in list(matching(self._paths(), begun))[:OFFERED]:
            quote = '"' if before.endswith(f'"{begun}') else ""
            shown = f'"{path}"' if quote else path_typed(path)
            yield Completion(shown, start_position=-len(quote + begun), display=path)

    def _paths(self) -> Sequence[str]:
        at, paths = self._listed
        if time.monotonic() - at > FRESH_SECONDS:
            paths = tuple(_files_under(self._folder, self._most))
            self._listed = time.monotonic(), paths
        return paths


def _files_under(folder: Path, most: int) -> Iterator[str]:
    count = 0
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in SKIPPED)
        for name in sorted(files):
            if count == most:
                return
            if not name.startswith("."):
                count += 1
                yield Path(here, name).relative_to(folder).as_posix()
