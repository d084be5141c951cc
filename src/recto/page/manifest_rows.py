"""Display rows of manifest parts: the first words of each and the name of its rule.

They are read from the sent bytes on request, so that building a page does not pay for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from json import JSONDecoder
from typing import NamedTuple, cast

from recto.conversation.json import Json
from recto.conversation.title import title_from
from recto.page.fold.fold_settings import RULE as COST_RULE
from recto.page.fold.rules import READS, SEARCH, TERMINAL

# The text or call fields of all formats. Message text cannot imitate them: its quotes are escaped.
_WORDS = re.compile(
    r'"(?:text|content|output|error|description)":(?=")|"name":"(?P<call>[^"]+)","(?:arguments|input|args)":'
)
_REMINDER, _END = "<system-reminder>", "</system-reminder>"
# Url signatures are in the query.
_QUERY = re.compile(r"(/[^\s?#]*)[?#]\S+")
# Longer than the displayed text; every character of it is scanned.
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
    named_rule = NAMED_RULES.get(rule) if isinstance(rule, str) else None
    return {"ruleName": named_rule.name, "ruleLink": link_of(str(rule))} if named_rule else {}


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
            # Bytes that Recto did not write.
            return
        words = value if isinstance(value, str) else text[match.end() : end]
        if name := match["call"]:
            yield f"{name}({words})"
        elif words.startswith(_REMINDER):
            yield from (words.partition(_END)[2], words)
        else:
            yield words


PAGE = "docs/rules.md"


class NamedRule(NamedTuple):
    """The display name of a rule and its description."""

    name: str
    about: str


NAMED_RULES: Mapping[str, NamedRule] = {
    "S1": NamedRule(
        "prompt budget",
        "The system prompt keeps to its tokens: cases go first, then what is known of the user is shortened. Identity, "
        "procedure and tools are never cut.",
    ),
    "S2": NamedRule(
        "window of history",
        "Of what was said before the current turn, the newest messages are shown; the current turn is always whole.",
    ),
    "S5": NamedRule(
        "skill directory",
        "The list of skills keeps to its tokens; what it leaves out is there once a skill is taken up.",
    ),
    "S9": NamedRule("system prompt", "Who the agent is and how it works, with its skill, procedure, cases and data."),
    "F1": NamedRule(
        "reminder", "Before the user's words stands what is at hand in this turn: files, datasets, context, the time."
    ),
    "F2": NamedRule(
        "files of past turns", "A past message keeps the list of its files, and nothing else of its reminder."
    ),
    "F3": NamedRule("no forgery", "Text of tools and files that looks like ours is made harmless."),
    "D2": NamedRule(
        "documents and pictures",
        "Documents, or a text of the agent, go along as a quote within its budget; pictures where the model sees them.",
    ),
    "P11": NamedRule(
        "calls and results",
        "What a tool says of its failure reaches the model; where a model has no native calls, calls and results are "
        "written as text.",
    ),
    "P14": NamedRule("hints for clients", "What tells clients how to show a result is for them, not for the model."),
    READS.number: NamedRule(
        READS.why, "Of each file the newest reads stay; an older one becomes a line that points to the newest."
    ),
    READS.batch_number: NamedRule(
        READS.batch_why,
        "A read of several files is folded once newer reads stand for it in all of them, or part by part.",
    ),
    "R6": NamedRule(
        "left alone", "A result whose call is missing, or names no file that can be read, is never folded."
    ),
    TERMINAL.number: NamedRule(
        TERMINAL.why, "The newest results of commands stay, and younger ones; an older one becomes a line."
    ),
    SEARCH.number: NamedRule(
        SEARCH.why, "The newest results of searches stay, and younger ones; an older one becomes a line."
    ),
    "R10": NamedRule(
        "repair",
        "Calls without a result and results without a call do not reach the model; results stand behind their calls, "
        "and the last word is never the model's own.",
    ),
    "R13": NamedRule(
        "compaction", "A summary by the model stands for what is old; the newest turns stay as they were said."
    ),
    COST_RULE: NamedRule(
        "folding by cost",
        "Results that nothing touched for long become a line, in steps that save more on later calls than the prompt "
        "cache they break is worth. What is folded stays folded.",
    ),
    "fit": NamedRule("fit", "What this provider or model cannot take is changed or left out."),
}


def why(rule: str | None, reason: str) -> str:
    """Return a reason prefixed with the name of its rule."""
    named_rule = NAMED_RULES.get(rule or "")
    return f"{named_rule.name}: {reason}" if named_rule else reason


def link_of(rule: str) -> str:
    """Return the documentation link of a rule."""
    return f"{PAGE}#{rule.lower()}"
