"""File types: bytes and name decide together and must agree (P9)."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.file_formats import FORMATS, ending_for, type_for
from recto.conversation.messages import FileKind
from recto.errors import FileRefused
from recto.files.file_type import HEAD_BYTES, FileType, detect_type
from tests.files import heads
from tests.test_docs import read

TRUE_NAMES: list[tuple[bytes, str, FileKind, str]] = [
    *((heads.PNG, "a.png", "image", "image/png"), (heads.JPEG, "a.JPEG", "image", "image/jpeg")),
    *((heads.GIF, "a.gif", "image", "image/gif"), (heads.WEBP, "a.webp", "image", "image/webp")),
    *((heads.BMP, "a.bmp", "image", "image/bmp"), (heads.TIFF, "a.tif", "image", "image/tiff")),
    *((heads.ICO, "a.ico", "image", "image/x-icon"), (heads.HEIC, "a.heic", "image", "image/heic")),
    *((heads.AVIF, "a.avif", "image", "image/avif"), (heads.SVG, "a.svg", "image", "image/svg+xml")),
    *((b"<svg>", "a.svg", "image", "image/svg+xml"), (heads.MP3, "a.mp3", "audio", "audio/mpeg")),
    *((heads.MP3_TAGGED, "a.mp3", "audio", "audio/mpeg"), (heads.WAV, "a.wav", "audio", "audio/wav")),
    *((heads.FLAC, "a.flac", "audio", "audio/flac"), (heads.OGG, "a.ogg", "audio", "audio/ogg")),
    *((heads.OGG, "a.opus", "audio", "audio/ogg"), (heads.M4A, "a.m4a", "audio", "audio/mp4")),
    *((heads.AAC, "a.aac", "audio", "audio/aac"), (heads.AMR, "a.amr", "audio", "audio/amr")),
    *((heads.ASF, "a.wma", "audio", "audio/x-ms-wma"), (heads.MP4, "a.mp4", "video", "video/mp4")),
    *((heads.MOV, "a.mov", "video", "video/quicktime"), (heads.OLD_MOV, "a.mov", "video", "video/quicktime")),
    *((heads.THREE_GP, "a.3gp", "video", "video/3gpp"), (heads.WEBM, "a.webm", "video", "video/webm")),
    *((heads.MKV, "a.mkv", "video", "video/x-matroska"), (heads.AVI, "a.avi", "video", "video/x-msvideo")),
    *((heads.MPEG, "a.mpg", "video", "video/mpeg"), (heads.FLV, "a.flv", "video", "video/x-flv")),
    *((heads.ASF, "a.wmv", "video", "video/x-ms-wmv"), (heads.PDF, "a.pdf", "document", "application/pdf")),
    (heads.LATE_PDF, "a.pdf", "document", "application/pdf"),
    (heads.ZIP, "a.docx", "document", type_for("docx")),
    (heads.ZIP, "a.xlsx", "document", type_for("xlsx")),
    (heads.ZIP, "a.epub", "document", "application/epub+zip"),
    (heads.OLE, "a.doc", "document", "application/msword"),
    (heads.OLE, "a.msg", "document", "application/vnd.ms-outlook"),
    # With a password on it.
    (heads.OLE, "a.xlsx", "document", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    (heads.RTF, "a.rtf", "document", "application/rtf"),
    (heads.RTF, "a.doc", "document", "application/msword"),
    (b"<html><table></table></html>", "a.xls", "document", "application/vnd.ms-excel"),
    (b"<html></html>", "a.doc", "document", "application/msword"),
    *((b"a,b\n", "a.csv", "document", "text/csv"), (b"print(1)\n", "a.py", "document", "text/x-python")),
    *((b"let a: number\n", "a.ts", "document", "text/plain"), (heads.SVG, "a.xml", "document", "application/xml")),
    (heads.RTF, "a.txt", "document", "text/plain"),
]
# Bytes under the name of another format of the same kind: the bytes decide the type.
OTHER_FORMATS: list[tuple[bytes, str, FileKind, str]] = [
    *((heads.PNG, "a.jpg", "image", "image/png"), (heads.SVG, "a.png", "image", "image/svg+xml")),
    *((heads.FLAC, "a.mp3", "audio", "audio/flac"), (heads.MKV, "a.mp4", "video", "video/x-matroska")),
]
# Containers of sound, with or without pictures.
NAME_DECIDES: list[tuple[bytes, str, FileKind, str]] = [
    *((heads.MP4, "a.m4a", "audio", "audio/mp4"), (heads.M4A, "a.mp4", "video", "video/mp4")),
    *((heads.WEBM, "a.opus", "audio", "audio/webm"), (heads.OGG, "a.webm", "video", "video/ogg")),
    (heads.THREE_GP, "a.amr", "audio", "audio/3gpp"),
]
BYTES_DECIDE: list[tuple[bytes, str, FileKind, str]] = [
    *((heads.PNG, "image", "image", "image/png"), (heads.SVG, "drawing", "image", "image/svg+xml")),
    *((heads.MP4, "clip.unknown", "video", "video/mp4"), (heads.M4A, "voice", "audio", "audio/mp4")),
    *((heads.PDF, "paper", "document", "application/pdf"), (heads.ZIP, "a.zip", "document", "application/zip")),
    *((heads.GZIP, "a.gz", "document", "application/gzip"), (b"hello", "README", "document", "text/plain")),
    (heads.BINARY, "data.bin", "document", "application/octet-stream"),
    (b"\0", "", "document", "application/octet-stream"),
]
LIES = [
    *((heads.PNG, "a.mp3"), (heads.PNG, "a.pdf"), (heads.PNG, "a.txt"), (heads.MP3, "a.mp4"), (heads.MP3, "a.png")),
    *((heads.WAV, "a.avi"), (heads.AVI, "a.wav"), (heads.PDF, "a.png"), (heads.PDF, "a.docx"), (heads.PDF, "a.txt")),
    *((heads.PDF, "a.doc"), (heads.ZIP, "a.pdf"), (heads.ZIP, "a.doc"), (heads.ZIP, "a.csv"), (heads.OLE, "a.odt")),
    *((heads.RTF, "a.xls"), (heads.RTF, "a.docx"), (heads.GZIP, "a.json"), (heads.BINARY, "a.txt")),
    *((heads.BINARY, "a.png"), (heads.BINARY, "a.xls"), (heads.BINARY, "a.mp3"), (b"hello", "a.png")),
    *((b"hello", "a.pdf"), (b"hello", "a.docx"), (b"hello", "a.ppt"), (b"hello", "a.rtf")),
    *((b"<html><svg></svg></html>", "a.svg"), (b"<!-- never closed <svg>", "a.svg")),
    (b" " * 1100 + heads.PDF, "a.pdf"),
    # A search in quadratic time would take minutes for these.
    *((head, "a.svg") for head in (b"<!--" * 16_000, b"<?" * 32_000, b"<!DOCTYPE" * 7_000, b"<!-- -->" * 8_000)),
    # Bytes in no encoding.
    *((b"\xff\xfe\0\xd8a\0", "a.txt"), (b"\xff\xfe\0\0\xff\xff\xff\xff", "a.txt"), (b"\xef\xbb\xbf\xff", "a.txt")),
    *((b"a\0b", "a.txt"), (b"\0\0\0", "a.txt"), (b"\x89\0\x8a\0", "a.txt"), (b"\x80\x01\x02\x03", "a.txt")),
]
PROGRAMS = [heads.ELF, heads.PE, heads.MACH_O, heads.FAT_MACH_O]


@pytest.mark.parametrize(("head", "name", "kind", "mime"), [*TRUE_NAMES, *OTHER_FORMATS, *NAME_DECIDES, *BYTES_DECIDE])
def test_P9_bytes_and_name_together_say_what_a_file_is(head: bytes, name: str, kind: FileKind, mime: str):
    assert detect_type(head, name, None) == FileType(kind=kind, mime_type=mime)


@pytest.mark.parametrize(("head", "name"), LIES)
def test_P9_bytes_that_are_not_what_the_name_says_are_refused(head: bytes, name: str):
    with pytest.raises(FileRefused) as error:
        detect_type(head, name, None)
    assert error.value.code == "mismatch"
    assert f".{name.rpartition('.')[2]}" in str(error.value)


@pytest.mark.parametrize("name", ["a.txt", "a.pdf", "a.exe", "a.png", "a"])
@pytest.mark.parametrize("head", PROGRAMS)
def test_P9_a_program_is_refused_under_any_name(head: bytes, name: str):
    with pytest.raises(FileRefused, match="program") as error:
        detect_type(head, name, "text/plain")
    assert error.value.code == "mismatch"


@pytest.mark.parametrize("encoding", list(heads.TEXTS))
def test_P9_text_is_text_in_whatever_encoding(encoding: str):
    assert detect_type(heads.TEXTS[encoding], "a.csv", None) == FileType(kind="document", mime_type="text/csv")


def test_P9_a_character_cut_off_where_we_stop_looking_does_not_make_text_binary():
    head = ("a" + "中" * HEAD_BYTES).encode()[:HEAD_BYTES]
    assert detect_type(head, "a.txt", None).mime_type == "text/plain"


def test_P9_what_the_sender_declares_never_wins_over_bytes_or_name():
    assert detect_type(heads.PNG, "a", "application/pdf").mime_type == "image/png"
    assert detect_type(b"a,b", "a.csv", "image/png").mime_type == "text/csv"
    assert detect_type(b"hello", "a", "image/png") == FileType(kind="document", mime_type="text/plain")
    assert detect_type(heads.BINARY, "a", "text/csv").mime_type == "application/octet-stream"
    # It distinguishes texts without an extension.
    assert detect_type(b"a,b", "table", "text/CSV; charset=utf-8").mime_type == "text/csv"
    assert detect_type(b"a,b", "table", "text/unheard-of").mime_type == "text/plain"


ENDINGS = {ending: row.kind for row in FORMATS for ending in (row.ending, *row.endings)}


@given(
    st.binary(max_size=300) | st.sampled_from([head for head, *_ in (*TRUE_NAMES, *BYTES_DECIDE)]),
    st.integers(0, 300),
    st.text(max_size=20) | st.sampled_from(list(ENDINGS)),
    st.none() | st.text(max_size=20) | st.sampled_from([row.mime_type for row in FORMATS]),
)
def test_P9_any_beginning_under_any_name_is_typed_or_refused(head: bytes, size: int, ending: str, declared_type: str):
    try:
        file_type = detect_type(head[:size], f"a.{ending}", declared_type)
    except FileRefused as refused:
        assert refused.code == "mismatch"
    else:
        assert "/" in file_type.mime_type
        assert file_type.kind == ENDINGS.get(ending, file_type.kind)


def test_P9_every_format_has_a_type_of_its_own_that_fits_its_kind():
    types = [mime_type for row in FORMATS for mime_type in (row.mime_type, *row.mime_types)]
    assert len(types) == len(set(types))
    for row in FORMATS:
        is_document = row.kind == "document"
        begins = ("text/", "application/", "message/") if is_document else (f"{row.kind}/",)
        assert all(one == one.lower() for one in (row.ending, *row.endings, row.mime_type, *row.mime_types)), row
        assert row.mime_type.startswith(begins), row
        assert is_document or row.parser is None, row


@pytest.mark.parametrize(
    ("mime", "ending"),
    [
        *(("image/png", ".png"), ("IMAGE/JPEG; q=1", ".jpg"), ("text/html", ".html"), ("text/plain", ".txt")),
        *(("application/yaml", ".yaml"), ("audio/x-wav", ".wav"), ("made/up", ""), (None, "")),
    ],
)
def test_P9_a_type_has_a_usual_ending(mime: str | None, ending: str):
    assert ending_for(mime) == ending


def test_D6_the_page_on_reading_names_every_format_that_is_more_than_text():
    table = read("docs/reading.md").partition("## Formats")[2].partition("## ")[0]
    names = set(re.findall(r"[a-z]+", table))
    assert [row.ending for row in FORMATS if row.parser and row.ending not in names] == []
