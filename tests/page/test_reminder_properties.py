"""For any name, text, value and budget: reminders and quotes cannot be forged, ids resolve, cuts say so."""

import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime

import orjson
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.input.run_input import ContextItem
from recto.conversation.json import Json
from recto.conversation.message_files import InputFile, arguments_for, file_prefixes, input_files
from recto.conversation.messages import AssistantMessage, File, FileKind, Key, Message, UserMessage
from recto.page.prompt.quote import ParsedDocument, join_documents, quote_message
from recto.page.prompt.reminder import OUR_TAGS, Dataset, Locale, escape, neutralise, reminder, with_reminder
from tests.page.counters import CharacterCounter
from tests.page.log_strategies import logs

Block = tuple[str, dict[str, str]]

NOON = datetime(2026, 5, 14, 12, tzinfo=UTC)
KINDS: tuple[FileKind, ...] = ("document", "image", "audio", "video")
LOCALES: tuple[Locale, ...] = ("zh", "en")
PIECES = (
    *("<system-reminder>", "</system-reminder>", "</System-Reminder x='1'>", "system-reminder", "< / file ", "<file>"),
    *("</file>", "</name>", "<id>x-0</id>", "<filesystem>", "<Quote>", "</quote>", "<Content>", "</Content"),
    *("</context>", "</value>", "<tool_result>", "</tool_call>", "<!-- TOOLS_START -->", "<!--", "TOOLS_END"),
    *("# Current time\n", "File: a", "<", ">", "/", "＜", "＞", "&", "&lt;", "&amp;", "'", '"', " ", "\n", "\u200b"),
    *("<system\u2066-reminder", "<\u202dfile", "</system\u2011reminder", "<file\ufe0f", "<\x00/file", '<file"x">'),
    *("\u061c", "\u180e", "\ufe0f", "\U000e0041", "\x00", "\x9f", "\u2010", "\u2212", "-", ".", "x", "<!--TOOLS_END"),
    *(
        "<!--tools_end-->",
        "<!  ----  TOOLS_END",
        "<!\u2010\u2015 TOOLS_START -->",
        "<system-reminder:x>",
        "******",
        "<dataset>",
        "{{quote}}",
    ),
    *("<\u200bsystem\u00ad-reminder\ufeff>", "＜／system-reminder＞", "</system-reminder]", "<\n\tcontext\nid='1'>"),
)
# Unseen although Unicode calls them letters, marks or nothing yet.
ALSO_UNSEEN = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2065\u3164\uffa0"
WIDE = str.maketrans("＜﹤＞﹥／", "<<>>/")
DASHES = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-"))


def hostile(max_pieces: int = 8) -> st.SearchStrategy[str]:
    """Text made to break out of where it is put, and any other."""
    piece = st.one_of(st.sampled_from(PIECES), st.text(max_size=4))
    return st.lists(piece, max_size=max_pieces).map("".join)


def shown_files() -> st.SearchStrategy[InputFile]:
    return st.builds(
        InputFile,
        id=hostile(),
        name=hostile(),
        kind=st.sampled_from(KINDS),
        url=hostile(),
        file=st.just(File(kind="document", source=Key(key="k"))),
    )


def datasets() -> st.SearchStrategy[Dataset]:
    return st.builds(Dataset, id=hostile(), name=hostile(), description=hostile())


def items() -> st.SearchStrategy[ContextItem]:
    return st.builds(ContextItem, description=hostile(), value=hostile())


def documents() -> st.SearchStrategy[ParsedDocument]:
    content = st.tuples(hostile(), st.integers(1, 40)).map(lambda pair: pair[0] * pair[1])
    return st.builds(ParsedDocument, name=hostile(), content=content, failed=st.booleans())


# Reminders


@given(
    st.lists(shown_files(), max_size=3),
    st.lists(datasets(), max_size=3),
    st.lists(items(), max_size=3),
    st.sampled_from(LOCALES),
)
def test_F3_no_name_id_url_or_value_forges_anything_in_a_reminder(
    files: list[InputFile], rows: list[Dataset], context: list[ContextItem], locale: Locale
):
    text = reminder(files=files, datasets=rows, context=context, time=NOON, locale=locale)
    assert blocks_of(text) == [*map(file_block, files), *map(dataset_block, rows), *map(context_block, context)]


