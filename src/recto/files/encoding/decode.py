"""Bytes as text: byte order marks, UTF-8, UTF-16, then the older encodings. Refuses bytes that are no text."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

from recto.files.encoding.alphabets import alphabet_of
from recto.files.encoding.east_asian import ENCODINGS, LIKELY, SURE, UNREADABLE, east_asian, mended

# Longer marks first: that of UTF-32 begins with that of UTF-16.
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (b"\x84\x31\x95\x33", "gb18030"),
)
# A PDF may be all ASCII, and yet nobody means its source.
NO_TEXT = (b"%PDF-",)
# Those of Europe; the others only where the first does not fit: what they write differs from it in a few letters.
EUROPEAN = (("cp1252",), ("cp1250", "cp1254"))
EUROPEAN_SHARE = 0.4
FEW_LETTERS = 3
# Enough to tell an encoding by; more only takes longer.
SAMPLE_BYTES = 65_536
WORD_BYTES = 20
NOT_ASCII = re.compile(rb"[\x80-\xff]")
# Up to the last byte that is no part of a longer character in any of them.
WHOLE = re.compile(rb".*[\x00-\x2f]", re.DOTALL)
# Of bytes read as UTF-16, of which any may be Chinese.
FEW_WIDE = 6
EVERYDAY_SHARE = 0.9
GB_EVERYDAY = re.compile(rb"[\xa1-\xa9\xb0-\xd7][\xa1-\xfe]")
BIG5_EVERYDAY = re.compile(rb"[\xa1-\xc6][\x40-\x7e\xa1-\xfe]")
# So few are too little to tell letters by; that they are everyday Chinese, Japanese or Korean says more.
FEW_BYTES = 24
LONG_BYTES = 2**23
SLICE_BYTES = 2**20
DECLARED = re.compile(rb"""<(?:meta|\?xml)\b[^>]*?(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
DECLARED_WITHIN = 4_096
NO_ENCODINGS = frozenset({"punycode", "idna", "undefined", "unicode-escape", "raw-unicode-escape"})
# Programs write more than the name says.
LARGER = {"gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932", "euc-kr": "cp949", "iso-8859-1": "cp1252"}
ASCII = re.compile(r"[\t\n\r\x20-\x7e]")
# Letters and signs of Europe, of Hebrew and Arabic, of India and Thailand, and signs of China, Japan and Korea.
LETTERS = re.compile(
    r"[\u00a0-\u04ff\u05d0-\u05ea\u060c-\u06d4\u0904-\u0939\u0e01-\u0e5b"
    r"\u2010-\u2027\u20a0-\u20bf\u2100-\u27bf\u3000-\u30ff\u3400-\u9fff\uac00-\ud7a3\uff00-\uffef]"
)
CONTROLS = re.compile(r"[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f]")
# A text may be damaged here and there; bytes that are none have more than one such place in a hundred.
DAMAGED_SHARE = 0.01
# Of a short text one such place is more, where the rest of what is not ASCII leaves no doubt.
FEW_BAD = 3
FEW_BAD_SHARE = 0.2
FEWEST_GOOD = 2
LETTERS_SHARE = 0.9
# Of a text in several encodings, at least so much of what is not ASCII is in lines of UTF-8.
UTF8_SHARE = 0.5
# What says in ASCII which signs follow.
ESCAPES = ((b"\x1b$B", "iso2022_jp_ext"), (b"\x1b$@", "iso2022_jp_ext"), (b"\x1b$)C", "iso2022_kr"))
SEVEN_BIT = ("iso2022", "hz", "utf-7")


def decode(data: bytes, declared: str = "") -> str | None:
    """The text these bytes are, or None where they are none. What cannot be read of a damaged text is U+FFFD.

    `declared` is the encoding they name themselves, by its Python name.
    """
    if data.startswith(NO_TEXT):
        return None
    for text in _candidates(data, declared):
        if not _has_controls(text[:SAMPLE_BYTES]):
            # No text has this character, and databases refuse it.
            return text.replace("\0", UNREADABLE)
    return None


def decode_long(data: bytes) -> Iterator[str] | None:
    """A long text in UTF-8, a part at a time: whole, it may take four bytes a character. None: decode it otherwise."""
    is_other = data.startswith(NO_TEXT) or b"\0" in data or any(mark in data for mark, _ in ESCAPES)
    if len(data) <= LONG_BYTES or is_other or _has_controls(data[:SAMPLE_BYTES].decode("utf-8", "ignore")):
        return None
    try:
        for _ in codecs.iterdecode(_slices(data), "utf-8-sig"):
            pass
    except UnicodeDecodeError:
        return None
    return codecs.iterdecode(_slices(data), "utf-8-sig")


def declared_encoding(data: bytes) -> str:
    """The encoding that a page of HTML or a text in XML says it is in; nothing where it says none that is known."""
    found = DECLARED.search(data[:DECLARED_WITHIN])
    return known_encoding(found[1].decode("ascii")) if found else ""


def known_encoding(name: str) -> str:
    """The Python name of an encoding that is declared; nothing where there is none of that name."""
    lower = name.lower()
    try:
        known = codecs.lookup(LARGER.get(lower, lower)).name
        # Some are known that are no encodings of text.
        b"a".decode(known)
    except (LookupError, ValueError):
        return ""
    # Whoever could read the name of such an encoding did not find it in that encoding.
    return "" if known.startswith(("utf-16", "utf-32")) or known in NO_ENCODINGS else known


def _has_controls(beginning: str) -> bool:
    return len(CONTROLS.findall(beginning)) > DAMAGED_SHARE * len(beginning)


def _candidates(data: bytes, declared: str) -> Iterator[str]:
    """What the bytes may say, likeliest first."""
    for mark, encoding in MARKS:
        if data.startswith(mark):
            yield from _damaged(data[len(mark) :], encoding)
    if b"\0" in data:
        yield from _utf16(data)
    yield from _shifting(data, declared)
    if (text := _strict(data, "utf-8")) is not None:
        yield text
        return
    if declared and b"\0" not in data:
        yield from _damaged(data, declared)
    if _is_damaged_utf8(data):
        yield data.decode("utf-8", "replace")
    if b"\0" not in data:
        yield from chinese_utf16(data)
        yield from _mixed(data)
        if encoding := _legacy(_sample(data)):
            yield from _damaged(data, encoding)


def _strict(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None


def _damaged(data: bytes, encoding: str) -> Iterator[str]:
    text = mended(data, encoding) if encoding in ENCODINGS else data.decode(encoding, "replace")
    if text.count(UNREADABLE) <= DAMAGED_SHARE * len(text) or _has_few_bad(text):
        yield text


def _utf16(data: bytes) -> Iterator[str]:
    """UTF-16 that has no mark. Read the wrong way round, blanks and line ends are signs nobody writes."""
    ways = [_strict(data, encoding) for encoding in ("utf-16-le", "utf-16-be")]
    best = max((text for text in ways if text), key=_likeness, default="")
    beginning = best[:SAMPLE_BYTES]
    written = len(ASCII.findall(beginning)) + len(LETTERS.findall(beginning))
    if best and written >= LETTERS_SHARE * len(beginning):
        yield best


def _shifting(data: bytes, declared: str) -> Iterator[str]:
    """Text that is all in ASCII, and yet in another encoding that writes so."""
    escape = next((encoding for mark, encoding in ESCAPES if mark in data), "")
    encoding = declared if declared.startswith(SEVEN_BIT) else escape
    if encoding and data.isascii() and (text := _strict(data, encoding)) is not None:
        yield text


def chinese_utf16(data: bytes) -> Iterator[str]:
    """Chinese in UTF-16 without a mark, a blank or a line end. Almost all of it is of everyday characters."""
    for encoding in ("utf-16-le", "utf-16-be"):
        text = _strict(data, encoding) or ""
        beginning = text[:SAMPLE_BYTES]
        if len(beginning) >= FEW_WIDE and _everyday_count(beginning) >= EVERYDAY_SHARE * len(beginning):
            yield text


def _everyday_count(text: str) -> int:
    return max(
        len(GB_EVERYDAY.findall(text.encode("gb2312", "ignore"))),
        len(BIG5_EVERYDAY.findall(text.encode("big5", "ignore"))),
    )


def _mixed(data: bytes) -> Iterator[str]:
    """Lines of which most are in UTF-8 and some are not: what several programs wrote into one file."""
    if _utf8_share(_sample(data)) < UTF8_SHARE:
        return
    lines = data.splitlines(keepends=True)
    texts = [_strict(line, "utf-8") for line in lines]
    others = b"".join(line for line, text in zip(lines, texts, strict=True) if text is None)
    encoding = _legacy(_sample(others))
    if encoding and next(_damaged(others, encoding), None) is not None:
        both = zip(lines, texts, strict=True)
        yield "".join([mended(line, encoding) if text is None else text for line, text in both])


def _utf8_share(sample: bytes) -> float:
    """How much of what is not ASCII stands in lines of UTF-8."""
    found = b"".join(line for line in sample.splitlines() if _strict(line, "utf-8") is not None)
    return len(NOT_ASCII.findall(found)) / max(1, len(NOT_ASCII.findall(sample)))


def _likeness(text: str) -> int:
    beginning = text[:SAMPLE_BYTES]
    return 2 * len(ASCII.findall(beginning)) + len(LETTERS.findall(beginning))


def _is_damaged_utf8(data: bytes) -> bool:
    """Whether most of what is not ASCII could be read: in another encoding next to nothing can."""
    written = unreadable = 0
    for text in codecs.iterdecode(_slices(data), "utf-8", "replace"):
        written += _written(text)
        unreadable += text.count(UNREADABLE)
    if unreadable <= DAMAGED_SHARE * written:
        return True
    return len(data) <= SLICE_BYTES and _has_few_bad(data.decode("utf-8", "replace"))


def _slices(data: bytes) -> Iterator[bytes]:
    return (data[start : start + SLICE_BYTES] for start in range(0, len(data), SLICE_BYTES))


def _has_few_bad(text: str) -> bool:
    """Whether a short text is sound but for a place or two. One that breaks off within a character is sound."""
    whole = text.rstrip(UNREADABLE)
    bad, written = whole.count(UNREADABLE), _written(whole)
    return written - bad >= FEWEST_GOOD and bad <= min(FEW_BAD, FEW_BAD_SHARE * written)


def _written(text: str) -> int:
    return len(text) - len(text.encode("ascii", "ignore"))


def _sample(data: bytes) -> bytes:
    """Some of the bytes from the word of the first that is not ASCII; what stands before says nothing of the rest."""
    found = NOT_ASCII.search(data)
    start = max(0, found.start() - WORD_BYTES) if found else 0
    sample = data[start : start + SAMPLE_BYTES]
    is_torn = start + SAMPLE_BYTES < len(data)
    return whole[0] if is_torn and (whole := WHOLE.match(sample)) else sample


def _legacy(sample: bytes) -> str | None:
    likely = east_asian(sample)
    if likely.share >= SURE and len(NOT_ASCII.findall(sample)) <= FEW_BYTES:
        return likely.encoding
    if encoding := alphabet_of(sample):
        return encoding
    if likely.share >= LIKELY:
        return likely.encoding
    return _european(sample) if len(NOT_ASCII.findall(sample)) <= EUROPEAN_SHARE * len(sample) else None


def _european(sample: bytes) -> str | None:
    # A word or two are too little for statistics.
    if len(NOT_ASCII.findall(sample)) <= FEW_LETTERS:
        return "cp1252" if LETTERS.sub("", _strict(sample, "cp1252") or UNREADABLE).isascii() else None

    from charset_normalizer import from_bytes  # here: most files are UTF-8, and it takes a while to import

    found = (from_bytes(sample, cp_isolation=list(known)).best() for known in EUROPEAN)
    return next((best.encoding for best in found if best), None)
