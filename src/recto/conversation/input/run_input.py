"""AG-UI's RunAgentInput as values: what a client sends to have a run made. Unknown fields are ignored.

It judges form and nothing else: limits and rights are for whoever admits the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from recto.conversation.attachment import from_stored
from recto.conversation.input import agui
from recto.conversation.input.resume_items import ResumeItem, decode_resume
from recto.conversation.input.run_options import RunOptions, run_options
from recto.conversation.json import Json, Object, as_object, dump, load, objects, optional_text, text_field
from recto.conversation.messages import Message, ToolOffer
from recto.errors import WireError


@dataclass(frozen=True, kw_only=True)
class ContextItem:
    """Something a client wants the model to know (P12)."""

    description: str
    value: str


@dataclass(frozen=True, kw_only=True)
class RunInput:
    """A run as a client asks for it. `options` are what of `props` we know; the rest of these are the tools'.

    `resume` are answers to interrupts of the thread.
    """

    thread: str
    run: str
    parent: str | None = None
    messages: tuple[Message, ...] = ()
    tools: tuple[ToolOffer, ...] = ()
    context: tuple[ContextItem, ...] = ()
    props: Mapping[str, Json] = field(default_factory=dict[str, Json])
    protocol: str | None = None
    resume: tuple[ResumeItem, ...] = ()
    options: RunOptions = RunOptions()


def stored_input(body: bytes) -> RunInput:
    """The input of a run as the store keeps it: its files by the keys of their attachments."""
    found = with_options(decode_input(load(body)))
    return replace(found, messages=from_stored(found.messages))


def with_options(found: RunInput) -> RunInput:
    """The input with its options. Those that mean nothing raise a WireError."""
    return replace(found, options=run_options(found.props))


def stored_protocol(body: bytes) -> str | None:
    """The version of the protocol that a stored input was sent in; nothing else of it is read."""
    return _protocol(as_object(load(body), "RunAgentInput"))


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
        resume=tuple(decode_resume(_get(item, "resume"))),
    )


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
