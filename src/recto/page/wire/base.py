"""What a page asks of a wire format: how it is written, what has a place in it, what its provider demands.

A format is one value of `Wire`: the steps and the body ask it, and none of them knows a format by its name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from recto.conversation.messages import File, Message, Opaque

WireName: TypeAlias = Literal["openai", "anthropic"]


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where a page goes: the format it speaks, the model it is for, and whether that model sees pictures."""

    wire: WireName = "openai"
    model: str = ""
    sees_images: bool = True


class Slot(NamedTuple):
    """Where a thing stands in a body: the field, and the turn's role where the format groups by role.

    `is_open` says that what stands there leaves its last brace to the punctuation behind it.
    """

    field: str
    role: str | None = None
    is_open: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Wire:
    """A format, and what its provider takes.

    `slots` says where messages of each kind stand. A file or provider state is carried in a message of a role; the role
    `error` is that of a failed tool, where `errors_are_words` sets that apart. `begins_with_user` is said of providers
    that want instructions before all else and a user's message first behind them.
    """

    name: WireName
    tools: Slot
    slots: Mapping[type[Message], Slot]
    encode: Callable[[Message], bytes]
    encode_tool: Callable[[str, str, str], bytes]
    carries_file: Callable[[File, str], bool]
    carries_state: Callable[[Opaque, str], bool]
    call_id: re.Pattern[str]
    longest_call_id: int
    call_ids_are_unique: bool
    calls_come_last: bool
    calls_carry_state: bool
    takes_any_arguments: bool
    takes_names: bool
    takes_empty_text: bool
    takes_blank_end: bool
    errors_are_words: bool
    begins_with_user: bool
    has_breakpoints: bool
