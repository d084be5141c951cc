"""Why a document cannot be read, in words that end with what to do. Nothing is read here."""

from __future__ import annotations

from recto.conversation.file_formats import FORMATS
from recto.files.parsing.ports import Failed

_READ = [row.ending for row in FORMATS if row.parser not in (None, "text")]

ENCRYPTED = Failed(
    code="encrypted",
    reason="it is protected by a password, and so cannot be read. Ask the user for a copy without one.",
)
DAMAGED = Failed(
    code="damaged",
    reason="it is damaged, or is not what its name says. Ask the user to open it, save it anew and send that.",
)
NOT_TEXT = Failed(
    code="not_text",
    reason=(
        f"it has no text that can be read. What can be: {', '.join(_READ)}, and texts of every kind. "
        "Ask the user for one of these."
    ),
)


class UnreadableDocument(Exception):
    """A document that cannot be read, or not on from here."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed.reason)
        self.failed = failed
