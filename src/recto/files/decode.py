"""Detection and decoding of text encodings: byte order marks, UTF-8, UTF-16, then older encodings."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

# Byte order marks. UTF-32 comes before UTF-16, because its little-endian mark starts with that of UTF-16.
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (b"\x84\x31\x95\x33", "gb18030"),
)
# First bytes of formats that are not text. A PDF may consist of ASCII only.
NO_TEXT = (b"%PDF-",)
# Encodings of European languages. The groups differ in a few letters, so try the second only if the first does not fit.
EUROPEAN = (("cp1252",), ("cp1250", "cp1254"))
EUROPEAN_SHARE = 0.4
FEW_LETTERS = 3
# Sample size that suffices to detect an encoding.
SAMPLE_BYTES = 65_536
WORD_BYTES = 20
NOT_ASCII = re.compile(rb"[\x80-\xff]")
# Everything up to the last byte that cannot be part of a multi-byte character.
WHOLE = re.compile(rb".*[\x00-\x2f]", re.DOTALL)
# Fewest characters, and least share of common ones, in Chinese UTF-16 without a mark. Almost any bytes decode to some
# Chinese characters.
FEW_WIDE = 6
EVERYDAY_SHARE = 0.9
GB_EVERYDAY = re.compile(rb"[\xa1-\xa9\xb0-\xd7][\xa1-\xfe]")
BIG5_EVERYDAY = re.compile(rb"[\xa1-\xc6][\x40-\x7e\xa1-\xfe]")
# Up to this many non-ASCII bytes, prefer a sure East Asian guess, because they are too few to recognize an alphabet.
FEW_BYTES = 24
LONG_BYTES = 2**23
SLICE_BYTES = 2**20
DECLARATION = re.compile(rb"""<(?:meta|\?xml)\b[^<>]*?(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
DECLARED_WITHIN = 4_096
NO_ENCODINGS = frozenset({"punycode", "idna", "undefined", "unicode-escape", "raw-unicode-escape"})
# Supersets of encodings. Programs declare the smaller encoding but use characters of the larger one.
LARGER = {"gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932", "euc-kr": "cp949", "iso-8859-1": "cp1252"}
ASCII = re.compile(r"[\t\n\r\x20-\x7e]")
# Letters and signs of European languages, Hebrew, Arabic, Hindi and Thai, and characters of Chinese, Japanese and
# Korean.
LETTERS = re.compile(
    r"[\u00a0-\u04ff\u05d0-\u05ea\u060c-\u06d4\u0904-\u0939\u0e01-\u0e5b"
    r"\u2010-\u2027\u20a0-\u20bf\u2100-\u27bf\u3000-\u30ff\u3400-\u9fff\uac00-\ud7a3\uff00-\uffef]"
)
CONTROLS = re.compile(r"[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f]")
# Largest share of unreadable or control characters in a text. Bytes that are not text have more.
DAMAGED_SHARE = 0.01
# Limits of a short text, which may have a larger share of unreadable characters if the others are unambiguous.
FEW_BAD = 3
FEW_BAD_SHARE = 0.2
FEWEST_GOOD = 2
LETTERS_SHARE = 0.9
# Least share of the non-ASCII bytes that is in UTF-8 lines, for a text that mixes encodings.
UTF8_SHARE = 0.5
# ASCII escape sequences that switch to other characters, with their encodings.
ESCAPES = ((b"\x1b$B", "iso2022_jp_ext"), (b"\x1b$@", "iso2022_jp_ext"), (b"\x1b$)C", "iso2022_kr"))
SEVEN_BIT = ("iso2022", "hz", "utf-7")


def decode(data: bytes, declared_encoding: str = "") -> str | None:
    """Decode a text; return None for bytes that are not text. Unreadable places become U+FFFD.

    `declared_encoding` is the Python name of an encoding that the bytes or their sender declare.
    """
    if data.startswith(NO_TEXT):
        return None
    for text in _candidates(data, declared_encoding):
        if not _has_controls(text[:SAMPLE_BYTES]):
            # Databases reject NUL.
            return text.replace("\0", UNREADABLE)
    return None


def decode_long(data: bytes) -> Iterator[str] | None:
    """Decode a long UTF-8 text in parts; return None for any other data.

    As one string, the text could take four bytes per character.
    """
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
    """Return the encoding that an HTML page or an XML text declares; empty if it is unknown."""
    match = DECLARATION.search(data[:DECLARED_WITHIN])
    return normalize_encoding(match[1].decode("ascii")) if match else ""


def normalize_encoding(name: str) -> str:
    """Return the Python name of a declared encoding; empty if it is unknown."""
    lower = name.lower()
    try:
        codec = codecs.lookup(LARGER.get(lower, lower)).name
        # Python also knows codecs that are not text encodings.
        b"a".decode(codec)
    except (LookupError, ValueError):
        return ""
    # A declaration in ASCII bytes rules out UTF-16 and UTF-32.
    return "" if codec.startswith(("utf-16", "utf-32")) or codec in NO_ENCODINGS else codec


def _has_controls(beginning: str) -> bool:
    return len(CONTROLS.findall(beginning)) > DAMAGED_SHARE * len(beginning)


def _candidates(data: bytes, label: str) -> Iterator[str]:
    """Yield possible texts, likeliest first."""
    for mark, encoding in MARKS:
        if data.startswith(mark):
            yield from _decode_with_damage(data[len(mark) :], encoding)
    if b"\0" in data:
        # Decode UTF-16 without a mark. In the wrong byte order, blanks and line ends become rare characters.
        ways = [_decode_strict(data, encoding) for encoding in ("utf-16-le", "utf-16-be")]
        best = max(
            filter(None, ways),
            key=lambda text: 2 * len(ASCII.findall(text[:SAMPLE_BYTES])) + len(LETTERS.findall(text[:SAMPLE_BYTES])),
            default="",
        )
        beginning = best[:SAMPLE_BYTES]
        readable = len(ASCII.findall(beginning)) + len(LETTERS.findall(beginning))
        if best and readable >= LETTERS_SHARE * len(beginning):
            yield best
    # Encodings that use only ASCII bytes.
    escape = next((encoding for mark, encoding in ESCAPES if mark in data), "")
    encoding = label if label.startswith(SEVEN_BIT) else escape
    if encoding and data.isascii() and (text := _decode_strict(data, encoding)) is not None:
        yield text
    if (text := _decode_strict(data, "utf-8")) is not None:
        yield text
        return
    if label and b"\0" not in data:
        yield from _decode_with_damage(data, label)
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


def decode_chinese_utf16(data: bytes) -> Iterator[str]:
    """Decode Chinese UTF-16 without a mark, a blank or a line end, if almost all characters are common ones."""
    for encoding in ("utf-16-le", "utf-16-be"):
        text = _decode_strict(data, encoding) or ""
        beginning = text[:SAMPLE_BYTES]
        if len(beginning) >= FEW_WIDE and max(
            len(GB_EVERYDAY.findall(beginning.encode("gb2312", "ignore"))),
            len(BIG5_EVERYDAY.findall(beginning.encode("big5", "ignore"))),
        ) >= EVERYDAY_SHARE * len(beginning):
            yield text


def _decode_mixed(data: bytes) -> Iterator[str]:
    """Decode a text with UTF-8 lines and lines in an older encoding, such as a file that several programs write to."""
    sample = _sample(data)
    valid = b"".join(line for line in sample.splitlines() if _decode_strict(line, "utf-8") is not None)
    if (len(NOT_ASCII.findall(valid)) / max(1, len(NOT_ASCII.findall(sample)))) < UTF8_SHARE:
        return
    lines = data.splitlines(keepends=True)
    texts = [_decode_strict(line, "utf-8") for line in lines]
    others = b"".join(line for line, text in zip(lines, texts, strict=True) if text is None)
    encoding = _guess_legacy(_sample(others))
    if encoding and next(_decode_with_damage(others, encoding), None) is not None:
        both = zip(lines, texts, strict=True)
        yield "".join([decode_damaged(line, encoding) if text is None else text for line, text in both])


def _is_damaged_utf8(data: bytes) -> bool:
    """Return True if most non-ASCII bytes are valid UTF-8. Text in another encoding contains almost no valid UTF-8."""
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
    """Return True if a text has only a few unreadable characters. An incomplete last character does not count."""
    whole = text.rstrip(UNREADABLE)
    bad, total = whole.count(UNREADABLE), _count_non_ascii(whole)
    return total - bad >= FEWEST_GOOD and bad <= min(FEW_BAD, FEW_BAD_SHARE * total)


def _count_non_ascii(text: str) -> int:
    return len(text) - len(text.encode("ascii", "ignore"))


def _sample(data: bytes) -> bytes:
    """Return a sample that starts just before the first non-ASCII byte. Earlier bytes do not depend on the encoding."""
    match = NOT_ASCII.search(data)
    start = max(0, match.start() - WORD_BYTES) if match else 0
    sample = data[start : start + SAMPLE_BYTES]
    is_torn = start + SAMPLE_BYTES < len(data)
    return whole[0] if is_torn and (whole := WHOLE.match(sample)) else sample


def _guess_legacy(sample: bytes) -> str | None:
    likely, count = guess_east_asian(sample), len(NOT_ASCII.findall(sample))
    if likely.share >= SURE and count <= FEW_BYTES:
        return likely.encoding
    if encoding := guess_by_alphabet(sample):
        return encoding
    if likely.share >= LIKELY:
        return likely.encoding
    if count > EUROPEAN_SHARE * len(sample):
        return None
    # Statistics need more than a word or two.
    if count <= FEW_LETTERS:
        return "cp1252" if LETTERS.sub("", _decode_strict(sample, "cp1252") or UNREADABLE).isascii() else None

    from charset_normalizer import from_bytes  # here: most files are UTF-8, and the import is slow

    guesses = (from_bytes(sample, cp_isolation=list(encodings)).best() for encodings in EUROPEAN)
    return next((best.encoding for best in guesses if best), None)


# The commonest letters of each alphabet, which make up more than half of any text, and the encodings of the alphabet.
ALPHABETS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("оеаинтсрвлі", ("cp1251", "koi8_u", "cp866", "iso8859_5", "mac_cyrillic")),
    ("اليومنترب", ("cp1256", "iso8859_6")),
    ("יוהלאתרמבש", ("cp1255", "cp862")),
    ("αιοετσνηυρπκςά", ("cp1253", "cp737")),
    ("านรอกเงมยลวดท่้ัี", ("cp874",)),
)
# Fewest non-ASCII letters for a guess by alphabet.
FEWEST_LETTERS = 5
COMMON_SHARE = 0.5
# Largest share of ASCII letters in words with non-ASCII letters. In European languages, most letters are ASCII.
ASCII_SHARE = 0.1
CAPITAL = 0.9
_WORD_WITH_LETTERS = re.compile(rb"[A-Za-z]*+[\x80-\xff][A-Za-z\x80-\xff]*+")
_ASCII_LETTER = re.compile(rb"[A-Za-z]")


