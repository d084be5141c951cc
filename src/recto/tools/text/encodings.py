"""Text encodings of files, detected by their first bytes. Binary files get a description of their kind."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

UTF8 = "utf-8"
# Bytes to read to detect an encoding.
HEAD_BYTES = 262_144
SAMPLE_BYTES = 16_384
# Byte order marks, longer ones first, because that of UTF-32 begins with that of UTF-16.
MARKS = (
    (codecs.BOM_UTF8, UTF8),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Candidate encodings: only those that programs still write, because more candidates make guesses worse. The second
# group differs from the first in a few letters, so it is tried only if the first does not fit.
LEGACY = (
    (
        *("gb18030", "big5", "cp932", "euc_jp", "cp949", "cp1252"),
        *("cp1251", "koi8_r", "cp1253", "cp1255", "cp1256", "cp874"),
    ),
    ("cp1250", "cp1254"),
)
# The largest unreadable share of the non-ASCII characters in a slightly damaged text.
DAMAGED_SHARE = 0.1
CONTROL_SHARE = 0.02
# Largest share of non-ASCII bytes in a Western text.
WESTERN_SHARE = 0.3
# Smallest share of zeros among the high bytes of Western UTF-16.
ZERO_SHARE = 0.3
CONTROLS = re.compile(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f]")
NOT_ASCII = re.compile(rb"[\x80-\xff]")
# First bytes of binary formats. Some such files may be all ASCII, but nobody wants their source.
SIGNATURES = (
    (b"%PDF-", "a PDF document"),
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"PK\x03\x04", "a ZIP archive, or a document that is one"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"\x7fELF", "a program or library (ELF)"),
    (b"MZ\x90", "a program or library (Windows)"),
    (b"\xcf\xfa\xed\xfe", "a program or library (macOS)"),
    (b"\xca\xfe\xba\xbe", "a Java class"),
    (b"\x00asm", "WebAssembly"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"\xd0\xcf\x11\xe0", "an old Office document"),
    (b"OggS", "Ogg audio or video"),
    (b"ID3", "MP3 audio"),
    (b"wOF2", "a font"),
)
OTHER_BINARY = "of an unknown binary kind"


@dataclass(frozen=True, kw_only=True)
class TextEncoding:
    """An encoding by Python's name, and the byte order mark before the text."""

    name: str = UTF8
    mark: bytes = b""

    def decode(self, data: bytes) -> str:
        """Decode the whole text; invalid UTF-8 survives a round trip. Other encodings may raise UnicodeDecodeError."""
        return data[len(self.mark) :].decode(self.name, self._errors)

    def encode(self, text: str) -> bytes:
        """Encode a text. Raises UnicodeEncodeError for a character that the encoding lacks."""
        return self.mark + text.encode(self.name, self._errors)

    def to_utf8(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the text as UTF-8 without a byte order mark, piece by piece. Unreadable bytes become U+FFFD."""
        decoder = None if self.name == UTF8 else codecs.getincrementaldecoder(self.name)("replace")
        mark_bytes = len(self.mark)
        for piece in pieces:
            data, mark_bytes = piece[mark_bytes:], max(0, mark_bytes - len(piece))
            yield decoder.decode(data).encode() if decoder else data
        if decoder:
            yield decoder.decode(b"", final=True).encode()

    @property
    def _errors(self) -> str:
        return "surrogateescape" if self.name == UTF8 else "strict"


def detect_encoding(head: bytes) -> TextEncoding | str:
    """Return the encoding of a text that begins with these bytes, or a description of a binary file."""
    for signature, kind in SIGNATURES:
        if head.startswith(signature):
            return kind
    for mark, name in MARKS:
        if head.startswith(mark):
            return TextEncoding(name=name, mark=mark)
    if b"\0" in head:
        return _detect_utf16(head) or OTHER_BINARY
    if len(CONTROLS.findall(head)) > CONTROL_SHARE * len(head):
        return OTHER_BINARY
    # Decode incrementally, because the last character may be incomplete.
    text = codecs.getincrementaldecoder(UTF8)("replace").decode(head)
    bad = text.count("\ufffd")
    if bad <= DAMAGED_SHARE * (len(text) - len(text.encode("ascii", "ignore"))):
        return TextEncoding()
    return _detect_legacy(head) or OTHER_BINARY


def _detect_utf16(head: bytes) -> TextEncoding | None:
    """Detect UTF-16 without a byte order mark in mostly Western text."""
    if len(head) % 2:
        return None
    for name, zeros in (("utf-16-le", head[1::2]), ("utf-16-be", head[0::2])):
        others = head.count(0) - zeros.count(0)
        if zeros.count(0) > ZERO_SHARE * len(zeros) and others == 0:
            # Decode incrementally, because the last character may be incomplete.
            text = codecs.getincrementaldecoder(name)("replace").decode(head)
            bad = sum(one == "\ufffd" or not (one.isprintable() or one.isspace()) for one in text)
            if bad <= CONTROL_SHARE * len(text):
                return TextEncoding(name=name)
    return None


def _detect_legacy(head: bytes) -> TextEncoding | None:
    from charset_normalizer import from_bytes  # here: most files are UTF-8, and this import is slow

    first = NOT_ASCII.search(head)
    start = max(0, head.rfind(b"\n", 0, first.start()) + 1) if first else 0
    sample = head[start : start + SAMPLE_BYTES]
    guesses = (from_bytes(sample, cp_isolation=list(names)).best() for names in LEGACY)
    best = next((TextEncoding(name=best.encoding) for best in guesses if best), None)
    # A few letters are not enough for a guess. Fall back to Latin-1, which maps every byte and so loses nothing.
    is_western = len(NOT_ASCII.findall(sample)) <= WESTERN_SHARE * len(sample)
    return best or (TextEncoding(name="iso8859_1") if is_western else None)
