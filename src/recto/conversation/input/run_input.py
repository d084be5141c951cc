"""AG-UI's RunAgentInput as values: what a client sends to have a run made. Unknown fields are ignored.

It judges form and nothing else: limits and rights are for whoever admits the run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from recto.conversation.attachment import from_stored
from recto.conversation.input import agui
from recto.conversation.input.resume_items import ResumeItem, decode_resume
from recto.conversation.input.run_options import RunOptions, run_options
from recto.conversation.json import Json, Object, as_object, dump, load, objects, optional_text, text_field
from recto.conversation.messages import Message, ToolOffer
from recto.errors import WireError

# Under this name in a stored input; what a client sends by it is not read.
NOTES = "rectoNotes"
TRACEPARENT = "traceparent"
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


@dataclass(frozen=True, kw_only=True)
class ContextItem:
    """Something a client wants the model to know (P12)."""

    description: str
    value: str


@dataclass(frozen=True, kw_only=True)
class ListedIds:
    """A client's whole list of messages, by their ids: what it shows of a thread (P15).

    `before` and `after` are the ids around the last message of the user's in it.
    """

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RunInput:
    """A run as a client asks for it. `options` are what of `props` we know; the rest of these are the tools'.

    A client that sends all it shows has it `listed`; `messages` are then what may be new of it. `sent_thread` is what
    it calls a thread whose id here is another; `left_out` says why parts of what it sent could not be used. `state` is
    the client's copy of the state it shares with the thread; None says nothing of it. `traceparent` is the span of
    whoever asks, as W3C Trace Context has it. `resume` are answers to interrupts of the thread. A run to `compact` the
    thread says nothing in it.
    """

    thread: str
    run: str
    parent: str | None = None
    messages: tuple[Message, ...] = ()
    tools: tuple[ToolOffer, ...] = ()
    context: tuple[ContextItem, ...] = ()
    props: Mapping[str, Json] = field(default_factory=dict[str, Json])
    protocol: str | None = None
    state: Json = None
    traceparent: str | None = None
    resume: tuple[ResumeItem, ...] = ()
    options: RunOptions = RunOptions()
    listed: ListedIds | None = None
    sent_thread: str | None = None
    left_out: tuple[str, ...] = ()
    compact: bool = False


def stored_input(body: bytes) -> RunInput:
    """The input of a run as the store keeps it: its files by the keys of their attachments."""
    value = load(body)
    found = with_options(decode_input(value))
    return with_notes(replace(found, messages=from_stored(found.messages)), value)


def noted(
    value: Mapping[str, Json],
    listed: ListedIds | None,
    *,
    thread: str | None,
    left_out: Sequence[str] = (),
    compact: bool = False,
) -> Object:
    """A request as it is stored, with what was found out about it: `stored_input` finds that there again."""
    ids: dict[str, Json] = {"before": list(listed.before), "after": list(listed.after)} if listed else {}
    notes: dict[str, Json] = {"listed": ids or None, "thread": thread, "leftOut": list(left_out)}
    return {**value, NOTES: notes | ({"compact": True} if compact else {})}


def with_notes(found: RunInput, value: Json) -> RunInput:
    """An input with what was noted of it."""
    notes = value.get(NOTES) if isinstance(value, dict) else None
    if not isinstance(notes, dict):
        return found
    thread, reasons = notes.get("thread"), notes.get("leftOut")
    return replace(
        found,
        listed=_listed(notes.get("listed")),
        sent_thread=thread if isinstance(thread, str) else None,
        left_out=tuple(map(str, reasons)) if isinstance(reasons, list) else (),
        compact=notes.get("compact") is True,
    )


def _listed(ids: Json) -> ListedIds | None:
    match ids:
        case {"before": list(before), "after": list(after)}:
            return ListedIds(before=tuple(map(str, before)), after=tuple(map(str, after)))
        case _:
            return None


def with_options(found: RunInput) -> RunInput:
    """The input with its options. Those that mean nothing raise a WireError."""
    return replace(found, options=run_options(found.props))


def stored_dialect(body: bytes) -> tuple[str | None, str | None]:
    """The version of the protocol that a stored input was sent in, and what its client calls the thread."""
    item = as_object(load(body), "RunAgentInput")
    match item.get(NOTES):
        case {"thread": str(thread)}:
            return _protocol(item), thread
        case _:
            return _protocol(item), None


def decode_input(body: Json) -> RunInput:
    """The input as values, from camelCase or snake_case. Wrong types raise a WireError that names the field.

    Its options are left to whoever has asked all else: theirs are the last faults that are told.
    """
    item = as_object(body, "RunAgentInput")
    if _get(item, "messages") is None:
        raise WireError(where="messages", problem="is missing; an array is needed")
    props = _get(item, "forwardedProps")
    return RunInput(
        thread=_text(item, "threadId"),
        run=_text(item, "runId"),
        parent=optional_text(item, agui.spelled(item, "parentRunId"), "RunAgentInput"),
        messages=agui.decode(_get(item, "messages")),
        tools=tuple(_tools(_get(item, "tools"))),
        context=tuple(_context(_get(item, "context"))),
        props=as_object(props, "forwardedProps") if props is not None else {},
        protocol=_protocol(item),
        state=item.get("state"),
        traceparent=known_traceparent(item.get(TRACEPARENT)),
        resume=tuple(decode_resume(_get(item, "resume"))),
    )


def known_traceparent(value: Json) -> str | None:
    """What a `traceparent` says, if it is one. Whatever else stands there is nobody's fault that has to be told."""
    return value if isinstance(value, str) and _TRACEPARENT.fullmatch(value) else None


def with_traceparent(body: bytes, traceparent: str) -> bytes:
    """An input as it is to be stored, with the span of whoever asks: written behind all else, so that it counts."""
    return b'%b,"%b":"%b"}' % (body.rstrip()[:-1], TRACEPARENT.encode(), traceparent.encode())


def _protocol(item: Object) -> str | None:
    return optional_text(item, agui.spelled(item, "protocolVersion"), "RunAgentInput")


def _get(item: Object, camel: str) -> Json:
    return item.get(agui.spelled(item, camel))


def _text(item: Object, camel: str) -> str:
    found = optional_text(item, agui.spelled(item, camel), "RunAgentInput")
    if found is None:
        raise WireError(where=camel, problem="is missing; a string is needed")
    return found


def _tools(tools: Json) -> Iterator[ToolOffer]:
    for where, tool in objects(tools, "tools") if tools is not None else ():
        parameters = tool.get("parameters")
        schema = as_object(parameters, f"{where}.parameters") if parameters is not None else {"type": "object"}
        description = optional_text(tool, "description", where) or ""
        name = text_field(tool, "name", where)
        yield ToolOffer(name=name, description=description, parameters=dump(schema).decode())


def _context(items: Json) -> Iterator[ContextItem]:
    for where, item in objects(items, "context") if items is not None else ():
        yield ContextItem(
            description=text_field(item, "description", where),
            value=text_field(item, "value", where),
        )
