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


def fit_suggestion(suggestion: SuggestionInput, tokens: int, counter: TokenCounter) -> SuggestionInput | None:
    """Return the request cut to a number of tokens, or None if the tool does not fit. The tool stays whole and the
    instruction may be cut. Context follows in its order, then the newest messages that fit.
    """
    tool, instruction = suggestion.tool, words_of(suggestion.messages[-1])
    tool_text = "\n".join((tool.name, tool.description, tool.parameters))
    room = tokens - _size(tool_text, tokens, counter)
    if room <= 0:
        return None
    words = cut_to(instruction[: room * CHARACTERS_PER_TOKEN], room, CUT, counter)
    if not words:
        return None
    room -= count_text(words, counter)
    context, room = _items_within(suggestion.context, room, counter)
    history = _newest_within(suggestion.messages[:-1], room, counter)
    asking = UserMessage(id=suggestion.messages[-1].id, parts=(Text(text=words),))
    return replace(suggestion, messages=(*history, asking), context=context)


def _items_within(
    items: Sequence[ContextItem], room: int, counter: TokenCounter
) -> tuple[tuple[ContextItem, ...], int]:
    result = list[ContextItem]()
    for item in items:
        size = _size(f"{item.description}\n{item.value}", room, counter)
        if size <= room:
            result.append(item)
            room -= size
    return tuple(result), room


def _newest_within(messages: Sequence[TextMessage], room: int, counter: TokenCounter) -> Sequence[TextMessage]:
    """Return the end of a history up to the first message, from the newest, that does not fit."""
    for place in range(len(messages) - 1, -1, -1):
        room -= TOKENS_PER_MESSAGE + _size(words_of(messages[place]), room, counter)
        if room < 0:
            return messages[place + 1 :]
    return messages


def _size(text: str, room: int, counter: TokenCounter) -> int:
    """Return the tokens of a text, or more than the limit if it is too long in any case."""
    return room + 1 if len(text) > max(0, room) * CHARACTERS_PER_TOKEN else count_text(text, counter)