@given(st.lists(shown_files(), max_size=3), hostile())
def test_F1_the_reminder_stands_before_the_words_and_the_words_are_untouched(files: list[InputFile], words: str):
    text = reminder(files=files)
    visible = with_reminder(text, words)
    assert visible.startswith(text)
    assert visible.endswith(words)
    assert len(visible) == len(text) + len(words) + (2 if text and words else 0)


@given(hostile())
def test_F3_an_escaped_value_comes_back_and_holds_no_mark_of_a_tag(value: str):
    assert unescaped(escape(value)) == value
    assert not set("<>\"'") & set(escape(value))


# Neutralised text


@given(hostile(20))
def test_F3_no_text_keeps_a_tag_of_ours(text: str):
    assert tags_in(neutralise(text)) == []


@given(hostile(20))
def test_F3_only_the_openings_of_our_tags_change(text: str):
    places = tags_in(text)
    expected = "".join("&lt;" if place in places else character for place, character in enumerate(text))
    assert neutralise(text) == expected


# Ids


@given(st.lists(st.sampled_from([kind(id=id) for id in ("", "1", "a") for kind in (UserMessage, AssistantMessage)])))
def test_F4_each_turn_has_file_ids_of_its_own_that_stay_as_the_log_grows(log: list[Message]):
    whole = file_prefixes(log)
    assert len(set(whole.values())) == len(whole) == sum(isinstance(message, UserMessage) for message in log)
    for end in whole:
        prefixes = file_prefixes(log[:end])
        assert prefixes == {place: whole[place] for place in prefixes}


@given(logs(), st.integers(0, 3))
def test_F4_ids_count_from_zero_without_a_gap_and_keep_the_limit(log: tuple[Message, ...], most: int):
    for message in (message for message in log if isinstance(message, UserMessage)):
        files = input_files(message, prefix="r", urls={}, max_files=most)
        assert [one.id for one in files] == [f"r-{place}" for place in range(len(files))]
        assert len(files) <= most


IDS = {"r-0": "https://x.test/0", "r-1": 'https://x.test/"1"', "__proto__": "https://x.test/2"}


def arguments() -> st.SearchStrategy[Json]:
    words = st.one_of(st.sampled_from((*IDS, "r-00", " r-0", "constructor")), st.text(max_size=4))
    leaves = st.one_of(words, st.none(), st.booleans(), st.integers(-(2**53), 2**53))
    return st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3))


@given(arguments())
def test_F8_the_text_of_a_call_says_what_its_value_says(value: Json):
    text = orjson.dumps(value).decode()
    call_arguments = arguments_for("fetch", text, IDS)
    assert orjson.loads(call_arguments) == walked(value)
    assert (call_arguments == text) == (walked(value) == value)


@given(arguments(), st.sampled_from(("", " ", "\n\t")))
def test_F8_arguments_without_ids_stay_as_they_were_written(value: Json, blank: str):
    text = blank + orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + blank
    assert arguments_for("fetch", text, {"another": "https://x.test"}) == text


# Quotes


@given(st.lists(documents(), min_size=1, max_size=4), st.integers(0, 900))
def test_D2_a_quote_never_exceeds_its_budget_and_says_what_was_cut(given_documents: list[ParsedDocument], budget: int):
    counter = CharacterCounter()
    quote = quote_message(given_documents, budget=budget, counter=counter)
    assert quote is not None
    whole = counter.count([join_documents(given_documents)])[0] + len(FRAME.format(quote=""))
    assert quote.tokens_before == whole
    assert quote.tokens_after == len(quote.text) <= max(budget, 0)
    assert (quote.reason != "the documents of this conversation") == bool(quote.cuts) == (whole > budget)
    assert quote.text.count("已截断") == sum(1 for cut in quote.cuts if cut.tokens_after)


@given(st.lists(documents(), min_size=1, max_size=4), st.integers(1400, 2500))
def test_F3_no_document_breaks_out_of_its_block_whole_or_cut(given_documents: list[ParsedDocument], budget: int):
    quote = quote_message(given_documents, budget=budget, counter=CharacterCounter())
    assert quote is not None
    head, tail = FRAME.split("{quote}")
    assert quote.text.startswith(head)
    assert quote.text.endswith(tail)
    inner = quote.text[len(head) : -len(tail)]
    assert [inner[place : place + 9] for place in tags_in(inner)] == ["<Content>", "</Content"] * len(given_documents)


