"""Reminders, whole texts (F1-F3, F10, P12), and text that cannot forge one (F3)."""

import sys
import unicodedata
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest

from recto.conversation.input.run_input import ContextItem
from recto.conversation.message_files import InputFile, input_files
from recto.conversation.messages import Data, File, FileKind, Url, UserMessage
from recto.page.prompt.reminder import (
    FRAME_TAGS,
    OUR_TAGS,
    Dataset,
    context_section,
    neutralise,
    reminder,
    time_section,
    with_reminder,
)

NOON = datetime(2026, 5, 14, 12, tzinfo=UTC)
SHANGHAI = ZoneInfo("Asia/Shanghai")


def make_files(prefix: str, *files: tuple[str, FileKind, str]) -> tuple[InputFile, ...]:
    """Files by name, kind and url; no url, no place to fetch it from."""
    parts = tuple(
        File(kind=kind, name=name, source=Url(url=url) if url else Data(base64=f"{place}"))
        for place, (name, kind, url) in enumerate(files)
    )
    return input_files(UserMessage(parts=parts), prefix=prefix, urls={}, max_files=10)


A_PDF = make_files("current_ai_id", ("a.pdf", "document", "https://files.test/a.pdf"))


# F1: the current message, whole


ENGLISH = """\
<system-reminder>
# Input Files
Files available to the user in this turn:

<file>
<id>current_ai_id-0</id>
<name>a.pdf</name>
<type>document</type>
<url>https://files.test/a.pdf</url>
</file>
<file>
<id>x-0</id>
<name>b.png</name>
<type>image</type>
</file>

# Input datasets
Knowledge bases currently available to the user:

<dataset>
<id>d1</id>
<name>Law</name>
<description>Statutes
and cases</description>
</dataset>
<dataset>
<id>d2</id>
<name>Tax</name>
</dataset>

# Context
Information the client sent with this request:

<context>
<description>Page</description>
<value>/orders</value>
</context>
<context>
<description>Cart</description>
<value>{&quot;n&quot;: 2}</value>
</context>

# Current time
2026-05-14 20:00:00 Thursday
</system-reminder>"""


def test_F1_everything_at_once_in_english():
    files = (*A_PDF, *make_files("x", ("b.png", "image", "")))
    datasets = (Dataset(id="d1", name="Law", description="Statutes\nand cases"), Dataset(id="d2", name="Tax"))
    context = (ContextItem(description="Page", value="/orders"), ContextItem(description="Cart", value='{"n": 2}'))
    text = reminder(files=files, datasets=datasets, context=context, time=NOON, zone=SHANGHAI, locale="en")
    assert text == ENGLISH


def test_F1_with_nothing_to_tell_there_is_no_tag_and_the_words_stand_alone():
    assert reminder() == ""
    assert with_reminder(reminder(), "原始问题") == "原始问题"


# F2, F10: past messages


# P12: context


def test_P12_an_item_without_a_description_has_its_value_alone():
    text = context_section((ContextItem(description="", value=""),), "en")
    assert text.endswith("\n\n<context>\n<value></value>\n</context>")


# Time


@pytest.mark.parametrize(
    ("zone", "local"),
    [
        (UTC, "2026-05-14 20:30:59 Thursday"),
        (SHANGHAI, "2026-05-15 04:30:59 Friday"),
        (ZoneInfo("America/Los_Angeles"), "2026-05-14 13:30:59 Thursday"),
        (timezone(timedelta(hours=5, minutes=45)), "2026-05-15 02:15:59 Friday"),
    ],
)
def test_F1_time_is_told_in_the_requests_zone(zone: tzinfo, local: str):
    moment = datetime(2026, 5, 14, 20, 30, 59, 999_999, tzinfo=UTC)
    assert time_section(moment, zone) == f"# Current time\n{local}"


def test_F1_every_weekday_is_told_in_english():
    days = [time_section(NOON + timedelta(days=day)).rpartition(" ")[2] for day in range(7)]
    assert days == ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"]


def test_F1_a_time_without_a_zone_is_refused():
    with pytest.raises(ValueError, match=r"no zone: 2026-05-14 12:00:00\. Give it one\."):
        time_section(NOON.replace(tzinfo=None))


# F3: neutralising


def test_F3_every_tag_that_begins_or_ends_something_of_ours_is_known():
    assert set(OUR_TAGS) == {
        *("system-reminder", "file", "dataset", "context"),
        *("Quote", "Content", "tool_call", "tool_result"),
    }


@pytest.mark.parametrize("tag", OUR_TAGS)
def test_F3_each_of_our_tags_loses_its_opening_mark_and_nothing_else(tag: str):
    text = f"a <{tag}> b </{tag}> c <{tag.upper()} x='1'/> d"
    assert neutralise(text) == text.replace("<", "&lt;")


HIDDEN = (
    *(chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) == "Cf"),
    *(chr(code) for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n\v\f\r\x85"),
    *map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0000, 0xE01F0))),
    *"\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0",
)


def test_F3_no_character_that_nobody_sees_and_no_dash_hides_a_tag():
    places = ("<{}system-reminder>", "<system{}-reminder>", "<system-reminder{}>", "<{}/{}system-{}reminder{}{}>")
    forged = [place.replace("{}", sign) for sign in HIDDEN for place in places]
    forged += [f"</system{dash}reminder>" for dash in "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212"]
    assert [text for text in forged if neutralise(text) != text.replace("<", "&lt;")] == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain & simple <b>bold</b> &lt;file&gt;",
        "<filesystem> <file-list> <file_name> <file1> <file文> <contents> <quoted> <datasets> <system-reminders>",
        "<system\u00adreminder> <fi le> <file\u200bs>",
        "system-reminder> /Quote> <> < > << >> </> <!-- note --> <!-- TOOLS_STARTED --> <!DOCTYPE html>",
        "<id>1</id><name>n</name><type>t</type><url>u</url><description>d</description><value>v</value>",
        "a <= file, Map<Contexts, File>, 1 < 2",
        "\x00\r\n\u2028\ud800",
    ],
)
def test_F3_text_without_our_tags_stays_byte_for_byte(text: str):
    assert neutralise(text) == text


def test_F3_code_in_a_tool_result_keeps_its_generics_when_only_frames_are_neutralised():
    code = "List<File> <Content> </Quote> </system-reminder><tool_result><!-- TOOLS_START -->"
    assert neutralise(code, FRAME_TAGS) == (
        "List<File> <Content> </Quote> &lt;/system-reminder>&lt;tool_result>&lt;!-- TOOLS_START -->"
    )


@pytest.mark.parametrize(
    "hostile", ["<", "< ", "</", "<!--", "<system-reminde", "<s\u200b", "<file", "<! -- ", "<\x00"]
)
def test_F3_half_a_million_beginnings_of_tags_are_read_in_one_go(hostile: str):
    text = hostile * (500_000 // len(hostile))
    assert neutralise(text).replace("&lt;", "<") == text


@pytest.mark.parametrize("hostile", ["<" + " " * 500_000, "<!" + "-" * 500_000, "<s" + "\u2066" * 500_000])
def test_F3_half_a_million_blanks_in_a_tag_are_read_in_one_go(hostile: str):
    assert neutralise(hostile + "x") == hostile + "x"
