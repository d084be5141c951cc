"""Mail messages: headers, text and attachments, which the parser of their format reads."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from email import message_from_bytes
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from typing import TypeAlias, cast

from recto.conversation.document import Element
from recto.conversation.file_formats import ending_for, ending_of, format_by_ending
from recto.files.decode import decode, normalize_encoding
from recto.files.parsing.formats.web import parse_page
from recto.files.parsing.formats.xberg_document import elements_of, extract, unpaged_frames
from recto.files.parsing.ports import DAMAGED, FoundElements, Frame, UnreadableDocument

# A parser for bytes of a format.
AttachedReader: TypeAlias = Callable[[bytes, str], Iterator[Frame]]

_HEAD_BYTES = 4_096
# The first header, after the separator line of a mailbox.
_HEADER = re.compile(rb"(?:From [^\n]*\n)?[\w-]+[ \t]*:")
# The prefix of all stream names of Outlook.
_OUTLOOK = "__substg1.0_".encode("utf-16-le")
_SHOWN_HEADERS = ("Subject", "From", "To", "Cc", "Bcc", "Reply-To", "Date")
_FOLD = re.compile(r"\s*[\r\n]+\s*")
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n)+")
# A soft line break of flowed text. The blank in the line before a signature (`-- `) is not one.
_FLOWS = re.compile(r"(?<!^--) \n(?=[^>\n])", re.MULTILINE)
# Deepest nesting of messages and parts. Deeper ones are only listed.
_DEEPEST = 20


@dataclass(frozen=True, kw_only=True)
class _Attachment:
    """An attachment. With an empty `form` it is only listed, unless it is a message."""

    name: str
    data: bytes = b""
    form: str = ""
    message: Message | None = None


def parse_mail(data: bytes, form: str, reader: AttachedReader) -> Iterator[Frame]:
    """Parse a message. Raise UnreadableDocument."""
    head = data[:_HEAD_BYTES].removeprefix(codecs.BOM_UTF8).lstrip()
    if (_OUTLOOK not in data) if form == "msg" else (b"\0" in head or not _HEADER.match(head)):
        raise UnreadableDocument(DAMAGED)
    if form == "msg":
        result = extract(data, form)
        return unpaged_frames(elements_of(result.document.nodes if result.document else []))
    return unpaged_frames(_message(_parse_message(data), reader, 0))


def _parse_message(data: bytes) -> Message:
    try:
        return message_from_bytes(data.removeprefix(codecs.BOM_UTF8).lstrip())
    except RecursionError as error:
        raise UnreadableDocument(DAMAGED) from error


def _message(message: Message, reader: AttachedReader, depth: int) -> Iterator[Element]:
    lines = [f"{name}: {words}" for name in _SHOWN_HEADERS if (words := _header(message, name))]
    yield from _paragraphs("\n".join(lines))
    attachments: list[_Attachment] = []
    yield from _body(message, attachments, depth)
    if attachments:
        yield Element(kind="paragraph", text="Attachments:")
    for one in attachments:
        size = "a message" if one.message else f"{len(one.data):,} bytes"
        yield Element(kind="item", text=f"- {one.name} ({size})", level=1)
    for one in attachments:
        if one.form or one.message:
            yield Element(kind="heading", text=f"## {one.name}", level=2)
            yield from _read(one, reader, depth + 1)


def _header(message: Message, name: str) -> str:
    """Return all values of a header, which a message may repeat."""
    values = [str(value) for key, value in message.raw_items() if key.lower() == name.lower()]
    return ", ".join(filter(None, map(_decode_header, values)))


def _decode_header(value: str) -> str:
    """Decode the value of a header from any encoding."""
    text = decode(value.encode("utf-8", "surrogateescape")) or ""
    text = _FOLD.sub(" ", text).strip()
    try:
        parts = decode_header(text)
    except (HeaderParseError, ValueError):
        return text
    words = ""
    for part, charset in parts:
        if isinstance(part, str):
            words += part
        else:
            codec = normalize_encoding(charset) if charset is not None else "raw-unicode-escape"
            words += part.decode(codec, "replace") if codec else decode(part) or ""
    return " ".join(words.split())


def _body(part: Message, attachments: list[_Attachment], depth: int) -> Iterator[Element]:
    """Yield the text of a part, and collect attachments. Of alternatives, use the last with text: it is the richest."""
    kind = part.get_content_type()
    is_apart = part.get_content_disposition() == "attachment" or part.get_filename() is not None
    if kind == "message/delivery-status" and part.is_multipart():
        for one in cast("list[Message]", part.get_payload()):
            yield from _paragraphs(
                "\n".join(f"{name}: {_decode_header(str(value))}" for name, value in one.raw_items())
            )
    elif part.is_multipart() and depth < _DEEPEST and kind != "message/rfc822":
        parts = cast("list[Message]", part.get_payload())
        if kind != "multipart/alternative":
            for one in parts:
                yield from _body(one, attachments, depth + 1)
            return
        for one in reversed([one for one in parts if one.get_content_type() != "text/calendar"]):
            inner = list[_Attachment]()
            if elements := list(_body(one, inner, depth + 1)):
                attachments += inner
                yield from elements
                return
    elif part.get_content_maintype() == "text" and not is_apart and not part.is_multipart():
        text = decode(_bytes(part), normalize_encoding(part.get_content_charset() or ""))
        if text is None:
            yield Element(kind="note", text="[a part of this message has no text that can be read]")
        elif part.get_content_subtype() == "html":
            yield from parse_page(text)
        else:
            lines = "\n".join(text.splitlines())
            yield from _paragraphs(_FLOWS.sub(" ", lines) if part.get_param("format") == "flowed" else lines)
    elif not kind.startswith("multipart/") or part.is_multipart():
        attachments.append(_attachment_of(part))


def _paragraphs(text: str) -> Iterator[Element]:
    for paragraph in _BLANK_LINES.split(text.strip("\n")):
        if paragraph.strip():
            yield Element(kind="paragraph", text=paragraph.rstrip())


def _bytes(part: Message) -> bytes:
    """Return the decoded bytes of a part; the raw bytes if its transfer encoding is invalid."""
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _attachment_of(part: Message) -> _Attachment:
    name = _decode_header(part.get_filename() or "")
    if part.get_content_type() == "message/rfc822" and part.is_multipart():
        message = cast("list[Message]", part.get_payload())[0]
        return _Attachment(name=name or _header(message, "Subject") or "message", message=message)
    ending = ending_of(name) or ending_for(part.get_content_type()).removeprefix(".")
    format = format_by_ending(ending)
    form = format.ending if format and format.kind == "document" else ""
    return _Attachment(name=name or "unnamed", data=_bytes(part), form=form)


def _read(one: _Attachment, reader: AttachedReader, depth: int) -> Iterator[Element]:
    """Yield the content of an attachment, or the reason why it cannot be read."""
    if depth >= _DEEPEST:
        yield Element(kind="note", text="[too many messages are within each other: this one was not read]")
    elif one.message:
        yield from _message(one.message, reader, depth)
    else:
        try:
            if one.form == "eml":
                yield from _message(_parse_message(one.data), reader, depth)
                return
            for frame in reader(one.data, one.form):
                for element in frame.elements if isinstance(frame, FoundElements) else ():
                    # Pages of an attachment are not pages of the message.
                    yield replace(element, kind="paragraph") if element.kind == "page" else element
        except UnreadableDocument as error:
            yield Element(kind="note", text=f"[{one.name} could not be read: {error.failed.reason}]")
