"""A client's whole list of messages (P15): what of it may be new, and what of the log it no longer shows.

The list says what is seen, never what was said: copies are compared by their ids alone, so a stale, refused or broken
message in it harms nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from recto.conversation.input import agui
from recto.conversation.input.input_entries import AdmittedRun, pending_calls
from recto.conversation.input.run_input import ListedIds, RunInput
from recto.conversation.interrupts import interrupts_of
from recto.conversation.json import Json, Object, as_list
from recto.conversation.log import RolledBack, View
from recto.conversation.messages import (
    AssistantMessage,
    File,
    Key,
    Message,
    ToolMessage,
    UserMessage,
    texts_of,
)

# The ids that are kept of a list: the newest. Whoever shows none of these shows another conversation.
MOST_LISTED = 1_000
BY_CLIENT = "client"
# How much of a file's name is shown.
SHOWN = 100
CONTEXT = ("system", "developer")
_KINDS = ("image", "audio", "video")


@dataclass(frozen=True, kw_only=True)
class NewInList:
    """What may be new of a list: context, the last message of the user's, results; and where each stood in it."""

    messages: tuple[Object, ...]
    places: tuple[int, ...]
    listed: ListedIds
    ends_with_user: bool


def new_in_list(messages: Sequence[Json]) -> NewInList:
    """What may be new. All else is looked at for its id and its role alone."""
    items = [item if isinstance(item, dict) else dict[str, Json]() for item in messages]
    roles = [item.get("role") for item in items]
    last = max((place for place, role in enumerate(roles) if role == "user"), default=-1)
    results = _results(items)
    places = [place for place, role in enumerate(roles) if role in CONTEXT or place == last or place in results]
    split = last if last >= 0 else len(items)
    return NewInList(
        messages=tuple([_with_sources(items[place]) for place in places]),
        places=tuple(places),
        listed=ListedIds(before=_ids(items[:split])[-MOST_LISTED:], after=_ids(items[split + 1 :])[-MOST_LISTED:]),
        ends_with_user=last >= 0 and all(role in CONTEXT for role in roles[last + 1 :]),
    )


def _ids(items: Sequence[Object]) -> tuple[str, ...]:
    return tuple([id for item in items if isinstance(id := item.get("id"), str)])


def _results(items: Sequence[Object]) -> frozenset[int]:
    """The places of the results of the last reply with calls; of a list without one, of all behind its last reply."""
    replies = [place for place, item in enumerate(items) if item.get("role") == "assistant"]
    asking = [place for place in replies if _calls(items[place])]
    tools = [place for place, item in enumerate(items) if item.get("role") == "tool"]
    if not asking:
        return frozenset(place for place in tools if not replies or place > replies[-1])
    calls = _calls(items[asking[-1]])
    return frozenset(place for place in tools if items[place].get(agui.field_name(items[place], "toolCallId")) in calls)


