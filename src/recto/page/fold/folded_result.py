"""Placeholders of folded results, and labels of results in receipts."""

from __future__ import annotations

from typing import NamedTuple

from recto.conversation.memo import remember
from recto.conversation.messages import Text, ToolMessage
from recto.page.fold.fold_settings import FoldKey
from recto.page.text.tokens import tokens_of


class Shown(NamedTuple):
    """A replaced result, and the tokens before and after."""

    message: ToolMessage
    tokens: tuple[int, int]


def with_placeholder(message: ToolMessage, placeholder: str, key: FoldKey) -> Shown:
    """Return a result with its content replaced by a placeholder."""
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
    """Return the id of a result, or the id of its call."""
    return message.id or message.tool_call_id
