"""Display rows of manifest parts: the first words of each and the name of its rule.

The words are extracted from the sent bytes on request, so that building a page does not take longer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from json import JSONDecoder
from typing import cast

from recto.conversation.json import Json
from recto.conversation.title import title_from
from recto.page.fold.fold_settings import RULE as COST_RULE
from recto.page.fold.rules import READS, SEARCH, TERMINAL

# The text or call fields of all formats. Text in a message cannot match, because its quotes are escaped.
_WORDS = re.compile(
    r'"(?:text|content|output|error|description)":(?=")|"name":"(?P<call>[^"]+)","(?:arguments|input|args)":'
)
_REMINDER, _END = "<system-reminder>", "</system-reminder>"
# The query of a url, which contains the signature.
_QUERY = re.compile(r"(/[^\s?#]*)[?#]\S+")
# The number of characters to scan. Must be more than the displayed text has.
_READ = 160
_DECODER = JSONDecoder()


def shown_rows(rows: Sequence[Mapping[str, Json]], body: bytes | None) -> list[dict[str, Json]]:
    """Return the rows of a manifest for display. `body` is the sent page, or None if it is lost."""
    return [shown_row(row, body) for row in rows]


def shown_row(row: Mapping[str, Json], body: bytes | None) -> dict[str, Json]:
    """Return the row of a part with its first `words` (None if it has no bytes) and the names of its rules."""
    span, receipts = row.get("span"), cast("Sequence[Mapping[str, Json]]", row.get("receipts", ()))
    data = body[slice(*cast("Sequence[int]", span))] if body is not None and span else b""
    fields: dict[str, Json] = {**row, **rule_fields(row.get("rule")), "words": first_words(data, str(row.get("kind")))}
    return (
        {**fields, "receipts": [one | rule_fields(one.get("rule")) for one in map(dict, receipts)]}
        if receipts
        else fields
    )


def rule_fields(rule: Json) -> dict[str, Json]:
    """Return the name and link of a rule; empty for an unknown one."""
    name = RULE_NAMES.get(rule) if isinstance(rule, str) else None
    return {"ruleName": name, "ruleLink": link_of(str(rule))} if name else {}


def first_words(data: bytes, kind: str) -> str | None:
    """Return the first words of a part as one short line without url signatures, or None.

    For a message with a reminder these are the user's own words, for a tool its description, for an envelope the bytes.
    """
    text = data.decode("utf-8", "replace")
    candidates = iter((text,)) if kind == "envelope" else _find_words(text)
    return next(filter(None, (title_from(_QUERY.sub(r"\1", words[:_READ])) for words in candidates)), None)


def _find_words(text: str) -> Iterator[str]:
    for match in _WORDS.finditer(text):
        try:
            value, end = cast("tuple[Json, int]", _DECODER.raw_decode(text, match.end()))
        except ValueError:
            # Recto did not write these bytes.
            return
        words = value if isinstance(value, str) else text[match.end() : end]
        if name := match["call"]:
            yield f"{name}({words})"
        elif words.startswith(_REMINDER):
            yield from (words.partition(_END)[2], words)
        else:
            yield words


PAGE = "docs/rules.md"


RULE_NAMES: Mapping[str, str] = {
    "S1": "prompt budget",
    "S2": "window of history",
    "S5": "skill directory",
    "S9": "system prompt",
    "F1": "reminder",
    "F2": "files of past turns",
    "F3": "no forgery",
    "D2": "documents and pictures",
    "P11": "calls and results",
    "P14": "hints for clients",
    READS.number: READS.why,
    READS.batch_number: READS.batch_why,
    "R6": "left alone",
    TERMINAL.number: TERMINAL.why,
    SEARCH.number: SEARCH.why,
    "R10": "repair",
    "R13": "compaction",
    COST_RULE: "folding by cost",
    "fit": "fit",
}


def why(rule: str | None, reason: str) -> str:
    """Return a reason prefixed with the name of its rule."""
    name = RULE_NAMES.get(rule or "")
    return f"{name}: {reason}" if name else reason


def link_of(rule: str) -> str:
    """Return the documentation link of a rule."""
    return f"{PAGE}#{rule.lower()}"
