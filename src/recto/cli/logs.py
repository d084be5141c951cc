"""Log lines of the server: for people, or one JSON object a line. Secrets do not get out, lines cannot be forged."""

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
# Anything shorter would be found in words that are none.
SHORTEST_SECRET = 6
# What every record has; anything else on it was given as `extra`.
KNOWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
# Characters that would end a line, or mean something to a terminal.
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
UNDER = "    "
# Greater numbers have no place in the JSON that is written here.
LARGEST = 2**63
# Of one text in a line; and of one word, where it is cut: as long as a credential can be.
MOST_CHARACTERS, WORD_CHARACTERS = 16_384, 8_192
JWT_BEGINS = "eyJ"
JWT_DOTS = 2
# What stands before a name and its value in a url, as itself or in code, once or more.
MARK, EQUALS = r"(?:[?&#]|%(?:25)*(?:3f|26|23))", r"(?:=|%(?:25)*3d)"
# Credentials of others, unknown to us: what follows Bearer, a JWT, a signature or a token in a url, a password.
# Each begins where no other match can be under way, so none looks at the same text again and again.
SHAPES: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"\b(bearer|basic) +[\w.~+/=-]{6,}", re.IGNORECASE), rf"\1 {HIDDEN}"),
    (re.compile(r"(?<![\w.-])[\w.-]{20,}+"), lambda found: _without_jwt(found[0])),
    (
        re.compile(rf"({MARK}(?:[\w-]*(?:signature|credential|token|key)|sig){EQUALS})[^&#\s\"']+", re.IGNORECASE),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"(://[^\s/:@\"']*:)[^\s/@\"']+@"), rf"\1{HIDDEN}@"),
)


class Secrets:
    """What no line may hold. More may become known while the server runs."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._known: list[str] = []
        self.add(*known)

    def add(self, *more: str) -> None:
        """Hide these too, from now on."""
        found = {*self._known, *[form for one in more if len(one) >= SHORTEST_SECRET for form in _forms(one)]}
        # Longest first: one may be a part of another.
        self._known = sorted(found, key=len, reverse=True)

    def hide(self, text: str) -> str:
        """The text without them, and without what looks like somebody else's."""
        for secret in self._known:
            text = text.replace(secret, HIDDEN)
        for shape, instead in SHAPES:
            text = shape.sub(instead, text)
        return text


def _without_jwt(word: str) -> str:
    before, begins, rest = word.partition(JWT_BEGINS)
    return before + HIDDEN if begins and rest.count(".") >= JWT_DOTS else word


def _forms(secret: str) -> tuple[str, ...]:
    """A secret as it is, and as it stands in JSON, in Python's own notation and in a url."""
    return secret, dump(secret)[1:-1].decode(), repr(secret)[1:-1], quote(secret, safe="")


class JsonFormatter(logging.Formatter):
    """One object a line: time, level, logger, message, and what else the record was given."""

    def __init__(self, hide: Callable[[str], str]) -> None:
        super().__init__()
        self._hide = hide

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        own = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._hide(_message(record)),
        }
        given = {name: self._shown(value) for name, value in vars(record).items() if name not in KNOWN}
        if record.exc_info:
            given["error"] = self._hide(self.formatException(record.exc_info))
        # In this order for people; but no field that was given stands for one of ours.
        return dump(own | given | own).decode()

    def _shown(self, value: object) -> object:
        is_plain = isinstance(value, (bool, float, type(None))) or (isinstance(value, int) and abs(value) < LARGEST)
        return value if is_plain else self._hide(str(value))


class TextFormatter(logging.Formatter):
    """One line for people. What failed stands below it, set in, so that it cannot be taken for a line of its own."""

    def __init__(self, hide: Callable[[str], str]) -> None:
        super().__init__()
        self._hide = hide

    def format(self, record: logging.LogRecord) -> str:
        """The line, and what is below it."""
        lines = [f"{_time(record)} {record.levelname} {record.name} {_escaped(self._hide(_message(record)))}"]
        if record.exc_info:
            trace = self._hide(self.formatException(record.exc_info))
            lines += [UNDER + _escaped(line) for line in trace.split("\n")]
        return "\n".join(lines)


def set_up_logs(
    level: str, form: Literal["text", "json"], secrets: Secrets, stream: TextIO | None = None
) -> logging.Handler:
    """Have the lines of Recto and of the server below it written to a stream, from a level on."""
    handler = logging.StreamHandler(stream or sys.stderr)

    def shown(text: str) -> str:
        return secrets.hide(_cut(text))

    handler.setFormatter(JsonFormatter(shown) if form == "json" else TextFormatter(shown))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("recto").setLevel(level.upper())
    return handler


def _cut(text: str) -> str:
    """The beginning of a text that is too long, in whole words: half a secret would not be known for one."""
    if len(text) <= MOST_CHARACTERS:
        return text
    end = max(text.rfind(space, 0, MOST_CHARACTERS) for space in " \n")
    end = max(end, MOST_CHARACTERS - WORD_CHARACTERS)
    return f"{text[:end]} ... ({len(text) - end} more characters)"


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError):
        # A message and arguments that do not fit each other. Left to the library, it would all be printed as it is.
        return f"{record.msg} {record.args}"


def _escaped(text: str) -> str:
    return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), scrub(text))
