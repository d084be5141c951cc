"""Results of tools that a model wrote itself (P11), in whatever form it knows them. Pure, in linear time."""

from __future__ import annotations

import re

from recto.page.prompt.tools_prompt import FENCE, INVENTED_TAG, RESULT_NAMES, TAG_FENCES

_FENCE = re.compile(FENCE)
_CODE = re.compile(r"``[^`\n]*``|`[^`\n]*`")
_TAG = re.compile(rf"[\s>*_#-]*{INVENTED_TAG}")
_OPENS = re.compile(INVENTED_TAG)
_CLOSES = re.compile(rf"(?i:</(?:{'|'.join(RESULT_NAMES)})s?\s*>|\[/TOOL_RESULTS\])")
# A line of its own, with whatever a list, a quote or bold type puts around it.
_LINE = re.compile(rf"^[ \t>*_#-]{{0,20}}{INVENTED_TAG}(?:[^<>\n]{{0,200}}>)?[*_ \t]{{0,9}}$", re.MULTILINE)
_ACTS = re.compile(r"^Action:", re.MULTILINE)
_OBSERVES = re.compile(r"^Observation:", re.MULTILINE)


def makes_up_a_result(text: str) -> bool:
    """Whether words have a result in them: in tags, in a fence for one, or observed. In backticks it is spoken of."""
    words: list[str] = []
    # How the open fence is closed, and whether its first line is still to come and may be a result.
    closing, is_judged = "", False
    for line in text.splitlines(keepends=True):
        if closing:
            if is_judged and _TAG.match(line):
                return True
            is_judged = is_judged and line.isspace()
            closing = "" if line.strip() == closing else closing
        elif opening := _FENCE.fullmatch(line):
            kind = opening["info"].strip().lower()
            if kind.removesuffix("s") in RESULT_NAMES:
                return True
            closing, is_judged = opening["fence"], kind in TAG_FENCES or kind.startswith("tool_")
        else:
            words.append(line)
    return _has_result(_CODE.sub("", "".join(words)))


def _has_result(words: str) -> bool:
    opening, action = _OPENS.search(words), _ACTS.search(words)
    return bool(
        (opening and (_CLOSES.search(words, opening.end()) or _LINE.search(words)))
        or (action and _OBSERVES.search(words, action.end()))
    )
