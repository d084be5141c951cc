"""The history that clients show (P13): its messages, their days, and their rows. Nothing is folded or compacted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import TypeAlias, TypeGuard

from recto.conversation.json import Json
from recto.conversation.locale import DEFAULT_LOCALE
from recto.conversation.log import Entry, Interrupted, ReplyEnded
from recto.conversation.messages import AssistantMessage, File, Key, Text, ToolMessage, UserMessage, words_of
from recto.conversation.ui.compile_ui import load_hinted, ui_of

HistoryMessage: TypeAlias = UserMessage | AssistantMessage | ToolMessage
FileUrlSigner: TypeAlias = Callable[[File], str | None]
DAY = timedelta(days=1)
# The status of an interrupted reply, and of a user message whose run has not begun.
INTERRUPTED, QUEUED = "interrupted", "queued"
EARLIEST, LATEST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def is_in_history(entry: Entry) -> TypeGuard[HistoryMessage]:
    """Return True if the entry belongs to the history. Assistant messages without text do not."""
    match entry:
        case UserMessage() | ToolMessage():
            return True
        case AssistantMessage():
            return any(isinstance(part, Text) and part.text.strip() for part in entry.parts)
        case _:
            return False


def statuses_of(entries: Sequence[Entry]) -> dict[str, str]:
    """Return the status of each incomplete reply by message id: `interrupted`, or the reason it ended."""
    finishes = {entry.message: entry.finish for entry in entries if isinstance(entry, ReplyEnded)}
    return {**finishes, **{entry.message: INTERRUPTED for entry in entries if isinstance(entry, Interrupted)}}


def midnight(day: date, zone: tzinfo) -> datetime:
    """Return the start of a day in a zone, in UTC: its first midnight, or the clock change that skips midnight."""
    try:
        return datetime.combine(day, time.min, tzinfo=zone).astimezone(UTC)
    except OverflowError:
        return EARLIEST if day.year == EARLIEST.year else LATEST


def day_of(moment: datetime, zone: tzinfo) -> date:
    """Return the day that contains a moment in a zone, even if the clocks change at midnight."""
    day = moment.astimezone(zone).date()
    # If clocks go back over midnight, they show the previous date again although the new day has begun.
    return day + DAY if moment >= midnight(day + DAY, zone) else day


def history_row(message: HistoryMessage, url_of: FileUrlSigner, locale: str = DEFAULT_LOCALE) -> dict[str, Json]:
    """Return the row of a history message. `url_of` signs the URL of a file, or returns None if it is gone."""
    words = words_of(message)
    row: dict[str, Json] = {"id": message.id, "seq": message.seq, "role": message.role, "content": words}
    match message:
        case UserMessage():
            row["content"] = words_of(message, between="\n")
            urls = [(part, url_of(part)) for part in message.parts if isinstance(part, File)]
            # An uploaded file has the id of its attachment.
            files = [
                file_row(file, file.source.key if isinstance(file.source, Key) else file.id, url)
                for file, url in urls
                if url is not None
            ]
            row |= {"url": files[0]["url"] if files else None, "files": files}
        case _:
            answer = load_hinted(words)
            row["uiSchema"] = ui_of(words, locale)
            if answer and isinstance(message, AssistantMessage) and isinstance(text := answer.get("content"), str):
                row["content"] = text
    return row | {"timestamp": time_text(message.time) if message.time else None}


def file_row(file: File, id: str | None, url: str) -> dict[str, Json]:
    """Return the row of a file in a message."""
    return {"id": id, "name": file.name, "type": file.kind, "mimeType": file.mime_type, "url": url}


def time_text(moment: datetime) -> str:
    """Format a time for clients: ISO 8601 in UTC."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
