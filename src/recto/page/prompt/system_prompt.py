"""The system prompt (S9) within its budget (S1).

The budget first drops cases, then cuts user data. All other parts stay whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from recto.conversation.locale import language
from recto.conversation.memo import MemoHolder, memoise
from recto.page.text.cut import cut_to
from recto.page.text.tokens import TokenCounter

HEADINGS = {
    "zh": {
        "tone": "## 语气",
        "sop": "## SOP 执行规则",
        "cases": "## 相关案例",
        "data": "## 用户数据",
        "rules": "## 工具调用规则",
    },
    "en": {
        "tone": "## Tone",
        "sop": "## SOP",
        "cases": "## Related cases",
        "data": "## User data",
        "rules": "## Tool rules",
    },
}
# Tokens to reserve, because a text inside a prompt may have a few more tokens than alone.
SLACK = 8
CUT_MARK = {"zh": "\n[... 已截断 ...]", "en": "\n[... cut ...]"}
BEST_FIRST = "over the budget of {budget} tokens; cases go first"
SHORTENED_REASON = "shortened to keep the budget of {budget} tokens"
NOTHING_LEFT = "nothing of it fits into the budget of {budget} tokens"
OVER = "{tokens} tokens, over the budget of {budget}: identity, SOP and tools are never cut"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A worked example. Prompts list the best first."""

    id: str
    name: str
    content: str


@dataclass(frozen=True, kw_only=True)
class Datum:
    """A titled piece of user data."""

    title: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Prompt(MemoHolder):
    """Contents of a system prompt. A lean persona has only an identity; an expert also has the other parts (S1, S9).

    `why` is not rendered: it explains in the manifest how the prompt was chosen.
    """

    identity: str
    title: str = ""
    tone: str = ""
    sop: str = ""
    cases: tuple[Case, ...] = ()
    data: tuple[Datum, ...] = ()
    rules: str = ""
    why: str = ""


class PromptCut(NamedTuple):
    """A part of a prompt that was dropped or cut for the budget."""

    source: str
    decision: Literal["dropped", "cut"]
    tokens_before: int
    tokens_after: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class SystemPrompt(MemoHolder):
    """A rendered prompt, and the changes that the budget made. `over` is a message if the prompt still exceeds it."""

    text: str
    changes: tuple[PromptCut, ...] = ()
    over: str | None = None


def system_prompt(prompt: Prompt, locale: str, budget: int | None, counter: TokenCounter) -> SystemPrompt:
    """Render the prompt, within `budget` tokens if possible."""
    return memoise(prompt, _system_prompt, locale, budget, counter)


def _system_prompt(prompt: Prompt, locale: str, budget: int | None, counter: TokenCounter) -> SystemPrompt:
    whole = SystemPrompt(text=render(prompt, locale))
    if budget is None or _tokens(whole.text, counter) <= budget:
        return whole
    fewer, changes = _with_fewer_cases(prompt, locale, budget, counter)
    shorter, more = _with_shorter_data(fewer, locale, budget, counter)
    text = render(shorter, locale)
    tokens = _tokens(text, counter)
    over = OVER.format(tokens=tokens, budget=budget) if tokens > budget else None
    return SystemPrompt(text=text, changes=(*changes, *more), over=over)


def render(prompt: Prompt, locale: str) -> str:
    """Render the prompt at full size. Empty sections are omitted."""
    headings = HEADINGS[language(locale)]
    cases = "\n\n".join(f"### {case.name}\n{case.content}" for case in prompt.cases)
    data = "\n\n".join(f"### {datum.title}\n{datum.text}" for datum in prompt.data)
    sections = {"tone": prompt.tone, "sop": prompt.sop, "cases": cases, "data": data, "rules": prompt.rules}
    headed = [f"{headings[name]}\n{text}" for name, text in sections.items() if text]
    return "\n\n".join(filter(None, (f"# {prompt.title}" if prompt.title else "", prompt.identity, *headed)))


def _with_fewer_cases(
    prompt: Prompt, locale: str, budget: int, counter: TokenCounter
) -> tuple[Prompt, list[PromptCut]]:
    fits, fails = 0, len(prompt.cases)
    while fits < fails:
        middle = (fits + fails + 1) // 2
        shorter = replace(prompt, cases=prompt.cases[:middle])
        if _tokens(render(shorter, locale), counter) <= budget:
            fits = middle
        else:
            fails = middle - 1
    dropped_cases = prompt.cases[fits:][::-1]
    reason = BEST_FIRST.format(budget=budget)
    counts = counter.count([case.content for case in dropped_cases])
    changes = [
        PromptCut(f"case {case.id}", "dropped", n, 0, reason) for case, n in zip(dropped_cases, counts, strict=True)
    ]
    return replace(prompt, cases=prompt.cases[:fits]), changes


def _with_shorter_data(
    prompt: Prompt, locale: str, budget: int, counter: TokenCounter
) -> tuple[Prompt, Sequence[PromptCut]]:
    changes: list[PromptCut] = []
    for place in range(len(prompt.data) - 1, -1, -1):
        excess = _tokens(render(prompt, locale), counter) - budget
        if excess <= 0:
            break
        datum = prompt.data[place]
        before = _tokens(datum.text, counter)
        short = cut_to(datum.text, max(0, before - excess - SLACK), CUT_MARK[language(locale)], counter)
        if short == datum.text:
            continue
        after = _tokens(short, counter)
        decision, reason = ("cut", SHORTENED_REASON) if after else ("dropped", NOTHING_LEFT)
        changes.append(PromptCut(f"data {datum.title}", decision, before, after, reason.format(budget=budget)))
        # An empty section would tell the model that there is no such data.
        short_data = (replace(datum, text=short),) if short else ()
        prompt = replace(prompt, data=(*prompt.data[:place], *short_data, *prompt.data[place + 1 :]))
    return prompt, changes


def _tokens(text: str, counter: TokenCounter) -> int:
    return counter.count((text,))[0] if text else 0
