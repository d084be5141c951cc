"""The end of a page's conversation: a turn that continues after an interrupted reply ends with a user message.

Newer models reject a page that ends with an assistant message, others one that ends with a blank. If the last reply was
unusable, the closing message says so.
"""

from __future__ import annotations

from dataclasses import replace

from recto.conversation.locale import language
from recto.conversation.messages import AssistantMessage, Message, Text, UserMessage
from recto.page.draft import Draft, replaced, unchanged
from recto.page.facts import Facts
from recto.page.manifest import Note
from recto.page.prompt.reminder import FRAME_TAGS, REMINDER, neutralise
from recto.page.wire.formats import wire_named

CONTINUE = {"zh": "请继续。", "en": "Continue."}
CONTINUED = Note(decision="injected", rule="R10", reason="a model answers a user: the turn goes on after its own words")
CORRECTED = Note(decision="injected", rule="P11", reason="the last reply could not be used: it is asked for again")
NOT_USED = {
    "zh": "你的上一条回复没有被采用，请重写。{problem}",
    "en": "Your last reply was not used. Write it again. {problem}",
}
TRIMMED = Note(
    decision="repaired", rule="fit", reason="without the blank at its end, which this provider refuses there"
)


def closing_word(messages: tuple[Message, ...], facts: Facts) -> tuple[UserMessage, Note] | None:
    """Return the closing user message if the assistant spoke last or its reply was unusable, and its note.

    A conversation without a turn is left as it is.
    """
    wording = language(facts.locale)
    if facts.correction:
        problem = neutralise(NOT_USED[wording].format(problem=facts.correction), FRAME_TAGS)
        return _word(REMINDER.format(sections=problem)), CORRECTED
    if facts.turn is None or not _last_said(messages):
        return None
    return _word(CONTINUE[wording]), CONTINUED


def _word(text: str) -> UserMessage:
    return UserMessage(id="closing", parts=(Text(text=text),))


def trim_end(messages: tuple[Message, ...], facts: Facts) -> Draft:
    """Remove a blank at the end of the conversation if the provider rejects it."""
    place, last = _last_said(messages) or (0, None)
    match last:
        case AssistantMessage(parts=(*before, Text() as words)) if not wire_named(facts.target.wire).takes_blank_end:
            text = words.text.rstrip()
            short = replace(last, parts=(*before, replace(words, text=text))) if text != words.text else last
            return replaced(messages, {place: short}, TRIMMED)
        case _:
            return unchanged(messages)


def _last_said(messages: tuple[Message, ...]) -> tuple[int, AssistantMessage] | None:
    """Return the last message and its place if it is an assistant's. Instructions do not count."""
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if message.role not in ("system", "developer"):
            return (place, message) if isinstance(message, AssistantMessage) else None
    return None
