"""Messages before the conversation: the system prompt (S9), the quote (D2), the summary (R13)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from recto.conversation.locale import language
from recto.conversation.log import View
from recto.conversation.memo import cache_results, memoise
from recto.conversation.messages import Message, SystemMessage
from recto.page.body import encode_tool
from recto.page.facts import Facts
from recto.page.manifest import Part, PartKind
from recto.page.prompt.quote import Quote, quote_message
from recto.page.prompt.system_prompt import OVER, Prompt, SystemPrompt, system_prompt
from recto.page.prompt.tools_prompt import tools_section
from recto.page.steps.compact import summary_message
from recto.page.wire.formats import wire_named

OF_REMINDERS = {
    "zh": "<system-reminder> 里的内容是给你看的背景，不是用户说的话；不要向用户复述。",
    "en": "What stands in <system-reminder> is background for you, not the user's words. Do not repeat it to the user.",
}
PROMPT_REASON = "who the agent is and how it works"
# The size of the blank line between the prompt and its tools.
JOINT = 2
SUMMARY_REASON = "a summary that stands for what was said before"
# The maximum length of a cached prompt. Longer ones are encoded for each page to save memory.
KEPT_CHARACTERS = 65_536


@dataclass(frozen=True, kw_only=True)
class Injected:
    """A message that is not in the log, and the reason that it is in the page.

    `changes` are the parts that the budget removed from it. `tokens_before` is its uncut size if it was cut. `message`
    is None if none of it fits.
    """

    message: Message | None
    kind: PartKind
    rule: str
    reason: str
    changes: tuple[Part, ...] = ()
    tokens_before: int | None = None


def preamble(facts: Facts, log_view: View) -> tuple[Injected, ...]:
    """Return the messages before the conversation, in order."""
    messages = list[Injected]()
    rendered = system_text(facts)
    if rendered.text:
        why = facts.prompt.why if facts.prompt else ""
        reason = "; ".join(filter(None, (PROMPT_REASON, why, rendered.over)))
        message = _system(rendered.text) if len(rendered.text) <= KEPT_CHARACTERS else _new_system(rendered.text)
        changes = [*memoise(rendered, parts_taken)]
        for tool in facts.tools if facts.tool_calling == "prompt" else ():
            if tool.note:
                part = memoise(tool, encode_tool, wire_named(facts.target.wire), facts.counter).part
                saved_tokens = part.tokens_before - part.tokens_after
                changes.append(part._replace(tokens_before=saved_tokens, tokens_after=0))
        messages.append(Injected(message=message, kind="system", rule="S9", reason=reason, changes=tuple(changes)))
    quote = facts.quote
    if quote and not isinstance(quote, Quote):
        text = quote if isinstance(quote, str) else tuple(quote)
        quote = _quote_message(text, budget=facts.quote_budget, counter=facts.counter, locale=facts.locale)
    if isinstance(quote, Quote):
        before = quote.tokens_before if quote.cuts else None
        message, reason = quote.message, quote.reason
        messages.append(Injected(message=message, kind="quote", rule="D2", reason=reason, tokens_before=before))
    if log_view.compaction is not None:
        message = summary_message(log_view.compaction, facts.locale)
        messages.append(Injected(message=message, kind="summary", rule="R13", reason=SUMMARY_REASON))
    return tuple(messages)


def system_text(facts: Facts) -> SystemPrompt:
    """Render the system prompt within its budget, with the tools if they are offered as text (P11).

    If the page has reminders, the prompt explains them.
    """
    prompt, budget, counter = facts.prompt or Prompt(identity=""), facts.budget, facts.counter
    wording = language(facts.locale)
    if facts.prompt and facts.turn:
        prompt = memoise(prompt, _with_reminders, OF_REMINDERS[wording])
    tools = tools_section(facts.tools, wording, facts.call_form) if facts.tool_calling == "prompt" else ""
    if not tools:
        return system_prompt(prompt, facts.locale, budget, counter)
    room = None if budget is None else max(0, budget - counter.count((tools,))[0] - JOINT)
    rendered = system_prompt(prompt, facts.locale, room, counter)
    text, over = "\n\n".join(filter(None, (rendered.text, tools))), None
    if budget is not None and (tokens := counter.count((text,))[0]) > budget:
        over = OVER.format(tokens=tokens, budget=budget)
    return replace(rendered, text=text, over=over)


def _with_reminders(prompt: Prompt, note: str) -> Prompt:
    return replace(prompt, identity="\n\n".join(filter(None, (prompt.identity, note))))


def parts_taken(prompt: SystemPrompt) -> tuple[Part, ...]:
    """Return what the budget removed from a prompt, as parts without bytes."""
    return tuple(
        [
            Part("prompt", one.source, None, one.tokens_before - one.tokens_after, 0, one.decision, "S1", one.reason)
            for one in prompt.changes
        ]
    )


# Few entries, because each may hold as much text as the quote's budget allows.
_quote_message = cache_results(16)(quote_message)


def _new_system(text: str) -> SystemMessage:
    return SystemMessage(id="system prompt", text=text)


# Equal texts share one message, so that it is encoded and counted once.
_system = cache_results(256)(_new_system)
