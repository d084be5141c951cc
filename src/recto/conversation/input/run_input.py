"""Run requests of AG-UI clients (RunAgentInput) as values. Unknown fields are ignored.

Decoding checks the form only. The code that admits a run checks limits and permissions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from recto.conversation.input import agui
from recto.conversation.json import (
    Json,
    Object,
    as_list,
    as_object,
    dump,
    kind_of,
    load,
    objects,
    optional_text,
    text_field,
)
from recto.conversation.message_files import read_stored_files
from recto.conversation.messages import Message, ToolMessage, ToolOffer, texts_of
from recto.errors import WireError

# The field for notes in a stored input. Recto ignores it in requests.
NOTES = "rectoNotes"
TRACEPARENT = "traceparent"
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
Multitask: TypeAlias = Literal["enqueue", "reject", "interrupt"]
MULTITASK: tuple[Multitask, ...] = ("enqueue", "reject", "interrupt")
RESOLVED, CANCELLED = "resolved", "cancelled"
# Words by which older clients approve a call.
AGREES = frozenset({"yes", "true", "approved"})
MAX_WORDS = 10_000


@dataclass(frozen=True, kw_only=True)
class ContextItem:
    """A piece of information from the client for the model (P12)."""

    description: str
    value: str


@dataclass(frozen=True, kw_only=True)
class ListedIds:
    """Ids of all messages that a client shows (P15), before and after the last user message in its list."""

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options of a run from `forwardedProps` (P1). None means that the client did not set the option."""

    agent: str | None = None
    skill: str | None = None
    scenario: str | None = None
    voice_mode: str | None = None
    timezone: str | None = None
    datasets: tuple[str, ...] = ()
    multitask: Multitask = "enqueue"


@dataclass(frozen=True, kw_only=True)
class PersonDecision:
    """A person's answer to an interrupt. `text` is for the model; `arguments` replace those of the call."""

    approved: bool
    text: str = ""
    arguments: str | None = None


@dataclass(frozen=True, kw_only=True)
class ResumeItem:
    """An answer to an interrupt by its id. A `cancelled` item denies the call."""

    interrupt: str
    decision: PersonDecision
    is_cancelled: bool = False


