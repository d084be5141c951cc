"""History as clients show it (P13): which messages are in it, on which day of a zone, and each as a row.

What is seen of the log is decided elsewhere; whatever is folded or compacted for the model is whole here.
"""

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
# Of a reply that was ended from outside, and of words whose run has not begun.
INTERRUPTED, QUEUED = "interrupted", "queued"
EARLIEST, LATEST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def is_in_history(entry: Entry) -> TypeGuard[HistoryMessage]:
    """Whether people are shown this. An assistant that only called tools said nothing."""
    match entry:
        case UserMessage() | ToolMessage():
            return True
        case AssistantMessage():
            return any(isinstance(part, Text) and part.text.strip() for part in entry.parts)
        case _:
            return False


def statuses_of(entries: Sequence[Entry]) -> dict[str, str]:
    """What is to be said of replies that are not whole, by message id: `interrupted`, or how they ended."""
    ended = {entry.message: entry.finish for entry in entries if isinstance(entry, ReplyEnded)}
    return {**ended, **{entry.message: INTERRUPTED for entry in entries if isinstance(entry, Interrupted)}}


def midnight(day: date, zone: tzinfo) -> datetime:
    """When a day begins in a zone, in UTC: as its midnight first comes or, where clocks skip it, with that leap."""
    try:
        return datetime.combine(day, time.min, tzinfo=zone).astimezone(UTC)
    except OverflowError:
        return EARLIEST if day.year == EARLIEST.year else LATEST


def day_of(moment: datetime, zone: tzinfo) -> date:
    """The day of a zone that has begun and whose next has not. Every moment has one, whatever clocks do at night."""
    day = moment.astimezone(zone).date()
    # Where clocks go back over midnight, they say yesterday after today has begun.
    return day + DAY if moment >= midnight(day + DAY, zone) else day


def history_row(message: HistoryMessage, url_of: FileUrlSigner, locale: str = DEFAULT_LOCALE) -> dict[str, Json]:
    """A message of the history. `url_of` signs a file's url anew, or has none for it; `locale` is the agent's."""
    words = words_of(message)
    row: dict[str, Json] = {"id": message.id, "seq": message.seq, "role": message.role, "content": words}
    match message:
        case UserMessage():
            row["content"] = words_of(message, between="\n")
            files = _files(message, url_of)
            row |= {"url": files[0]["url"] if files else None, "files": files}
        case _:
            answer = load_hinted(words)
            row["uiSchema"] = ui_of(words, locale)
            if answer and isinstance(message, AssistantMessage) and isinstance(said := answer.get("content"), str):
                row["content"] = said
    return row | {"timestamp": time_text(message.time) if message.time else None}


def _files(message: UserMessage, url_of: FileUrlSigner) -> Sequence[dict[str, Json]]:
    found = [(part, url_of(part)) for part in message.parts if isinstance(part, File)]
    return [file_row(file, _id_of(file), url) for file, url in found if url is not None]


def file_row(file: File, id: str | None, url: str) -> dict[str, Json]:
    """A file of a message, under an id that it goes by."""
    return {"id": id, "name": file.name, "type": file.kind, "mimeType": file.mime_type, "url": url}


def _id_of(file: File) -> str | None:
    """What the file goes by: its attachment's id, where it is one."""
    return file.source.key if isinstance(file.source, Key) else file.id


def time_text(moment: datetime) -> str:
    """A time as clients get it: ISO-8601, in UTC."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
