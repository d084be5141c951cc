"""Limits of the terminal: the table `[chat]` of recto.toml, else these."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from recto.cli.chat.local_server import FILE
from recto.errors import SettingsError

# What is resumed where no thread is named: one of a list.
CHOOSE = "choose"


@dataclass(frozen=True, kw_only=True)
class ChatSettings:
    """Two presses of Esc, or of Ctrl-C, count as one thing within so many milliseconds. A key decides on a call when
    none was pressed for `quiet_ms`. A paste of more than `paste_lines` is a chip. The screen is drawn `frames` times
    a second at the most. The thread is looked at every `watch_seconds`, for what others do in it. `history_lines` of
    what was said are shown of a thread that is resumed; `listed` threads, messages or files are offered at a time,
    of `listed_files` in the folder. A message has `message_characters` at the most, as the server takes them: what
    makes it longer, piped or pasted, goes along as a file. No more than `piped_bytes` are taken.
    """

    escape_ms: int = 500
    leave_ms: int = 2_000
    quiet_ms: int = 700
    paste_lines: int = 8
    frames: int = 20
    watch_seconds: float = 1.0
    history_lines: int = 40
    listed: int = 10
    listed_files: int = 5_000
    message_characters: int = 10_000
    piped_bytes: int = 32 * 2**20


def load_chat_settings(named: Path | None) -> ChatSettings:
    """The settings of a file that has some, of recto.toml unless one is named.

    Raises SettingsError for a name nobody knows, for what is no number, and for a named file that is not there.
    """
    file = named or Path(FILE)
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8")).get("chat", {})
    except (OSError, ValueError) as error:
        if named is None and isinstance(error, FileNotFoundError):
            return ChatSettings()
        raise SettingsError(name="config", value=str(file), allowed=f"it cannot be read ({error})") from error
    return _checked(table)


def _checked(table: Mapping[str, object]) -> ChatSettings:
    known = {field.name: field.default for field in fields(ChatSettings)}
    numbers = dict[str, int | float]()
    for name, value in table.items():
        if name not in known:
            raise SettingsError(name=f"chat.{name}", value=value, allowed=f"there are {', '.join(known)}")
        is_whole = isinstance(value, int) or isinstance(known[name], float)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0 or not is_whole:
            raise SettingsError(name=f"chat.{name}", value=value, allowed="it is a number above 0")
        numbers[name] = value
    return ChatSettings(**numbers)  # pyright: ignore[reportArgumentType] - each is what its default is
