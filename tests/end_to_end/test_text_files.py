"""P9, D6, F5: a file that is text is taken and read whatever its name ends in; what is none is refused as ever."""

from collections.abc import Iterator, Mapping
from io import BytesIO
from zipfile import ZipFile

import pytest

from recto.conversation.json import Json, dump, load
from recto.testing.model_server import Answer, Call
from tests.api.forms import file
from tests.documents.content import HERE
from tests.end_to_end.files import FileWorld, Talk, part, rows, words

pytestmark = pytest.mark.full

# Known by the table, unknown to everybody, none at all, and a name that begins with its dot.
TEXTS = (
    *("a.css", "a.kt", "a.swift", "a.vue", "a.rst", "a.scss", "a.conf", "a.srt", "a.tex", "a.rs", "a.go", "a.java"),
    *("a.c", "a.cpp", "a.h", "a.cs", "a.rb", "a.php", "a.sh", "a.sql", "a.ts", "a.tsx", "a.jsx", "a.ini", "a.cfg"),
    *("a.log", "a.env", "a.properties", "a.gradle", "a.proto", "a.lua", "a.r", "a.pl", "a.scala", "a.dart", "a.vtt"),
    *("a.svelte", "A.KT", "a.gpx", "a.nobody-knows", "a.b.c.d", "Makefile", ".env", ".gitignore", "a."),
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FileWorld]:
    with FileWorld(tmp_path_factory.mktemp("texts"), upload_files=100) as made:
        yield made


def contents(world: FileWorld, *uploaded: Mapping[str, Json]) -> list[str]:
    """What read_files answers of files that are said to the model, in their order."""
    talk = Talk()
    world.say(talk, [words("Here."), *[part(row) for row in uploaded]])
    first = world.response_id(talk.thread)
    ids = [f"{first}-{place}" for place in range(len(uploaded))]
    call = Call(name="read_files", arguments=dump({"ids": ids}).decode(), id="c1")
    turn = world.say(talk, "Read.", Answer(calls=(call,)))
    (shown,) = [str(sent.event["content"]) for sent in turn.events if sent.event["type"] == "TOOL_CALL_RESULT"]
    return [str(row["content"]) for row in rows(load(shown))]


def test_P9_D6_F5_text_is_taken_served_plain_and_read_under_any_name(world: FileWorld):
    uploaded = world.upload(*[file(name, f"<b>{name}</b> 文字".encode()) for name in TEXTS])
    assert [(row.get("error"), row["mimeType"]) for row in uploaded] == [(None, "text/plain")] * len(TEXTS)
    for row in uploaded:
        answer = world.get(str(row["url"]))
        assert (answer.headers["content-type"], answer.headers["x-content-type-options"]) == ("text/plain", "nosniff")
    for start in range(0, len(TEXTS), 10):
        read = contents(world, *uploaded[start : start + 10])
        assert [text.partition("]\n")[2] or text for text in read] == [
            f"<b>{name}</b> 文字" for name in TEXTS[start : start + 10]
        ]


def test_D6_a_workbook_with_macros_is_read_as_any_workbook(world: FileWorld):
    plain = (HERE / "book.xlsx").read_bytes()
    uploaded = world.upload(file("book.xlsm", with_macros(plain)), file("book.xlsx", plain), file("bad.xlsm", b"words"))
    assert uploaded[2]["code"] == "mismatch"
    macros, without = contents(world, *uploaded[:2])
    assert macros == without
    assert "[sheet 1: " in macros


def with_macros(book: bytes) -> bytes:
    """A workbook as Excel writes it under .xlsm."""
    made = BytesIO()
    with ZipFile(BytesIO(book)) as old, ZipFile(made, "w") as new:
        for one in old.infolist():
            data = old.read(one)
            if one.filename == "[Content_Types].xml":
                data = data.replace(
                    b"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml",
                    b"application/vnd.ms-excel.sheet.macroEnabled.main+xml",
                )
            new.writestr(one.filename, data)
        new.writestr("xl/vbaProject.bin", b"Attribute VB_Name" + bytes(100))
    return made.getvalue()
