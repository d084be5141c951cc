"""Parts of a page as people are shown them: how each begins, and what its rule is called.

Found when somebody looks, in the bytes that were sent: a page costs nothing more for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from json import JSONDecoder
from typing import cast

from recto.conversation.json import Json
from recto.conversation.title import title_from
from recto.page.named_rules import NAMED_RULES, link_of

# Where words stand, whatever the format: a text, or a call. No text passes for one: the quotes in it are escaped.
_WORDS = re.compile(
    r'"(?:text|content|output|error|description)":(?=")|"name":"(?P<call>[^"]+)","(?:arguments|input|args)":'
)
_REMINDER, _END = "<system-reminder>", "</system-reminder>"
# What signs a url is in its query.
_QUERY = re.compile(r"(/[^\s?#]*)[?#]\S+")
# More than is shown. Each character of it is looked at.
_READ = 160
_DECODER = JSONDecoder()


def shown_rows(rows: Sequence[Mapping[str, Json]], body: bytes | None) -> list[dict[str, Json]]:
    """The rows of a manifest for people, with the page they are of; None where that is lost."""
    return [shown_row(row, body) for row in rows]


def shown_row(row: Mapping[str, Json], body: bytes | None) -> dict[str, Json]:
    """The row of a part with its first `words` (None: nothing of it is in the page) and the names of its rules."""
    span, receipts = row.get("span"), cast("Sequence[Mapping[str, Json]]", row.get("receipts", ()))
    data = body[slice(*cast("Sequence[int]", span))] if body is not None and span else b""
    shown: dict[str, Json] = {**row, **rule_fields(row.get("rule")), "words": first_words(data, str(row.get("kind")))}
    return (
        {**shown, "receipts": [one | rule_fields(one.get("rule")) for one in map(dict, receipts)]}
        if receipts
        else shown
    )


def rule_fields(rule: Json) -> dict[str, Json]:
    """The name of a rule and where it is told of; nothing for what is none of ours."""
    known = NAMED_RULES.get(rule) if isinstance(rule, str) else None
    return {"ruleName": known.name, "ruleLink": link_of(str(rule))} if known else {}


def first_words(data: bytes, kind: str) -> str | None:
    """How a part begins, from its bytes: one short line without the signatures of urls. No words: None.

    Of a message with a reminder it is the user's own words, of a tool what is said of it, of an envelope the bytes.
    """
    text = data.decode("utf-8", "replace")
    found = iter((text,)) if kind == "envelope" else _said(text)
    return next(filter(None, (title_from(_QUERY.sub(r"\1", words[:_READ])) for words in found)), None)


def _said(text: str) -> Iterator[str]:
    for found in _WORDS.finditer(text):
        try:
            value, end = cast("tuple[Json, int]", _DECODER.raw_decode(text, found.end()))
        except ValueError:
            # Bytes that are no part of ours.
            return
        words = value if isinstance(value, str) else text[found.end() : end]
        if name := found["call"]:
            yield f"{name}({words})"
        elif words.startswith(_REMINDER):
            yield from (words.partition(_END)[2], words)
        else:
            yield words
