"""Docstring parser: splits Google, NumPy and Sphinx docstrings into summary and parameter descriptions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

GOOGLE = re.compile(r"(?P<indent> *)(?:(?:Keyword |Other )?(?:Args|Arguments|Parameters)|Params):\s*")
NUMPY = re.compile(r"(?:Other )?Parameters\s*")
UNDERLINE = re.compile(r"-{3,}\s*")
SPHINX = re.compile(r":(?:param|parameter|arg|argument|key|keyword|type)\s[^:]*:")
# Type hints give the types.
TYPE = re.compile(r":type\s[^:]*:")
# A parameter name in NumPy style, with its type. A sentence has more than one word.
NUMPY_NAME = re.compile(r"\*{0,2}\w+(?:, ?\*{0,2}\w+)*(?:\s*:.*)?")
# A continuation line: neither indented nor a list item.
GOES_ON = re.compile(r"[^\s\-*\d:]")


def read_docstring(text: str) -> tuple[str, Mapping[str, str]]:
    """Return the description without its parameter sections, and the description of each parameter."""
    if "\n" not in text:
        return text.strip(), {}
    lines, rest, at = _restore_indent(text.splitlines()), list[str](), 0
    texts: dict[str, str] = {}
    while at < len(lines):
        block, end = _find_section(lines, at)
        parameters = _parse_parameters(block) if block else {}
        texts |= parameters
        # A removed section leaves a break: the text around it is not one sentence.
        rest += [""] if parameters or TYPE.match(lines[at]) else lines[at:end]
        at = end
    return _join_lines(rest), texts


def _restore_indent(lines: list[str]) -> list[str]:
    """Indent the lines below a heading again if nothing but the opening quotes preceded it."""
    is_lost = GOOGLE.fullmatch(lines[0]) and lines[1][:1].strip()
    return [lines[0], *[f"    {line}" if line else "" for line in lines[1:]]] if is_lost else lines


def _find_section(lines: Sequence[str], at: int) -> tuple[str, int]:
    """Return the parameter section that starts at this line, as text for the parser, and the line after it."""
    if heading := GOOGLE.fullmatch(lines[at]):
        indent = len(heading["indent"])
        end = _find_end(lines, at + 1, lambda line, _: len(line) - len(line.lstrip()) > indent)
        return "\n".join(["Of it.", "", "Args:", *lines[at + 1 : end]]), end
    if NUMPY.fullmatch(lines[at]) and UNDERLINE.fullmatch("".join(lines[at + 1 : at + 2])):
        end = _find_end(lines, at + 2, lambda line, after: line[0].isspace() or not after or _is_name(line))
        # The heading of the next section looks like a name.
        end = next((place - 1 for place in range(at + 3, end) if UNDERLINE.fullmatch(lines[place])), end)
        return "\n".join(["Of it.", "", "Parameters", "----------", *lines[at + 2 : end]]), end
    if SPHINX.match(lines[at]):
        end = _find_end(lines, at + 1, lambda line, after: line[0].isspace() or (not after and line[0] != ":"))
        return "\n".join(["Of it.", "", *lines[at:end]]), end
    return "", at + 1


def _find_end(lines: Sequence[str], start: int, belongs: Callable[[str, bool], bool]) -> int:
    """Return the end of a section. `belongs` receives a non-blank line and whether a blank line precedes it."""
    end = start
    for place in range(start, len(lines)):
        if not lines[place].strip():
            continue
        if not belongs(lines[place], place > end):
            break
        end = place + 1
    return end


def _is_name(line: str) -> bool:
    return NUMPY_NAME.fullmatch(line.rstrip()) is not None


def _parse_parameters(block: str) -> dict[str, str]:
    from docstring_parser import ParseError, parse  # here: few docstrings need a parser

    try:
        parameters = parse(block).params
    except ParseError:
        return {}
    return {
        name.strip(" *"): " ".join((one.description or "").split())
        for one in parameters
        for name in one.arg_name.split(",")
    }


def _join_lines(lines: Sequence[str]) -> str:
    """Join lines that were only wrapped."""
    joined: list[str] = []
    for line in lines:
        before = joined[-1] if joined else ""
        goes_on = before[:1].strip() and not UNDERLINE.fullmatch(before) and GOES_ON.match(line)
        if goes_on:
            joined[-1] = f"{before.rstrip()} {line}"
        else:
            joined.append(line)
    return re.sub(r"\n\s*\n(?=\s*\n)", "\n", "\n".join(joined)).strip()