def guess_by_alphabet(sample: bytes) -> str | None:
    """Return the encoding in which the sample is words of an alphabet; None if there is no such encoding."""
    words = b"".join(_WORD_WITH_LETTERS.findall(sample))
    high = NOT_ASCII.findall(words)
    if len(high) < FEWEST_LETTERS or len(_ASCII_LETTER.findall(words)) > ASCII_SHARE * len(words):
        return None
    data = b"".join(high)
    best, best_share = None, 0.0
    for letters, encoding in [(letters, encoding) for letters, encodings in ALPHABETS for encoding in encodings]:
        text = data.decode(encoding, "replace")
        small = sum(map(text.count, letters))
        # Capitals are rarer and count a little less.
        large = sum(map(text.count, letters.upper())) if letters.upper() != letters else 0
        share = (small + CAPITAL * large) / len(text)
        if share >= COMMON_SHARE and share > best_share:
            best, best_share = encoding, share
    return best


UNREADABLE = "\ufffd"
# Shares of common characters in non-ASCII text from which a guess is sure or likely. A wrong encoding gives fewer.
SURE, LIKELY = 0.85, 0.6
# Sample size that suffices to detect an East Asian encoding.
EAST_ASIAN_SAMPLE_BYTES = 4_096
# East Asian encodings in order of preference, each the largest of its family: cp932 extends Shift-JIS, and cp949
# extends EUC-KR.
ENCODINGS = ("gb18030", "big5", "cp932", "euc_jp", "cp949")
# The first bytes of the common characters of each standard, and the standards of each encoding.
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
# Characters that distinguish Japanese and Korean from languages with the same common bytes. The limits are their least
# share, and the fewest non-ASCII characters of a text.
_DISTINCT = {"euc_jp": "[ぁ-んァ-ヶ]", "cp949": "[이다는을의에가고하지로은리기사도인를한정서]"}
_DISTINCT_SHARE = 0.2
_DISTINCT_FEWEST = 3
# Python decodes invalid cp932 bytes to these characters.
_PRIVATE = re.compile("[\x80\uf8f0-\uf8f3]")
# Lengths of characters in bytes, and the costs of a bad byte and of a rare character.
_SIZES = {"gb18030": (1, 2, 4), "euc_jp": (1, 2, 3)}
_BAD, _RARE = 1.5, 1.0
# Total length of damaged lines, in bytes, to decode by `_cheapest_text`, which is slow.
_MOST_BYTES = 200_000


