"""Compaction (R13): when a conversation no longer fits, what is summarised, and how the summary stands in the page.

The log keeps everything: a summary is a marker, and it stands only for what the view still has.
"""

from __future__ import annotations

from dataclasses import dataclass

from recto.conversation.locale import language
from recto.conversation.log import Compacted, View
from recto.conversation.memo import remember
from recto.conversation.messages import Message, Text, UserMessage
from recto.errors import SettingsError
from recto.page.draft import Draft, unchanged
from recto.page.manifest import Note
from recto.page.prompt.reminder import OUR_TAGS, neutralise
from recto.page.text.tokens import TokenCounter, tokens_of

# What may follow a call before the next words: results, and what is shown to people meanwhile.
CHAINED = ("tool", "reasoning", "activity")
SUMMARISED = "the summary stands for it"
SUMMARY = {
    "zh": "以下是此前对话的摘要，原文已不在上下文中：\n<summary>\n{summary}\n</summary>",
    "en": "A summary of the conversation so far, which is no longer in context:\n<summary>\n{summary}\n</summary>",
}
SUMMARY_TAGS = (*OUR_TAGS, "summary")


@dataclass(frozen=True, kw_only=True)
class CompactSettings:
    """When to compact: at this share of the model's window, and only if at least so many tokens would be summarised."""

    window: int = 200_000
    at: float = 0.8
    least: int = 1_000

    def __post_init__(self) -> None:
        if not 0 < self.at <= 1:
            raise SettingsError(name="compact.at", value=self.at, allowed="it is a share between 0 and 1")
        if self.window < 1:
            raise SettingsError(name="compact.window", value=self.window, allowed="it is a number of tokens, 1 or more")


def is_full(tokens: int, settings: CompactSettings) -> bool:
    """Whether a page of so many tokens is too close to the end of the model's window."""
    return tokens >= settings.at * settings.window


def place_to_cut(seen: View, *, least: int, counter: TokenCounter) -> int | None:
    """The place of the last message a summary would stand for, or None where compacting would win nothing.

    The trailing tool chain stays out of it, and no cut comes right behind the user message of the current turn. A cut
    inside the turn stands for that message too, and the summary tells of it; the page keeps it until the next turn, so
    it does not count as won. Nor does what a summary already stands for: that is what keeps compaction from running in
    circles.
    """
    messages = seen.messages
    done = seen.compacted - 1
    last = _tail_start(messages) - 1
    if last == seen.turn_start:
        last -= 1
    won = [message for place, message in enumerate(messages[: last + 1]) if place > done and place != seen.turn_start]
    if sum(tokens_of(message, counter) for message in won) < max(least, 1):
        return None
    return last


def to_summarise(seen: View, upto: int) -> tuple[Message, ...]:
    """The messages a summary up to this place is made of, next to the words of the summary in force.

    Where the cut is inside the current turn, its user message is among them: the next turn drops it from the page.
    """
    return seen.messages[seen.compacted : upto + 1]


def _tail_start(messages: tuple[Message, ...]) -> int:
    """Where the trailing tool chain begins; the end, where the conversation ends with words."""
    place = len(messages)
    while place and messages[place - 1].role in CHAINED:
        place -= 1
    caller = messages[place - 1] if place else None
    is_chain = caller is not None and caller.role == "assistant" and bool(caller.tool_calls)
    return place - 1 if is_chain else len(messages)


def compact(seen: View) -> Draft:
    """The conversation without what the summary in force stands for. A cut inside a turn keeps its user message."""
    if seen.compaction is None:
        return unchanged(seen.messages)
    turn, count = seen.turn_start, seen.compacted
    notes = dict.fromkeys(range(count), Note(decision="dropped", rule="R13", reason=SUMMARISED))
    kept = [turn] if notes.pop(turn, None) else []
    origins = [*kept, *range(count, len(seen.messages))]
    messages = (*[seen.messages[place] for place in kept], *seen.messages[count:])
    return Draft(messages=messages, origins=origins, notes=notes)


def summary_message(compaction: Compacted, locale: str) -> UserMessage:
    """A summary as the start of the page."""
    return remember(compaction, _summary_message, locale)


def _summary_message(compaction: Compacted, locale: str) -> UserMessage:
    text = SUMMARY[language(locale)].format(summary=neutralise(compaction.summary, SUMMARY_TAGS))
    # No time: it is newer than what stands behind it, and messages without one would take it (R7).
    return UserMessage(id=compaction.id, seq=compaction.seq, parts=(Text(text=text),))
