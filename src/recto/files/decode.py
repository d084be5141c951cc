"""Detection and decoding of text encodings: byte order marks, UTF-8, UTF-16, then older encodings."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

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
DECLARATION = re.compile(rb"""<(?:meta|\?xml)\b[^<>]*?(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
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


def decode(data: bytes, declared_encoding: str = "") -> str | None:
    """The text these bytes are, or None where they are none. What cannot be read of a damaged text is U+FFFD.

    `declared` is the encoding they name themselves, by its Python name.
    """
    if data.startswith(NO_TEXT):
        return None
    for text in _candidates(data, declared_encoding):
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


def find_declared_encoding(data: bytes) -> str:
    """The encoding that a page of HTML or a text in XML says it is in; nothing where it says none that is known."""
    match = DECLARATION.search(data[:DECLARED_WITHIN])
    return normalize_encoding(match[1].decode("ascii")) if match else ""


def normalize_encoding(name: str) -> str:
    """The Python name of an encoding that is declared; nothing where there is none of that name."""
    lower = name.lower()
    try:
        codec = codecs.lookup(LARGER.get(lower, lower)).name
        # Some are known that are no encodings of text.
        b"a".decode(codec)
    except (LookupError, ValueError):
        return ""
    # Whoever could read the name of such an encoding did not find it in that encoding.
    return "" if codec.startswith(("utf-16", "utf-32")) or codec in NO_ENCODINGS else codec


def _has_controls(beginning: str) -> bool:
    return len(CONTROLS.findall(beginning)) > DAMAGED_SHARE * len(beginning)


def _candidates(data: bytes, declared: str) -> Iterator[str]:
    """What the bytes may say, likeliest first."""
    for mark, encoding in MARKS:
        if data.startswith(mark):
            yield from _decode_with_damage(data[len(mark) :], encoding)
    if b"\0" in data:
        yield from _decode_utf16(data)
    yield from _decode_seven_bit(data, declared)
    if (text := _decode_strict(data, "utf-8")) is not None:
        yield text
        return
    if declared and b"\0" not in data:
        yield from _decode_with_damage(data, declared)
    if _is_damaged_utf8(data):
        yield data.decode("utf-8", "replace")
    if b"\0" not in data:
        yield from decode_chinese_utf16(data)
        yield from _decode_mixed(data)
        if encoding := _guess_legacy(_sample(data)):
            yield from _decode_with_damage(data, encoding)


def _decode_strict(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None


def _decode_with_damage(data: bytes, encoding: str) -> Iterator[str]:
    text = decode_damaged(data, encoding) if encoding in ENCODINGS else data.decode(encoding, "replace")
    if text.count(UNREADABLE) <= DAMAGED_SHARE * len(text) or _has_few_bad(text):
        yield text


def _decode_utf16(data: bytes) -> Iterator[str]:
    """UTF-16 that has no mark. Read the wrong way round, blanks and line ends are signs nobody writes."""
    ways = [_decode_strict(data, encoding) for encoding in ("utf-16-le", "utf-16-be")]
    best = max((text for text in ways if text), key=_likeness, default="")
    beginning = best[:SAMPLE_BYTES]
    readable = len(ASCII.findall(beginning)) + len(LETTERS.findall(beginning))
    if best and readable >= LETTERS_SHARE * len(beginning):
        yield best


def _decode_seven_bit(data: bytes, declared: str) -> Iterator[str]:
    """Text that is all in ASCII, and yet in another encoding that writes so."""
    escape = next((encoding for mark, encoding in ESCAPES if mark in data), "")
    encoding = declared if declared.startswith(SEVEN_BIT) else escape
    if encoding and data.isascii() and (text := _decode_strict(data, encoding)) is not None:
        yield text


def decode_chinese_utf16(data: bytes) -> Iterator[str]:
    """Chinese in UTF-16 without a mark, a blank or a line end. Almost all of it is of everyday characters."""
    for encoding in ("utf-16-le", "utf-16-be"):
        text = _decode_strict(data, encoding) or ""
        beginning = text[:SAMPLE_BYTES]
        if len(beginning) >= FEW_WIDE and _everyday_count(beginning) >= EVERYDAY_SHARE * len(beginning):
            yield text


def _everyday_count(text: str) -> int:
    return max(
        len(GB_EVERYDAY.findall(text.encode("gb2312", "ignore"))),
        len(BIG5_EVERYDAY.findall(text.encode("big5", "ignore"))),
    )


def _decode_mixed(data: bytes) -> Iterator[str]:
    """Lines of which most are in UTF-8 and some are not: what several programs wrote into one file."""
    if _utf8_share(_sample(data)) < UTF8_SHARE:
        return
    lines = data.splitlines(keepends=True)
    texts = [_decode_strict(line, "utf-8") for line in lines]
    others = b"".join(line for line, text in zip(lines, texts, strict=True) if text is None)
    encoding = _guess_legacy(_sample(others))
    if encoding and next(_decode_with_damage(others, encoding), None) is not None:
        both = zip(lines, texts, strict=True)
        yield "".join([decode_damaged(line, encoding) if text is None else text for line, text in both])


def _utf8_share(sample: bytes) -> float:
    """How much of what is not ASCII stands in lines of UTF-8."""
    valid = b"".join(line for line in sample.splitlines() if _decode_strict(line, "utf-8") is not None)
    return len(NOT_ASCII.findall(valid)) / max(1, len(NOT_ASCII.findall(sample)))


def _likeness(text: str) -> int:
    beginning = text[:SAMPLE_BYTES]
    return 2 * len(ASCII.findall(beginning)) + len(LETTERS.findall(beginning))


def _is_damaged_utf8(data: bytes) -> bool:
    """Whether most of what is not ASCII could be read: in another encoding next to nothing can."""
    count = unreadable = 0
    for text in codecs.iterdecode(_slices(data), "utf-8", "replace"):
        count += _count_non_ascii(text)
        unreadable += text.count(UNREADABLE)
    if unreadable <= DAMAGED_SHARE * count:
        return True
    return len(data) <= SLICE_BYTES and _has_few_bad(data.decode("utf-8", "replace"))


def _slices(data: bytes) -> Iterator[bytes]:
    return (data[start : start + SLICE_BYTES] for start in range(0, len(data), SLICE_BYTES))


def _has_few_bad(text: str) -> bool:
    """Whether a short text is sound but for a place or two. One that breaks off within a character is sound."""
    whole = text.rstrip(UNREADABLE)
    bad, total = whole.count(UNREADABLE), _count_non_ascii(whole)
    return total - bad >= FEWEST_GOOD and bad <= min(FEW_BAD, FEW_BAD_SHARE * total)


def _count_non_ascii(text: str) -> int:
    return len(text) - len(text.encode("ascii", "ignore"))


def _sample(data: bytes) -> bytes:
    """Some of the bytes from the word of the first that is not ASCII; what stands before says nothing of the rest."""
    match = NOT_ASCII.search(data)
    start = max(0, match.start() - WORD_BYTES) if match else 0
    sample = data[start : start + SAMPLE_BYTES]
    is_torn = start + SAMPLE_BYTES < len(data)
    return whole[0] if is_torn and (whole := WHOLE.match(sample)) else sample


def _guess_legacy(sample: bytes) -> str | None:
    likely = guess_east_asian(sample)
    if likely.share >= SURE and len(NOT_ASCII.findall(sample)) <= FEW_BYTES:
        return likely.encoding
    if encoding := guess_by_alphabet(sample):
        return encoding
    if likely.share >= LIKELY:
        return likely.encoding
    return _guess_european(sample) if len(NOT_ASCII.findall(sample)) <= EUROPEAN_SHARE * len(sample) else None


def _guess_european(sample: bytes) -> str | None:
    # A word or two are too little for statistics.
    if len(NOT_ASCII.findall(sample)) <= FEW_LETTERS:
        return "cp1252" if LETTERS.sub("", _decode_strict(sample, "cp1252") or UNREADABLE).isascii() else None

    from charset_normalizer import from_bytes  # here: most files are UTF-8, and it takes a while to import

    guesses = (from_bytes(sample, cp_isolation=list(encodings)).best() for encodings in EUROPEAN)
    return next((best.encoding for best in guesses if best), None)


# The letters that make more than half of any text, and the encodings of their alphabet.
ALPHABETS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("оеаинтсрвлі", ("cp1251", "koi8_u", "cp866", "iso8859_5", "mac_cyrillic")),
    ("اليومنترب", ("cp1256", "iso8859_6")),
    ("יוהלאתרמבש", ("cp1255", "cp862")),
    ("αιοετσνηυρπκςά", ("cp1253", "cp737")),
    ("านรอกเงมยลวดท่้ัี", ("cp874",)),
)
# Less is too little to tell by.
FEWEST_LETTERS = 5
COMMON_SHARE = 0.5
# Of words with such letters, how much may be ASCII: in those of Europe most is.
ASCII_SHARE = 0.1
CAPITAL = 0.9
_HIGH_BYTE = re.compile(rb"[\x80-\xff]")
_WORD_WITH_LETTERS = re.compile(rb"[A-Za-z]*+[\x80-\xff][A-Za-z\x80-\xff]*+")
_ASCII_LETTER = re.compile(rb"[A-Za-z]")


def guess_by_alphabet(sample: bytes) -> str | None:
    """The encoding in which these are words of an alphabet; None where in none they are."""
    words = b"".join(_WORD_WITH_LETTERS.findall(sample))
    high = _HIGH_BYTE.findall(words)
    if len(high) < FEWEST_LETTERS or len(_ASCII_LETTER.findall(words)) > ASCII_SHARE * len(words):
        return None
    data = b"".join(high)
    likely = [
        (_alphabet_share(data, encoding, letters), encoding)
        for letters, encodings in ALPHABETS
        for encoding in encodings
    ]
    share, best = max(likely, key=lambda one: one[0])
    return best if share >= COMMON_SHARE else None


def _alphabet_share(data: bytes, encoding: str, letters: str) -> float:
    """How many of the characters are common letters; capitals are less so, and say a little less."""
    text = data.decode(encoding, "replace")
    small = sum(map(text.count, letters))
    large = sum(map(text.count, letters.upper())) if letters.upper() != letters else 0
    return (small + CAPITAL * large) / len(text)


UNREADABLE = "\ufffd"
# Of what is not ASCII, so many are everyday characters. Read in a wrong encoding they are fewer.
SURE, LIKELY = 0.85, 0.6
# Enough to tell an encoding by.
EAST_ASIAN_SAMPLE_BYTES = 4_096
# The first of those that fit as well as any. Each is the largest of its family: cp932 is Shift-JIS with what Windows
# adds, cp949 is so for EUC-KR.
ENCODINGS = ("gb18030", "big5", "cp932", "euc_jp", "cp949")
# Where the everyday characters of a standard stand, by their first bytes; and the standards of each encoding.
_STANDARDS = {
    "gb2312": (*range(0xB0, 0xD8),),
    "big5": (*range(0xA4, 0xC7),),
    "euc_jp": (0xA4, 0xA5, *range(0xB0, 0xD0)),
    "euc_kr": (*range(0xB0, 0xC9),),
}
_STANDARDS_OF = {"gb18030": ("gb2312", "big5"), "big5": ("big5",), "cp932": ("euc_jp",), "cp949": ("euc_kr",)}
_SIGNS = "·‘’“”—…、。《》「」『』【】〜・ー！（），：；？０１２３４５６７８９￥\u3000"
_SEVEN_BIT = re.compile(rb"[\x00-\x7f]")
_WIDE = re.compile(r"[^\x00-\x7f]+")
# What tells a language from another whose everyday characters have the same bytes, and how much of it there is.
_DISTINCT = {"euc_jp": "[ぁ-んァ-ヶ]", "cp949": "[이다는을의에가고하지로은리기사도인를한정서]"}
_DISTINCT_SHARE = 0.2
_DISTINCT_FEWEST = 3
# What Python reads bad bytes of cp932 as.
_PRIVATE = re.compile("[\x80\uf8f0-\uf8f3]")
# How long characters may be, and what it costs to read a byte as bad, or a character that is rare.
_SIZES = {"gb18030": (1, 2, 4), "euc_jp": (1, 2, 3)}
_BAD, _RARE = 1.5, 1.0
# It takes longer than all the rest: what is damaged beyond these is read as it comes.
_MOST_BYTES = 200_000


class Likely(NamedTuple):
    """An encoding and the share of everyday characters in what is not ASCII, read in it."""

    share: float
    encoding: str


def guess_east_asian(sample: bytes) -> Likely:
    """The likeliest of the encodings. A sample that ends within a character is as good as a whole one."""
    texts = {
        encoding: decode_damaged(sample[:EAST_ASIAN_SAMPLE_BYTES], encoding).rstrip(UNREADABLE)
        for encoding in ENCODINGS
    }
    scores = {encoding: Likely(_everyday_share(text, encoding), encoding) for encoding, text in texts.items()}
    likely = [scores[one] for one in _DISTINCT if scores[one].share >= SURE and _is_distinct(texts[one], one)]
    return max(likely or [scores[one] for one in ENCODINGS if one not in _DISTINCT], key=lambda one: one.share)


def decode_damaged(data: bytes, encoding: str) -> str:
    """The text. Of a damaged line as few characters are lost, as U+FFFD, as everyday ones around them tell."""
    text = _decode_codec(data, encoding)
    if text is not None:
        return text
    texts, budget = list[str](), _MOST_BYTES
    for line in data.splitlines(keepends=True):
        text = _decode_codec(line, encoding)
        budget -= 0 if text is not None else len(line)
        mend = _cheapest_text if budget >= 0 else _replaced
        texts.append(text if text is not None else mend(line, encoding))
    return "".join(texts)


def _decode_codec(data: bytes, encoding: str) -> str | None:
    try:
        return _without_private(data.decode(encoding), encoding)
    except UnicodeDecodeError:
        return None


def _replaced(line: bytes, encoding: str) -> str:
    return _without_private(line.decode(encoding, "replace"), encoding)


def _without_private(text: str, encoding: str) -> str:
    return _PRIVATE.sub(UNREADABLE, text) if encoding == "cp932" else text


def _cheapest_text(line: bytes, encoding: str) -> str:
    """The way to cut a line into characters that costs least. One that breaks off at its end costs less."""
    ways: list[tuple[float, int, str]] = [(0.0, 0, "")] + [(float("inf"), 0, "")] * len(line)
    for place in range(len(line)):
        cost = ways[place][0]
        for size in _SIZES.get(encoding, (1, 2)):
            character, more = _character(line[place : place + size], encoding)
            way = (cost + more - (place + 1 == len(line)), place, character)
            if place + size <= len(line) and way[0] < ways[place + size][0]:
                ways[place + size] = way
    place, characters = len(line), list[str]()
    while place:
        characters.append(ways[place][2])
        place = ways[place][1]
    return _without_private("".join(reversed(characters)), encoding)


@lru_cache(65_536)
def _character(data: bytes, encoding: str) -> tuple[str, float]:
    """What bytes say as one character, and what that costs; one byte that says nothing is bad."""
    text = data.decode(encoding, "ignore")
    if len(text) == 1 and text.encode(encoding, "ignore") == data:
        return text, 0.0 if data.isascii() or text in _everyday(encoding) else _RARE
    return UNREADABLE, _BAD if len(data) == 1 else float("inf")


def _everyday_share(text: str, encoding: str) -> float:
    runs, everyday = _WIDE.findall(text), _everyday(encoding)
    # One alone that takes a letter of ASCII with it is one of Europe's.
    relevant = (run for run in runs if len(run) > 1 or not _SEVEN_BIT.search(run.encode(encoding, "ignore")))
    good = sum(one in everyday for run in relevant for one in run)
    return good / max(1, sum(map(len, runs)))


def _is_distinct(text: str, encoding: str) -> bool:
    wide = "".join(_WIDE.findall(text))
    return len(re.findall(_DISTINCT[encoding], wide)) >= _DISTINCT_SHARE * len(wide) and len(wide) >= _DISTINCT_FEWEST


@cache
def _everyday(encoding: str) -> frozenset[str]:
    places = (
        (standard, bytes((first, second)))
        for standard in _STANDARDS_OF.get(encoding, (encoding,))
        for first in _STANDARDS[standard]
        for second in range(0x40, 0xFF)
    )
    return frozenset(_SIGNS).union(place.decode(standard, "ignore") for standard, place in places)
