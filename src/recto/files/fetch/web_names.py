"""The name of a file from the web: what its server calls it, or its url, with an ending that fits its type (F12)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from urllib.parse import parse_qs, unquote, urlsplit

from recto.conversation.file_formats import ending_for, ending_of, format_by_ending
from recto.files.file_names import safe_name

# The program that gives a file out, and seldom the file.
_PROGRAM = "php"
_PLAIN = ("", ".txt")
_FIELD = re.compile(r';\s*+(?P<name>[^=;\s]++)\s*+=\s*+(?P<value>"(?:[^"\\]|\\.)*+"|[^;]*+)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def web_name(disposition: str | None, urls: Sequence[str], mime_type: str | None) -> str:
    """What a file is called: by its `Content-Disposition`, else by the first of its urls that names it well."""
    header_name = _declared_name(disposition) if disposition else ""
    url_names = [name for url in urls for name in _names_in(url)]
    typed_names = [name for name in url_names if format_by_ending(ending_of(name))]
    return with_ending(header_name or next(iter([*typed_names, *url_names]), ""), mime_type)


def with_ending(name: str, mime_type: str | None) -> str:
    """A name that can be kept. One that says nothing of what the file is gets the ending of its type."""
    base, ending, usual = safe_name(name), ending_of(name), ending_for(mime_type)
    is_known = format_by_ending(ending) and (ending != _PROGRAM or usual in _PLAIN)
    return base if is_known else safe_name(f"{base}{usual}")


def _declared_name(disposition: str) -> str:
    """The filename in a header; one with its encoding named comes before one without (RFC 6266)."""
    fields = {each["name"].lower(): each["value"].strip() for each in _FIELD.finditer(disposition)}
    if encoded := fields.get("filename*"):
        charset, _, rest = encoded.partition("'")
        encoding = "iso-8859-1" if charset.lower() == "iso-8859-1" else "utf-8"
        return unquote(rest.partition("'")[2], encoding=encoding)
    plain = fields.get("filename", "")
    return unquote(_ESCAPED.sub(r"\1", plain[1:-1]) if plain.startswith('"') else plain)


def _names_in(url: str) -> Iterator[str]:
    """Names a url gives: `?filename=`, then the end of its path."""
    split = urlsplit(url)
    yield from filter(None, parse_qs(split.query).get("filename", ()))
    if last := split.path.rpartition("/")[2]:
        yield unquote(last)
