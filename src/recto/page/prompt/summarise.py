"""Requests for a summary (R13): the conversation as text, split into as many requests as needed.

Each request contains the summary so far and the next piece, and stays within the configured size. Each message is in a
frame that its text cannot end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from recto.conversation.locale import language
from recto.conversation.message_files import clean_files, display_name
from recto.conversation.messages import (
    ActivityMessage,
    AssistantMessage,
    File,
    Message,
    Opaque,
    SystemMessage,
    Text,
    ToolCall,
    ToolMessage,
    UnreadMessages,
    UserMessage,
    error_text,
)
from recto.errors import SettingsError
from recto.page.prompt.reminder import OUR_TAGS, neutralise
from recto.page.prompt.system_prompt import CUT_MARK, SLACK
from recto.page.text.cut import cut_to
from recto.page.text.tokens import TokenCounter, tokens_of

INSTRUCTIONS = {
    "zh": (
        "你在为一段对话写摘要，之后的对话只能看到这份摘要。用用户所用的语言写。有的就写明：\n"
        "- 用户本人：姓名、所在地、偏好，以及说过的其他个人情况\n"
        "- 尚未完成的任务（用用户的原话）及其约束\n"
        "- 已做的决定及原因、已完成的工作\n"
        "- 涉及的文件路径、标识符、名称和数字（原样保留）\n"
        "- 出现过的错误及其解决办法\n"
        "- 下一步\n"
        "此前的摘要中仍然成立的内容要全部保留。只写对话中出现过的内容，不要回答或继续对话。"
    ),
    "en": (
        "You summarise a conversation; what follows will see only this summary. Write it in the language the user "
        "writes in. Say, where there is something to say:\n"
        "- the user: name, place, preferences, and what else they said of themselves\n"
        "- the task that is still open, in the user's words, and what limits it\n"
        "- what was decided and why, and what is done\n"
        "- paths, identifiers, names and numbers involved, verbatim\n"
        "- errors met and how they were solved\n"
        "- the next step\n"
        "Keep all of the summary so far that still holds. Only what was said; do not answer the conversation or go on "
        "with it."
    ),
}
SO_FAR = {
    "zh": "此前的摘要：\n<summary>\n{summary}\n</summary>\n\n",
    "en": "The summary so far:\n<summary>\n{summary}\n</summary>\n\n",
}
# The instruction is repeated last, because small models follow what they read last.
PIECE = {
    "zh": (
        "对话：\n{text}\n\n现在用用户所用的语言写摘要：先写用户的姓名、所在地和偏好，再写尚未完成的任务和涉及的文件，"
        "最后写其余内容。"
    ),
    "en": (
        "The conversation:\n{text}\n\nNow write the summary, in the language the user writes in: first the user's "
        "name, where they live and what they like; then the task that is still open, with its files; then the rest."
    ),
}
MESSAGE = '<message role="{role}">\n{text}\n</message>'
BETWEEN = "\n"
CUT = "\n[... {count} characters left out ...]\n"
# Tags to neutralise, so that no text in a request can end its own frame or begin another one.
TAGS = (*OUR_TAGS, "message", "summary")
ROLES = ("system", "developer", "user", "assistant", "tool", "reasoning", "activity")
# A number larger than any count of characters, to reserve space for the longest mark.
MANY = 10**12


@dataclass(frozen=True, kw_only=True)
class SummarySettings:
    """Token limits of a whole request and of the summary so far, and the characters shown of a message."""

    tokens: int = 100_000
    summary_tokens: int = 4_000
    characters_per_message: int = 20_000
    locale: str = "zh"

    def __post_init__(self) -> None:
        for name in ("tokens", "summary_tokens", "characters_per_message"):
            if (value := getattr(self, name)) < 1:
                raise SettingsError(name=f"summary.{name}", value=value, allowed="it is a number, 1 or more")


def summary_pieces(messages: Sequence[Message], *, settings: SummarySettings, counter: TokenCounter) -> tuple[str, ...]:
    """Return the conversation as texts, one per request. Raise SettingsError if a request is too small for text."""
    whole = _room(settings, counter)
    texts = list[str]()
    for message in messages:
        text, most = "\n".join(_lines(message)), settings.characters_per_message
        frame = _framed(message.role, _shorten(text, most))
        while most and counter.count((frame + BETWEEN,))[0] > whole:
            most //= 2
            frame = _framed(message.role, _shorten(text, most))
        texts.append(frame)
    pieces: list[list[str]] = [[]]
    room = whole
    for text, tokens in zip(texts, counter.count([text + BETWEEN for text in texts]), strict=True):
        if tokens > room and pieces[-1]:
            pieces.append([])
            room = whole
        pieces[-1].append(text)
        room -= tokens
    return tuple(BETWEEN.join(piece) for piece in pieces if piece)


def summary_request(
    piece: str, *, so_far: str | None, settings: SummarySettings, counter: TokenCounter
) -> tuple[SystemMessage, UserMessage]:
    """Return the messages that ask for the summary of one piece; the answer is `so_far` of the next request.

    A longer summary so far is cut to the configured size.
    """
    room = settings.summary_tokens
    request = _request(piece, _cut(so_far or "", room, settings.locale, counter), settings.locale)
    # The whole request may have more tokens than its texts counted alone.
    while room and (over := _tokens(request, counter) - settings.tokens) > 0:
        room = max(room - over, 0)
        request = _request(piece, _cut(so_far or "", room, settings.locale, counter), settings.locale)
    return request


def _room(settings: SummarySettings, counter: TokenCounter) -> int:
    """Return the tokens left for a piece after the instructions and the summary so far."""
    wording = language(settings.locale)
    empty = _request("", "", settings.locale)
    overhead = _tokens(empty, counter) + counter.count((SO_FAR[wording].format(summary=""),))[0] + SLACK
    shortest = [_framed(role, CUT.format(count=MANY)) + BETWEEN for role in ROLES]
    least = overhead + settings.summary_tokens + max(counter.count(shortest))
    if settings.tokens < least:
        allowed = f"with {settings.summary_tokens} of them for the summary so far, it is {least} or more"
        raise SettingsError(name="summary.tokens", value=settings.tokens, allowed=allowed)
    return settings.tokens - overhead - settings.summary_tokens


def _request(piece: str, summary: str, locale: str) -> tuple[SystemMessage, UserMessage]:
    wording = language(locale)
    before = SO_FAR[wording].format(summary=summary) if summary else ""
    words = before + PIECE[wording].format(text=piece)
    return SystemMessage(text=INSTRUCTIONS[wording]), UserMessage(parts=(Text(text=words),))


def _tokens(request: Sequence[Message], counter: TokenCounter) -> int:
    return sum(tokens_of(message, counter) for message in request)


def _cut(so_far: str, tokens: int, locale: str, counter: TokenCounter) -> str:
    text = cut_to(neutralise(so_far, TAGS), tokens, CUT_MARK[language(locale)], counter)
    # Neutralise again: the cut may have produced a tag from the beginning of a longer word.
    return neutralise(text, TAGS)


def _framed(role: str, text: str) -> str:
    return MESSAGE.format(role=role, text=neutralise(text, TAGS))


def _lines(message: Message) -> Iterator[str]:
    match message:
        case UserMessage() if message.response_id:
            yield from (line for part in message.parts if not isinstance(part, File) for line in _part_lines(part))
            # List files with their ids, because the reader of the summary has no other source of the ids (F4)
            for place, file in enumerate(clean_files(message)):
                yield f"[{file.kind} {message.response_id}-{place}: {display_name(file)}]"
        case ToolMessage():
            yield from filter(None, (error_text(message),))
            yield from (line for part in message.parts for line in _part_lines(part))
        case AssistantMessage() | UserMessage():
            yield from (line for part in message.parts for line in _part_lines(part))
        case ActivityMessage():
            yield message.content
        case UnreadMessages():
            return
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


def _shorten(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    half = most // 2
    return text[:half] + CUT.format(count=len(text) - 2 * half) + text[len(text) - half :]