@dataclass(frozen=True, kw_only=True)
class RunInput:
    """A run as a client requests it. `props` are for tools, except those that `options` contains.

    If the client sent its whole message list, `listed_ids` are its ids and `messages` only the possibly new ones.
    `sent_thread` is the client's name of the thread, if it differs. `left_out` explains which parts were unusable.
    `state` is the client's copy of the shared state, or None. `traceparent` is the caller's span in W3C form. `resume`
    contains answers to interrupts. With `compact`, the run only compacts the thread.
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
    listed_ids: ListedIds | None = None
    sent_thread: str | None = None
    left_out: tuple[str, ...] = ()
    compact: bool = False


def decode_input(body: Json) -> RunInput:
    """Decode a request in camelCase or snake_case. Raise a WireError that names the first field of a wrong type.

    Options are not read here, so that errors in them are reported last: see `read_options`.
    """
    item = as_object(body, "RunAgentInput")
    if _get(item, "messages") is None:
        raise WireError(where="messages", problem="is missing; an array is needed")
    thread, run, messages = _read_id(item, "threadId"), _read_id(item, "runId"), agui.decode(_get(item, "messages"))
    props, tools, context = _get(item, "forwardedProps"), list[ToolOffer](), list[ContextItem]()
    for where, tool in _read_objects(item, "tools"):
        parameters = tool.get("parameters")
        schema = as_object(parameters, f"{where}.parameters") if parameters is not None else {"type": "object"}
        name, description = text_field(tool, "name", where), optional_text(tool, "description", where) or ""
        tools.append(ToolOffer(name=name, description=description, parameters=dump(schema).decode()))
    for where, one in _read_objects(item, "context"):
        description = text_field(one, "description", where)
        context.append(ContextItem(description=description, value=text_field(one, "value", where)))
    return RunInput(
        thread=thread,
        run=run,
        parent=optional_text(item, agui.field_name(item, "parentRunId"), "RunAgentInput"),
        messages=messages,
        tools=tuple(tools),
        context=tuple(context),
        props=as_object(props, "forwardedProps") if props is not None else {},
        protocol=_read_protocol(item),
        state=item.get("state"),
        traceparent=read_traceparent(item.get(TRACEPARENT)),
        resume=tuple(decode_resume(_get(item, "resume"))),
    )


def _get(item: Object, camel: str) -> Json:
    return item.get(agui.field_name(item, camel))


def _read_objects(item: Object, camel: str) -> Iterator[tuple[str, Object]]:
    value = _get(item, camel)
    return objects(() if value is None else value, camel)


def _read_id(item: Object, camel: str) -> str:
    id = optional_text(item, agui.field_name(item, camel), "RunAgentInput")
    if id is None:
        raise WireError(where=camel, problem="is missing; a string is needed")
    return id


def _read_protocol(item: Object) -> str | None:
    return optional_text(item, agui.field_name(item, "protocolVersion"), "RunAgentInput")


def read_traceparent(value: Json) -> str | None:
    """Return a valid `traceparent`, or None.

    An invalid one is ignored, because a request must not fail because of its trace.
    """
    return value if isinstance(value, str) and _TRACEPARENT.fullmatch(value) else None


def add_traceparent(body: bytes, traceparent: str) -> bytes:
    """Append the caller's span to an input as JSON text. It replaces an earlier one, because the last of equal fields
    counts.
    """
    return b'%b,"%b":"%b"}' % (body.rstrip()[:-1], TRACEPARENT.encode(), traceparent.encode())


# Options


def read_options(run_input: RunInput) -> RunInput:
    """Return the input with its options. Raise a WireError for an invalid one."""
    return replace(run_input, options=run_options(run_input.props))


def run_options(props: Mapping[str, Json]) -> RunOptions:
    """Read the options in `forwardedProps`. Other fields are for tools. Raise a WireError for an invalid value."""
    multitask = _read_word(props, "multitask") or MULTITASK[0]
    if multitask not in MULTITASK:
        problem = f"is {multitask[:64]!r}; it is one of {', '.join(MULTITASK)}"
        raise WireError(where="forwardedProps.multitask", problem=problem)
    datasets, where = props.get("datasets"), "forwardedProps.datasets"
    options = RunOptions(
        agent=_read_word(props, "agent"),
        skill=_read_word(props, "skill"),
        scenario=_read_word(props, "scenario"),
        voice_mode=_read_word(props, "voice_mode"),
        timezone=_read_word(props, "timezone"),
        multitask=multitask,
    )
    ids = list[str]()
    for place, item in enumerate(as_list(datasets, where) if datasets is not None else ()):
        if not isinstance(item, str) or not item:
            raise WireError(where=f"{where}[{place}]", problem=f"must be an id, is {kind_of(item)}")
        ids.append(item)
    return replace(options, datasets=tuple(ids))


def _read_word(props: Mapping[str, Json], name: str) -> str | None:
    word = props.get(name)
    if word is None:
        return None
    if not isinstance(word, str):
        raise WireError(where=f"forwardedProps.{name}", problem=f"must be a string, is {kind_of(word)}")
    if not word.strip():
        raise WireError(where=f"forwardedProps.{name}", problem="is empty; leave it out or name one")
    return word


# Stored inputs


def stored_input(body: bytes) -> RunInput:
    """Read a stored input. Its files have the keys of their attachments."""
    value = load(body)
    run_input = read_options(decode_input(value))
    return read_notes(replace(run_input, messages=read_stored_files(run_input.messages)), value)


def add_notes(
    value: Mapping[str, Json],
    listed_ids: ListedIds | None,
    *,
    thread: str | None,
    left_out: Sequence[str] = (),
    compact: bool = False,
) -> Object:
    """Add notes to a request: facts found at its admission. `read_notes` reads the notes from the stored form."""
    ids: dict[str, Json] = {"before": list(listed_ids.before), "after": list(listed_ids.after)} if listed_ids else {}
    notes: dict[str, Json] = {"listed": ids or None, "thread": thread, "leftOut": list(left_out)}
    return {**value, NOTES: notes | ({"compact": True} if compact else {})}


def read_notes(run_input: RunInput, value: Json) -> RunInput:
    """Return the input with the notes in its stored form, if there are any."""
    notes = value.get(NOTES) if isinstance(value, dict) else None
    if not isinstance(notes, dict):
        return run_input
    thread, reasons = notes.get("thread"), notes.get("leftOut")
    match notes.get("listed"):
        case {"before": list(before), "after": list(after)}:
            listed_ids = ListedIds(before=tuple(map(str, before)), after=tuple(map(str, after)))
        case _:
            listed_ids = None
    return replace(
        run_input,
        listed_ids=listed_ids,
        sent_thread=thread if isinstance(thread, str) else None,
        left_out=tuple(map(str, reasons)) if isinstance(reasons, list) else (),
        compact=notes.get("compact") is True,
    )


def stored_dialect(body: bytes) -> tuple[str | None, str | None]:
    """Return the protocol version of a stored input and the client's name of the thread."""
    item = as_object(load(body), "RunAgentInput")
    match item.get(NOTES):
        case {"thread": str(thread)}:
            return _read_protocol(item), thread
        case _:
            return _read_protocol(item), None


