"""File names: the stored form of a sender's name, and its form in a header."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import quote

NAME_CHARACTERS = 200
ENDING_CHARACTERS = 20
NAMELESS = "file"

# Emoji and other pictures, which may need the invisible characters after them.
_PICTURES = r"\u203c\u2049\u2100-\u27bf\u2900-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
# Invisible characters, and those that reverse the order of others: with them `gpj.exe` reads like `exe.jpg`.
_INVISIBLE = (
    r"\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    r"\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_UNSEEN_OR_PICTURE = re.compile(rf"([{_PICTURES}]\ufe0f?\u200d?)|[{_INVISIBLE}]")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_SURROGATES = re.compile(r"[\ud800-\udfff]")
# Windows opens a device for these names, with any extension.
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$) *(?:\..*)?", re.IGNORECASE)
# Characters that `filename*` in a header contains unencoded.
_AS_THEY_ARE = "!#$&+-.^_`|~"
_NOT_PLAIN = re.compile(r"[^ !#$&'()+,\-.0-9;=@A-Z\[\]^_`a-z{}~]")


def safe_name(name: str) -> str:
    """Return a name that can be stored: one path component, never empty. A second call changes nothing."""
    text = _SURROGATES.sub("\ufffd", name)
    visible = _UNSEEN_OR_PICTURE.sub(r"\1", _CONTROLS.sub(" ", unicodedata.normalize("NFC", text)))
    last = re.split(r"[/\\]", unicodedata.normalize("NFC", visible).rstrip("/\\ "))[-1]
    short = shorten(last.strip().rstrip(". "), NAME_CHARACTERS)
    return f"_{short}" if _DEVICE.fullmatch(short) else short or NAMELESS


def shorten(name: str, characters: int) -> str:
    """Shorten a long name and keep its extension."""
    if len(name) <= characters:
        return name
    stem, dot, ending = name.rpartition(".")
    if not dot or len(ending) > ENDING_CHARACTERS:
        return name[:characters].rstrip(". ")
    return f"{stem[: characters - len(ending) - 1]}.{ending}"


def content_disposition(name: str, inline: bool) -> str:
    """Return a `Content-Disposition` header with a file name (RFC 6266). No name can end the value or add a header."""
    safe = safe_name(name)
    way = "inline" if inline else "attachment"
    plain = _NOT_PLAIN.sub("_", safe)
    if plain == safe:
        return f'{way}; filename="{plain}"'
    return f"{way}; filename=\"{plain}\"; filename*=UTF-8''{quote(safe, safe=_AS_THEY_ARE)}"
