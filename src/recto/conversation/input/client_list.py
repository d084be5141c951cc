"""A client's whole list of messages (P15): possibly new messages, and messages of the log that the list omits.

The list says what the client shows. Its copies of logged messages are compared by id only, so an outdated, rejected or
malformed copy does no harm.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from recto.conversation.input import agui
from recto.conversation.input.input_entries import AdmittedRun, pending_calls
from recto.conversation.input.run_input import ListedIds, RunInput
from recto.conversation.interrupts import interrupts_of
from recto.conversation.json import Json, Object, as_list
from recto.conversation.log import RolledBack, View
from recto.conversation.messages import AssistantMessage, File, Key, Message, ToolMessage, UserMessage, texts_of

# The maximum number of stored ids before and after the last user message, without older ones. If the log contains none
# of the ids, the list belongs to another conversation.
MOST_LISTED = 1_000
BY_CLIENT = "client"
# The displayed length of a file name.
MAX_NAME = 100
CONTEXT = ("system", "developer")
_KINDS = ("image", "audio", "video")


@dataclass(frozen=True, kw_only=True)
class NewInList:
    """Possibly new messages of a list, with their places in it: context, the last user message, and results."""

    messages: tuple[Object, ...]
    places: tuple[int, ...]
    listed_ids: ListedIds
    ends_with_user: bool


def new_in_list(messages: Sequence[Json]) -> NewInList:
    """Select possibly new messages. Only the id and role of other messages are read."""
    items = [item if isinstance(item, dict) else dict[str, Json]() for item in messages]
    roles = [item.get("role") for item in items]
    last = max((place for place, role in enumerate(roles) if role == "user"), default=-1)
    results = _find_results(items)
    places = [place for place, role in enumerate(roles) if role in CONTEXT or place == last or place in results]
    split = last if last >= 0 else len(items)
    before, after = (
        [id for item in some if isinstance(id := item.get("id"), str)] for some in (items[:split], items[split + 1 :])
    )
    return NewInList(
        messages=tuple([_with_sources(items[place]) for place in places]),
        places=tuple(places),
        listed_ids=ListedIds(before=tuple(before[-MOST_LISTED:]), after=tuple(after[-MOST_LISTED:])),
        ends_with_user=last >= 0 and all(role in CONTEXT for role in roles[last + 1 :]),
    )


def _find_results(items: Sequence[Object]) -> frozenset[int]:
    """Return the places of results of the last reply with calls.

    If no reply has calls, return the places of all results after the last reply.
    """
    replies = [place for place, item in enumerate(items) if item.get("role") == "assistant"]
    tools = [place for place, item in enumerate(items) if item.get("role") == "tool"]
    for reply in [items[place] for place in reversed(replies)]:
        calls = reply.get(agui.field_name(reply, "toolCalls"))
        ids = [call.get("id") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
        if ids:
            results = [(place, items[place]) for place in tools]
            return frozenset(place for place, one in results if one.get(agui.field_name(one, "toolCallId")) in ids)
    return frozenset(place for place in tools if not replies or place > replies[-1])


def _with_sources(message: Object) -> Object:
    """Convert the older `binary` parts of a message to parts with a source, which may be of any kind."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    parts = list[Json]()
    for part in content:
        if not isinstance(part, dict) or part.get("type") != "binary":
            parts.append(part)
            continue
        mime = str(part.get(agui.field_name(part, "mimeType")) or "")
        family = mime.partition("/")[0]
        is_url = isinstance(part.get("url"), str)
        source: Json = {
            "type": "url" if is_url else "data",
            "value": part.get("url" if is_url else "data"),
            "mimeType": mime,
        }
        name = part.get("filename")
        metadata: Object = {"metadata": {"filename": name}} if isinstance(name, str) else {}
        parts.append({"type": family if family in _KINDS else "document", "source": source, **metadata})
    return {**message, "content": parts}