class Likely(NamedTuple):
    """An encoding, and the share of common characters in non-ASCII text decoded with it."""

    share: float
    encoding: str


def guess_east_asian(sample: bytes) -> Likely:
    """Return the likeliest East Asian encoding. An incomplete character at the end of the sample does not matter."""
    likely, distinct = list[Likely](), list[Likely]()
    for encoding in ENCODINGS:
        text = decode_damaged(sample[:EAST_ASIAN_SAMPLE_BYTES], encoding).rstrip(UNREADABLE)
        runs, everyday = _WIDE.findall(text), _everyday(encoding)
        wide = "".join(runs)
        # A lone character that includes an ASCII byte is more likely a European letter before an ASCII character.
        relevant = (run for run in runs if len(run) > 1 or not _SEVEN_BIT.search(run.encode(encoding, "ignore")))
        share = sum(one in everyday for run in relevant for one in run) / max(1, len(wide))
        if encoding not in _DISTINCT:
            likely.append(Likely(share, encoding))
            continue
        count = len(re.findall(_DISTINCT[encoding], wide))
        if share >= SURE and len(wide) >= _DISTINCT_FEWEST and count >= _DISTINCT_SHARE * len(wide):
            distinct.append(Likely(share, encoding))
    return max(distinct or likely, key=lambda one: one.share)


