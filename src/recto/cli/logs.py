"""Log lines of the server: for people, or one JSON object a line. Secrets it was told of never get out."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Literal, TextIO

from recto.page.canonical import dump

HIDDEN = "(hidden)"
SHORTEST_SECRET = 6
TEXT = "%(asctime)s %(levelname)s %(name)s %(message)s"
# What every record has; anything else on it was given as `extra`.
KNOWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class Hiding(logging.Formatter):
    """Another formatter's lines, without the secrets."""

    def __init__(self, inner: logging.Formatter, secrets: Iterable[str]) -> None:
        super().__init__()
        self._inner = inner
        self._secrets = sorted({one for one in secrets if len(one) >= SHORTEST_SECRET}, key=len, reverse=True)

    def format(self, record: logging.LogRecord) -> str:
        """The line. A secret in it is hidden, wherever it came from."""
        line = self._inner.format(record)
        for secret in self._secrets:
            line = line.replace(secret, HIDDEN)
        return line


class AsJson(logging.Formatter):
    """One object a line: time, level, logger, message, and what else the record was given."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        row: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        row |= {name: _shown(value) for name, value in vars(record).items() if name not in KNOWN}
        if record.exc_info:
            row["error"] = self.formatException(record.exc_info)
        return dump(row).decode()


def _shown(value: object) -> object:
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


class _OneLine(logging.Formatter):
    """For people. A message that holds line breaks stays one line; what failed is told below it."""

    def format(self, record: logging.LogRecord) -> str:
        record.message = record.getMessage().replace("\r", "\\r").replace("\n", "\\n")
        record.asctime = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = TEXT % record.__dict__
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def set_up_logs(
    level: str, form: Literal["text", "json"], secrets: Iterable[str], stream: TextIO | None = None
) -> logging.Handler:
    """Have the lines of Recto and of the server below it written to a stream, from a level on."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(Hiding(AsJson() if form == "json" else _OneLine(), secrets))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("recto").setLevel(level.upper())
    return handler
