"""Standard procedures (S7): ordered steps with conditions on user data, and their text for the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from recto.conversation.json import Json
from recto.conversation.locale import language
from recto.skills.known_data import KnownData, is_empty

DUE, NOT_DUE = "→", "-"
# The text says how to continue, because a tool may complete the step within the turn.
OUTLINE = {
    "zh": """\
按顺序执行以下流程。标有 → 的是当前步骤，由已知的用户数据得出：先完成它，不要跳到后面的步骤。\
本轮的工具结果已经完成它时，接着做下一步。""",
    "en": """\
Work through these steps in order. The one marked → is due now, judged by what is known of the user: \
finish it before any step after it. Once a tool result of this turn has settled it, go on to the next.""",
}
ALL_DONE = {
    "zh": "以下流程中目前没有需要执行的步骤：直接回答用户。",
    "en": "None of these steps is due now: answer the user directly.",
}
NEXT = {"zh": "当前步骤：{title}\n{text}", "en": "Next step: {title}\n{text}"}
ALWAYS = {"zh": "始终遵守：\n{rules}", "en": "At every step:\n{rules}"}


@dataclass(frozen=True, kw_only=True)
class Missing:
    """The path has no value."""

    path: str


@dataclass(frozen=True, kw_only=True)
class Has:
    """The path has a value."""

    path: str


@dataclass(frozen=True, kw_only=True)
class Equals:
    """The path has this value."""

    path: str
    value: Json


@dataclass(frozen=True, kw_only=True)
class Differs:
    """Both paths have values and the values differ: data computed from one of them is outdated."""

    path: str
    other: str


@dataclass(frozen=True, kw_only=True)
class AllOf:
    """All of these conditions hold."""

    of: tuple[Condition, ...]


@dataclass(frozen=True, kw_only=True)
class AnyOf:
    """At least one of these conditions holds."""

    of: tuple[Condition, ...]


@dataclass(frozen=True, kw_only=True)
class Not:
    """The condition does not hold."""

    of: Condition


Condition: TypeAlias = Missing | Has | Equals | Differs | AllOf | AnyOf | Not


@dataclass(frozen=True, kw_only=True)
class SopStep:
    """A step. It is due if its condition holds, or if it has no condition. `text` instructs the model."""

    id: str
    title: str
    text: str
    when: Condition | None = None


@dataclass(frozen=True, kw_only=True)
class Sop:
    """A procedure. Its next step is the first one that is due. `rules` apply to all steps, `tool_rules` to tools."""

    steps: tuple[SopStep, ...] = ()
    rules: str = ""
    tool_rules: str = ""


def holds(condition: Condition, data: KnownData) -> bool:
    """Return True if a condition holds for the data."""
    match condition:
        case Missing(path=path):
            return data.at(path) is None
        case Has(path=path):
            return data.at(path) is not None
        case Equals(path=path, value=value):
            return _same(data.at(path), None if is_empty(value) else value)
        case Differs(path=path, other=other):
            one, two = data.at(path), data.at(other)
            return one is not None and two is not None and not _same(one, two)
        case AllOf(of=conditions):
            return all(holds(one, data) for one in conditions)
        case AnyOf(of=conditions):
            return any(holds(one, data) for one in conditions)
        case Not(of=inner):
            return not holds(inner, data)


def _same(one: Json, other: Json) -> bool:
    # Compare the types too, because true equals 1 in Python.
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def next_sop_step(sop: Sop, data: KnownData) -> SopStep | None:
    """Return the first step that is due, if any."""
    return next((step for step in sop.steps if step.when is None or holds(step.when, data)), None)


def sop_text(sop: Sop, data: KnownData, locale: str) -> str:
    """Return the text for the model: all steps with the next one marked, its instructions, and the rules."""
    wording, due = language(locale), next_sop_step(sop, data)
    paragraphs: list[str] = []
    if sop.steps:
        intro = OUTLINE[wording] if due else ALL_DONE[wording]
        outline = [
            f"{DUE if step is due else NOT_DUE} {number}. {_title(step)}" for number, step in enumerate(sop.steps, 1)
        ]
        paragraphs.append("\n".join((intro, *outline)))
    if due:
        paragraphs.append(NEXT[wording].format(title=_title(due), text=due.text).rstrip())
    if sop.rules:
        paragraphs.append(ALWAYS[wording].format(rules=sop.rules))
    return "\n\n".join(paragraphs)


def _title(step: SopStep) -> str:
    return step.title or step.id
