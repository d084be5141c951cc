"""What stands around a call and is no part of it (P11): fences, tags, marks of models, a bracket too many. Pure."""

from __future__ import annotations

import re

FENCE_WORDS = (
    *("json", "tool_calls", "tool_call", "tool_code", "tools", "tool", "function_call", "function"),
    *("xml", "python", "javascript", "js"),
)
MARKS = ("[TOOL_CALLS]", "[/TOOL_CALLS]", "[ARGS]", "function<｜tool▁sep｜>", "functools", "Action Input:", "Action:")
# Of them, those that answers stand in too count only where a call is all that is in them.
TAGS = (
    r"tools?|tool_calls?|tool_code|tool_use|functions?|function_?calls?|calls?|invoke|parameters?|json|response|answer"
)
# Those that may have the name of the tool in them.
NAMED_TAGS = "function|invoke|tool|tool_call|function_call|tool_use"
_AROUND = re.compile(
    rf"(?:\s|[,;\]}})]|(?:`{{3,99}}|~{{3,99}})(?:(?:{'|'.join(FENCE_WORDS)})(?![^\s{{\[<]))?"
    rf"|</?(?:{TAGS})>|</s>"
    r"|<\|[a-z_]{1,40}\|>|<｜[^｜>]{1,40}｜>|(?:\[|print\()(?=[\w.]{1,99}\()"
    rf"|{'|'.join(map(re.escape, MARKS))})*+",
    re.IGNORECASE,
)
_BEGINNINGS = tuple([mark.lower() for mark in (*MARKS, *FENCE_WORDS, "print(")])
_TAG_BEGUN = re.compile(rf"<(?:[^\s>]*|(?:{NAMED_TAGS})\s[^>]*)\Z", re.IGNORECASE)
# No mark around a call, and no beginning of one, is longer.
LONGEST_MARK = 48
# Nor a tag with the name of a tool in it.
LONGEST_TAG = 250


def past_marks(text: str, at: int) -> int:
    """Where what is no mark begins."""
    found = _AROUND.match(text, at)
    return found.end() if found else at


def is_only_marks(text: str) -> bool:
    """Whether a text is nothing but marks that stand around calls."""
    return past_marks(text, 0) == len(text)


def may_be_mark(text: str, at: int) -> bool:
    """Whether all that follows may be the beginning of a mark, or nothing follows yet."""
    rest = text[at : at + LONGEST_MARK].lower()
    if not rest or set(rest) in ({"`"}, {"~"}) or any(mark.startswith(rest) for mark in _BEGINNINGS):
        return True
    return _TAG_BEGUN.match(text[at : at + LONGEST_TAG]) is not None


def without_end_marks(text: str) -> str:
    """A text without the fence and the tag it ends with: behind them, brackets may be missing."""
    short = text.rstrip()
    for _ in range(4):
        opening = short.rfind("<", max(0, len(short) - LONGEST_MARK))
        mark = opening >= 0 and past_marks(short, opening) == len(short)
        short = (short[:opening] if mark else short).rstrip("`~ \n\r\t")
    return short