def _calls(reply: Object) -> Collection[Json]:
    calls = reply.get(agui.field_name(reply, "toolCalls"))
    return [call.get("id") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def _with_sources(message: Object) -> Object:
    """A message with its older `binary` parts in the form of all others, which takes any kind, and bytes."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    return {**message, "content": [_with_source(part) for part in content]}


def _with_source(part: Json) -> Json:
    if not isinstance(part, dict) or part.get("type") != "binary":
        return part
    mime = str(part.get(agui.field_name(part, "mimeType")) or "")
    family = mime.partition("/")[0]
    is_url = isinstance(part.get("url"), str)
    source: dict[str, Json] = {"type": "url" if is_url else "data", "value": part.get("url" if is_url else "data")}
    name = part.get("filename")
    named: dict[str, Json] = {"metadata": {"filename": name}} if isinstance(name, str) else {}
    return {"type": family if family in _KINDS else "document", "source": {**source, "mimeType": mime}, **named}


def without_part(
    value: Mapping[str, Json], where: str, problem: str, keep: int | None = None
) -> tuple[Object, str] | None:
    """An input without the part that a problem is about, and what to say of it; None: it is about none.

    Where it is about all files of a message, the first `keep` of them stay.
    """
    messages = list(as_list(value.get("messages"), "messages"))
    for place, message in enumerate(messages):
        content = message.get("content") if isinstance(message, dict) else None
        rest = where.removeprefix(f"messages[{place}].content")
        if not isinstance(message, dict) or not isinstance(content, list) or rest == where:
            continue
        out = _parts_at(content, rest, keep)
        if not out:
            return None
        name = _name(content[out[0]]) if keep is None else ""
        said = f"{'' if problem.startswith(name) else f'{name}: '}{problem.rstrip('.')}."
        messages[place] = {**message, "content": [part for at, part in enumerate(content) if at not in out]}
        return {**value, "messages": messages}, said
    return None


def _parts_at(content: Sequence[Json], rest: str, keep: int | None) -> Sequence[int]:
    """The places of the parts that the rest of a field's name is about: those of files, where it is about them all."""
    files = [at for at, part in enumerate(content) if not _is_text(part)]
    if rest == "":
        return files[keep if keep is not None else -1 :]
    return [at for at in files if rest == f"[{at}]" or rest.startswith(f"[{at}].")]


def _is_text(part: Json) -> bool:
    return isinstance(part, dict) and part.get("type") == "text"


def _name(part: Json) -> str:
    match part:
        case {"metadata": {"filename": str(name)}} | {"filename": str(name)}:
            return name[:SHOWN]
        case _:
            return "a part"


@dataclass(frozen=True, kw_only=True)
class ListReading:
    """What a list means for a log: the message from which on all is rolled back, and what is taken of the list."""

    back_to: str | None = None
    messages: tuple[Message, ...] = ()
    is_known: bool = True


def read_list(seen: View, asked: RunInput, own_tools: Collection[str] = ()) -> ListReading:
    """Compare a list with what is in view: K is the latest message of the view that the list has."""
    listed = asked.listed_ids or ListedIds()
    user = next((message for message in asked.messages if isinstance(message, UserMessage)), None)
    waiting = {call.id for call in pending_calls(seen, own_tools)} | {
        one.call.id for one in interrupts_of(seen) if one.is_waiting
    }
    tools = [message for message in asked.messages if isinstance(message, ToolMessage)]
    results = tuple(message for message in tools if message.tool_call_id in waiting)
    ids = {*listed.before, *listed.after, *([user.id] if user else ())}
    place = max((place for place, message in enumerate(seen.messages) if ids & _known_as(message)), default=None)
    if place is None:
        return ListReading(messages=(*results, *([user] if user else ())), is_known=False)
    found = seen.messages[place]
    known = _known_as(found)
    # Whoever brings a result, or an answer to what waits, has seen the call, whatever else they show.
    has_seen_all = bool(results) or (bool(asked.resume) and any(one.is_waiting for one in interrupts_of(seen)))
    shown = len(seen.messages) if has_seen_all else _with_results(seen.messages, place)
    behind = seen.messages[shown].id if shown < len(seen.messages) else None
    if user is None or known.intersection(listed.after):
        return ListReading(messages=results)
    if user.id not in known or known.intersection(listed.before):
        return ListReading(back_to=behind, messages=(*results, user))
    if _is_same(user, found, is_short=bool(asked.left_out)):
        return ListReading(back_to=behind, messages=results)
    return ListReading(back_to=found.id, messages=(user,))


def _known_as(message: Message) -> set[str]:
    came_as = message.client_id if isinstance(message, UserMessage) else None
    return {message.id, came_as or message.id}


def _with_results(messages: Sequence[Message], place: int) -> int:
    """The place behind a message and the results of its calls, which stay with it."""
    asking = next((one for one in reversed(messages[: place + 1]) if not isinstance(one, ToolMessage)), None)
    calls = {call.id for call in asking.tool_calls} if isinstance(asking, AssistantMessage) else set[str]()
    behind = place + 1
    while behind < len(messages) and _call_of(messages[behind]) in calls:
        behind += 1
    return behind


def _call_of(message: Message) -> str | None:
    return message.tool_call_id if isinstance(message, ToolMessage) else None


def _is_same(sent: UserMessage, said: Message, *, is_short: bool) -> bool:
    """Whether a message of the user's says what it said before. `is_short`: files of it can be had no more."""
    if not isinstance(said, UserMessage) or list(texts_of(sent)) != list(texts_of(said)):
        return False
    files, before = set(_keys(sent)), set(_keys(said))
    return files <= before if is_short else files == before


def _keys(message: UserMessage) -> Iterator[str]:
    for part in message.parts:
        if isinstance(part, File):
            yield part.source.key if isinstance(part.source, Key) else ""


def roll_back_unlisted(reading: ListReading, run: AdmittedRun) -> tuple[RolledBack, ...]:
    """The entry that hides what a list no longer shows; none, where it shows all."""
    if reading.back_to is None:
        return ()
    return (RolledBack(id=run.new_id(), time=run.admitted_at, to=reading.back_to, cause=BY_CLIENT),)
