"""Asking a model for a summary (R13): the conversation as one text, in as many requests as it takes.

Each request carries the summary so far and the next piece, so that no request overflows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from recto.page.messages import (
    ActivityMessage,
    AssistantMessage,
    File,
    Message,
    Opaque,
    SystemMessage,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from recto.page.prompt import language
from recto.page.tokens import TokenCounter

INSTRUCTIONS = {
    "zh": (
        "你在为一段对话写摘要，之后的对话只能看到这份摘要。写明：用户的目标和约束、已做的决定及原因、已完成和未完成的工作、"
        "涉及的文件路径和标识符(原样保留)、出现过的错误及其解决办法、下一步。只写对话中出现过的内容，不要回答或继续对话。"
    ),
    "en": (
        "You summarise a conversation; what follows will see only this summary. Say: what the user wants and what "
        "limits it, what was decided and why, what is done and what is not, paths and identifiers involved (verbatim), "
        "errors met and how they were solved, the next step. Only what was said; do not answer the conversation or go "
        "on with it."
    ),
}
SO_FAR = {"zh": "此前的摘要:\n{summary}\n\n", "en": "The summary so far:\n{summary}\n\n"}
PIECE = {"zh": "对话:\n{text}", "en": "The conversation:\n{text}"}
BETWEEN = "\n\n"
CUT = "\n[... {count} characters left out ...]\n"


@dataclass(frozen=True, kw_only=True)
class SummarySettings:
    """How large a request for a summary may be, and how much of one message it shows."""

    tokens: int = 100_000
    characters_per_message: int = 20_000
    locale: str = "zh"


def summary_pieces(messages: Sequence[Message], *, settings: SummarySettings, counter: TokenCounter) -> tuple[str, ...]:
    """The conversation as texts, each within the tokens of one request."""
    texts = [_within(_transcript(message), settings, counter) for message in messages]
    pieces: list[list[str]] = [[]]
    room = settings.tokens
    for text, tokens in zip(texts, counter.count([BETWEEN + text for text in texts]), strict=True):
        if tokens > room and pieces[-1]:
            pieces.append([])
            room = settings.tokens
        pieces[-1].append(text)
        room -= tokens
    return tuple(BETWEEN.join(piece) for piece in pieces if piece)


def summary_request(piece: str, *, so_far: str | None, locale: str = "zh") -> tuple[SystemMessage, UserMessage]:
    """The conversation to send for one piece; its answer is the summary so far of the next."""
    wording = language(locale)
    before = SO_FAR[wording].format(summary=so_far) if so_far else ""
    words = before + PIECE[wording].format(text=piece)
    return SystemMessage(text=INSTRUCTIONS[wording]), UserMessage(parts=(Text(text=words),))


def _transcript(message: Message) -> str:
    return f"[{message.role}] " + "\n".join(_lines(message))


def _lines(message: Message) -> Iterator[str]:
    match message:
        case AssistantMessage() | UserMessage() | ToolMessage():
            yield from (line for part in message.parts for line in _part_lines(part))
        case ActivityMessage():
            yield message.content
        case _:
            yield message.text


def _part_lines(part: Text | File | ToolCall | Opaque) -> Iterator[str]:
    match part:
        case Text():
            yield part.text
        case ToolCall():
            yield f"{part.name}({part.arguments})"
        case File():
            yield f"[{part.kind}: {part.name or part.id or 'no name'}]"
        case Opaque():
            return


def _within(text: str, settings: SummarySettings, counter: TokenCounter) -> str:
    most = settings.characters_per_message
    shown = _shorten(text, most)
    while most and counter.count((shown,))[0] > settings.tokens:
        most //= 2
        shown = _shorten(text, most)
    return shown


def _shorten(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    half = most // 2
    return text[:half] + CUT.format(count=len(text) - 2 * half) + text[len(text) - half :]
