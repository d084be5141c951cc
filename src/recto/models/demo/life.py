"""What the demo model finds of somebody's life in what they write, to be saved. It guesses nothing beyond the words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from recto.conversation.json import Json
from recto.models.demo.chart import read_lines
from recto.models.demo.page import an_object

Parameters: TypeAlias = Mapping[str, Mapping[str, Json]]

SAVE_LIFE = "save_life_context"
# A word that is denied is not said.
_SAID, _SAYING = r"(?<![不没无])", r"(?<!\bnot )(?<!\bno )\b"
STAGES = (
    re.compile(f"{_SAID}(?:应届|在职|待业|失业|创业中|自由职业|退休|在读|管理层)"),
    re.compile(
        rf"{_SAYING}(?:graduate|employed|unemployed|founder|manager|retired|student|freelancer?)\b", re.IGNORECASE
    ),
)
CONCERNS = (
    re.compile(
        f"{_SAID}(?:转行|跳槽|迷茫|创业|晋升|升职|被裁|裁员|倦怠|内耗|焦虑|拖延|孤独|失恋|分手|失眠|睡不着|压力|职场关系)"
    ),
    re.compile(
        rf"{_SAYING}(?:career change|job change|(?:feel(?:ing)?|so) lost|startup|promotion|layoff|laid off"
        r"|burnout|burn(?:ed|t) out|overthinking|anxiety|anxious|procrastinat\w+|lonely|loneliness|breakup"
        r"|insomnia|stress(?:ed)?)\b",
        re.IGNORECASE,
    ),
)
_ROLE = "经理|工程师|设计师|程序员|老师|教师|医生|护士|律师|会计|销售|运营|主管|总监|开发|助理|顾问|编辑|记者|研究员"
INDUSTRIES = (
    re.compile(f"(?:在(?P<where>[^\\s，。,.；;我在]{{2,8}}?))?[做当](?P<role>[^\\s，。,.；;]{{0,6}}?(?:{_ROLE}))"),
    re.compile(r"\bI work (?:as an?|in|at|for) (?P<role>[^,.;!?\n]{2,60})", re.IGNORECASE),
)
GOALS = (
    re.compile("(?<![不没])想要?(?![问知聊看说请不你])(?P<goal>[^，。！？,.!?；;\\s]{2,30})"),
    re.compile(
        r"\b(?:I want to|I'd like to|I would like to|I hope to|my goal is(?: to)?) (?!talk|ask|know|see|hear)"
        r"(?P<goal>[^,.;!?\n]{2,100}?)(?= and\b|[,.;!?\n]|$)",
        re.IGNORECASE,
    ),
)
# Words that a parameter's description gives as examples.
EXAMPLES = re.compile(r"(?:such as|例如|比如|如) ?(?P<words>[^.。;；]+)")
BETWEEN = re.compile(r"[、,，/]|\bor\b|或")
ASKS = re.compile(r"[?？吗呢]\s*$")
# What is shorter is a greeting, or a word to go on.
SHORTEST_NOTE, LONGEST_NOTE, LONGEST_CONCERNS = 8, 1_000, 20
# Nobody in need is to be met with a demonstration.
IN_NEED = re.compile(
    r"不想活|想死|轻生|自杀|自残|自伤|结束生命|\b(?:suicid\w*|kill myself|hurt myself|end my life|want to die)\b",
    re.IGNORECASE,
)


def life_in(words: str, takes: Parameters, known: Sequence[str], *, notes: bool) -> dict[str, Json]:
    """What the words say that is not known yet, by what a tool takes. With `notes`, else the words as such."""
    before = _known(known)
    found = {name: value for name, value in _found(words, takes).items() if name in takes and value != before.get(name)}
    if "concerns" in found:
        concerns = _together(before.get("concerns"), found["concerns"])
        found = {name: value for name, value in found.items() if name != "concerns"}
        found |= {"concerns": concerns} if concerns != _listed(before.get("concerns")) else {}
    is_told = len(words) >= SHORTEST_NOTE and not ASKS.search(words)
    if not found and notes and is_told and "notes" in takes and not before.get("notes"):
        return {"notes": words[:LONGEST_NOTE]}
    return found


def _found(words: str, takes: Parameters) -> dict[str, Json]:
    stages = [*_named(words, takes.get("stage", {})), *_all(STAGES, words)]
    concerns = list(dict.fromkeys((*_named(words, takes.get("concerns", {})), *_all(CONCERNS, words))))
    work = next((one for pattern in INDUSTRIES if (one := pattern.search(words))), None)
    goal = next((one for pattern in GOALS if (one := pattern.search(words))), None)
    industry = " ".join(filter(None, work.groupdict().values())).strip() if work else ""
    found: dict[str, Json] = {
        "stage": stages[0] if stages else "",
        "industry": industry,
        "goal": goal["goal"].strip() if goal else "",
        "concerns": [*concerns],
    }
    return {name: value for name, value in found.items() if value}


def _all(patterns: Sequence[re.Pattern[str]], words: str) -> Iterator[str]:
    yield from (one[0] for pattern in patterns for one in pattern.finditer(words))


def _named(words: str, parameter: Mapping[str, Json]) -> Iterator[str]:
    """The values that a parameter lists, or names as examples, and the words have."""
    examples = EXAMPLES.search(str(parameter.get("description") or ""))
    options = [one for one in _enums(parameter) if isinstance(one, str)]
    options += [one.strip() for one in BETWEEN.split(examples["words"])] if examples else []
    for option in filter(None, options):
        plain = re.escape(option)
        if re.search(rf"{_SAYING}{plain}\b" if option.isascii() else f"{_SAID}{plain}", words, re.IGNORECASE):
            yield option


def _enums(parameter: Mapping[str, Json]) -> Iterator[Json]:
    inner = parameter.get("anyOf")
    for one in (parameter, *(inner if isinstance(inner, list) else ())):
        for listed in (an_object(one).get("enum"), an_object(an_object(one).get("items")).get("enum")):
            yield from listed if isinstance(listed, list) else ()


def _known(data: Sequence[str]) -> Mapping[str, Json]:
    return {name: value for text in data for name, value in an_object(read_lines(text)).items()}


def _together(before: Json, now: Json) -> list[Json]:
    """All that troubles them: what is saved takes the place of what was."""
    return list(dict.fromkeys((*_listed(before), *_listed(now))))[-LONGEST_CONCERNS:]


def _listed(value: Json) -> list[Json]:
    if isinstance(value, str):
        return [one.strip() for one in value.split(", ") if one.strip()]
    return [one for one in value if isinstance(one, str)] if isinstance(value, Sequence) else []
