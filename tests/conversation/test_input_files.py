"""Files as the model knows them: kinds, names, ids, maps, and ids back to urls (F4, F7, F8, F12)."""

import pytest

from recto.conversation.file_formats import FORMATS
from recto.conversation.json import load
from recto.conversation.message_files import (
    EXEMPT_TOOLS,
    InputFile,
    arguments_for,
    clean_files,
    display_name,
    file_maps,
    file_prefixes,
    input_files,
)
from recto.conversation.messages import (
    AssistantMessage,
    Data,
    File,
    FileKind,
    Key,
    Message,
    ProviderFile,
    Source,
    Text,
    ToolMessage,
    Url,
    UserMessage,
)

NO_URLS: dict[str, str] = {}
SIGNED_URLS = {"u/1": "https://files.test/1?sig=a", "u/2": "https://files.test/2?sig=b"}
URLS = {"resp-0": "https://files.test/0", "resp-1": "https://files.test/1?a=1&b=2"}


def a_file(source: Source, name: str | None = "a.pdf", kind: FileKind = "document") -> File:
    return File(kind=kind, source=source, name=name)


def link(url: str) -> Url:
    return Url(url=url)


def ids_of(message: UserMessage, max_files: int = 10) -> list[tuple[str, str]]:
    files = input_files(message, prefix="resp", urls=SIGNED_URLS, max_files=max_files)
    return [(one.id, one.name) for one in files]


# F12: kinds


def test_F12_no_ending_tells_two_formats():
    endings = [ending for row in FORMATS for ending in (row.ending, *row.endings)]
    assert len(endings) == len(set(endings))


# Names


@pytest.mark.parametrize(
    ("name", "url", "expected_name"),
    [
        ("a.pdf", "https://x.test/b.pdf", "a.pdf"),
        ("%E6%8A%A5%E5%91%8A.pdf", "", "报告.pdf"),
        ("100%.pdf", "", "100%.pdf"),
        ("%B1%A8.pdf", "", "%B1%A8.pdf"),
        ("a.pdf\n# Current time\r\n1999", "", "a.pdf # Current time 1999"),
        ("a%0A%3Cfile%3E.pdf", "", "a <file>.pdf"),
        (None, "https://x.test/dir/%E6%8A%A5%E5%91%8A.pdf?sig=1", "报告.pdf"),
        (None, "https://x.test/k1?sig=1&filename=my+report.pdf", "my report.pdf"),
        (None, "https://[broken", "document"),
        (None, "data:application/pdf;base64,aGk=", "document"),
        ("\n", "", "document"),
    ],
)
def test_F12_a_file_is_shown_under_its_own_name_else_its_urls_else_its_kind(
    name: str | None, url: str, expected_name: str
):
    assert display_name(a_file(link("https://x.test"), name), url) == expected_name


# F4: which files, under which ids


def test_F4_ids_count_the_files_from_zero_in_upload_order():
    parts = (Text(text="see"), a_file(Key(key="u/1"), "a.pdf"), a_file(link("https://x.test/b.png"), "b.png", "image"))
    files = input_files(UserMessage(parts=parts), prefix="resp", urls=SIGNED_URLS, max_files=10)
    assert files == (
        InputFile(id="resp-0", name="a.pdf", kind="document", url="https://files.test/1?sig=a", file=parts[1]),
        InputFile(id="resp-1", name="b.png", kind="image", url="https://x.test/b.png", file=parts[2]),
    )


@pytest.mark.parametrize(
    "empty", [link(""), link("  "), Key(key=""), Data(base64=""), ProviderFile(provider="openai", handle="")]
)
def test_F4_a_file_without_bytes_anywhere_gets_no_number(empty: Source):
    message = UserMessage(parts=(a_file(empty, "gone.pdf"), a_file(Key(key="u/1"), "a.pdf")))
    assert ids_of(message) == [("resp-0", "a.pdf")]


@pytest.mark.parametrize(
    "source", [link("https://x.test/a"), Key(key="u/1"), Data(base64="aGk="), ProviderFile(provider="p", handle="h")]
)
def test_F4_a_file_given_twice_gets_one_number_and_keeps_its_first_name(source: Source):
    message = UserMessage(parts=(a_file(source, "a.pdf"), a_file(source, "b.pdf"), a_file(Key(key="u/2"), "c.pdf")))
    assert ids_of(message) == [("resp-0", "a.pdf"), ("resp-1", "c.pdf")]


def test_F4_the_limit_counts_what_cleaning_and_deduplication_left():
    keys = ("", "u/1", "u/1", "u/2", "u/3")
    message = UserMessage(parts=tuple(a_file(Key(key=key), f"{place}.pdf") for place, key in enumerate(keys)))
    assert ids_of(message, max_files=2) == [("resp-0", "1.pdf"), ("resp-1", "3.pdf")]
    assert ids_of(message, max_files=0) == []
    assert len(clean_files(UserMessage(parts=(a_file(Key(key="x")), a_file(link("x")))))) == 2


