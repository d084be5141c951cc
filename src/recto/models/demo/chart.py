"""What the demo model reads out of a chart: the few facts it knows by name. It says nothing of what they mean."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from recto.conversation.json import Json
from recto.models.demo.files import Language
from recto.skills.known import MADE_OF

# What is told, in this order, by the names it may have.
FACTS: Sequence[tuple[tuple[str, ...], Mapping[Language, str]]] = (
    (("pillars",), {"zh": "四柱", "en": "Pillars"}),
    (("day_master",), {"zh": "日主", "en": "Day master"}),
    (("strength",), {"zh": "强弱", "en": "Strength"}),
    (("sun",), {"zh": "太阳", "en": "Sun"}),
    (("moon",), {"zh": "月亮", "en": "Moon"}),
    (("rising", "ascendant"), {"zh": "上升", "en": "Rising"}),
    (("spread_name", "spread"), {"zh": "牌阵", "en": "Spread"}),
    (("cards", "draws"), {"zh": "牌", "en": "Cards"}),
    (("stage",), {"zh": "处境", "en": "Stage"}),
    (("industry",), {"zh": "行业与职位", "en": "Work"}),
    (("goal",), {"zh": "目标", "en": "Goal"}),
    (("concerns",), {"zh": "困扰", "en": "Concerns"}),
    (("strengths",), {"zh": "优势", "en": "Strengths"}),
    (("plan",), {"zh": "计划", "en": "Plan"}),
    (("next_steps",), {"zh": "下一步", "en": "Next steps"}),
    (("notes",), {"zh": "备注", "en": "Notes"}),
)
LISTS = frozenset({"concerns", "strengths", "next_steps"})
# What is no chart of the user's now: what it was made of, what was before.
PASSED_OVER = frozenset({MADE_OF, "history"})
NAMES = ("text", "card", "name", "title", "label", "pillar", "verdict", "sign", "value")
REVERSED = {"zh": "（逆位）", "en": " (reversed)"}
UPRIGHT = {"upright", "正位", ""}
BETWEEN = {"zh": "、", "en": ", "}
# Between whole sentences there is nothing to add.
AFTER_STOP = re.compile("(?<=。)(?:、|, )")
COLON = {"zh": "：", "en": ": "}
DEEPEST, MOST_ITEMS, LINES_SHOWN, LINE_SHOWN = 5, 10, 8, 160
LINE = re.compile(r"(?P<indent> *)- (?:(?P<key>[^:：;]{1,64}):(?: (?P<value>.*))?|(?P<item>.*))")


def tell_facts(chart: Json, language: Language) -> Iterator[str]:
    """The facts of a chart, a line each."""
    for names, label in FACTS:
        value = next((found for name in names if (found := _find(chart, name)) is not None), None)
        # A system prompt has a short list in one line.
        listed = value.split(", ") if isinstance(value, str) and LISTS.intersection(names) else value
        if text := _text(listed, language):
            yield _short(f"{label[language]}{COLON[language]}{AFTER_STOP.sub('', text)}")


def tell_data(text: str, language: Language) -> Sequence[str]:
    """The same of a chart as a system prompt tells it, in lines; where none is known by name, how those lines begin."""
    facts = list(tell_facts(read_lines(text), language))
    lines = [line.strip().removeprefix("- ") for line in text.splitlines() if line.strip()]
    return facts or [_short(line) for line in lines[:LINES_SHOWN]]


def read_lines(text: str) -> Json:
    """A value from lines of `- key: value`, deeper ones indented by two."""
    lines = [found for line in text.splitlines() if (found := LINE.fullmatch(line))]
    return _value(lines, 0)


def _value(lines: Sequence[re.Match[str]], depth: int) -> Json:
    own = [place for place, line in enumerate(lines) if len(line["indent"]) == 2 * depth]
    table: dict[str, Json] = {}
    rows: list[Json] = []
    for place, end in zip(own, (*own[1:], len(lines)), strict=False):
        line, inner = lines[place], lines[place + 1 : end]
        value: Json = _value(inner, depth + 1) if inner and depth < DEEPEST else line["value"] or ""
        row = _row(line[0].strip().removeprefix("- "))
        if line["key"] is None or isinstance(row, Mapping):
            rows.append(row)
        elif line["key"].isdigit():
            rows.append(value)
        else:
            table[line["key"]] = value
    return rows or table


def _row(text: str) -> Json:
    """An item of a list: a text, or a small table in one line."""
    pairs = [pair.partition(": ") for pair in text.split("; ")]
    is_table = len(pairs) > 1 and all(between for _, between, _ in pairs)
    return {key: value for key, _, value in pairs} if is_table else text


def _find(value: Json, name: str, deepest: int = DEEPEST) -> Json:
    """The value under a name, the nearest to the top."""
    if not isinstance(value, Mapping) or not deepest:
        return None
    if value.get(name) is not None:
        return value[name]
    inner = (_find(one, name, deepest - 1) for key, one in value.items() if key not in PASSED_OVER)
    return next((found for found in inner if found is not None), None)


def _text(value: Json, language: Language) -> str:
    match value:
        case str():
            return value.strip()
        case None | bool():
            return ""
        case int() | float():
            return str(value)
        case Mapping():
            return _named(value, language)
        case Sequence():
            told = (text for one in value if (text := _text(one, language)))
            return BETWEEN[language].join(islice(told, MOST_ITEMS))


def _named(value: Mapping[str, Json], language: Language) -> str:
    """A table in words: what it is called, or else all that is in it."""
    named = next((text for name in NAMES if (text := _text(value.get(name), language))), "")
    if not named:
        return _text([one for key, one in value.items() if key not in PASSED_OVER], language)
    where, turned = _text(value.get("position"), language), value.get("orientation")
    is_reversed = value.get("reversed") in (True, "true") or (isinstance(turned, str) and turned not in UPRIGHT)
    before = f"{where}{COLON[language]}" if where and where != named else ""
    return f"{before}{named}{REVERSED[language] if is_reversed else ''}"


def _short(line: str) -> str:
    return line if len(line) <= LINE_SHOWN else f"{line[:LINE_SHOWN]}..."
