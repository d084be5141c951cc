"""Strings that are safe to show (P14): words without tags, Markdown without HTML, urls that run nothing."""

from __future__ import annotations

import re

from recto.conversation.ui.ui_schema import IMAGE_URL, LINK_URL

_LINE_ENDS = re.compile(r"\r\n?|[\x85\u2028\u2029]")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_SPELLED = "|".join(r"\s*".join(scheme) for scheme in ("javascript", "vbscript"))
# `Data: 42 rows` is no url: one that can hold a page names its type before the first comma.
_SCHEME = re.compile(rf"\A(\s*(?:{_SPELLED}|d\s*a\s*t\s*a(?=\s*:[^,/]*/[^,]*,)))\s*:", re.IGNORECASE)

INLINE_IMAGE = "data:image/"
_LINK = re.compile(LINK_URL)
_IMAGE = re.compile(IMAGE_URL)

# Brackets are in none of these, so what one match passes over hides no other link.
_TARGET = r"[ \t]*(?P<url>[^\s()\[\]<>\\\"]*(?:\([^\s()\[\]<>\\\"]*\)[^\s()\[\]<>\\\"]*)*)"
_TITLE = r"(?:[ \t]+\"[^\"\[\]\\\n]*\")?[ \t]*"
_WHOLE_LINK = re.compile(r"!?\[(?P<label>[^\[\]]*)\]\((?P<inside>[^()]*(?:\([^()]*\)[^()]*)*)\)")
_INSIDE = re.compile(rf"{_TARGET}{_TITLE}")
_LINK_START = re.compile(rf"\]\((?P<rest>{_TARGET}{_TITLE}\))?")
_DEFINITION = re.compile(
    r"^(?P<label>[ \t>*+\-\d.)]*\[[^\[\]]*(?:\\[\[\]][^\[\]]*)*\]):(?P<rest>[ \t]+(?P<url>\S+))?", re.MULTILINE
)


def is_link(url: str) -> bool:
    """A url a person may follow: http, https, mailto, or our own under /api/. Unseen characters spoil it."""
    return url.isprintable() and _LINK.search(url) is not None


def is_image(url: str) -> bool:
    """A url a picture may come from: http, https, our own, or the bytes of a picture that can hold no script."""
    return url.isprintable() and _IMAGE.search(url) is not None


def is_script(text: str) -> bool:
    """Whether the text, taken for a url, would run or hold a page; as browsers see it, blanks and all."""
    return _SCHEME.match(verbatim_text(text)) is not None


def verbatim_text(text: str) -> str:
    """The text letter for letter, but for control characters; every line ends with a line feed."""
    return _CONTROLS.sub("", _LINE_ENDS.sub("\n", text))


def plain_text(text: str) -> str:
    """Words that are no HTML and no script url, even to a reader who takes them for such.

    A blank after the `<` of a tag, a blank before the colon of a script scheme: people read the same.
    """
    return _TAG.sub("< ", _without_scheme(text))


def markdown_text(text: str) -> str:
    """Markdown in which HTML is text and only safe links lead anywhere; of others the label stays.

    Code inside is treated alike, since renderers differ on where it ends: `<` of a tag is `&lt;` there too.
    """
    labels = _WHOLE_LINK.sub(_without_bad_target, _without_scheme(text))
    links = _LINK_START.sub(_without_bad_link, labels)
    return _TAG.sub("&lt;", _DEFINITION.sub(_without_bad_definition, links))


def _without_scheme(text: str) -> str:
    return _SCHEME.sub(r"\1 :", verbatim_text(text))


def _without_bad_target(link: re.Match[str]) -> str:
    inside = _INSIDE.fullmatch(link["inside"])
    return link[0] if inside and is_link(inside["url"]) else link["label"]


def _without_bad_link(start: re.Match[str]) -> str:
    """What the step before left: nested or broken links. Their parenthesis is text."""
    return start[0] if start["rest"] and is_link(start["url"]) else rf"]\({start['rest'] or ''}"


def _without_bad_definition(definition: re.Match[str]) -> str:
    if definition["rest"] and is_link(definition["url"]):
        return definition[0]
    return rf"{definition['label']}\:{definition['rest'] or ''}"
