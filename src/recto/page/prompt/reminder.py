"""The reminder before a user's text: files, datasets, context and time (F1-F3, P12); and neutralising of forged tags.

The user's own text is never changed here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import cache
from typing import Literal, TypeAlias

from recto.conversation.input.run_input import ContextItem
from recto.conversation.message_files import InputFile, one_line
from recto.conversation.messages import File

Locale: TypeAlias = Literal["zh", "en"]

REMINDER = "<system-reminder>\n{sections}\n</system-reminder>"
FILES_INTRO: Mapping[Locale, str] = {
    "zh": "# Input Files\n用户本次可用的文件:",
    "en": "# Input Files\nFiles available to the user in this turn:",
}
DATASETS_INTRO: Mapping[Locale, str] = {
    "zh": "# Input datasets\n用户当前可用的知识库:",
    "en": "# Input datasets\nKnowledge bases currently available to the user:",
}
# The heading names the client as the source, because client context has no more authority than the user.
CONTEXT_INTRO: Mapping[Locale, str] = {
    "zh": "# Context\n客户端随本次请求提供的信息：",
    "en": "# Context\nInformation the client sent with this request:",
}
TIME_HEADING = "# Current time"
# Always English. strftime would use the language of the host.
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

# Tags with Recto's authority anywhere. In tool results, neutralise only these: code may contain List<File>.
FRAME_TAGS = ("system-reminder", "tool_call", "tool_result")
# Every tag that begins or ends a Recto block. Tags inside a block (<id>, <name> ...) mean nothing outside of it.
OUR_TAGS = (*FRAME_TAGS, "file", "dataset", "context", "Quote", "Content")
OUR_COMMENTS = ("TOOLS_START", "TOOLS_END")
NEUTRAL_OPENING = "&lt;"
FILE_MARK = "[{kind} not shown: {name}]"
# Invisible characters, because a tag that contains one looks the same. Control characters except blanks, Unicode's Cf,
# variation selectors, the tags block, fillers, and code points reserved for such characters.
_UNSEEN_CHARACTERS = (
    r"\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160"
    r"\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    r"\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_INVISIBLE = rf"[{_UNSEEN_CHARACTERS}]*+"
_GAP = rf"[\s{_UNSEEN_CHARACTERS}]*+"
_DASH = r"[-\u2010-\u2015\u2212\ufe58\ufe63\uff0d]"
# Possessive repetitions keep the search linear even in a text that consists of beginnings of tags.
_OPENING = (
    r"[<＜﹤](?={gap}(?:"
    r"[/／]?+{gap}(?:{tags}){unseen}(?![\w-])|"
    r"!{gap}(?:{dash}{unseen}){{2,}}+{gap}(?:{comments}){unseen}(?!\w)))"
)


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A knowledge base the user may use."""

    id: str
    name: str
    description: str = ""


def reminder(
    *,
    files: Sequence[InputFile] = (),
    datasets: Sequence[Dataset] = (),
    context: Sequence[ContextItem] = (),
    time: datetime | None = None,
    zone: tzinfo = UTC,
    locale: Locale = "zh",
) -> str:
    """Return the whole `<system-reminder>`, or an empty string without sections. For past messages, pass only files."""
    sections = (
        files_section(files, locale),
        datasets_section(datasets, locale),
        context_section(context, locale),
        time_section(time, zone) if time else "",
    )
    text = "\n\n".join(filter(None, sections))
    return REMINDER.format(sections=text) if text else ""


def with_reminder(reminder_text: str, words: str) -> str:
    """Join the reminder and the user's text with a blank line; either may be empty."""
    return "\n\n".join(filter(None, (reminder_text, words)))


def files_section(files: Sequence[InputFile], locale: Locale = "zh") -> str:
    """Return `# Input Files`, or an empty string. A file without a url has no `<url>` line."""
    return _section(
        FILES_INTRO[locale],
        (_block("file", id=one.id, name=one.name, type=one.kind, url=one.url or None) for one in files),
    )


def datasets_section(datasets: Sequence[Dataset], locale: Locale = "zh") -> str:
    """Return `# Input datasets`, or an empty string."""
    return _section(
        DATASETS_INTRO[locale],
        (_block("dataset", id=one.id, name=one.name, description=one.description or None) for one in datasets),
    )


def context_section(context: Sequence[ContextItem], locale: Locale = "zh") -> str:
    """Return `# Context`, or an empty string, with a `<context>` block for each item."""
    return _section(
        CONTEXT_INTRO[locale],
        (_block("context", description=one.description or None, value=one.value) for one in context),
    )


def time_section(time: datetime, zone: tzinfo = UTC) -> str:
    """Return `# Current time` in the zone, with the weekday in English."""
    if time.tzinfo is None:
        raise ValueError(f"The time of a reminder has no zone: {time}. Give it one.")
    local = time.astimezone(zone).replace(tzinfo=None)
    return f"{TIME_HEADING}\n{local.isoformat(' ', 'seconds')} {WEEKDAYS[local.weekday()]}"


def _section(intro: str, blocks: Iterable[str]) -> str:
    text = "\n".join(blocks)
    return f"{intro}\n\n{text}" if text else ""


def _block(tag: str, **fields: str | None) -> str:
    lines = (f"<{name}>{escape(value)}</{name}>" for name, value in fields.items() if value is not None)
    return "\n".join((f"<{tag}>", *lines, f"</{tag}>"))


def escape(value: str) -> str:
    """Escape a value for use in a tag (F3)."""
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&apos;")):
        value = value.replace(character, entity)
    return value


def neutralise(text: str, tags: tuple[str, ...] = OUR_TAGS) -> str:
    """Disarm Recto's own tags in the text of a document, a tool or a file (F3).

    Only the `<` of such a tag becomes `&lt;`, in any case and with blanks, attributes or invisible characters. The
    function is idempotent, and text without these tags stays byte for byte.
    """
    # Most texts contain no such character, and this check is far faster than the pattern.
    if "<" not in text and "＜" not in text and "﹤" not in text:
        return text
    return _openings(tags).sub(NEUTRAL_OPENING, text)


@cache
def _openings(tags: tuple[str, ...]) -> re.Pattern[str]:
    pattern = _OPENING.format(
        gap=_GAP,
        unseen=_INVISIBLE,
        dash=_DASH,
        tags="|".join(map(_make_name_pattern, tags)),
        comments="|".join(map(_make_name_pattern, OUR_COMMENTS)),
    )
    return re.compile(pattern, re.IGNORECASE)


def _make_name_pattern(name: str) -> str:
    return _INVISIBLE.join(_DASH if letter == "-" else re.escape(letter) for letter in name)


def file_mark(file: File) -> str:
    """Return the mark for a file that is not shown. Its name is one line without Recto's own tags (F3)."""
    return FILE_MARK.format(kind=file.kind, name=file_name(file))


def file_name(file: File) -> str:
    """Return the first of name, id and media type that a file has, as one line without Recto's own tags."""
    names = (one_line(name) for name in (file.name, file.id, file.mime_type) if name)
    return neutralise(next(filter(None, names), "no name"))
