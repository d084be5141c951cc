"""Detection of tool results that a model invented (P11), in all usual forms, in linear time."""

from __future__ import annotations

import re

from recto.page.prompt.tools_prompt import FENCE, INVENTED_TAG, RESULT_NAMES, TAG_FENCES

_FENCE = re.compile(FENCE)
_CODE = re.compile(r"``[^`\n]*``|`[^`\n]*`")
_TAG = re.compile(rf"[\s>*_#-]*{INVENTED_TAG}")
_OPENS = re.compile(INVENTED_TAG)
_CLOSES = re.compile(rf"(?i:</(?:{'|'.join(RESULT_NAMES)})s?\s*>|\[/TOOL_RESULTS\])")
# A separate line, possibly in a list, a quote or bold type.
_LINE = re.compile(rf"^[ \t>*_#-]{{0,20}}{INVENTED_TAG}(?:[^<>\n]{{0,200}}>)?[*_ \t]{{0,9}}$", re.MULTILINE)
_ACTS = re.compile(r"^Action:", re.MULTILINE)
_OBSERVES = re.compile(r"^Observation:", re.MULTILINE)


def has_invented_result(text: str) -> bool:
    """Return True if a text contains a result: in tags, in a result fence, or after "Observation:".

    Text in backticks only mentions a result.
    """
    words: list[str] = []
    # The closing of the open fence, and whether its first line is still to come and may be a result.
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
    plain = _CODE.sub("", "".join(words))
    opening, action = _OPENS.search(plain), _ACTS.search(plain)
    return bool(
        (opening and (_CLOSES.search(plain, opening.end()) or _LINE.search(plain)))
        or (action and _OBSERVES.search(plain, action.end()))
    )