# Answers to interrupts


def decode_resume(value: Json) -> Iterator[ResumeItem]:
    """Yield the `resume` items of a request. Raise a WireError that names the first invalid field."""
    interrupts: set[str] = set()
    for where, answer in objects(value, "resume") if value is not None else ():
        id = text_field(answer, agui.field_name(answer, "interruptId"), where)
        if id in interrupts:
            raise WireError(where=f"{where}.interruptId", problem=f"{id[:64]!r} is answered twice; answer it once")
        interrupts.add(id)
        status = text_field(answer, "status", where)
        if status not in (RESOLVED, CANCELLED):
            raise WireError(where=f"{where}.status", problem=f"is {status[:64]!r}; it is {RESOLVED} or {CANCELLED}")
        decision = _decode_decision(answer.get("payload"), status, f"{where}.payload")
        yield ResumeItem(interrupt=id, decision=decision, is_cancelled=status == CANCELLED)


def _decode_decision(value: Json, status: str, where: str) -> PersonDecision:
    if status == CANCELLED:
        return PersonDecision(approved=False, text=_read_message(value, where) if isinstance(value, dict) else "")
    payload = as_object(value, where)
    approved, arguments = payload.get("approved"), payload.get("arguments")
    if not isinstance(approved, bool):
        raise WireError(where=f"{where}.approved", problem=f"must be true or false, is {kind_of(approved)}")
    if arguments is None:
        return PersonDecision(approved=approved, text=_read_message(payload, where))
    if not approved:
        raise WireError(where=f"{where}.arguments", problem="are for a call that is approved; leave them out")
    new_arguments = dump(as_object(arguments, f"{where}.arguments")).decode()
    return PersonDecision(approved=True, text=_read_message(payload, where), arguments=new_arguments)


def _read_message(payload: Object, where: str) -> str:
    words = optional_text(payload, "message", where) or ""
    if len(words) > MAX_WORDS:
        problem = f"has {len(words)} characters, {MAX_WORDS} are allowed; say less"
        raise WireError(where=f"{where}.message", problem=problem)
    return words.strip()


def decision_of(message: ToolMessage) -> PersonDecision:
    """Read the decision in a tool message of an older client: a payload, or a word of approval.

    Any other text denies the call and is the person's message. A failed result denies it too.
    """
    words = "\n".join(texts_of(message)).strip()
    if message.error:
        return PersonDecision(approved=False, text=words[:MAX_WORDS] or message.error[:MAX_WORDS])
    try:
        value = load(words)
    except ValueError:
        value = words
    match value:
        case {"approved": bool()}:
            try:
                return _decode_decision(value, RESOLVED, "content.payload")
            except WireError:
                return PersonDecision(approved=False, text=words[:MAX_WORDS])
        case True:
            return PersonDecision(approved=True)
        case str() if value.strip().lower() in AGREES:
            return PersonDecision(approved=True)
        case str():
            return PersonDecision(approved=False, text=value.strip()[:MAX_WORDS])
        case _:
            return PersonDecision(approved=False, text=words[:MAX_WORDS])
