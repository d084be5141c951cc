"""What a page asks of a wire format: how it is written, what has a place in it, what its provider demands.

A format is one value of `Wire`: the steps and the body ask it, and none of them knows a format by its name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from recto.conversation.json import Json
from recto.conversation.messages import AssistantPart, File, Message, Opaque

# One of those in `WIRES`.
WireName: TypeAlias = str


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where a page goes: the format it speaks, the model it is for, and whether that model sees pictures."""

    wire: WireName = "openai"
    model: str = ""
    sees_images: bool = True


class Slot(NamedTuple):
    """Where a thing stands in a body, by the punctuation around it.

    What stands there is a list in a field, which the first of it opens and the last closes; where the format groups by
    role, neighbours of one role are a turn in that list. `end` is what each leaves to the punctuation behind it.
    """

    opens: bytes
    closes: bytes
    opens_turn: bytes = b""
    closes_turn: bytes = b""
    end: bytes = b""


class Decode(Protocol):
    """Messages from parsed JSON. Provider state in it is `model`'s, or anybody's of that provider."""

    def __call__(self, body: Json, /, *, model: str | None = None) -> tuple[Message, ...]: ...


@dataclass(frozen=True, kw_only=True, eq=False)
class Wire:
    """A format, and what its provider takes.

    It has the name of its provider; `also_spoken_by` names others. A body begins with the model, where that is
    `model_in_body`, and options; `own_fields` are none of them. Then come tools and messages, in order: `slots` says
    where messages of each kind stand. `breakpoint` is the mark of a place to cache up to, empty where there is none:
    it goes before the `end` of what stands there.

    A file or provider state is carried in a message of a role; the role `error` is that of a failed tool, where
    `errors_are_words` sets that apart. `begins_with_user` is said of providers that want instructions before all else
    and a user's message first behind them, `thoughts_lead` of those that refuse a thought behind which nothing stands.
    `results_name_tools`: a result says the name of the tool it is of. `sign_calls` gives the parts of an assistant's
    message what the model (by its name) wants of calls it did not make.
    """

    name: WireName
    also_spoken_by: tuple[str, ...] = ()
    own_fields: frozenset[str]
    model_in_body: bool
    tools: Slot
    slots: Mapping[type[Message], Slot]
    breakpoint: bytes
    decode: Decode
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
    results_name_tools: bool = False
    sign_calls: Callable[[Sequence[AssistantPart], str], tuple[AssistantPart, ...]] | None = None
    thoughts_lead: bool = False
