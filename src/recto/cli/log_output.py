"""Log output as text or JSON lines, without secrets and safe against forged lines."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Literal, TextIO
from urllib.parse import quote

from recto.conversation.json import dump, scrub

HIDDEN = "(hidden)"
# Minimum length of a secret to hide. Shorter values would match ordinary words.
SHORTEST_SECRET = 6
# Fields of every record; all others come from `extra`.
RECORD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
# Characters that end a line or control a terminal.
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
UNDER = "    "
# Larger integers do not fit the JSON encoder.
LARGEST = 2**63
# Maximum length of a text. A longer text is cut before its last word, unless that word exceeds WORD_CHARACTERS and is
# too long for a credential.
MOST_CHARACTERS, WORD_CHARACTERS = 16_384, 8_192
JWT_BEGINS = "eyJ"
JWT_DOTS = 2
# Delimiters around a URL parameter, possibly percent-encoded several times.
MARK, EQUALS = r"(?:[?&#]|%(?:25)*(?:3f|26|23))", r"(?:=|%(?:25)*3d)"
# Unknown credentials: Bearer values, JWTs, signatures and tokens in URLs, passwords. Each pattern starts where no other
# match can be in progress, so matching stays linear.
SHAPES: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"\b(bearer|basic) +[\w.~+/=-]{6,}", re.IGNORECASE), rf"\1 {HIDDEN}"),
    (re.compile(r"(?<![\w.-])[\w.-]{20,}+"), lambda match: _hide_jwt(match[0])),
    (
        re.compile(rf"({MARK}(?:[\w-]*(?:signature|credential|token|key)|sig){EQUALS})[^&#\s\"']+", re.IGNORECASE),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"(://[^\s/:@\"']*:)[^\s/@\"']+@"), rf"\1{HIDDEN}@"),
)


class Secrets:
    """Values that must not appear in logs; more may be added while the server runs."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values: list[str] = []
        self.add(*values)

    def add(self, *more: str) -> None:
        """Add values to hide."""
        forms = {
            *self._values,
            *[
                form
                for one in more
                if len(one) >= SHORTEST_SECRET
                for form in (one, dump(one)[1:-1].decode(), repr(one)[1:-1], quote(one, safe=""))
            ],
        }
        # Replace the longest first, because one secret may contain another.
        self._values = sorted(forms, key=len, reverse=True)

    def hide(self, text: str) -> str:
        """Return the text without known secrets and anything that looks like a credential."""
        for secret in self._values:
            text = text.replace(secret, HIDDEN)
        for shape, instead in SHAPES:
            text = shape.sub(instead, text)
        return text


def _hide_jwt(word: str) -> str:
    before, begins, rest = word.partition(JWT_BEGINS)
    return before + HIDDEN if begins and rest.count(".") >= JWT_DOTS else word


class _RedactingFormatter(logging.Formatter):
    def __init__(self, hide: Callable[[str], str]) -> None:
        super().__init__()
        self._hide = hide


class JsonFormatter(_RedactingFormatter):
    """One JSON object per line: time, level, logger, message and `extra` fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record."""
        own = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._hide(_message(record)),
        }
        extra = {
            name: (
                value
                if isinstance(value, (bool, float, type(None))) or (isinstance(value, int) and abs(value) < LARGEST)
                else self._hide(str(value))
            )
            for name, value in vars(record).items()
            if name not in RECORD_FIELDS
        }
        if record.exc_info:
            extra["error"] = self._hide(self.formatException(record.exc_info))
        # Standard fields first for readability; `extra` cannot override them.
        line = dump(own | extra | own).decode()
        # The encoder leaves some line ends in strings, such as U+0085.
        return CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", line)


class TextFormatter(_RedactingFormatter):
    """One line of text. Tracebacks follow indented, so that they do not look like log lines."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record."""
        lines = [f"{_time(record)} {record.levelname} {record.name} {_escaped(self._hide(_message(record)))}"]
        if record.exc_info:
            trace = self._hide(self.formatException(record.exc_info))
            lines += [UNDER + _escaped(line) for line in trace.split("\n")]
        return "\n".join(lines)


def set_up_logs(
    level: str, form: Literal["text", "json"], secrets: Secrets, stream: TextIO | None = None
) -> logging.Handler:
    """Write Recto's logs from `level` up, and the warnings of libraries, to a stream."""
    handler = logging.StreamHandler(stream or sys.stderr)

    def redact(text: str) -> str:
        if len(text) > MOST_CHARACTERS:
            # Truncate between words: half a secret would not be recognised.
            end = max(*[text.rfind(space, 0, MOST_CHARACTERS) for space in " \n"], MOST_CHARACTERS - WORD_CHARACTERS)
            text = f"{text[:end]} ... ({len(text) - end} more characters)"
        return secrets.hide(text)

    handler.setFormatter(JsonFormatter(redact) if form == "json" else TextFormatter(redact))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("recto").setLevel(level.upper())
    return handler


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError):
        # Message and arguments do not match. The logging module would print both unfiltered.
        return f"{record.msg} {record.args}"


def _escaped(text: str) -> str:
    return CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), scrub(text))
