"""Token counting: a port, the offline tokenizer, and calibration by the provider's reported usage.

Recto's own counts are estimates and are marked so; only reported usage of the same page is exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, cast, get_args

from recto.conversation.json import copy_text, scrub
from recto.conversation.memo import MemoHolder, cache_results, memoise_prefix
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
# The beginning of every control token of these vocabularies.
CONTROL_MARK = "<|"
# Tokens of role, separators and ids of one message in chat formats. Counts are stored with messages: if you change this
# or the next constant, add a migration that discards older counts.
TOKENS_PER_MESSAGE = 4
# Tokens of a file. Those of a picture differ by provider and size; this is typical for about a megapixel.
TOKENS_PER_FILE = 1_300
# Up to this many texts are counted one by one.
FEW = 4
# Counts of texts up to this length are cached globally.
SHORT = 200
# Count longer texts in parts, because the tokenizer takes up to eighty bytes of memory per input byte.
PART_CHARACTERS = 32_768
# Limits of the calibration ratio. A first page is mostly system prompt and tools that may be uncounted, so its ratio
# does not reflect text.
RATIO_BOUNDS = (0.5, 2.0)


class TokenCounter(Protocol):
    """Token counter for texts. `name` identifies the vocabulary: equal names give equal counts."""

    @property
    def name(self) -> str: ...

    def count(self, texts: Sequence[str]) -> Sequence[int]: ...


class OfflineCounter:
    """Token counter with a vocabulary from the splintr wheel, loaded at the first count."""

    def __init__(self, name: Vocabulary = "o200k_base") -> None:
        if name not in VOCABULARIES:
            raise SettingsError(name="tokenizer", value=name, allowed=f"it is one of {', '.join(VOCABULARIES)}")
        self.name = name

    def count(self, texts: Sequence[str]) -> Sequence[int]:
        """Return one count per text. Text that spells a control token counts as plain text."""
        if any(len(text) > PART_CHARACTERS for text in texts):
            return [sum(self._count((part,))[0] for part in _parts(text)) for text in texts]
        return self._count(texts)

    def _count(self, texts: Sequence[str]) -> Sequence[int]:
        tokenizer = _tokenizer(self.name)
        # Pass throwaway copies, because the tokenizer caches a UTF-8 copy inside each non-ASCII text.
        clean = list(map(copy_text, texts))
        # For a few texts the thread pool of a batch costs more than it saves.
        if len(clean) <= FEW:
            return [len(tokenizer.encode_ordinary(scrub(text))) for text in clean]
        try:
            _, offsets = tokenizer.encode_batch_flat(clean)
        except UnicodeEncodeError:
            clean = list(map(scrub, clean))
            _, offsets = tokenizer.encode_batch_flat(clean)
        starts = memoryview(offsets).cast("Q")
        counts = [end - start for start, end in pairwise(starts)]
        # The batch call reads a control token in a text as one token. Count the few texts with such a token again, one
        # by one.
        for index, text in enumerate(clean):
            # Search for one character first: that is much faster than two, and few texts contain it.
            if CONTROL_MARK[0] in text and CONTROL_MARK in text:
                counts[index] = len(tokenizer.encode_ordinary(text))
        return counts


def _parts(text: str) -> Iterator[str]:
    """Split a text into parts that end at a blank where possible."""
    start = 0
    while start < len(text):
        end = start + PART_CHARACTERS
        blank = text.rfind(" ", start + 1, end) if end < len(text) else -1
        end = blank if blank > 0 else min(end, len(text))
        yield text[start:end]
        start = end


@cache
def _tokenizer(name: str) -> Tokenizer:
    import splintr  # loaded only when something is counted

    return splintr.Tokenizer.from_pretrained(name)


OFFLINE = OfflineCounter()


def count_messages(messages: Sequence[Message], counter: TokenCounter) -> None:
    """Count a conversation in one batch, because single counts take several times as long."""
    memoise_prefix(messages, _count_more, counter)


def _count_more(_: bool | None, messages: Sequence[Message], counter: TokenCounter) -> bool:
    count_new(messages, counter)
    return True


def count_new(messages: Sequence[Message], counter: TokenCounter) -> None:
    """Count in one batch the messages that this counter has not counted. Each message caches its count."""
    key = _key(counter)
    new = [message for message in messages if key not in message.memo]
    if not new:
        return
    text_lists = [[text for text in texts_of(message) if text] for message in new]
    counts = iter(counter.count(list(chain.from_iterable(text_lists))))
    for message, texts in zip(new, text_lists, strict=True):
        tokens = list(islice(counts, len(texts)))
        message.memo[key] = _tokens_beside_texts(message) + sum(tokens)
        if len(tokens) > 1 and message.role == "tool":
            message.memo[tokens_of_texts, key] = tokens


def tokens_of(message: Message, counter: TokenCounter) -> int:
    """Return the tokens of a message, counted once per counter."""
    total = message.memo.get(_key(counter))
    if total is None:
        tokens = sum([count_text(text, counter) for text in texts_of(message) if text])
        total = _tokens_beside_texts(message) + tokens
        message.memo[_key(counter)] = total
    return cast("int", total)


def known_tokens(message: MemoHolder, counter: str) -> int | None:
    """Return the tokens of a message if the counter of this name has counted it."""
    return cast("int | None", message.memo.get(counter))


def note_tokens(message: MemoHolder, counter: str, tokens: int) -> None:
    """Store a count on a message under the name of its counter."""
    message.memo[counter] = tokens


def tokens_of_texts(message: ToolMessage, counter: TokenCounter) -> Sequence[int]:
    """Return the tokens of each nonempty text of a result."""
    counts = message.memo.get((tokens_of_texts, _key(counter)))
    if counts is None:
        counts = [count_text(text, counter) for text in texts_of(message) if text]
        message.memo[tokens_of_texts, _key(counter)] = counts
    return cast("Sequence[int]", counts)


def count_text(text: str, counter: TokenCounter) -> int:
    """Return the tokens of one text; counts of short texts are cached globally."""
    return _count_short(text, counter) if len(text) <= SHORT else counter.count((text,))[0]


@cache_results(4096)
def _count_short(text: str, counter: TokenCounter) -> int:
    # These texts are placeholders and marks, which are few and the same in every page.
    return counter.count((text,))[0]


def _key(counter: TokenCounter) -> str:
    # All messages share this string. A tuple as key would be a new object for each message.
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
    """Counted and reported tokens of the conversation's last page."""

    digest: str
    own_count: int
    reported_count: int


@dataclass(frozen=True, kw_only=True)
class TokenCount:
    """A number of tokens: an estimate, or usage that the provider reported."""

    tokens: int
    estimated: bool


def calibrate(*, own_count: int, digest: str, last: Calibration | None) -> TokenCount:
    """Correct our count of a page by the usage reported for the last page.

    Start from the reported usage and add the scaled difference between our counts of both pages.
    """
    if last is None or last.own_count <= 0:
        return TokenCount(tokens=own_count, estimated=True)
    if last.digest == digest:
        return TokenCount(tokens=last.reported_count, estimated=False)
    low, high = RATIO_BOUNDS
    ratio = min(max(last.reported_count / last.own_count, low), high)
    return TokenCount(tokens=max(0, last.reported_count + round((own_count - last.own_count) * ratio)), estimated=True)