@given(hostile(20), st.integers(150, 300))
def test_F3_no_given_text_ends_the_quote(text: str, budget: int):
    quote = quote_message(f"x{text}", budget=budget, counter=CharacterCounter())
    assert quote is not None
    tags = [tag for tag in OUR_TAGS if tag != "Content"]
    openings = [quote.text[place : place + 8] for place in tags_in(quote.text, tags)]
    assert openings == ["<Quote><", "</Quote>", "<Quote>\n", "</Quote>"]


FRAME = "将 <Quote></Quote> 中的内容作为本次对话的参考:\n<Quote>\n{quote}\n</Quote>"


# A reader that shares nothing with the writer


def blocks_of(text: str) -> list[Block]:
    """Every block of a reminder, read tag by tag. Fails on a tag where none may stand."""
    opening, closing = "<system-reminder>\n", "\n</system-reminder>"
    assert text.startswith(opening)
    assert text.endswith(closing)
    assert (text.count("<system-reminder"), text.count("</system-reminder")) == (1, 1)
    rest = text[len(opening) : -len(closing)]
    blocks: list[Block] = []
    while "<" in rest:
        tag, rest = rest.partition("<")[2].split(">", 1)
        assert tag in {"file", "dataset", "context"}
        inside, rest = rest.split(f"</{tag}>", 1)
        blocks.append((tag, fields_of(inside)))
    return blocks


def fields_of(inside: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    while "<" in inside:
        before, inside = inside.split("<", 1)
        name, inside = inside.split(">", 1)
        value, inside = inside.split(f"</{name}>", 1)
        assert before == "\n"
        assert name not in fields
        fields[name] = unescaped(value)
    assert inside == "\n"
    return fields


def unescaped(value: str) -> str:
    first, *rest = value.split("&")
    entities = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
    pairs = [part.split(";", 1) for part in rest]
    return first + "".join(entities[name] + after for name, after in pairs)


def file_block(one: InputFile) -> Block:
    return "file", {"id": one.id, "name": one.name, "type": one.kind} | ({"url": one.url} if one.url else {})


def dataset_block(one: Dataset) -> Block:
    described = {"description": one.description} if one.description else {}
    return "dataset", {"id": one.id, "name": one.name} | described


def context_block(one: ContextItem) -> Block:
    return "context", ({"description": one.description} if one.description else {}) | {"value": one.value}


def tags_in(text: str, tags: Sequence[str] = OUR_TAGS) -> list[int]:
    """Where our tags open, as a reader sees them: characters nobody sees are not there, wide ones are narrow."""
    marks = [place for place, character in enumerate(text) if character in "<＜﹤"]
    return [place for place in marks if opens_one(text[place + 1 : place + 100], tags)]


def opens_one(rest: str, tags: Sequence[str]) -> bool:
    visible = "".join(filter(is_seen, rest)).translate(WIDE).lower().lstrip()
    if visible.startswith("!"):
        dashes = visible[1:].lstrip().translate(DASHES)
        name = dashes.lstrip("-").lstrip()
        after = name.removeprefix("tools_start").removeprefix("tools_end")
        return dashes.startswith("--") and after != name and not (after[:1].isalnum() or after[:1] == "_")
    name = visible.removeprefix("/").lstrip()
    return any(ends(name, tag.lower()) for tag in tags)


def ends(name: str, tag: str) -> bool:
    after = name[len(tag) : len(tag) + 1]
    return name[: len(tag)].translate(DASHES) == tag and not (after.isalnum() or after in {"_", "-"})


def is_seen(character: str) -> bool:
    code = ord(character)
    if character in "\t\n\v\f\r\x85":
        return True
    if character in ALSO_UNSEEN or 0xFE00 <= code <= 0xFE0F or 0xFFF0 <= code <= 0xFFF8 or 0xE0000 <= code <= 0xE0FFF:
        return False
    return unicodedata.category(character) not in {"Cf", "Cc"} and not 0x13439 <= code <= 0x1343F


def walked(value: Json) -> Json:
    match value:
        case str():
            return IDS.get(value, value)
        case dict():
            return {key: walked(inner) for key, inner in value.items()}
        case list():
            return [walked(inner) for inner in value]
        case _:
            return value
