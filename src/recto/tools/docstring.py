"""What a docstring says of parameters, as Google, NumPy or Sphinx have it, and the rest, of which nothing is lost."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

GOOGLE = re.compile(r"(?P<indent> *)(?:(?:Keyword |Other )?(?:Args|Arguments|Parameters)|Params):\s*")
NUMPY = re.compile(r"(?:Other )?Parameters\s*")
UNDERLINE = re.compile(r"-{3,}\s*")
SPHINX = re.compile(r":(?:param|parameter|arg|argument|key|keyword|type)\s[^:]*:")
# Types of parameters are known by their hints.
TYPE = re.compile(r":type\s[^:]*:")
# What a parameter may be called in NumPy's style, with its type; a sentence has more words than one.
NUMPY_NAME = re.compile(r"\*{0,2}\w+(?:, ?\*{0,2}\w+)*(?:\s*:.*)?")
# A line that goes on with the one before: neither indented nor an item of a list.
GOES_ON = re.compile(r"[^\s\-*\d:]")


def read_docstring(text: str) -> tuple[str, Mapping[str, str]]:
    """What a docstring says of the whole, and of each parameter. Only what describes parameters is taken out."""
    if "\n" not in text:
        return text.strip(), {}
    lines, kept, at = _indented(text.splitlines()), list[str](), 0
    texts: dict[str, str] = {}
    while at < len(lines):
        block, end = _block(lines, at)
        found = _parameters(block) if block else {}
        texts |= found
        # What is taken out leaves a break: what stood around it is not one sentence.
        kept += [""] if found or TYPE.match(lines[at]) else lines[at:end]
        at = end
    return _unwrapped(kept), texts


def _indented(lines: list[str]) -> list[str]:
    """The lines; below a heading that nothing but the docstring's own quotes stood before, they are indented again."""
    is_lost = GOOGLE.fullmatch(lines[0]) and lines[1][:1].strip()
    return [lines[0], *[f"    {line}" if line else "" for line in lines[1:]]] if is_lost else lines


def _block(lines: Sequence[str], at: int) -> tuple[str, int]:
    """The text that may describe parameters from this line on, for the parser; and where what follows begins."""
    if heading := GOOGLE.fullmatch(lines[at]):
        indent = len(heading["indent"])
        end = _end(lines, at + 1, lambda line, _: len(line) - len(line.lstrip()) > indent)
        return "\n".join(["Of it.", "", "Args:", *lines[at + 1 : end]]), end
    if NUMPY.fullmatch(lines[at]) and UNDERLINE.fullmatch("".join(lines[at + 1 : at + 2])):
        end = _end(lines, at + 2, lambda line, after: line[0].isspace() or not after or _is_name(line))
        # The heading of the next section looks like a name.
        end = next((place - 1 for place in range(at + 3, end) if UNDERLINE.fullmatch(lines[place])), end)
        return "\n".join(["Of it.", "", "Parameters", "----------", *lines[at + 2 : end]]), end
    if SPHINX.match(lines[at]):
        end = _end(lines, at + 1, lambda line, after: line[0].isspace() or (not after and line[0] != ":"))
        return "\n".join(["Of it.", "", *lines[at:end]]), end
    return "", at + 1


def _end(lines: Sequence[str], start: int, belongs: Callable[[str, bool], bool]) -> int:
    """Where the lines of a block end. `belongs` gets a line that is not blank, and whether a blank one is before it."""
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


def _parameters(block: str) -> dict[str, str]:
    from docstring_parser import ParseError, parse  # here: few docstrings need a parser

    try:
        found = parse(block).params
    except ParseError:
        return {}
    return {
        name.strip(" *"): " ".join((one.description or "").split()) for one in found for name in one.arg_name.split(",")
    }


def _unwrapped(lines: Sequence[str]) -> str:
    """Lines as a text, those that were only wrapped joined."""
    joined: list[str] = []
    for line in lines:
        before = joined[-1] if joined else ""
        goes_on = before[:1].strip() and not UNDERLINE.fullmatch(before) and GOES_ON.match(line)
        if goes_on:
            joined[-1] = f"{before.rstrip()} {line}"
        else:
            joined.append(line)
    return re.sub(r"\n\s*\n(?=\s*\n)", "\n", "\n".join(joined)).strip()
