"""Counting tokens: a port, the offline tokenizer behind it, and calibration by what the provider reported.

Our own counts are estimates and say so; only a provider's reported usage for the very same page is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, cast, get_args

from recto.conversation.json import copied, scrub
from recto.conversation.memo import Remembering, grow, keep_recent
from recto.conversation.messages import (
    AssistantMessage,
    File,
    Message,
    ToolMessage,
    UnreadMessages,
    UserMessage,
    texts_of,
)
from recto.errors import SettingsError

if TYPE_CHECKING:
    from splintr import AnyTokenizer as Tokenizer

Vocabulary: TypeAlias = Literal["o200k_base", "cl100k_base"]
VOCABULARIES: tuple[str, ...] = get_args(Vocabulary)
# How every control token of these vocabularies begins.
CONTROL_MARK = "<|"
# Role, separators and ids of one message, as chat formats frame it. What messages count is stored with them: whoever
# changes this or the next has older counts forgotten by a step of the migrations.
TOKENS_PER_MESSAGE = 4
# A picture's price differs by provider and size; this is the usual one for about a megapixel.
TOKENS_PER_FILE = 1_300
# Up to so many texts are counted one by one.
FEW = 4
# Texts up to this length are counted once for all messages that have them.
SHORT = 200
# A longer text is counted a part at a time: the tokenizer keeps up to eighty bytes of memory for each of its bytes.
PART_CHARACTERS = 32_768
# A first page is mostly system prompt and tools we may not have counted, so its ratio says nothing of text.
RATIO_BOUNDS = (0.5, 2.0)


class TokenCounter(Protocol):
    """Counts the tokens of texts. `name` identifies the vocabulary: equal names, equal counts."""

    @property
    def name(self) -> str: ...

    def count(self, texts: Sequence[str]) -> Sequence[int]: ...


class OfflineCounter:
    """Counts with a vocabulary that ships inside the splintr wheel. Loads it at the first count."""

    def __init__(self, name: Vocabulary = "o200k_base") -> None:
        if name not in VOCABULARIES:
            raise SettingsError(name="tokenizer", value=name, allowed=f"it is one of {', '.join(VOCABULARIES)}")
        self.name = name

    def count(self, texts: Sequence[str]) -> Sequence[int]:
        """One count per text. Text that spells a control token is counted as the text it is."""
        if any(len(text) > PART_CHARACTERS for text in texts):
            return [sum(self._count((part,))[0] for part in _parts(text)) for text in texts]
        return self._count(texts)

    def _count(self, texts: Sequence[str]) -> Sequence[int]:
        tokenizer = _tokenizer(self.name)
        # The tokenizer leaves a UTF-8 copy inside each text that has more than ASCII, so it is given throwaway copies.
        clean = list(map(copied, texts))
        # A few are quicker counted here than handed to the threads that a batch is counted by.
        if len(clean) <= FEW:
            return [len(tokenizer.encode_ordinary(scrub(text))) for text in clean]
        try:
            _, offsets = tokenizer.encode_batch_flat(clean)
        except UnicodeEncodeError:
            clean = list(map(scrub, clean))
            _, offsets = tokenizer.encode_batch_flat(clean)
        starts = memoryview(offsets).cast("Q")
        counts = [end - start for start, end in pairwise(starts)]
        # The batch call reads a spelled-out control token as one token; these few texts are counted again, alone.
        for index, text in enumerate(clean):
            # One character is found much quicker than two, and few texts have it.
            if CONTROL_MARK[0] in text and CONTROL_MARK in text:
                counts[index] = len(tokenizer.encode_ordinary(text))
        return counts


def _parts(text: str) -> Iterator[str]:
    """A text in parts that end where a word does, as far as there is a blank to tell it by."""
    start = 0
    while start < len(text):
        end = start + PART_CHARACTERS
        blank = text.rfind(" ", start + 1, end) if end < len(text) else -1
        end = blank if blank > 0 else min(end, len(text))
        yield text[start:end]
        start = end


@cache
def _tokenizer(name: str) -> Tokenizer:
    import splintr  # here, so that only who counts pays for loading it

    return splintr.Tokenizer.from_pretrained(name)


OFFLINE = OfflineCounter()


def count_messages(messages: Sequence[Message], counter: TokenCounter) -> None:
    """Count a conversation, all at once: one by one, the tokenizer takes several times as long."""
    grow(messages, _count_more, counter)


def _count_more(_: bool | None, messages: Sequence[Message], counter: TokenCounter) -> bool:
    count_new(messages, counter)
    return True


def count_new(messages: Sequence[Message], counter: TokenCounter) -> None:
    """Count, all at once, the messages this counter never counted before. Each remembers its own count."""
    key = _key(counter)
    new = [message for message in messages if key not in message.memo]
    if not new:
        return
    said = [[text for text in texts_of(message) if text] for message in new]
    counts = iter(counter.count(list(chain.from_iterable(said))))
    for message, texts in zip(new, said, strict=True):
        tokens = list(islice(counts, len(texts)))
        message.memo[key] = _tokens_beside_texts(message) + sum(tokens)
        if len(tokens) > 1 and message.role == "tool":
            message.memo[tokens_of_texts, key] = tokens


def tokens_of(message: Message, counter: TokenCounter) -> int:
    """The tokens of a message, counted once in its life by each counter."""
    known = message.memo.get(_key(counter))
    if known is None:
        tokens = sum([count_text(text, counter) for text in texts_of(message) if text])
        known = _tokens_beside_texts(message) + tokens
        message.memo[_key(counter)] = known
    return cast("int", known)


def known_tokens(message: Remembering, counter: str) -> int | None:
    """The tokens of a message, where the counter of this name has counted it."""
    return cast("int | None", message.memo.get(counter))


def note_tokens(message: Remembering, counter: str, tokens: int) -> None:
    """Have a message remember what the counter of this name once counted."""
    message.memo[counter] = tokens


def tokens_of_texts(message: ToolMessage, counter: TokenCounter) -> Sequence[int]:
    """The tokens of each text of a result that is not empty."""
    known = message.memo.get((tokens_of_texts, _key(counter)))
    if known is None:
        known = [count_text(text, counter) for text in texts_of(message) if text]
        message.memo[tokens_of_texts, _key(counter)] = known
    return cast("Sequence[int]", known)


def count_text(text: str, counter: TokenCounter) -> int:
    """The tokens of one text; a short one is counted once for all who have it."""
    return _count_short(text, counter) if len(text) <= SHORT else counter.count((text,))[0]


@keep_recent(4096)
def _count_short(text: str, counter: TokenCounter) -> int:
    # Placeholders and marks: few, and the same in every page.
    return counter.count((text,))[0]


def _key(counter: TokenCounter) -> str:
    # A text that all messages share, where each would keep a tuple of its own.
    return counter.name


def _tokens_beside_texts(message: Message) -> int:
    match message:
        case UnreadMessages():
            return message.tokens
        case UserMessage() | AssistantMessage() | ToolMessage():
            return TOKENS_PER_MESSAGE + TOKENS_PER_FILE * list(map(type, message.parts)).count(File)
        case _:
            return TOKENS_PER_MESSAGE


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """The last page this conversation sent: what we had counted, what the provider then reported."""

    digest: str
    counted: int
    reported: int


@dataclass(frozen=True, kw_only=True)
class TokenCount:
    """A number of tokens, and whether it is an estimate or the provider's own figure."""

    tokens: int
    estimated: bool


def calibrate(*, counted: int, digest: str, last: Calibration | None) -> TokenCount:
    """Our count, corrected: the reported figure stands for what was sent before, a ratio prices the difference."""
    if last is None or last.counted <= 0:
        return TokenCount(tokens=counted, estimated=True)
    if last.digest == digest:
        return TokenCount(tokens=last.reported, estimated=False)
    low, high = RATIO_BOUNDS
    ratio = min(max(last.reported / last.counted, low), high)
    return TokenCount(tokens=max(0, last.reported + round((counted - last.counted) * ratio)), estimated=True)
