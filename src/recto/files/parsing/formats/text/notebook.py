"""Notebooks of Jupyter: what their cells say, and what these printed. Nothing is run; pictures are left out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from recto.conversation.document import Element
from recto.conversation.json import Json, load_object
from recto.files.parsing.formats.text.markdown import blocks
from recto.files.parsing.formats.text.plain import pieces

# What a terminal is told by: colours and the like.
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_FENCE = re.compile(r"`{3,}")


def notebook(text: str) -> Iterator[Element]:
    """The cells in their order: texts as they are, code and its output in fences. What is no notebook is its text."""
    whole = load_object(text) or {}
    cells = whole.get("cells")
    if not isinstance(cells, list):
        yield from pieces([text])
        return
    language = _language(whole)
    for cell in cells:
        if isinstance(cell, dict):
            yield from _cell(cell, language)


def _language(whole: Mapping[str, Json]) -> str:
    """What its code is in, as a word behind a fence."""
    data = whole.get("metadata")
    info = data.get("language_info") if isinstance(data, dict) else None
    name = info.get("name") if isinstance(info, dict) else None
    return name if isinstance(name, str) and name.isalnum() else ""


def _cell(cell: Mapping[str, Json], language: str) -> Iterator[Element]:
    source = _text(cell.get("source"))
    if cell.get("cell_type") == "markdown":
        yield from blocks(source)
    elif cell.get("cell_type") != "code":
        yield from _fenced(source, "")
    else:
        yield from _fenced(source, language)
        outputs = cell.get("outputs")
        for output in outputs if isinstance(outputs, list) else []:
            if isinstance(output, dict):
                yield from _fenced(_printed(output), "output")


def _printed(output: Mapping[str, Json]) -> str:
    """The words of an output: printed, shown as text, or the trace of an error."""
    if "traceback" in output:
        return _ESCAPES.sub("", _text(output["traceback"], "\n"))
    data = output.get("data")
    return _ESCAPES.sub("", _text(data.get("text/plain") if isinstance(data, dict) else output.get("text")))


def _text(value: Json, between: str = "") -> str:
    """Text as notebooks have it: whole, or line by line."""
    if isinstance(value, str):
        return value
    return between.join(line for line in value if isinstance(line, str)) if isinstance(value, list) else ""


def _fenced(text: str, word: str) -> Iterator[Element]:
    if text.strip():
        longest = max(map(len, _FENCE.findall(text)), default=2)
        fence = "`" * (longest + 1)
        yield Element(kind="code", text=f"{fence}{word}\n{text.strip(chr(10))}\n{fence}")
