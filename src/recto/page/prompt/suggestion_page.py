"""Request for suggested user messages: the tool, the instruction, and the newest context that fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from recto.conversation.input.run_input import ContextItem
from recto.conversation.input.suggestion_input import SuggestionInput, TextMessage
from recto.conversation.messages import Text, UserMessage, words_of
from recto.page.prompt.system_prompt import CUT_MARK
from recto.page.text.cut import cut_to
from recto.page.text.tokens import TOKENS_PER_MESSAGE, TokenCounter, count_text

# CopilotKit writes the instruction, in English.
CUT = CUT_MARK["en"]
# Longer text is not counted: no token has more characters than this, except blanks.
CHARACTERS_PER_TOKEN = 16


def fit_suggestion(asked: SuggestionInput, tokens: int, counter: TokenCounter) -> SuggestionInput | None:
    """Return the request cut to a number of tokens, or None if the tool does not fit. The tool stays whole and the
    instruction may be cut. Context follows in its order, then the newest messages that fit.
    """
    tool, instruction = asked.tool, words_of(asked.messages[-1])
    offered = "\n".join((tool.name, tool.description, tool.parameters))
    left = tokens - _size(offered, tokens, counter)
    if left <= 0:
        return None
    words = cut_to(instruction[: left * CHARACTERS_PER_TOKEN], left, CUT, counter)
    if not words:
        return None
    left -= count_text(words, counter)
    context, left = _items_within(asked.context, left, counter)
    history = _newest_within(asked.messages[:-1], left, counter)
    asking = UserMessage(id=asked.messages[-1].id, parts=(Text(text=words),))
    return replace(asked, messages=(*history, asking), context=context)


def _items_within(
    items: Sequence[ContextItem], left: int, counter: TokenCounter
) -> tuple[tuple[ContextItem, ...], int]:
    kept = list[ContextItem]()
    for item in items:
        size = _size(f"{item.description}\n{item.value}", left, counter)
        if size <= left:
            kept.append(item)
            left -= size
    return tuple(kept), left


def _newest_within(said: Sequence[TextMessage], left: int, counter: TokenCounter) -> Sequence[TextMessage]:
    """Return the end of a history up to the first message, from the newest, that does not fit."""
    for place in range(len(said) - 1, -1, -1):
        left -= TOKENS_PER_MESSAGE + _size(words_of(said[place]), left, counter)
        if left < 0:
            return said[place + 1 :]
    return said


def _size(text: str, left: int, counter: TokenCounter) -> int:
    """Return the tokens of a text, or more than the limit if it is too long in any case."""
    return left + 1 if len(text) > max(0, left) * CHARACTERS_PER_TOKEN else count_text(text, counter)
