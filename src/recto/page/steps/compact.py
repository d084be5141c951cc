"""Compaction (R13): what to summarise when a conversation no longer fits, and the summary's place in the page.

The log keeps everything: a summary is a marker and covers only messages of the current view.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from recto.conversation.json import Json
from recto.conversation.locale import language
from recto.conversation.log import Compacted, View, messages_of
from recto.conversation.memo import memoise
from recto.conversation.messages import Message, Text, UserMessage
from recto.errors import SettingsError
from recto.page.draft import Draft, Gap, unchanged
from recto.page.manifest import Note
from recto.page.prompt.reminder import OUR_TAGS, neutralise
from recto.page.text.tokens import TokenCounter, tokens_of

SUMMARISED = "the summary stands for it"
SUMMARY = {
    "zh": "以下是此前对话的摘要，原文已不在上下文中：\n<summary>\n{summary}\n</summary>",
    "en": "A summary of the conversation so far, which is no longer in context:\n<summary>\n{summary}\n</summary>",
}
SUMMARY_TAGS = (*OUR_TAGS, "summary")


@dataclass(frozen=True, kw_only=True)
class CompactSettings:
    """Settings of compaction. Shares are shares of tokens.

    Compact a page at the share `at` of the model's window, if at least `least` tokens would be summarised. Keep the
    newest turns with the share `keep` of the unsummarised tokens, or of a full page if that is less. Keep the last turn
    up to the share `last`. Compact again only after new messages with the share `again` of a full page.
    """

    window: int = 200_000
    at: float = 0.8
    least: int = 1_000
    keep: float = 0.3
    last: float = 0.5
    again: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < self.at <= 1:
            raise SettingsError(name="compact.at", value=self.at, allowed="it is a share between 0 and 1")
        if self.window < 1:
            raise SettingsError(name="compact.window", value=self.window, allowed="it is a number of tokens, 1 or more")
        for name, share in (("keep", self.keep), ("last", self.last), ("again", self.again)):
            if not 0 <= share <= 1:
                raise SettingsError(name=f"compact.{name}", value=share, allowed="it is a share between 0 and 1")

    @property
    def full(self) -> float:
        """The token count at which a page is full."""
        return self.at * self.window

    def row(self) -> dict[str, Json]:
        """Return the window and the compaction threshold in tokens, for display."""
        return {"window": self.window, "compactAt": int(self.full)}


def is_full(tokens: int, settings: CompactSettings) -> bool:
    """Return True if a page with this number of tokens is full."""
    return tokens >= settings.full


def is_due(log_view: View, settings: CompactSettings, counter: TokenCounter) -> bool:
    """Return True if a full page should be compacted now.

    Enough messages must be available to summarise, and enough must have come since the last summary. Without the second
    condition, a page that stays full in spite of a summary would be compacted before every call.
    """
    if log_view.compaction is not None:
        newer = messages_of(log_view.entries[log_view.entries.index(log_view.compaction) + 1 :])
        if _tokens(newer, counter) < max(settings.again * settings.full, 1):
            return False
    return place_to_cut(log_view, settings, counter) is not None


def place_to_cut(log_view: View, settings: CompactSettings, counter: TokenCounter) -> int | None:
    """Return the place of the last message to summarise, or None if compacting would save too little.

    Keep the newest turns that fit into the share `keep`. Keep the last turn too if enough remains to summarise before
    it. If the last turn is too long, cut inside it and keep its newest steps that fit, at least the last one, so that
    no call loses its result. Such a cut also covers the turn's user message. The page keeps that message until the next
    turn, so it does not count as saved. Messages of an earlier summary do not count either.
    """
    messages, turn, fresh = log_view.messages, log_view.turn_start, log_view.compacted
    size = min(_tokens(messages[fresh:], counter), settings.full)
    room = settings.keep * size
    starts = [place for place in range(fresh, len(messages)) if messages[place].role == "user"]
    keep_from = _first_kept(messages, starts, room, counter)
    if keep_from is None and _tokens(messages[fresh:turn], counter) >= max(settings.least, 1):
        keep_from = _first_kept(messages, starts[-1:], settings.last * size, counter)
    if keep_from is None:
        question_tokens = _tokens(messages[turn : turn + 1], counter)
        # Without a user message, the whole conversation is the turn.
        begin = fresh if turn == len(messages) else max(turn + 1, fresh)
        steps = [place for place in range(begin, len(messages)) if messages[place].role == "assistant"]
        # The last step always stays.
        keep_from = _first_kept(messages, steps, room - question_tokens, counter) or (steps[-1] if steps else turn)
    # Do not end the cut at the turn's user message: the page keeps it, so it saves nothing.
    last = keep_from - 2 if keep_from - 1 == turn else keep_from - 1
    saved_messages = [message for place, message in enumerate(messages[fresh : last + 1], start=fresh) if place != turn]
    return last if _tokens(saved_messages, counter) >= max(settings.least, 1) else None


def _first_kept(messages: Sequence[Message], starts: Sequence[int], room: float, counter: TokenCounter) -> int | None:
    """Return the earliest of `starts` from which all messages fit into `room` tokens, or None."""
    first, end = None, len(messages)
    for place in reversed(starts):
        room -= _tokens(messages[place:end], counter)
        if room < 0:
            break
        first = end = place
    return first


def _tokens(messages: Sequence[Message], counter: TokenCounter) -> int:
    return sum(tokens_of(message, counter) for message in messages)


def to_summarise(log_view: View, upto: int) -> tuple[Message, ...]:
    """Return the messages to summarise, up to a place. The caller adds the text of the summary in force.

    If the cut is inside the current turn, the messages include its user message, because the next turn drops that
    message from the page.
    """
    return log_view.messages[log_view.compacted : upto + 1]


def compact(log_view: View) -> Draft:
    """Return the conversation without the summarised messages. If the cut is inside a turn, its user message stays."""
    if log_view.compaction is None:
        return unchanged(log_view.messages)
    turn, count = min(log_view.turn_start, log_view.compacted), log_view.compacted
    note = Note(decision="dropped", rule="R13", reason=SUMMARISED)
    gaps = tuple([Gap(places, note) for places in (range(turn), range(turn + 1, count)) if places])
    turn_places = [turn] if turn < count else []
    origins = [*turn_places, *range(count, len(log_view.messages))]
    messages = (*[log_view.messages[place] for place in turn_places], *log_view.messages[count:])
    return Draft(messages=messages, origins=origins, notes={}, gaps=gaps)


def summary_message(compaction: Compacted, locale: str) -> UserMessage:
    """Return the summary as the first message of the page."""
    return memoise(compaction, _summary_message, locale)


def _summary_message(compaction: Compacted, locale: str) -> UserMessage:
    text = SUMMARY[language(locale)].format(summary=neutralise(compaction.summary, SUMMARY_TAGS))
    # Set no time: the summary is newer than the messages after it, and those without a time would inherit its time
    # (R7).
    return UserMessage(id=compaction.id, seq=compaction.seq, parts=(Text(text=text),))
