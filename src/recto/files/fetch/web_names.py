"""Names of files from the web, by their header or URL, with an extension that fits their type (F12)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import parse_qs, unquote, urlsplit

from recto.conversation.file_formats import ending_for, ending_of, format_by_ending
from recto.files.file_names import safe_name

# Extension of server scripts. In a URL it seldom belongs to the file itself.
_PROGRAM = "php"
_PLAIN = ("", ".txt")
_FIELD = re.compile(r';\s*+(?P<name>[^=;\s]++)\s*+=\s*+(?P<value>"(?:[^"\\]|\\.)*+"|[^;]*+)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def web_name(disposition: str | None, urls: Sequence[str], mime_type: str | None) -> str:
    """Return the name in `Content-Disposition`, else the best name in a URL."""
    header_name = _declared_name(disposition) if disposition else ""
    url_names = list[str]()
    for split in map(urlsplit, urls):
        last = split.path.rpartition("/")[2]
        url_names += filter(None, (*parse_qs(split.query).get("filename", ()), unquote(last)))
    typed_names = [name for name in url_names if format_by_ending(ending_of(name))]
    return with_ending(header_name or next(iter([*typed_names, *url_names]), ""), mime_type)


def with_ending(name: str, mime_type: str | None) -> str:
    """Return a safe name. Add the extension of the type if the name has no known one."""
    base, ending, usual = safe_name(name), ending_of(name), ending_for(mime_type)
    is_known = format_by_ending(ending) and (ending != _PROGRAM or usual in _PLAIN)
    return base if is_known else safe_name(f"{base}{usual}")


def _declared_name(disposition: str) -> str:
    """Return the filename in a header, preferably the one with an encoding (RFC 6266)."""
    fields = {each["name"].lower(): each["value"].strip() for each in _FIELD.finditer(disposition)}
    if encoded := fields.get("filename*"):
        charset, _, rest = encoded.partition("'")
        encoding = "iso-8859-1" if charset.lower() == "iso-8859-1" else "utf-8"
        return unquote(rest.partition("'")[2], encoding=encoding)
    plain = fields.get("filename", "")
    return unquote(_ESCAPED.sub(r"\1", plain[1:-1]) if plain.startswith('"') else plain)
