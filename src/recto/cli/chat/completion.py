"""Completion of /commands and @paths."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from recto.cli.chat.prompt_input import command_help, find_path_prefix, match_paths, quote_path

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
        for path in list(match_paths(self._paths(), prefix))[:MAX_COMPLETIONS]:
            quote = '"' if before.endswith(f'"{prefix}') else ""
            text = f'"{path}"' if quote else quote_path(path)
            yield Completion(text, start_position=-len(quote + prefix), display=path)

    def _paths(self) -> Sequence[str]:
        at, paths = self._listing
        if time.monotonic() - at > FRESH_SECONDS:
            paths = tuple(_files_under(self._folder, self._max_files))
            self._listing = time.monotonic(), paths
        return paths


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
