"""Markdown files with settings between two lines of `---`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from recto.config.problem import Fault
from recto.config.yaml_values import Values, read_yaml

LONGEST = 262_144
LONGEST_SETTINGS = 65_536
FENCE = re.compile(r"^---[ \t]*$", re.MULTILINE)
BOM = "\ufeff"


@dataclass(frozen=True, kw_only=True)
class MarkdownFile:
    """Settings, body, and the line where the settings end."""

    settings: Values = Values()
    body: str = ""
    end_line: int = 1


def read_document(raw: bytes) -> MarkdownFile:
    """Return the settings and the body. All faults are in the settings."""
    if len(raw) > LONGEST:
        return _broken(1, f"it has more than {LONGEST} bytes. Shorten it.")
    try:
        text = plain_text(raw)
    except UnicodeDecodeError as error:
        line = len(re.findall(rb"\r\n|\r|\n", raw[: error.start])) + 1
        return _broken(line, f"byte {error.start} is no UTF-8 ({error.reason}). Save the file as UTF-8.")
    opening = FENCE.match(text)
    if opening is None:
        return MarkdownFile(body=text.strip())
    closing = FENCE.search(text, opening.end())
    if closing is None:
        return _broken(1, "`---` begins settings that never end. Close them with a line of `---`.")
    return _closed(text[opening.end() + 1 : closing.start()], text[closing.end() :])


def plain_text(raw: bytes) -> str:
    """Return the text without byte order mark, with `\\n` line ends. Raises UnicodeDecodeError if it is not UTF-8."""
    return raw.decode("utf-8").removeprefix(BOM).replace("\r\n", "\n").replace("\r", "\n")


def _closed(settings: str, body: str) -> MarkdownFile:
    read = MarkdownFile(body=body.strip(), end_line=2 + settings.count("\n"))
    if len(settings) > LONGEST_SETTINGS:
        fault = f"the settings have {len(settings)} characters, {LONGEST_SETTINGS} are allowed. Shorten them."
        return replace(read, settings=Values(faults=(Fault(line=1, text=fault),)))
    return replace(read, settings=read_yaml(settings, first_line=2))


def _broken(line: int, text: str) -> MarkdownFile:
    return MarkdownFile(settings=Values(faults=(Fault(line=line, text=text),)))