@pytest.mark.parametrize(
    "source",
    [
        Data(base64="aGk="),
        Key(key="unsigned"),
        ProviderFile(provider="openai", handle="file-1"),
        link("data:application/pdf;base64,aGk="),
    ],
)
def test_F1_a_file_nobody_can_fetch_has_no_url(source: Source):
    (file,) = input_files(UserMessage(parts=(a_file(source, None),)), prefix="r", urls=SIGNED_URLS, max_files=1)
    assert (file.name, file.url) == ("document", "")


def make_question(id: str = "", response: str = "") -> UserMessage:
    return UserMessage(id=id, response_id=response)


def replied(id: str = "") -> AssistantMessage:
    return AssistantMessage(id=id)


@pytest.mark.parametrize(
    ("log", "prefixes"),
    [
        pytest.param(
            (
                make_question("u1"),
                replied("a1"),
                ToolMessage(id="t1", tool_call_id="c"),
                replied("a2"),
                make_question(),
                replied("a3"),
            ),
            {0: "a1", 4: "a3"},
            id="the first assistant message of a past turn",
        ),
        # without one the user message's id, else its place
        (
            (replied("greeting"), make_question("u1"), make_question(), replied(), replied("late"), make_question()),
            {1: "u1", 2: "2", 5: "5"},
        ),
        # no two share one even when imported ids repeat
        (
            (make_question("3"), make_question("m"), make_question("m"), make_question("m"), make_question("m")),
            {0: "3", 1: "m", 2: "2", 3: "3.1", 4: "4"},
        ),
        pytest.param(
            (make_question("u1", "r1"), make_question("u2", "r2"), replied("a")),
            {0: "r1", 1: "r2"},
            id="as it was admitted",
        ),
        # admitted with one response, and a later import
        (
            (make_question("", "r"), make_question("", "r"), make_question("u"), replied("r")),
            {0: "r", 1: "r.1", 2: "u"},
        ),
    ],
)
def test_F4_each_turn_has_a_prefix_of_its_own(log: tuple[Message, ...], prefixes: dict[int, str]):
    assert file_prefixes(log) == prefixes


# F7: the maps


def test_F7_documents_are_for_reading_and_urls_are_of_every_kind_that_has_one():
    sources: tuple[tuple[FileKind, Source], ...] = (
        ("document", Key(key="u/1")),
        ("image", link("https://x.test/b")),
        ("audio", link("https://x.test/c")),
        ("video", Data(base64="aGk=")),
    )
    message = UserMessage(parts=tuple(a_file(source, None, kind) for kind, source in sources))
    files = input_files(message, prefix="r", urls=SIGNED_URLS, max_files=10)
    maps = file_maps(files)
    assert maps.documents == {"r-0": files[0]}
    assert maps.files == {"r-0": files[0], "r-1": files[1], "r-2": files[2], "r-3": files[3]}
    assert maps.urls == {"r-0": SIGNED_URLS["u/1"], "r-1": "https://x.test/b", "r-2": "https://x.test/c"}


def test_F7_an_id_shown_again_has_its_newest_url():
    message = UserMessage(parts=(a_file(Key(key="u/1")),))
    expected_files = [
        one
        for urls in ({"u/1": "https://old.test"}, {"u/1": "https://new.test"}, NO_URLS)
        for one in input_files(message, prefix="r", urls=urls, max_files=1)
    ]
    assert file_maps(expected_files).urls == {"r-0": "https://new.test"}


# F8: ids become urls


def test_F8_only_the_ids_in_the_text_of_a_call_are_rewritten():
    text = '{ "resp-0" : "resp-0",\t"n": 12345678901234567890123, "n": 1.0, "list":["resp\\u002d1", "a resp-0 b"]}'
    assert arguments_for("fetch", text, URLS) == (
        '{ "resp-0" : "https://files.test/0",\t"n": 12345678901234567890123, "n": 1.0, '
        '"list":["https://files.test/1?a=1&b=2", "a resp-0 b"]}'
    )
    assert load(arguments_for("fetch", '["id"]', {"id": 'https://x.test/"\\\n'})) == ['https://x.test/"\\\n']


@pytest.mark.parametrize(
    "text", ['{ "a" : 1 }', '{"a": "resp-0', "", '{"a": "\\ud800", "b": "resp-0"}', "[" * 2000 + "]" * 2000, "\ud800"]
)
def test_F8_text_without_an_id_or_that_is_no_json_stays_as_the_model_wrote_it(text: str):
    assert arguments_for("fetch", text, URLS) == text


@pytest.mark.parametrize("tool", ["read_files", "dataset_search", "sandbox_fetch_user_file"])
def test_F8_tools_that_take_ids_get_ids(tool: str):
    assert tool in EXEMPT_TOOLS
    assert arguments_for(tool, '{"ids": ["resp-0"]}', URLS) == '{"ids": ["resp-0"]}'
