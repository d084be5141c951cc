"""Adaptation of a conversation to the target: content, order and call ids.

Unsupported content is changed or left out with a reason. Encoding accepts every repaired conversation that was fitted.
Messages for people only (reasoning, activity) are left out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from recto.conversation.json import dump, load_object
from recto.conversation.memo import memoise, memoise_last, memoise_prefix
from recto.conversation.message_files import one_line
from recto.conversation.messages import (
    ActivityMessage,
    AssistantMessage,
    AssistantPart,
    DeveloperMessage,
    File,
    Key,
    Message,
    Opaque,
    ReasoningMessage,
    SystemMessage,
    Text,
    ToolCall,
    ToolMessage,
    UnreadMessages,
    UserMessage,
)
from recto.page.draft import Draft, then, unchanged
from recto.page.manifest import Note
from recto.page.prompt.reminder import file_mark, file_name, neutralise
from recto.page.wire.base import Target, Wire
from recto.page.wire.formats import wire_named

RULE = "fit"
NOT_FOR_MODELS = "shown to people, never to models"
OTHER_STATE = "{name} of {maker} left out: it means nothing to another model"
STATE_LEFT_OUT = "{name} of {maker} left out: the {wire} format has no place for it here"
# The mark in a tool result contains the file's id. User messages have the id in their reminder.
STORED_MARK = "[{kind} not shown: {name}, id {key}]"
NO_IMAGES = "this model sees no images"
FILE_LEFT_OUT = "the {wire} format cannot carry this {kind} here"
CALLS_LAST = "words put before the calls, where the format has them"
FOREIGN_CALLS = "marked as calls that another model made"
NO_OBJECT = "arguments of {name} were no JSON object"
EMPTY_TEXT = "an empty text is not allowed here"
EMPTY_MARK = "(empty)"
EMPTY_SAID = "an empty message is not allowed here, so it says that it is empty"
NOTHING_CARRIED = "nothing in it that the {wire} format can carry"
LED_NOWHERE = "thinking left out, since nothing follows it"
NO_NAME = "the {wire} format carries no name"
NEW_NAME = "the name written as the {wire} format takes it"
NAME_LEFT_OUT = "nothing in the name that the {wire} format takes"
NEW_TOOL_NAME = "the name of a tool written as providers take it"
BEFORE_USER = "before the first user message, where this provider's conversations begin"
HOISTED = "instructions stand before the conversation"
NEW_IDS = "call ids rewritten to what the provider gave or accepts"
# Characters that OpenAI rejects in all names and other providers in tool names, and the maximum length of a name.
NOT_IN_NAME, LONGEST_NAME = re.compile(r"[^a-zA-Z0-9_-]+"), 64

NamedMessage: TypeAlias = UserMessage | AssistantMessage | ToolMessage | SystemMessage | DeveloperMessage


class _To(NamedTuple):
    """A target as a cheap cache key."""

    wire: Wire
    model: str
    sees_images: bool


class _ToolNames(NamedTuple):
    """The number of processed messages, tool names of the newest calls by id, and results with their tool names by
    place.
    """

    message_count: int
    names: dict[str, str]
    results: tuple[tuple[int, ToolMessage], ...]


class _FitResult(NamedTuple):
    """An adapted message and the reasons.

    Without a message, the message is left out if there are reasons, and fits unchanged if there are none.
    """

    message: Message | None
    reasons: tuple[str, ...]


AS_IS = _FitResult(None, ())


@dataclass(frozen=True, kw_only=True)
class _Order:
    """State of the order check, to continue it with more messages."""

    good: bool = True
    has_user: bool = False
    has_talk: bool = False
    ids: frozenset[str] = frozenset()


def fit(messages: Sequence[Message], target: Target) -> Draft:
    """Adapt a conversation to the target, with a note for each change."""
    to = _to(target)
    if to.wire.results_name_tools:
        # Add the tool's name to each result. The name is already in the call, so the result gets no note.
        new_messages = list(messages)
        for place, result in memoise_prefix(messages, _name_results).results:
            new_messages[place] = result
        messages = tuple(new_messages)
    if memoise_prefix(messages, _all_fit, to) and memoise_prefix(messages, _check_order, to.wire).good:
        return unchanged(messages)
    fit_messages: list[Message] = []
    origins: list[int] = []
    notes: dict[int, Note] = {}
    for place, message in enumerate(messages):
        changed, reasons = memoise(message, _fit_message, to)
        if changed is not None or not reasons:
            fit_messages.append(changed or message)
            origins.append(place)
        if reasons:
            decision = "dropped" if changed is None else "repaired"
            notes[place] = Note(decision=decision, rule=RULE, reason="; ".join(dict.fromkeys(reasons)))
    draft = Draft(messages=tuple(fit_messages), origins=origins, notes=notes)
    user_first = _begin_with_user(draft.messages) if to.wire.begins_with_user else unchanged(draft.messages)
    return then(draft, then(user_first, _fit_ids(user_first.messages, to.wire)))


def can_show(file: File, message: ToolMessage, target: Target) -> bool:
    """Return True if the model can receive this file in this message."""
    to = _to(target)
    return not _why_not_shown(file, _holder(message, to.wire), to)


def _to(target: Target) -> _To:
    return _To(wire_named(target.wire), target.model, target.sees_images)


def _name_results(previous: _ToolNames | None, messages: Sequence[Message]) -> _ToolNames:
    base = previous or _ToolNames(0, {}, ())
    names, results = base.names, list(base.results)
    for place, message in enumerate(messages, start=base.message_count):
        if isinstance(message, AssistantMessage) and message.tool_calls:
            names = {call.id: _good_tool_name(call.name) for call in message.tool_calls}
        elif isinstance(message, ToolMessage) and (name := names.get(message.tool_call_id)):
            results.append((place, memoise_last(message, _with_name, name)))
    return _ToolNames(base.message_count + len(messages), names, tuple(results))


def _with_name(message: ToolMessage, name: str) -> ToolMessage:
    return replace(message, tool_name=name)


def _all_fit(previous: bool | None, messages: Sequence[Message], to: _To) -> bool:
    if previous is False:
        return False
    # Skip plain messages if the format accepts empty texts and any arguments.
    takes_all = to.wire.takes_empty_text and to.wire.takes_any_arguments
    rest = [message for message in messages if not _is_plain(message)] if takes_all else messages
    return all(memoise(message, _fit_message, to) is AS_IS for message in rest)


def _is_plain(message: Message) -> bool:
    """Return True for a message without a name that has one text, one call without state, or both in this order."""
    if not isinstance(message, (UserMessage, AssistantMessage, ToolMessage)):
        return False
    if not isinstance(message, ToolMessage) and message.name:
        return False
    *before, last = message.parts or (None,)
    if isinstance(last, ToolCall):
        is_plain = last.state is None and _is_tool_name(last.name)
        return is_plain and (not before or (len(before) == 1 and isinstance(before[0], Text)))
    return not before and isinstance(last, Text)


def _fit_message(message: Message, to: _To) -> _FitResult:
    wire = to.wire
    match message:
        case ReasoningMessage() | ActivityMessage() | UnreadMessages():
            return _FitResult(None, (NOT_FOR_MODELS,))
        case SystemMessage() | DeveloperMessage() if not wire.takes_empty_text and _is_blank(message.text):
            return _FitResult(None, (EMPTY_TEXT,))
        case SystemMessage() | DeveloperMessage():
            return _with_good_name(message, wire, ())
        case AssistantMessage():
            return _fit_assistant(message, to)
        case ToolMessage() | UserMessage():
            parts, reasons = _fit_parts(message, to)
            if not wire.takes_empty_text and not parts and isinstance(message, UserMessage):
                parts, reasons = (Text(text=EMPTY_MARK),), (*reasons, EMPTY_SAID)
            user_parts = tuple(part for part in parts if not isinstance(part, ToolCall))
            changed = replace(message, parts=user_parts) if reasons else message
            return _with_good_name(changed, wire, reasons)


def _fit_assistant(message: AssistantMessage, to: _To) -> _FitResult:
    parts, reasons = _fit_parts(message, to)
    if to.wire.calls_come_last:
        sorted_parts = tuple(sorted(parts, key=lambda part: isinstance(part, ToolCall)))
        reasons = (*reasons, CALLS_LAST) if sorted_parts != parts else reasons
        parts = sorted_parts
    if to.wire.sign_calls:
        signed_parts = to.wire.sign_calls(parts, to.model)
        reasons = (*reasons, FOREIGN_CALLS) if signed_parts != parts else reasons
        parts = signed_parts
    end = max([n for n, part in enumerate(parts, 1) if not (isinstance(part, Opaque) and part.is_thought)], default=0)
    if not end:
        return _FitResult(None, (*reasons, NOTHING_CARRIED.format(wire=to.wire.name)))
    if to.wire.thoughts_lead and end < len(parts):
        parts, reasons = parts[:end], (*reasons, LED_NOWHERE)
    return _with_good_name(replace(message, parts=parts) if reasons else message, to.wire, reasons)


def _with_good_name(message: NamedMessage, wire: Wire, reasons: tuple[str, ...]) -> _FitResult:
    """Return the message with its name in a form the format accepts (P3), or without it. Equal names stay equal."""
    if not isinstance(message, ToolMessage) and (name := message.name):
        good = NOT_IN_NAME.sub("_", name).strip("_") if NOT_IN_NAME.search(name) else name
        good = good[:LONGEST_NAME] if wire.takes_names else ""
        if good != name:
            reason = NEW_NAME if good else NAME_LEFT_OUT if wire.takes_names else NO_NAME
            return _FitResult(replace(message, name=good or None), (*reasons, reason.format(wire=wire.name)))
    return _FitResult(message, reasons) if reasons else AS_IS


def _fit_parts(
    message: UserMessage | AssistantMessage | ToolMessage, to: _To
) -> tuple[tuple[AssistantPart, ...], tuple[str, ...]]:
    holder = _holder(message, to.wire)
    results = [_fit_part(part, holder, to) for part in message.parts]
    parts = tuple(part for part, _ in results if part is not None)
    return parts, tuple(reason for _, reason in results if reason)


def _holder(message: UserMessage | AssistantMessage | ToolMessage, wire: Wire) -> str:
    is_error = isinstance(message, ToolMessage) and message.error is not None
    return "error" if is_error and wire.errors_are_words else message.role


def _fit_part(part: AssistantPart, holder: str, to: _To) -> tuple[AssistantPart | None, str]:
    wire, model = to.wire, to.model
    match part:
        case Text() if not wire.takes_empty_text and _is_blank(part.text):
            return None, EMPTY_TEXT
        case Text():
            return part, ""
        case File():
            reason = _why_not_shown(part, holder, to)
            if not reason:
                return part, ""
            if holder not in ("tool", "error") or not isinstance(part.source, Key):
                return Text(text=file_mark(part)), reason
            key = neutralise(one_line(part.source.key))
            return Text(text=STORED_MARK.format(kind=part.kind, name=file_name(part), key=key)), reason
        case Opaque():
            reason = _why_left_out(part, wire, model, has_place=wire.carries_state(part, holder))
            return (None, reason) if reason else (part, "")
        case ToolCall():
            return _fit_call(part, wire, model)


def _why_not_shown(file: File, holder: str, to: _To) -> str:
    if file.kind == "image" and not to.sees_images:
        return NO_IMAGES
    can_carry = to.wire.carries_file(file, holder)
    return "" if can_carry else FILE_LEFT_OUT.format(wire=to.wire.name, kind=file.kind)


def _fit_call(call: ToolCall, wire: Wire, model: str) -> tuple[ToolCall, str]:
    reason = _why_left_out(call.state, wire, model, has_place=wire.calls_carry_state) if call.state else ""
    if reason:
        new_call, second = _fit_call(replace(call, state=None), wire, model)
        return new_call, "; ".join(filter(None, (reason, second)))
    if not _is_tool_name(call.name):
        # Models invent tool names. After an invalid one, the provider would reject every later page of the thread.
        new_call, second = _fit_call(replace(call, name=_good_tool_name(call.name)), wire, model)
        return new_call, "; ".join(filter(None, (NEW_TOOL_NAME, second)))
    if not wire.takes_any_arguments and load_object(call.arguments) is None:
        arguments = dump({"arguments": call.arguments}).decode()
        return replace(call, arguments=arguments), NO_OBJECT.format(name=call.name)
    return call, ""


def _is_tool_name(name: str) -> bool:
    return 0 < len(name) <= LONGEST_NAME and NOT_IN_NAME.search(name) is None


def _good_tool_name(name: str) -> str:
    return name if _is_tool_name(name) else NOT_IN_NAME.sub("_", name)[:LONGEST_NAME] or "_"


def _is_blank(text: str) -> bool:
    return not text or text.isspace()


def _why_left_out(state: Opaque, wire: Wire, model: str, *, has_place: bool) -> str:
    maker = state.model or state.provider
    if state.provider != wire.name or (state.model is not None and model and state.model != model):
        return OTHER_STATE.format(name=state.name, maker=maker)
    return "" if has_place else STATE_LEFT_OUT.format(name=state.name, maker=maker, wire=wire.name)


def _check_order(previous: _Order | None, messages: Sequence[Message], wire: Wire) -> _Order:
    order = previous or _Order()
    good, has_user, has_talk = order.good, order.has_user, order.has_talk
    ids: list[str] = []
    for message in messages:
        if message.role in ("system", "developer"):
            good = good and not (wire.begins_with_user and has_talk)
            continue
        has_user, has_talk = has_user or message.role == "user", True
        good = good and (has_user or not wire.begins_with_user)
        if message.role == "assistant":
            ids += [call.id for call in message.tool_calls]
            good = good and not any(call.provider_id for call in message.tool_calls)
    good = good and _ids_are_good(ids, wire) and not (wire.call_ids_are_unique and order.ids.intersection(ids))
    known_ids = order.ids.union(ids) if wire.call_ids_are_unique else order.ids
    return _Order(good=good, has_user=has_user, has_talk=has_talk, ids=known_ids)


def _begin_with_user(messages: Sequence[Message]) -> Draft:
    instructions = [i for i, message in enumerate(messages) if isinstance(message, (SystemMessage, DeveloperMessage))]
    first_user = next((i for i, message in enumerate(messages) if isinstance(message, UserMessage)), len(messages))
    late = [place for order, place in enumerate(instructions) if place != order]
    early = [place for place in range(first_user) if place not in instructions]
    if not late and not early:
        return unchanged(messages)
    notes = {place: Note(decision="repaired", rule=RULE, reason=HOISTED) for place in late}
    notes |= {place: Note(decision="dropped", rule="S2", reason=BEFORE_USER) for place in early}
    instruction_places = set(instructions)
    talk = [place for place in range(first_user, len(messages)) if place not in instruction_places]
    origins = [*instructions, *talk]
    return Draft(messages=tuple(messages[place] for place in origins), origins=origins, notes=notes)


def _fit_ids(messages: Sequence[Message], wire: Wire) -> Draft:
    used_ids: set[str] = set()
    renamed: dict[str, str] = {}
    new_messages = list(messages)
    notes: dict[int, Note] = {}
    for place, message in enumerate(messages):
        if isinstance(message, AssistantMessage) and message.tool_calls:
            ids = tuple(_new_ids(message, used_ids, wire))
            renamed = {call.id: new for call, new in zip(message.tool_calls, ids, strict=True)}
            new_messages[place] = memoise_last(message, _with_call_ids, ids)
        elif isinstance(message, ToolMessage):
            new_messages[place] = memoise_last(message, _with_result_id, renamed.get(message.tool_call_id, ""))
        if new_messages[place] is not message:
            notes[place] = Note(decision="repaired", rule=RULE, reason=NEW_IDS)
    return Draft(messages=tuple(new_messages), origins=range(len(new_messages)), notes=notes)


def _ids_are_good(ids: Sequence[str], wire: Wire) -> bool:
    if wire.call_ids_are_unique and len(set(ids)) != len(ids):
        return False
    is_short = max(map(len, ids), default=0) <= wire.longest_call_id
    return is_short and all(ids) and bool(wire.call_id.fullmatch("".join(ids)))


def _new_ids(message: AssistantMessage, used_ids: set[str], wire: Wire) -> Iterator[str]:
    """Yield an id for each call: its provider id or its own id if the wire format accepts it, otherwise a new one."""
    taken_ids = used_ids if wire.call_ids_are_unique else set[str]()
    for call in message.tool_calls:
        candidates = [
            id for id in (call.provider_id, call.id) if id and id not in taken_ids and _ids_are_good((id,), wire)
        ]
        if candidates:
            new = candidates[0]
        else:
            stem = re.sub(r"[^a-zA-Z0-9_-]", "_", call.id)[:24]
            salts = (f"{call.id}#{n}".encode(errors="replace") for n in range(len(used_ids) + 1))
            variants = (f"{stem}_{hashlib.sha256(salt).hexdigest()[:8]}" for salt in salts)
            new = next(one for one in variants if one not in used_ids)
        used_ids.add(new)
        taken_ids.add(new)
        yield new


def _with_call_ids(message: AssistantMessage, ids: tuple[str, ...]) -> AssistantMessage:
    if ids == tuple(call.id for call in message.tool_calls):
        return message
    new_ids = iter(ids)
    parts = tuple(
        replace(part, id=next(new_ids), provider_id="") if isinstance(part, ToolCall) else part
        for part in message.parts
    )
    return replace(message, parts=parts)


def _with_result_id(message: ToolMessage, id: str) -> ToolMessage:
    return message if id in ("", message.tool_call_id) else replace(message, tool_call_id=id)
