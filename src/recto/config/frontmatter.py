"""Files that people write: Markdown with settings between two lines of `---`, or YAML alone."""

from __future__ import annotations

import re
from dataclasses import dataclass

from recto.config.problem import Fault
from recto.config.yaml_values import Values, read_yaml

LONGEST = 262_144
LONGEST_SETTINGS = 65_536
FENCE = re.compile(r"^---[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class MarkdownFile:
    """Settings, body, and the number of the line that ends the settings."""

    settings: Values = Values()
    body: str = ""
    end_line: int = 1


def read_document(raw: bytes, *, strict: bool = True) -> MarkdownFile:
    """Return the settings and the body. The settings contain all faults.

    `strict` has the same meaning as in `read_yaml`.
    """
    text = _decode(raw)
    if isinstance(text, Fault):
        return MarkdownFile(settings=Values(faults=(text,)))
    opening = FENCE.match(text)
    if opening is None:
        return MarkdownFile(body=text.strip())
    closing = FENCE.search(text, opening.end())
    if closing is None:
        fault = Fault(line=1, text="`---` begins settings that never end. Close them with a line of `---`.")
        return MarkdownFile(settings=Values(faults=(fault,)))
    settings = text[opening.end() + 1 : closing.start()]
    if len(settings) > LONGEST_SETTINGS:
        message = f"the settings have {len(settings)} characters, {LONGEST_SETTINGS} are allowed. Shorten them."
        values = Values(faults=(Fault(line=1, text=message),))
    else:
        values = read_yaml(settings, first_line=2, strict=strict)
    return MarkdownFile(settings=values, body=text[closing.end() :].strip(), end_line=2 + settings.count("\n"))


def read_settings(raw: bytes) -> Values:
    """Return the values of a YAML file."""
    text = _decode(raw)
    return Values(faults=(text,)) if isinstance(text, Fault) else read_yaml(text, first_line=1)


def _decode(raw: bytes) -> str | Fault:
    """Return the text without a byte order mark and with `\\n` line ends."""
    if len(raw) > LONGEST:
        return Fault(line=1, text=f"it has more than {LONGEST} bytes. Shorten it.")
    try:
        return raw.decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = len(re.findall(rb"\r\n|\r|\n", raw[: error.start])) + 1
        return Fault(line=line, text=f"byte {error.start} is not UTF-8 ({error.reason}). Save the file as UTF-8.")
