"""Answers to interrupts as clients write them: `resume` items, and the words of older clients in a tool message."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from recto.conversation.input.agui import spelled
from recto.conversation.json import Json, Object, as_object, dump, kind_of, load, objects, optional_text, text_field
from recto.conversation.messages import ToolMessage, texts_of
from recto.errors import WireError

RESOLVED, CANCELLED = "resolved", "cancelled"
# A word of an older client that agrees. Anything else does not.
AGREES = frozenset({"yes", "true", "approved"})
MAX_WORDS = 10_000


@dataclass(frozen=True, kw_only=True)
class PersonDecision:
    """What a person says to an interrupt. `text` is for the model, `arguments` take the place of the call's."""

    approved: bool
    text: str = ""
    arguments: str | None = None


@dataclass(frozen=True, kw_only=True)
class ResumeItem:
    """An answer to an interrupt, by its id. One that is `cancelled` was given up by the client: it denies."""

    interrupt: str
    decision: PersonDecision
    is_cancelled: bool = False


def decode_resume(value: Json) -> Iterator[ResumeItem]:
    """The `resume` items of a request. What is wrong with one raises a WireError that says where."""
    known: set[str] = set()
    for where, item in objects(value, "resume") if value is not None else ():
        id = text_field(item, spelled(item, "interruptId"), where)
        if id in known:
            raise WireError(where=f"{where}.interruptId", problem=f"{id[:64]!r} is answered twice; answer it once")
        known.add(id)
        status = text_field(item, "status", where)
        if status not in (RESOLVED, CANCELLED):
            raise WireError(where=f"{where}.status", problem=f"is {status[:64]!r}; it is {RESOLVED} or {CANCELLED}")
        yield ResumeItem(interrupt=id, decision=_decision(item, status, where), is_cancelled=status == CANCELLED)


def _decision(item: Object, status: str, where: str) -> PersonDecision:
    given, place = item.get("payload"), f"{where}.payload"
    if status == CANCELLED:
        return PersonDecision(approved=False, text=_words(given, place) if isinstance(given, dict) else "")
    payload = as_object(given, place)
    approved, arguments = payload.get("approved"), payload.get("arguments")
    if not isinstance(approved, bool):
        raise WireError(where=f"{place}.approved", problem=f"must be true or false, is {kind_of(approved)}")
    if arguments is None:
        return PersonDecision(approved=approved, text=_words(payload, place))
    if not approved:
        raise WireError(where=f"{place}.arguments", problem="are for a call that is approved; leave them out")
    changed = dump(as_object(arguments, f"{place}.arguments")).decode()
    return PersonDecision(approved=True, text=_words(payload, place), arguments=changed)


def _words(payload: Object, where: str) -> str:
    words = optional_text(payload, "message", where) or ""
    if len(words) > MAX_WORDS:
        problem = f"has {len(words)} characters, {MAX_WORDS} are allowed; say less"
        raise WireError(where=f"{where}.message", problem=problem)
    return words.strip()


def decision_of(message: ToolMessage) -> PersonDecision:
    """What an older client says in the result of a call that waits: a payload, or one of the words that agree.

    Anything else denies, with those words. A failure of the client's denies too.
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
                return _decision({"payload": value}, RESOLVED, "content")
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
