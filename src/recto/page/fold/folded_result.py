"""What stands in a page for a result that was folded, and what results are called in receipts."""

from __future__ import annotations

from typing import NamedTuple

from recto.conversation.memo import remember
from recto.conversation.messages import Text, ToolMessage
from recto.page.fold.fold_settings import FoldKey
from recto.page.text.tokens import tokens_of


class Shown(NamedTuple):
    """What stands for a result, and the tokens of both."""

    message: ToolMessage
    tokens: tuple[int, int]


def with_placeholder(message: ToolMessage, placeholder: str, key: FoldKey) -> Shown:
    """A result with a line in the place of what it says."""
    return remember(message, _with_placeholder, placeholder, key)


def _with_placeholder(message: ToolMessage, placeholder: str, key: FoldKey) -> Shown:
    shown = ToolMessage(
        id=message.id,
        seq=message.seq,
        time=message.time,
        tool_call_id=message.tool_call_id,
        tool_name=message.tool_name,
        parts=(Text(text=placeholder),),
        error=message.error,
        encrypted_value=message.encrypted_value,
    )
    return Shown(shown, (tokens_of(message, key.counter), tokens_of(shown, key.counter)))


def label(message: ToolMessage) -> str:
    """What a result is called in receipts: its id, or that of its call."""
    return message.id or message.tool_call_id
