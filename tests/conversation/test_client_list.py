"""A client's whole list against the log: what is new of it, and what it no longer shows (P15)."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.input.client_list import ListReading, new_in_list, read_list, roll_back_unlisted, without_part
from recto.conversation.input.input_entries import AdmittedRun, admit_input
from recto.conversation.input.run_input import ListedIds, PersonDecision, ResumeItem, RunInput, decode_input, read_notes
from recto.conversation.json import Json, Object
from recto.conversation.log import ConfirmAsked, Entry, Interrupted, RolledBack, View, view
from recto.conversation.messages import AssistantMessage, File, Key, Text, ToolCall, ToolMessage, UserMessage

NOW = datetime(2026, 5, 14, tzinfo=UTC)


def user(id: str, words: str = "", client_id: str | None = None) -> UserMessage:
    return UserMessage(id=id, parts=(Text(text=words or f"words of {id}"),), client_id=client_id)


def reply(id: str, *calls: str) -> AssistantMessage:
    tool_calls = [ToolCall(id=call, name="pick", arguments="{}", runner="client") for call in calls]
    return AssistantMessage(id=id, parts=(Text(text="said"), *tool_calls))


def result(id: str, call: str) -> ToolMessage:
    return ToolMessage(id=id, tool_call_id=call, parts=(Text(text="picked"),))


def user_row(id: str, words: str = "") -> Object:
    return {"id": id, "role": "user", "content": words or f"words of {id}"}


def copy(id: str, *calls: str) -> Object:
    call_rows: list[Json] = [
        {"id": call, "type": "function", "function": {"name": "pick", "arguments": "{}"}} for call in calls
    ]
    return {"id": id, "role": "assistant", "content": "a copy", **({"toolCalls": call_rows} if calls else {})}


def result_row(id: str, call: str) -> Object:
    return {"id": id, "role": "tool", "toolCallId": call, "content": "picked"}


def make_input(*rows: Json) -> RunInput:
    """The input that a list becomes."""
    new = new_in_list(rows)
    run_input = decode_input({"threadId": "t", "runId": "r", "messages": list(new.messages)})
    return RunInput(thread="t", run="r", messages=run_input.messages, listed_ids=new.listed_ids)


TALK = (user("u1"), reply("a1"), user("u2"), reply("a2"))
WAITING = (user("u1"), reply("a1", "c1"))
SYSTEM: Object = {"id": "s", "role": "system", "content": "be brief"}


@pytest.mark.parametrize(
    ("log", "rows", "back_to", "accepted"),
    [
        pytest.param(
            TALK, [user_row("u1"), copy("a1"), user_row("u2"), copy("a2"), user_row("u3")], None, ["u3"], id="the next"
        ),
        pytest.param(TALK, [user_row("u3")], None, ["u3"], id="only what is new"),
        pytest.param(TALK, [user_row("u1"), copy("a1"), user_row("u2")], "a2", [], id="the last answer again"),
        pytest.param(TALK, [user_row("u1")], "a1", [], id="an earlier answer again"),
        pytest.param(
            TALK, [user_row("u1"), copy("a1"), user_row("u2", "other")], "u2", ["u2"], id="other words under its id"
        ),
        pytest.param(
            TALK, [user_row("u1"), copy("a1"), user_row("bad"), user_row("u3")], "u2", ["u3"], id="one that was refused"
        ),
        pytest.param(TALK, [user_row("u1"), copy("a1"), user_row("u2"), copy("a2")], None, [], id="nothing new"),
        pytest.param(TALK, [user_row("u1"), copy("a1")], None, [], id="nothing new, and stale"),
        pytest.param((user("u1"),), [user_row("u1")], None, [], id="no answer yet"),
        pytest.param(WAITING, [user_row("u1"), copy("a1", "c1"), result_row("r1", "c1")], None, ["r1"], id="a result"),
        pytest.param(WAITING, [user_row("u1"), result_row("r1", "c1")], None, ["r1"], id="a result without its call"),
        pytest.param(WAITING, [user_row("u1")], "a1", [], id="the question again, while a call waits"),
        pytest.param(
            (user("u1"), reply("a1", "c1", "c2"), result("r1", "c1")),
            [user_row("u1"), copy("a1", "c1", "c2"), result_row("r2", "c2"), result_row("r1", "c1")],
            None,
            ["r2"],
            id="a result that stands before one that is known",
        ),
        pytest.param(
            (user("u1"), reply("a1", "c1"), result("r1", "c1"), reply("a2")),
            [user_row("u1"), copy("a1", "c1"), user_row("u2")],
            "a2",
            ["u2"],
            id="results stay with their calls",
        ),
        pytest.param(
            (user("u1", client_id="m"), reply("a1"), user("x2", client_id="m"), reply("a2")),
            [user_row("m", "words of x2")],
            "a2",
            [],
            id="an id that was used twice is the newest that came under it",
        ),
        # an id that is used for everything
        ((user("m", "one"), reply("a1")), [user_row("m", "one"), copy("a1"), user_row("m", "two")], None, ["m"]),
        pytest.param(TALK, [7, None, {"role": "user"}, "x", user_row("u3")], None, ["u3"], id="what is no message"),
    ],
)
def test_P15_the_list_says_what_is_seen(
    log: tuple[Entry, ...], rows: list[Json], back_to: str | None, accepted: list[str]
):
    client_list = read_list(view(log), make_input(*rows))
    assert (client_list.back_to, [message.id for message in client_list.messages]) == (back_to, accepted)


FILE = File(kind="image", source=Key(key="k"))


@pytest.mark.parametrize(
    ("files", "left_out", "back_to"),
    [
        pytest.param((FILE,), (), "a1", id="the same file"),
        pytest.param((), ("a.png: the url has expired.",), "a1", id="a file that cannot be had any more"),
        pytest.param((), (), "u1", id="without its file"),
        pytest.param((File(kind="image", source=Key(key="other")),), (), "u1", id="another file"),
    ],
)
def test_P15_a_message_is_the_same_with_its_files(files: tuple[File, ...], left_out: tuple[str, ...], back_to: str):
    log = (UserMessage(id="u1", parts=(Text(text="look"), FILE)), reply("a1"))
    message = UserMessage(id="u1", parts=(Text(text="look"), *files))
    run_input = RunInput(thread="t", run="r", messages=(message,), listed_ids=ListedIds(), left_out=left_out)
    assert read_list(view(log), run_input).back_to == back_to


def test_P15_whoever_answers_what_waits_has_seen_the_call():
    call = ToolCall(id="c1", name="send", arguments="{}", runner="server")
    asking = AssistantMessage(id="a1", parts=(call,))
    marker = ConfirmAsked(id="i1", time=NOW, message="a1", call="c1", run="r", seconds=60)
    run_input = make_input(user_row("u1"))
    item = ResumeItem(interrupt="i1", decision=PersonDecision(approved=True))
    log = (user("u1"), asking, marker)
    assert read_list(view(log), run_input).back_to == "a1"
    assert read_list(view(log), replace(run_input, resume=(item,))) == ListReading()


def test_P15_the_reply_that_was_broken_off_is_one_the_client_shows():
    log = (user("u1"), reply("a1"), Interrupted(id="i", message="a1", reason="stopped"))
    assert read_list(view(log), make_input(user_row("u1"), copy("a1"), user_row("u2"))).back_to is None


def admit() -> AdmittedRun:
    numbers = count()
    return AdmittedRun(admitted_at=NOW, response_id="r", turn_id="t", new_id=lambda: f"new-{next(numbers)}")


def take_list(log: tuple[Entry, ...], reading: ListReading, run: AdmittedRun) -> tuple[Entry, ...]:
    back = roll_back_unlisted(reading, run)
    return (*back, *admit_input((*log, *back), reading.messages, run))


def test_P15_an_edit_is_a_rollback_by_the_client_and_a_new_turn_under_an_id_of_its_own():
    run_input = make_input(user_row("u1"), copy("a1"), user_row("u2", "other"))
    entries = take_list(TALK, read_list(view(TALK), run_input), admit())
    assert entries[0] == RolledBack(id="new-0", time=NOW, to="u2", cause="client")
    assert [(entry.id, entry.client_id) for entry in entries if isinstance(entry, UserMessage)] == [("t", "u2")]
    assert [message.id for message in view((*TALK, *entries)).messages] == ["u1", "a1", "t"]
    assert view((*TALK, *entries)).can_undo


conversations = st.lists(st.integers(0, 3), max_size=6)


def talk(turns: list[int]) -> tuple[Entry, ...]:
    """Turns with so many calls each, all answered but for those of the last."""
    log: list[Entry] = []
    for turn, calls in enumerate(turns):
        names = [f"c{turn}.{call}" for call in range(calls)]
        log += [user(f"u{turn}"), reply(f"a{turn}", *names)]
        log += [result(f"r{turn}.{name}", name) for name in names] if turn < len(turns) - 1 else []
    return tuple(log)


def listed_of(log_view: View) -> list[Json]:
    rows: list[Json] = []
    for message in log_view.messages:
        match message:
            case UserMessage():
                rows.append(user_row(message.id))
            case ToolMessage():
                rows.append(result_row(message.id, message.tool_call_id))
            case AssistantMessage():
                rows.append(copy(message.id, *[call.id for call in message.tool_calls]))
            case _:
                rows.append({})
    return rows


@given(conversations, st.data())
def test_P15_after_a_list_is_taken_the_view_is_what_the_list_shows(turns: list[int], data: st.DataObject):
    log = talk(turns)
    rows = listed_of(view(log))
    cut = rows[: data.draw(st.integers(0, len(rows)))]
    run_input = make_input(*cut, user_row("new", "new words"))
    entries = take_list(log, read_list(view(log), run_input), admit())
    log_view = [message.id for message in view((*log, *entries)).messages]
    visible_ids = [str(row["id"]) for row in cut if isinstance(row, dict)]
    # Nothing of the list is missing, and nothing else is there but results of calls that it shows.
    assert log_view[-1] == "new"
    if cut:
        assert [id for id in log_view[:-1] if not id.startswith("r")] == [
            id for id in visible_ids if not id.startswith("r")
        ]
        assert set(visible_ids) <= set(log_view)
    else:
        assert log_view[:-1] == [message.id for message in view(log).messages]


@given(conversations)
def test_P15_the_same_list_again_rolls_nothing_back(turns: list[int]):
    log = talk(turns)
    run_input = make_input(*listed_of(view(log)), user_row("new", "new words"))
    entries = take_list(log, read_list(view(log), run_input), admit())
    again = read_list(view((*log, *entries)), run_input)
    assert (again.back_to, again.messages) == (None, ())


@pytest.mark.parametrize(
    ("where", "keep", "remaining", "problem"),
    [
        ("messages[1].content[1]", None, [0, 2, 3], "a.png: it is empty."),
        ("messages[1].content[2].source.type", None, [0, 1, 3], "a part: it is empty."),
        ("messages[1].content", 1, [0, 1], "it is empty."),
        ("messages[1].content[0].text", None, None, ""),
        ("messages[0].content", None, None, ""),
        ("messages[7].content[1]", None, None, ""),
        ("threadId", None, None, ""),
    ],
)
def test_P15_a_part_that_cannot_be_used_is_left_out_and_told(
    where: str, keep: int | None, remaining: list[int] | None, problem: str
):
    image: Json = {"type": "image", "source": {"type": "data", "value": ""}, "metadata": {"filename": "a.png"}}
    parts: list[Json] = [{"type": "text", "text": "look"}, image, {"type": "hologram"}, image]
    value: Object = {"messages": [SYSTEM, {"id": "u", "role": "user", "content": parts}]}
    rest_of_input = without_part(value, where, "it is empty.", keep)
    message: Json = {"id": "u", "role": "user", "content": [parts[place] for place in remaining or ()]}
    assert rest_of_input == (({"messages": [SYSTEM, message]}, problem) if remaining else None)


def test_P15_a_problem_that_names_the_file_names_it_once():
    image: Json = {"type": "image", "metadata": {"filename": "a.png"}}
    value: Object = {"messages": [{"id": "u", "role": "user", "content": [image]}]}
    rest_of_input = without_part(value, "messages[0].content[0]", "a.png: too large")
    assert rest_of_input == ({"messages": [{"id": "u", "role": "user", "content": []}]}, "a.png: too large.")


def test_P15_parts_of_the_older_form_are_taken_in_any_kind():
    binary: list[Json] = [
        {"type": "binary", "mimeType": "image/png", "data": "AA=="},
        {"type": "binary", "mime_type": "application/pdf", "url": "https://x/y", "filename": "y.pdf"},
    ]
    new = new_in_list([{"id": "u", "role": "user", "content": binary}])
    assert new.messages[0]["content"] == [
        {"type": "image", "source": {"type": "data", "value": "AA==", "mimeType": "image/png"}},
        {
            "type": "document",
            "source": {"type": "url", "value": "https://x/y", "mimeType": "application/pdf"},
            "metadata": {"filename": "y.pdf"},
        },
    ]


def test_P15_notes_of_a_stored_input_are_read_as_they_were_written():
    assert read_notes(RunInput(thread="t", run="r"), {"rectoNotes": 3}) == RunInput(thread="t", run="r")
