"""Fit a conversation to the model it goes to: what its format cannot carry is changed or left out, with a reason.

After this, encoding refuses nothing. Roles for people only (reasoning, activity) never reach a model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from recto.conversation.input_files import one_line
from recto.conversation.json import dump, load_object
from recto.conversation.memo import grow, remember
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
    UserMessage,
)
from recto.page.draft import Draft, then, unchanged
from recto.page.manifest import Note
from recto.page.prompt.reminder import neutralise
from recto.page.steps.fit_order import fit_order, is_in_order
from recto.page.wire import anthropic, openai
from recto.page.wire.base import Target, WireName

RULE = "fit"
NOT_FOR_MODELS = "shown to people, never to models"
OTHER_STATE = "{name} of {maker} left out: it means nothing to another model"
STATE_LEFT_OUT = "{name} of {maker} left out: the {wire} format has no place for it here"
FILE_MARK = "[{kind} not shown: {name}]"
# In a tool's result nothing else says how to get at a file of ours; in a user's message the reminder does.
STORED_MARK = "[{kind} not shown: {name}, id {key}]"
NO_IMAGES = "this model sees no images"
FILE_LEFT_OUT = "the {wire} format cannot carry this {kind} here"
CALLS_LAST = "words put before the calls, where the format has them"
NO_OBJECT = "arguments of {name} were no JSON object"
EMPTY_TEXT = "an empty text is not allowed here"
EMPTY_MARK = "(empty)"
EMPTY_SAID = "an empty message is not allowed here, so it says that it is empty"
NOTHING_CARRIED = "nothing in it that the {wire} format can carry"
NO_NAME = "the {wire} format carries no name"
NEW_NAME = "the name written as the {wire} format takes it"
NAME_LEFT_OUT = "nothing in the name that the {wire} format takes"
NEW_TOOL_NAME = "the name of a tool written as providers take it"
# What OpenAI refuses in a name, and how much of one it takes; in the name of a tool all do.
NOT_IN_NAME, LONGEST_NAME = re.compile(r"[^a-zA-Z0-9_-]+"), 64


Named: TypeAlias = UserMessage | AssistantMessage | ToolMessage | SystemMessage | DeveloperMessage


class _To(NamedTuple):
    """A target as something that is quick to look up by."""

    wire: WireName
    model: str
    sees_images: bool


class _Fitted(NamedTuple):
    """A message as the target can take it and why it changed. None with a reason is left out, without one it fits."""

    message: Message | None
    reasons: tuple[str, ...]


AS_IS = _Fitted(None, ())


def fit(messages: Sequence[Message], target: Target) -> Draft:
    """The conversation as the target can take it, each change noted."""
    if grow(messages, _all_fit, target) and grow(messages, is_in_order, target.wire).good:
        return unchanged(messages)
    fitted = _fit_each(messages, target)
    return then(fitted, fit_order(fitted.messages, target.wire))


def _all_fit(known: bool | None, messages: Sequence[Message], target: Target) -> bool:
    if known is False:
        return False
    to = _To(target.wire, target.model, target.sees_images)
    return all(_is_plain(message, to.wire) or remember(message, _fit_message, to) is AS_IS for message in messages)


def _is_plain(message: Message, wire: WireName) -> bool:
    """Whether a message surely fits: words, or calls without state, in the format that takes them as they are."""
    if wire != "openai" or not isinstance(message, (UserMessage, AssistantMessage, ToolMessage)):
        return False
    if not isinstance(message, ToolMessage) and message.name:
        return False
    match message.parts:
        case (Text(),):
            return True
        case (ToolCall(state=None) as call,) | (Text(), ToolCall(state=None) as call):
            return _is_tool_name(call.name)
        case _:
            return False


def _fit_each(messages: Sequence[Message], target: Target) -> Draft:
    to = _To(target.wire, target.model, target.sees_images)
    shown: list[Message] = []
    origins: list[int] = []
    notes: dict[int, Note] = {}
    for place, message in enumerate(messages):
        changed, reasons = remember(message, _fit_message, to)
        if changed is not None or not reasons:
            shown.append(changed or message)
            origins.append(place)
        if reasons:
            decision = "dropped" if changed is None else "repaired"
            notes[place] = Note(decision=decision, rule=RULE, reason="; ".join(dict.fromkeys(reasons)))
    return Draft(messages=tuple(shown), origins=origins, notes=notes)


def _fit_message(message: Message, to: _To) -> _Fitted:
    wire = to.wire
    match message:
        case ReasoningMessage() | ActivityMessage():
            return _Fitted(None, (NOT_FOR_MODELS,))
        case SystemMessage() | DeveloperMessage() if wire == "anthropic" and _is_blank(message.text):
            return _Fitted(None, (EMPTY_TEXT,))
        case SystemMessage() | DeveloperMessage():
            return _with_good_name(message, wire, ())
        case AssistantMessage():
            return _fit_assistant(message, to)
        case ToolMessage() | UserMessage():
            parts, reasons = _fit_parts(message, to)
            if wire == "anthropic" and not parts and isinstance(message, UserMessage):
                parts, reasons = (Text(text=EMPTY_MARK),), (*reasons, EMPTY_SAID)
            shown = tuple(part for part in parts if not isinstance(part, ToolCall))
            changed = replace(message, parts=shown) if reasons else message
            return _with_good_name(changed, wire, reasons)


def _fit_assistant(message: AssistantMessage, to: _To) -> _Fitted:
    parts, reasons = _fit_parts(message, to)
    if to.wire == "openai":
        ordered = tuple(sorted(parts, key=lambda part: isinstance(part, ToolCall)))
        reasons = (*reasons, CALLS_LAST) if ordered != parts else reasons
        parts = ordered
    if all(isinstance(part, Opaque) and part.is_thought for part in parts):
        return _Fitted(None, (*reasons, NOTHING_CARRIED.format(wire=to.wire)))
    return _with_good_name(replace(message, parts=parts) if reasons else message, to.wire, reasons)


def _with_good_name(message: Named, wire: WireName, reasons: tuple[str, ...]) -> _Fitted:
    if not isinstance(message, ToolMessage) and message.name:
        name, reason = _fit_name(message.name, wire)
        if name != message.name:
            return _Fitted(replace(message, name=name), (*reasons, reason.format(wire=wire)))
    return _Fitted(message, reasons) if reasons else AS_IS


def _fit_name(name: str, wire: WireName) -> tuple[str | None, str]:
    """A name in a form the format takes (P3), the same for the same name; None where there is none."""
    if wire == "anthropic":
        return None, NO_NAME
    good = NOT_IN_NAME.sub("_", name).strip("_") if NOT_IN_NAME.search(name) else name
    return (good[:LONGEST_NAME], NEW_NAME) if good else (None, NAME_LEFT_OUT)


def _fit_parts(
    message: UserMessage | AssistantMessage | ToolMessage, to: _To
) -> tuple[tuple[AssistantPart, ...], tuple[str, ...]]:
    holder = _holder(message, to.wire)
    fitted = [_fit_part(part, holder, to) for part in message.parts]
    parts = tuple(part for part, _ in fitted if part is not None)
    return parts, tuple(reason for _, reason in fitted if reason)


def _holder(message: UserMessage | AssistantMessage | ToolMessage, wire: WireName) -> str:
    # Anthropic takes nothing but words in a result that reports an error.
    words_only = wire == "anthropic" and isinstance(message, ToolMessage) and message.error is not None
    return "error" if words_only else message.role


def can_show(file: File, message: ToolMessage, target: Target) -> bool:
    """Whether a file goes to the model as it is, in this message."""
    to = _To(target.wire, target.model, target.sees_images)
    return not _why_not_shown(file, _holder(message, target.wire), to)


def _fit_part(part: AssistantPart, holder: str, to: _To) -> tuple[AssistantPart | None, str]:
    wire, model = to.wire, to.model
    match part:
        case Text() if wire == "anthropic" and _is_blank(part.text):
            return None, EMPTY_TEXT
        case Text():
            return part, ""
        case File():
            reason = _why_not_shown(part, holder, to)
            return (Text(text=_mark_in(holder, part)), reason) if reason else (part, "")
        case Opaque():
            carries = openai.carries_state if wire == "openai" else anthropic.carries_state
            reason = _why_left_out(part, wire, model, has_place=carries(part, holder))
            return (None, reason) if reason else (part, "")
        case ToolCall():
            return _fit_call(part, wire, model)


def _why_not_shown(file: File, holder: str, to: _To) -> str:
    if file.kind == "image" and not to.sees_images:
        return NO_IMAGES
    carries = openai.carries_file if to.wire == "openai" else anthropic.carries_file
    return "" if carries(file, holder) else FILE_LEFT_OUT.format(wire=to.wire, kind=file.kind)


def _mark_in(holder: str, file: File) -> str:
    if holder not in ("tool", "error") or not isinstance(file.source, Key):
        return file_mark(file)
    return STORED_MARK.format(kind=file.kind, name=_name_of(file), key=neutralise(one_line(file.source.key)))


def file_mark(file: File) -> str:
    """What stands for a file that is not shown. Its name is one line, in which our own tags mean nothing (F3)."""
    return FILE_MARK.format(kind=file.kind, name=_name_of(file))


def _name_of(file: File) -> str:
    names = (one_line(name) for name in (file.name, file.id, file.mime_type) if name)
    return neutralise(next(filter(None, names), "no name"))


def _fit_call(call: ToolCall, wire: WireName, model: str) -> tuple[ToolCall, str]:
    reason = _why_left_out(call.state, wire, model, has_place=wire == "openai") if call.state else ""
    if reason:
        fitted, second = _fit_call(replace(call, state=None), wire, model)
        return fitted, "; ".join(filter(None, (reason, second)))
    if not _is_tool_name(call.name):
        # Models make names up, too; one that is sent back as it is would have the thread refused for ever.
        good = NOT_IN_NAME.sub("_", call.name)[:LONGEST_NAME] or "_"
        fitted, second = _fit_call(replace(call, name=good), wire, model)
        return fitted, "; ".join(filter(None, (NEW_TOOL_NAME, second)))
    if wire == "anthropic" and load_object(call.arguments) is None:
        arguments = dump({"arguments": call.arguments}).decode()
        return replace(call, arguments=arguments), NO_OBJECT.format(name=call.name)
    return call, ""


def _is_tool_name(name: str) -> bool:
    return 0 < len(name) <= LONGEST_NAME and NOT_IN_NAME.search(name) is None


def _is_blank(text: str) -> bool:
    return not text or text.isspace()


def _why_left_out(state: Opaque, wire: WireName, model: str, *, has_place: bool) -> str:
    maker = state.model or state.provider
    if state.provider != wire or (state.model is not None and model and state.model != model):
        return OTHER_STATE.format(name=state.name, maker=maker)
    return "" if has_place else STATE_LEFT_OUT.format(name=state.name, maker=maker, wire=wire)
