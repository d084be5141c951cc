"""What a tool call was about and how its result went: paths of reads, failures of commands. Never by looks (R6)."""

from __future__ import annotations

from collections.abc import Iterator

from recto.page.canonical import Json, load_object
from recto.page.messages import Text, ToolCall, ToolMessage
from recto.page.paths import Project, normalise

ERROR_PREFIX = "Error:"
EXIT_CODE_NAMES = ("exitCode", "exit_code", "exitcode", "returncode")


def read_paths(call: ToolCall, names: tuple[str, ...], project: Project) -> tuple[str, ...]:
    """The files a read call names, each once, in order; none when its arguments do not say (R4-R6)."""
    arguments = load_object(call.arguments)
    if arguments is None:
        return ()
    for name in names:
        given = [path for path in _strings(arguments.get(name)) if path.strip()]
        if given:
            return tuple(dict.fromkeys(normalise(path, project) for path in given))
    return ()


def _strings(value: Json) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for item in value:
                if not isinstance(item, list):
                    yield from _strings(item)
        case {"path": str(path)}:
            yield path
        case _:
            return


def is_failure(message: ToolMessage) -> bool:
    """An error result (R3): its status says so, or its text begins with `Error:`.

    A part of a batch read speaks only for its own file (R5).
    """
    if message.error is not None:
        return True
    first = next((part for part in message.parts if isinstance(part, Text) and part.text.strip()), None)
    return first is not None and not first.path and is_error_text(first.text)


def is_error_text(text: str) -> bool:
    """A text that reports an error (R3)."""
    return text.lstrip().startswith(ERROR_PREFIX)


def is_failed_command(message: ToolMessage) -> bool:
    """A command that failed (R8): an error result, something on stderr, or an exit code other than 0."""
    if is_failure(message):
        return True
    text = "".join(part.text for part in message.parts if isinstance(part, Text)).strip()
    report = load_object(text) if text.startswith("{") else None
    if report is None:
        return False
    inner = report.get("metadata")
    return any(_tells_failure(level) for level in (report, inner) if isinstance(level, dict))


def _tells_failure(report: dict[str, Json]) -> bool:
    stderr = report.get("stderr")
    if isinstance(stderr, str) and stderr:
        return True
    codes = [report.get(name) for name in EXIT_CODE_NAMES]
    return any(code not in (None, 0, "0", "") for code in codes)
