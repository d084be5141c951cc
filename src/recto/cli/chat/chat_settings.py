"""Settings of the terminal: table `[chat]` of recto.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

from recto.cli.chat.local_server import FILE
from recto.errors import SettingsError

# Value of `--resume` without a thread.
CHOOSE = "choose"


@dataclass(frozen=True, kw_only=True)
class ChatSettings:
    """Settings with their defaults.

    Two presses of Esc within `escape_ms`, or of Ctrl-C within `leave_ms`, count as a double press. Approval keys
    work after `quiet_ms` without input. A paste of more than `paste_lines` lines becomes a chip. The screen is drawn at
    most `frames` times per second. `watch_seconds` is the polling interval for changes by other clients. A resumed
    thread shows `history_lines` lines. Lists show `listed` rows; path completion scans `listed_files` files. The server
    limits messages to `message_characters`; longer pasted or piped text becomes a file of at most `piped_bytes`.
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


def load_chat_settings(config: Path | None) -> ChatSettings:
    """Load the settings of a file. Raise SettingsError for an unknown name, an invalid number or a missing file."""
    file = config or Path(FILE)
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8")).get("chat", {})
    except (OSError, ValueError) as error:
        if config is None and isinstance(error, FileNotFoundError):
            return ChatSettings()
        raise SettingsError(name="config", value=str(file), allowed=f"it cannot be read ({error})") from error
    defaults = {field.name: field.default for field in fields(ChatSettings)}
    numbers = dict[str, int | float]()
    for name, value in table.items():
        if name not in defaults:
            raise SettingsError(name=f"chat.{name}", value=value, allowed=f"there are {', '.join(defaults)}")
        is_whole = isinstance(value, int) or isinstance(defaults[name], float)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0 or not is_whole:
            raise SettingsError(name=f"chat.{name}", value=value, allowed="it is a number above 0")
        numbers[name] = value
    return ChatSettings(**numbers)  # pyright: ignore[reportArgumentType] - each is what its default is