def decode_damaged(data: bytes, encoding: str) -> str:
    """Decode text. In a damaged line, as few characters as possible become U+FFFD."""
    text = _decode_codec(data, encoding)
    if text is not None:
        return text
    texts, budget = list[str](), _MOST_BYTES
    for line in data.splitlines(keepends=True):
        text = _decode_codec(line, encoding)
        if text is None:
            budget -= len(line)
            replaced = line.decode(encoding, "replace")
            text = _cheapest_text(line, encoding) if budget >= 0 else _without_private(replaced, encoding)
        texts.append(text)
    return "".join(texts)


def _decode_codec(data: bytes, encoding: str) -> str | None:
    try:
        return _without_private(data.decode(encoding), encoding)
    except UnicodeDecodeError:
        return None


def _without_private(text: str, encoding: str) -> str:
    return _PRIVATE.sub(UNREADABLE, text) if encoding == "cp932" else text


def _cheapest_text(line: bytes, encoding: str) -> str:
    """Split a line into characters at the lowest cost and return its text.

    An incomplete character at the end of the line costs less.
    """
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
    """Decode bytes as one character; return the character and its cost. Only a single byte may be undecodable."""
    text = data.decode(encoding, "ignore")
    if len(text) == 1 and text.encode(encoding, "ignore") == data:
        return text, 0.0 if data.isascii() or text in _everyday(encoding) else _RARE
    return UNREADABLE, _BAD if len(data) == 1 else float("inf")


@cache
def _everyday(encoding: str) -> frozenset[str]:
    places = (
        (standard, bytes((first, second)))
        for standard in _STANDARDS_OF.get(encoding, (encoding,))
        for first in _STANDARDS[standard]
        for second in range(0x40, 0xFF)
    )
    return frozenset(_SIGNS).union(place.decode(standard, "ignore") for standard, place in places)
