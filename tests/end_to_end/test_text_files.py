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
from tests.files.heads import BINARY, ELF, PDF, PNG, SVG, ZIP

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


@pytest.mark.parametrize("encoding", ["gb18030", "utf-16"])
def test_D6_text_of_another_encoding_is_text_under_any_name(world: FileWorld, encoding: str):
    (row,) = world.upload(file("notes.nobody-knows", ("今天天气很好，我们去公园散步。" * 20).encode(encoding)))
    (read,) = contents(world, row)
    assert "今天天气很好，我们去公园散步。" in read


NOT_TAKEN = "files ending in {} are not taken; the agent's `file_input.endings` may name more"
MISMATCH = "its name ends in {}, but its bytes are {}; send it under the name it should have"


@pytest.mark.parametrize(
    ("name", "data", "code", "error"),
    [
        ("a.nobody-knows", BINARY, "not_allowed", NOT_TAKEN.format(".nobody-knows")),
        ("a.zip", ZIP, "not_allowed", NOT_TAKEN.format(".zip")),
        ("a.qqq", PDF, "not_allowed", NOT_TAKEN.format(".qqq")),
        (".env", BINARY, "not_allowed", NOT_TAKEN.format(".env")),
        ("a.kt", BINARY, "mismatch", MISMATCH.format(".kt", "something unknown")),
        ("a.css", PNG, "mismatch", MISMATCH.format(".css", "a PNG image")),
        ("a.png", b"hello", "mismatch", MISMATCH.format(".png", "text")),
        ("a.nobody-knows", ELF, "mismatch", "it is a program, and those are never taken; send a document"),
        ("a.nobody-knows", b"", "empty", "it is empty; send a file with something in it"),
    ],
)
def test_P9_what_is_no_text_is_refused_as_ever(world: FileWorld, name: str, data: bytes, code: str, error: str):
    (row,) = world.upload(file(name, data))
    assert (row["code"], row["error"]) == (code, error)


@pytest.mark.parametrize("name", ["page.html", "drawing.svg", "drawing.nobody-knows", "a.js", "a.xml", "a.ipynb"])
def test_P9_what_a_browser_might_run_is_bytes_to_it(world: FileWorld, name: str):
    data = SVG if name.startswith("drawing") else b"<script>alert(1)</script>"
    (row,) = world.upload(file(name, data))
    answer = world.get(str(row["url"]))
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment;")


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


def test_D6_a_notebook_is_read_as_its_cells(world: FileWorld):
    cells = [
        {"cell_type": "markdown", "source": "# Plan"},
        {
            "cell_type": "code",
            "source": "1 + 1",
            "outputs": [{"output_type": "execute_result", "data": {"text/plain": "2"}}],
        },
    ]
    whole = {"cells": cells, "metadata": {"language_info": {"name": "python"}}, "nbformat": 4}
    (row,) = world.upload(file("plan.ipynb", dump(whole)))
    assert row["mimeType"] == "application/x-ipynb+json"
    (read,) = contents(world, row)
    assert read.endswith("# Plan\n\n```python\n1 + 1\n```\n\n```output\n2\n```")
