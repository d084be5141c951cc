"""History (P13): which messages people are shown, on which day of their zone, and in what form."""

from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.history import DAY, LATEST, day_of, history_row, is_in_history, midnight
from recto.conversation.json import dump
from recto.conversation.messages import (
    AssistantMessage,
    File,
    Key,
    Opaque,
    ReasoningMessage,
    Text,
    ToolCall,
    ToolMessage,
    Url,
    UserMessage,
)
from recto.conversation.ui.compile_ui import compile_ui

TIME = datetime(2026, 3, 1, 12, tzinfo=UTC)
CALL = ToolCall(id="c", name="look", arguments="{}")
REASONING = Opaque(provider="p", model=None, place="block", name="thinking", data="{}")
HINTS = {"title": "Done", "status": "success"}
# Clocks go back over midnight, skip it, skip a whole day, shift by half an hour.
ZONES = (
    *("UTC", "Asia/Shanghai", "America/St_Johns", "America/Sao_Paulo", "Pacific/Apia", "Australia/Lord_Howe"),
    *("America/Havana", "Asia/Beirut", "Africa/Cairo", "America/Nuuk"),
)


def no_url(_file: File) -> str | None:
    return None


def sign(file: File) -> str | None:
    return f"https://signed.test/{file.name}" if isinstance(file.source, Key) else None


@pytest.mark.parametrize(
    ("parts", "history_rows"),
    [
        ((), False),
        ((Text(text=" \n"), CALL), False),
        ((REASONING,), False),
        ((Text(text="Hi"),), True),
        ((REASONING, Text(text="Hi"), CALL), True),
    ],
)
def test_P13_an_assistant_that_says_nothing_is_not_in_it(
    parts: tuple[Text | ToolCall | Opaque, ...], history_rows: bool
):
    assert is_in_history(AssistantMessage(parts=parts)) is history_rows
    assert is_in_history(UserMessage())
    assert is_in_history(ToolMessage(tool_call_id="c"))
    assert not is_in_history(ReasoningMessage(text="hm"))


# Rows


def test_P13_a_user_row_has_the_fields_of_the_seed_in_its_order():
    here = TIME.astimezone(timezone(timedelta(hours=9)))
    row = history_row(UserMessage(id="m", seq=3, time=here, parts=(Text(text="Hi"),)), no_url)
    assert list(row.items()) == [
        ("id", "m"),
        ("seq", 3),
        ("role", "user"),
        ("content", "Hi"),
        ("url", None),
        ("files", []),
        ("timestamp", "2026-03-01T12:00:00.000Z"),
    ]


def test_P10_files_have_urls_signed_anew_and_those_that_have_none_are_left_out():
    one, two = (File(kind="document", source=Key(key=name), name=name, mime_type="text/plain") for name in "ab")
    missing_file = File(kind="image", source=Url(url="https://gone.test"))
    row = history_row(UserMessage(time=TIME, parts=(missing_file, Text(text="x"), one, two)), sign)
    files = [
        {"id": name, "name": name, "type": "document", "mimeType": "text/plain", "url": f"https://signed.test/{name}"}
        for name in "ab"
    ]
    assert (row["url"], row["files"], row["content"]) == ("https://signed.test/a", files, "x")


def test_P13_the_texts_of_a_user_are_lines_and_those_of_others_one_text():
    parts = (Text(text="a"), Text(text="b"))
    assert history_row(UserMessage(time=TIME, parts=parts), no_url)["content"] == "a\nb"
    assert history_row(AssistantMessage(time=TIME, parts=parts), no_url)["content"] == "ab"


def test_P14_hints_of_a_tool_result_become_its_schema_and_its_content_stays():
    words = dump({"ok": True, "ui_hints": HINTS}).decode()
    row = history_row(ToolMessage(id="t", time=TIME, tool_call_id="c", parts=(Text(text=words),)), no_url)
    assert (row["uiSchema"], row["content"], "url" in row) == (compile_ui(HINTS), words, False)


def test_P14_hints_of_an_answer_become_its_schema_and_its_words_are_its_content():
    message = AssistantMessage(time=TIME, parts=(Text(text=dump({"content": "Done.", "ui_hints": HINTS}).decode()),))
    row = history_row(message, no_url)
    assert (row["uiSchema"], row["content"]) == (compile_ui(HINTS), "Done.")


# Days


@given(st.datetimes(datetime(1990, 1, 1), datetime(2030, 1, 1)), st.sampled_from(ZONES))
def test_P13_every_moment_is_in_the_day_that_has_begun_and_not_ended(naive: datetime, name: str):
    zone, moment = ZoneInfo(name), naive.replace(tzinfo=UTC)
    day = day_of(moment, zone)
    assert midnight(day, zone) <= moment < midnight(day + DAY, zone)
    # What the clock says, but for the hour that comes twice around a midnight.
    assert abs(moment.astimezone(zone).date() - day) <= timedelta(days=1)


@given(st.dates(date(1990, 1, 1), date(2030, 1, 1)), st.sampled_from(ZONES))
def test_P13_days_follow_each_other_without_gap_or_overlap(day: date, name: str):
    zone = ZoneInfo(name)
    assert midnight(day, zone) <= midnight(day + DAY, zone) <= midnight(day, zone) + timedelta(hours=49)


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", date(2026, 3, 29), 23),
        ("Europe/Berlin", date(2026, 10, 25), 25),
        ("America/Havana", date(2026, 11, 1), 25),
        ("Pacific/Apia", date(2011, 12, 30), 0),
    ],
)
def test_P13_a_day_is_as_long_as_its_clocks_make_it(zone: str, day: date, hours: int):
    where = ZoneInfo(zone)
    assert midnight(day + DAY, where) - midnight(day, where) == timedelta(hours=hours)


@pytest.mark.parametrize("hours", [-12, 0, 14])
def test_P13_the_first_and_the_last_day_there_are_have_a_beginning(hours: int):
    zone = timezone(timedelta(hours=hours))
    assert midnight(date.min, zone) <= datetime.min.replace(tzinfo=UTC) + timedelta(hours=12)
    assert LATEST - timedelta(days=2) <= midnight(date.max, zone) <= LATEST
