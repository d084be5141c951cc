"""Recto: builds the page for each model call from an append-only log, with a manifest that explains every part.

These are the names of the library. Each is loaded on first use, because every module of the package imports this file.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recto.conversation.log import view
    from recto.conversation.messages import (
        AssistantMessage,
        File,
        SystemMessage,
        Text,
        ToolCall,
        ToolMessage,
        ToolOffer,
        UserMessage,
    )
    from recto.conversation.ui.compile_ui import compile_ui
    from recto.errors import RectoError, ToolError
    from recto.files.documents.read_document import ReadDocument, read_document
    from recto.page.assemble import assemble
    from recto.page.body import Page
    from recto.page.facts import Facts
    from recto.page.fold.fold import fold
    from recto.page.fold.fold_settings import FoldSettings
    from recto.page.manifest import Manifest
    from recto.page.steps.repair import repair
    from recto.page.wire.base import Target
    from recto.page.wire.formats import decode, encode
    from recto.tools.mark import tool
    from recto.tools.ports import Progress, ToolContext, ToolResult

_HOMES = {
    "conversation.log": ("view",),
    "conversation.messages": (
        *("AssistantMessage", "File", "SystemMessage", "Text", "ToolCall", "ToolMessage", "ToolOffer", "UserMessage"),
    ),
    "conversation.ui.compile_ui": ("compile_ui",),
    "errors": ("RectoError", "ToolError"),
    "files.documents.read_document": ("ReadDocument", "read_document"),
    "page.assemble": ("assemble",),
    "page.body": ("Page",),
    "page.facts": ("Facts",),
    "page.fold.fold": ("fold",),
    "page.fold.fold_settings": ("FoldSettings",),
    "page.manifest": ("Manifest",),
    "page.steps.repair": ("repair",),
    "page.wire.base": ("Target",),
    "page.wire.formats": ("decode", "encode"),
    "tools.mark": ("tool",),
    "tools.ports": ("Progress", "ToolContext", "ToolResult"),
}

__all__ = [
    "AssistantMessage",
    "Facts",
    "File",
    "FoldSettings",
    "Manifest",
    "Page",
    "Progress",
    "ReadDocument",
    "RectoError",
    "SystemMessage",
    "Target",
    "Text",
    "ToolCall",
    "ToolContext",
    "ToolError",
    "ToolMessage",
    "ToolOffer",
    "ToolResult",
    "UserMessage",
    "assemble",
    "compile_ui",
    "decode",
    "encode",
    "fold",
    "read_document",
    "repair",
    "tool",
    "view",
]


def __getattr__(name: str) -> object:
    """One of the library's names, from the module that has it."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"recto.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
