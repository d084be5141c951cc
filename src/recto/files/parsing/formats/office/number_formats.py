"""Number formats of sheets: dates, percentages and leading zeros. Numbers are never rounded or grouped."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Literal, TypeAlias

Shape: TypeAlias = Literal["plain", "date", "time", "span", "percent"] | int

_DAY = 86_400
# The number of February 29, 1900, which exists in Excel only.
_NEVER_WAS = 60
# Shapes of built-in formats, by their number.
_SHAPES: dict[int, Shape] = {
    **dict.fromkeys((9, 10), "percent"),
    **dict.fromkeys((*range(14, 18), 22, *range(27, 32), 36, *range(50, 55), 57, 58), "date"),
    **dict.fromkeys((18, 19, 20, 21, 45, 47, *range(32, 36), 55, 56), "time"),
    46: "span",
}
# Literal text, colours and languages in a format.
_LITERAL = re.compile(r'"[^"]*"|\\.|[_*].|\[(?![hms]+\])[^\]]*\]', re.IGNORECASE | re.DOTALL)
_SPANS = re.compile(r"\[[hms]+\]", re.IGNORECASE)
_ZEROS = re.compile(r"0{2,}")
_EXACT = re.compile(r"-?\d+(?:\.\d{1,14})?")
# Programs calculate with 15 digits; further ones are noise.
_DIGITS = 15
_LONGEST = 40


def shape_of(number: int, code: str | None) -> Shape:
    """Return how a format shows a number; an int is a number of digits to fill with zeros."""
    if code is None:
        return _SHAPES.get(number, "plain")
    bare = _LITERAL.sub("", code).partition(";")[0].lower()
    if _SPANS.search(bare):
        return "span"
    if "general" not in bare and re.search("[ymdhs]", bare):
        return "date" if re.search("[yd]", bare) or not re.search("[hs]", bare) else "time"
    if "%" in bare:
        return "percent"
    return len(bare) if _ZEROS.fullmatch(bare) else "plain"


def format_value(value: str, shape: Shape, *, from_1904: bool) -> str:
    """Format the number of a cell; return any other value unchanged."""
    if shape == "plain" and _EXACT.fullmatch(value):
        return value
    try:
        number = Decimal(value)
    except InvalidOperation:
        return value
    if not number.is_finite() or abs(number.adjusted()) > _LONGEST:
        return value
    match shape:
        case "plain":
            return _plain(number)
        case "percent":
            return f"{_plain(number * 100)}%"
        case "span":
            return _span(number)
        case "date" | "time":
            seconds = round(number * _DAY)
            if shape == "time" and 0 <= seconds < _DAY:
                return _span(number)
            start = datetime(1904, 1, 1) if from_1904 else datetime(1899, 12, 31 if number < _NEVER_WAS else 30)
            try:
                moment = start + timedelta(seconds=seconds)
            except OverflowError:
                return value
            text = f"{moment:%Y-%m-%d}" if seconds % _DAY == 0 else f"{moment:%Y-%m-%d %H:%M:%S}"
            return text if seconds >= 0 else value
        case int():
            return str(int(number)).zfill(shape) if number == int(number) else _plain(number)


def _plain(number: Decimal) -> str:
    rounded = Decimal(f"{number:.{_DIGITS}g}")
    text = format(rounded, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _span(days: Decimal) -> str:
    seconds = round(abs(days) * _DAY)
    return f"{'-' if days < 0 else ''}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
