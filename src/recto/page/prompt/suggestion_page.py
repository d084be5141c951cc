"""Request for suggested user messages: the tool, the instruction, and the newest context that fits."""

from __future__ import annotations

from dataclasses import replace

from recto.conversation.input.run_input import ContextItem
from recto.conversation.input.suggestion_input import SuggestionInput
from recto.conversation.messages import Text, UserMessage, words_of
from recto.page.prompt.system_prompt import CUT_MARK
from recto.page.text.cut import cut_to
from recto.page.text.tokens import TOKENS_PER_MESSAGE, TokenCounter, count_text

# English, because CopilotKit's instruction is English.
CUT = CUT_MARK["en"]
# The maximum number of characters of a token, except for runs of blanks. Text too long at this rate is not counted.
CHARACTERS_PER_TOKEN = 16


def fit_suggestion(suggestion: SuggestionInput, tokens: int, counter: TokenCounter) -> SuggestionInput | None:
    """Return the request cut to `tokens`: the whole tool, then the instruction, context, and the newest messages.

    Return None if the tool does not fit. The instruction may be cut.
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
    context = list[ContextItem]()
    for item in suggestion.context:
        size = _size(f"{item.description}\n{item.value}", room, counter)
        if size <= room:
            context.append(item)
            room -= size
    *history, last = suggestion.messages
    start = len(history)
    while start:
        room -= TOKENS_PER_MESSAGE + _size(words_of(history[start - 1]), room, counter)
        if room < 0:
            break
        start -= 1
    instruction_message = UserMessage(id=last.id, parts=(Text(text=words),))
    return replace(suggestion, messages=(*history[start:], instruction_message), context=tuple(context))


def _size(text: str, room: int, counter: TokenCounter) -> int:
    """Return the tokens of a text, or more than the limit if it is too long in any case."""
    return room + 1 if len(text) > max(0, room) * CHARACTERS_PER_TOKEN else count_text(text, counter)
