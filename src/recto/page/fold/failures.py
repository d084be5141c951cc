"""Failed results (R3, R8), which are neither counted nor folded."""

from __future__ import annotations

from recto.conversation.json import Json, leading_object
from recto.conversation.messages import Text, ToolMessage

ERROR_PREFIX = "Error:"
EXIT_CODE_NAMES = ("exitCode", "exit_code", "exitcode", "returncode")


def is_failure(message: ToolMessage) -> bool:
    """Return True for an error result (R3): its status is an error, or its text begins with `Error:`.

    A part of a batch read reports only on its own file (R5).
    """
    if message.error is not None:
        return True
    first = next((part for part in message.parts if isinstance(part, Text) and part.text.strip()), None)
    return first is not None and not first.path and is_error_text(first.text)


def is_error_text(text: str) -> bool:
    """Return True if a text reports an error (R3)."""
    return text.lstrip().startswith(ERROR_PREFIX)


def is_failed_command(message: ToolMessage) -> bool:
    """Return True if a command failed (R8): an error result, text on stderr, or a nonzero exit code."""
    if is_failure(message):
        return True
    text = "".join(part.text for part in message.parts if isinstance(part, Text)).strip()
    report = leading_object(text)
    if report is None:
        return False
    inner = report.get("metadata")
    return any(_reports_failure(level) for level in (report, inner) if isinstance(level, dict))


def _reports_failure(report: dict[str, Json]) -> bool:
    stderr = report.get("stderr")
    if isinstance(stderr, str) and stderr:
        return True
    codes = [report.get(name) for name in EXIT_CODE_NAMES]
    return any(code not in (None, 0, "0", "") for code in codes)
