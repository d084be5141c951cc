"""Rules a run's input must keep (P2), each asked of all of it before the next. Knows nothing of users."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias, cast

from recto.conversation.input.run_input import RunInput, decode_input, read_notes, read_options
from recto.conversation.json import Json
from recto.conversation.messages import Text, UserMessage
from recto.errors import Refused

MAX_RUN_ID, MAX_MESSAGES, MAX_WORDS = 128, 200, 10_000
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
NO_UUID = "threadId must be a valid UUID"
LONG_RUN_ID = "runId exceeds length limit"
MANY_MESSAGES = "RunAgentInput.messages exceeds limit"
LONG_WORDS = "RunAgentInput user message text exceeds limit"
NOT_ONE_USER = "RunAgentInput.messages must contain exactly one user message"
NOT_USER_FIRST = "RunAgentInput.messages[0].role must be user"
NO_IMAGE = "binary content requires image mimeType"
NO_URL = "binary content requires url"
HAS_DATA = "binary content data is not allowed"
NOT_SIGNED = "binary content url is not a valid signed URL"
# What a binary block may leave out until its own rules are asked.
STAND_IN_TYPE, STAND_IN_URL = "image/png", "https://stand.in/"


def check_input(value: Json, *, has_notes: bool = False) -> RunInput:
    """The input of a run that keeps every rule but the one on signed urls; the first it breaks raises Refused.

    What its options are is asked last. Of a whole list only what may be new of it is here, noted as such (P15).
    """
    found = decode_input(_with_stand_ins(value))
    found = read_notes(found, value) if has_notes else found
    for problem, where in _broken(found):
        raise Refused(problem, where=where)
    for problem, where in _broken_blocks(list(_binaries(value))):
        raise Refused(problem, where=where)
    return read_options(found)


def _broken(found: RunInput) -> Iterator[tuple[str, str]]:
    """Rules on the input as a whole, in order."""
    users = [message for message in found.messages if isinstance(message, UserMessage)]
    if not UUID.fullmatch(found.thread):
        yield NO_UUID, "threadId"
    if not 0 < len(found.run) <= MAX_RUN_ID:
        yield LONG_RUN_ID, "runId"
    if len(found.messages) > MAX_MESSAGES and not found.listed_ids:
        yield MANY_MESSAGES, "messages"
    if any(_length(user) > MAX_WORDS for user in users):
        yield LONG_WORDS, "messages"
    # What only answers interrupts goes on with what was said before; what only compacts says nothing.
    if found.listed_ids or found.compact or (found.resume and not found.messages):
        return
    if len(users) != 1:
        yield NOT_ONE_USER, "messages"
    if found.messages[0].role != "user":
        yield NOT_USER_FIRST, "messages[0].role"


def _length(user: UserMessage) -> int:
    return sum(len(part.text) for part in user.parts if isinstance(part, Text))


_Block: TypeAlias = tuple[str, Mapping[str, Json]]


def _broken_blocks(blocks: list[_Block]) -> Iterator[tuple[str, str]]:
    """Rules on binary blocks, in order: each asked of all of them."""
    for where, block in blocks:
        if not str(_mime(block) or "").lower().startswith("image/"):
            yield NO_IMAGE, f"{where}.mimeType"
    for where, block in blocks:
        if not block.get("url"):
            yield NO_URL, f"{where}.url"
    for where, block in blocks:
        if block.get("data") is not None:
            yield HAS_DATA, f"{where}.data"


def _mime(block: Mapping[str, Json]) -> Json:
    return block.get("mimeType", block.get("mime_type"))


def _binaries(value: Json) -> Iterator[_Block]:
    """The binary blocks of an input, as they were sent, whatever else is wrong with it."""
    messages = value.get("messages") if isinstance(value, dict) else None
    for place, message in enumerate(messages if isinstance(messages, list) else ()):
        content = message.get("content") if isinstance(message, dict) else None
        for at, block in enumerate(content if isinstance(content, list) else ()):
            if isinstance(block, dict) and block.get("type") == "binary":
                yield f"messages[{place}].content[{at}]", block


def _with_stand_ins(value: Json) -> Json:
    """The input with what its binary blocks lack, so that the form of all the rest can be asked first."""
    if not any(_is_incomplete(block) for _, block in _binaries(value)):
        return value
    whole = cast("dict[str, list[dict[str, Json]]]", value)
    return {**whole, "messages": [_message_with_stand_ins(message) for message in whole["messages"]]}


def _is_incomplete(block: Mapping[str, Json]) -> bool:
    return _mime(block) is None or block.get("url") is None


def _message_with_stand_ins(message: Json) -> Json:
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(message, dict) or not isinstance(content, list):
        return message
    return {**message, "content": [_block_with_stand_ins(block) for block in content]}


def _block_with_stand_ins(block: Json) -> Json:
    if not isinstance(block, dict) or block.get("type") != "binary":
        return block
    mime, url = _mime(block), block.get("url")
    filled = {"mimeType": STAND_IN_TYPE if mime is None else mime, "url": STAND_IN_URL if url is None else url}
    return {**block, **filled}
