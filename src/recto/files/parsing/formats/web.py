"""HTML pages: text with headings, lists, tables, links and form values. Scripts do not run, and nothing is fetched."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from html import escape, unescape

from recto.conversation.document import Element
from recto.files.parsing.formats.markdown import parse_markdown
from recto.files.parsing.formats.xberg_document import extract, unpaged_frames
from recto.files.parsing.ports import Frame

# Deepest element. The tags of deeper elements are removed, but not their text: the HTML parser fails at great depth.
DEEPEST = 150
_CHARSET = re.compile(r"<meta\b[^<>]*charset[^<>]*>", re.IGNORECASE)
# Possessive quantifiers, so that matching takes linear time on every page.
_TOKEN = re.compile(
    r"""<!--.*?(?:-->|\Z)
    |<(?P<raw>script|style|title|noscript|textarea)\b[^<>]*+>(?P<within>.*?)(?:</(?P=raw)\s*>|\Z)
    |<(?P<field>input|option)\b(?P<attributes>(?:[^<>"']++|"[^"]{0,9999}+"|'[^']{0,9999}+'){0,99}+)>
    |<(?P<end>/?)(?P<name>[a-z][\w:-]*+)[^<>]*+>""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_ATTRIBUTE = re.compile(r"""([\w:-]++)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'>]++)))?""")
_TAG = re.compile(r"<!--.*?(?:-->|\Z)|<(script|style)\b[^<>]*+>.*?(?:</\1\s*>|\Z)|<[a-z/!?][^<>]*+>", re.I | re.S)
_VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "link", "meta", "param", "source", "track", "wbr")
)
_INLINE = frozenset(
    (
        *("a", "abbr", "b", "big", "cite", "code", "del", "em", "font", "i", "ins", "kbd"),
        *("mark", "q", "s", "small", "span", "strong", "sub", "sup", "tt", "u", "var"),
    )
)
# Open elements that a new element closes.
_CELL, _ROW = frozenset({"td", "th"}), frozenset({"td", "th", "tr"})
_TERM, _ITEM, _PARAGRAPH = frozenset({"dt", "dd"}), frozenset({"li"}), frozenset({"p"})
_ENDS = {"td": _CELL, "th": _CELL, "tr": _ROW, "tbody": _ROW, "dt": _TERM, "dd": _TERM, "li": _ITEM}
# Types of form fields whose value is not for readers.
_UNSAID = frozenset({"hidden", "password", "image", "file", "reset"})
_TICKED = frozenset({"checkbox", "radio"})


def parse_html(text: str) -> Iterator[Frame]:
    """Yield the frames of an HTML page. Raise UnreadableDocument."""
    return unpaged_frames(parse_page(text))


def parse_page(text: str) -> Iterator[Element]:
    """Yield the elements of an HTML page. Raise UnreadableDocument."""
    # Remove the declared encoding, because the page is encoded as UTF-8 below.
    page = _TOKEN.sub(_Tags().rewrite, _CHARSET.sub("", text))
    markdown = extract(page.encode("utf-8", "replace"), "html", "markdown").content
    if markdown.strip():
        return parse_markdown(markdown)
    lines = (" ".join(unescape(line).split()) for line in _TAG.sub("\n", page).split("\n"))
    return (Element(kind="paragraph", text=line) for line in lines if line)


class _Tags:
    """A rewriter of the tags of a page, which tracks the open elements."""

    def __init__(self) -> None:
        self._open: list[str] = []
        self._counts: Counter[str] = Counter()

    def rewrite(self, token: re.Match[str]) -> str:
        """Return the replacement of a tag, a comment or a form field."""
        if token["raw"]:
            lines = "<br>".join(token["within"].strip().splitlines())
            return f"<br>{lines}<br>" if token["raw"].lower() == "textarea" else ""
        if token["field"]:
            return _field(token["field"].lower(), token["attributes"])
        if not token["name"] or (name := token["name"].lower()) in _VOID:
            return token[0]
        tag, closing = token[0], ""
        if token["end"]:
            if not self._counts[name]:
                return tag
            while self._open[-1] != name:
                self._close()
            # Break the line, so that later text does not join the last option.
            return tag + "<br>" * (name == "select") if self._close() else _space(name)
        ends = _ENDS.get(name, frozenset[str]()) | (_PARAGRAPH if name not in _INLINE else frozenset[str]())
        while self._open and self._open[-1] in ends:
            closing += self._close()
        self._open.append(name)
        self._counts[name] += 1
        return closing + (tag if len(self._open) <= DEEPEST else _space(name))

    def _close(self) -> str:
        """Close the innermost element. Return nothing if its start tag was removed."""
        is_written = len(self._open) <= DEEPEST
        name = self._open.pop()
        self._counts[name] -= 1
        return f"</{name}>" if is_written else ""


def _space(name: str) -> str:
    return "" if name in _INLINE else "<br>"


def _field(name: str, attributes_text: str) -> str:
    """Return the value or the choice of a form field as text."""
    attributes = {
        match[1].lower(): unescape(match[2] or match[3] or match[4] or "")
        for match in _ATTRIBUTE.finditer(attributes_text)
    }
    if name == "option":
        return "<br>[x] " if "selected" in attributes else "<br>[ ] "
    kind = attributes.get("type", "text").lower()
    if kind in _UNSAID:
        return ""
    if kind in _TICKED:
        return " [x] " if "checked" in attributes else " [ ] "
    return f" {escape(attributes.get('value', ''))} "