def without_part(
    value: Mapping[str, Json], where: str, problem: str, keep: int | None = None
) -> tuple[Object, str] | None:
    """Remove the file that a problem is about, and return the input with a description.

    Return None if the problem is about no file. If it is about all files of a message, the first `keep` of them stay,
    or by default all but the last.
    """
    messages = list(as_list(value.get("messages"), "messages"))
    for place, message in enumerate(messages):
        content = message.get("content") if isinstance(message, dict) else None
        field = where.removeprefix(f"messages[{place}].content")
        if not isinstance(message, dict) or not isinstance(content, list) or field == where:
            continue
        files = [at for at, part in enumerate(content) if not (isinstance(part, dict) and part.get("type") == "text")]
        if field == "":
            out = files[keep if keep is not None else -1 :]
        else:
            out = [at for at in files if field == f"[{at}]" or field.startswith(f"[{at}].")]
        if not out:
            return None
        match content[out[0]]:
            case {"metadata": {"filename": str(file_name)}} | {"filename": str(file_name)}:
                name = file_name[:MAX_NAME]
            case _:
                name = "a part"
        prefix = "" if keep is not None or problem.startswith(name) else f"{name}: "
        messages[place] = {**message, "content": [part for at, part in enumerate(content) if at not in out]}
        return {**value, "messages": messages}, f"{prefix}{problem.rstrip('.')}."
    return None


@dataclass(frozen=True, kw_only=True)
class ListReading:
    """The meaning of a list for a log: the first message to roll back, and the messages to admit."""

    back_to: str | None = None
    messages: tuple[Message, ...] = ()
    is_known: bool = True


def read_list(log_view: View, run_input: RunInput, own_tools: Collection[str] = ()) -> ListReading:
    """Compare a list with the view, starting from the latest message that both contain."""
    listed_ids = run_input.listed_ids or ListedIds()
    user = next((message for message in run_input.messages if isinstance(message, UserMessage)), None)
    interrupted = {one.call.id for one in interrupts_of(log_view) if one.is_waiting}
    waiting = interrupted | {call.id for call in pending_calls(log_view, own_tools)}
    tools = [message for message in run_input.messages if isinstance(message, ToolMessage)]
    results = tuple(message for message in tools if message.tool_call_id in waiting)
    ids = {*listed_ids.before, *listed_ids.after, *([user.id] if user else ())}
    messages = log_view.messages
    place = max((place for place, message in enumerate(messages) if ids & _ids_of(message)), default=None)
    if place is None:
        return ListReading(messages=(*results, *([user] if user else ())), is_known=False)
    common_ids = _ids_of(messages[place])
    # A client with a result or a decision for a waiting call has seen that call, whatever its list shows.
    has_seen_all = bool(results) or (bool(run_input.resume) and bool(interrupted))
    end = len(messages) if has_seen_all else _skip_results(messages, place)
    back_to = messages[end].id if end < len(messages) else None
    if user is None or common_ids.intersection(listed_ids.after):
        return ListReading(messages=results)
    if user.id not in common_ids or common_ids.intersection(listed_ids.before):
        return ListReading(back_to=back_to, messages=(*results, user))
    logged = messages[place]
    if isinstance(logged, UserMessage) and texts_of(user) == texts_of(logged):
        files, logged_files = (
            {part.source.key if isinstance(part.source, Key) else "" for part in one.parts if isinstance(part, File)}
            for one in (user, logged)
        )
        # The list may lack files that were left out.
        if files <= logged_files if run_input.left_out else files == logged_files:
            return ListReading(back_to=back_to, messages=results)
    return ListReading(back_to=logged.id, messages=(user,))


def _ids_of(message: Message) -> set[str]:
    client_id = message.client_id if isinstance(message, UserMessage) else None
    return {message.id, client_id or message.id}


def _skip_results(messages: Sequence[Message], place: int) -> int:
    """Return the place after a message and the results of its calls."""
    reply = next((one for one in reversed(messages[: place + 1]) if not isinstance(one, ToolMessage)), None)
    calls = {call.id for call in reply.tool_calls} if isinstance(reply, AssistantMessage) else set[str]()
    for after in range(place + 1, len(messages)):
        message = messages[after]
        if not isinstance(message, ToolMessage) or message.tool_call_id not in calls:
            return after
    return len(messages)


def roll_back_unlisted(reading: ListReading, run: AdmittedRun) -> tuple[RolledBack, ...]:
    """Return the rollback that hides messages missing from a list, if there are any."""
    if reading.back_to is None:
        return ()
    return (RolledBack(id=run.new_id(), time=run.admitted_at, to=reading.back_to, cause=BY_CLIENT),)
