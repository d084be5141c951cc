"""Whether bytes are text, in whatever encoding, and whether that is an SVG image. Refuses to say which encoding."""

from __future__ import annotations

import codecs
import re
import unicodedata

from recto.files.parsing.decode import MARKS, chinese_utf16

_WIDE = ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be")
# Controls that texts have: blanks, escapes of terminals and of Japanese encodings, the end mark of old systems.
_CONTROLS = re.compile(rb"[\x01-\x07\x10-\x19\x1c-\x1f\x7f]")
_MOST_CONTROLS = 0.01
_NO_TEXT = frozenset({"Cc", "Cn", "Co", "Cs"})
_SVG = re.compile(r"<(?:svg:)?svg[\s>/]")


def is_text(head: bytes) -> bool:
    """Whether the first bytes of a file are text: UTF-8, UTF-16 or 32 by mark or evidently, or an older encoding."""
    for mark, encoding in MARKS:
        if head.startswith(mark):
            return _decoded(head, encoding) is not None
    if any(chinese_utf16(head)):
        return True
    if b"\0" in head:
        return any(_is_evidently(head, encoding) for encoding in _WIDE)
    return _decoded(head, "utf-8") is not None or len(_CONTROLS.findall(head)) <= len(head) * _MOST_CONTROLS


def is_svg(head: bytes) -> bool:
    """Whether a text begins, after declarations and comments, with an `svg` element."""
    encoding = next((encoding for mark, encoding in MARKS if head.startswith(mark)), "utf-8")
    text = (_decoded(head, encoding) or "").removeprefix("\ufeff").lstrip()
    for opening, closing in (("<?", "?>"), ("<!--", "-->"), ("<!DOCTYPE", ">"), ("<!--", "-->")):
        while text.startswith(opening):
            text = text.partition(closing)[2].lstrip(" \t\r\n]>" if opening == "<!DOCTYPE" else None)
    return _SVG.match(text) is not None


def _decoded(head: bytes, encoding: str) -> str | None:
    """The text; a character that is cut off at the end does no harm."""
    try:
        return codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeDecodeError:
        return None


def _is_evidently(head: bytes, encoding: str) -> bool:
    """Whether bytes with zeros in them are wide characters: all are letters and the like, and there is plain text.

    Read the wrong way round, plain characters become letters whose number ends in two zeros; those are rarer in texts.
    """
    text = _decoded(head, encoding) or ""
    if len(head) % 2 or not all(one.isspace() or unicodedata.category(one) not in _NO_TEXT for one in text):
        return False
    return 0 < sum(map(str.isascii, text)) >= sum(ord(one) & 0xFF == 0 for one in text)
