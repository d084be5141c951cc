"""Rules for the input of a run (P2). Each rule is checked on the whole input before the next one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import TypeAlias

from recto.conversation.input.run_input import RunInput, decode_input, read_notes, read_options
from recto.conversation.json import Json
from recto.conversation.message_files import change_content
from recto.conversation.messages import Text, UserMessage
from recto.errors import InvalidRequest

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
# Placeholders for missing fields of a binary block, so that the block rules report these fields after all other
# problems.
STAND_IN_TYPE, STAND_IN_URL = "image/png", "https://stand.in/"
_Block: TypeAlias = tuple[str, Mapping[str, Json]]


def check_input(value: Json, *, has_notes: bool = False) -> RunInput:
    """Return the input of a run. Raise InvalidRequest for the first broken rule. Signed URLs are checked elsewhere.

    Options are checked last. With `has_notes`, `value` has the notes of a stored input (P15).
    """
    # Add missing fields to binary blocks, so that the form of everything else is checked first
    run_input = decode_input(change_content(value, _fill_block))
    run_input = read_notes(run_input, value) if has_notes else run_input
    for problem, where in chain(_input_problems(run_input), _block_problems(value)):
        raise InvalidRequest(problem, where=where)
    return read_options(run_input)


def _input_problems(run_input: RunInput) -> Iterator[tuple[str, str]]:
    """Yield problems of the input as a whole, in the order of the rules."""
    users = [message for message in run_input.messages if isinstance(message, UserMessage)]
    if not UUID.fullmatch(run_input.thread):
        yield NO_UUID, "threadId"
    if not 0 < len(run_input.run) <= MAX_RUN_ID:
        yield LONG_RUN_ID, "runId"
    if len(run_input.messages) > MAX_MESSAGES and not run_input.listed_ids:
        yield MANY_MESSAGES, "messages"
    if any(sum(len(part.text) for part in user.parts if isinstance(part, Text)) > MAX_WORDS for user in users):
        yield LONG_WORDS, "messages"
    # Answers to interrupts continue the current turn, and a compaction has no user message.
    if run_input.listed_ids or run_input.compact or (run_input.resume and not run_input.messages):
        return
    if len(users) != 1:
        yield NOT_ONE_USER, "messages"
    if run_input.messages[0].role != "user":
        yield NOT_USER_FIRST, "messages[0].role"


def _block_problems(value: Json) -> Iterator[tuple[str, str]]:
    """Yield problems of the binary blocks as the client sent them, in the order of the rules."""
    blocks, messages = list[_Block](), value.get("messages") if isinstance(value, dict) else None
    for place, message in enumerate(messages if isinstance(messages, list) else ()):
        content = message.get("content") if isinstance(message, dict) else None
        for at, block in enumerate(content if isinstance(content, list) else ()):
            if isinstance(block, dict) and block.get("type") == "binary":
                blocks.append((f"messages[{place}].content[{at}]", block))
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


def _fill_block(block: Json) -> Json:
    if not isinstance(block, dict) or block.get("type") != "binary":
        return block
    mime, url = _mime(block), block.get("url")
    if mime is not None and url is not None:
        return block
    return {**block, "mimeType": STAND_IN_TYPE if mime is None else mime, "url": STAND_IN_URL if url is None else url}
