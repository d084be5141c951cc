"""P11, P15: calls that a person has to agree to: what is asked, what their answers mean, what becomes of the call."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from recto.conversation.events import RunFinished, encode_event, for_older_client
from recto.conversation.input.input_entries import AdmittedRun, DecisionInput, admit_decisions, check_resume
from recto.conversation.input.input_rules import check_input
from recto.conversation.input.run_input import PersonDecision, ResumeItem, decision_of, decode_resume
from recto.conversation.interrupts import denial_text, interrupt_event, interrupts_of
from recto.conversation.json import Json, load_object
from recto.conversation.log import (
    ConfirmAsked,
    ConfirmDecided,
    Entry,
    Interrupted,
    RolledBack,
    ToolStarted,
    Undone,
    view,
)
from recto.conversation.message_snapshots import EndedRun, RenderContext, snapshot_events
from recto.conversation.messages import Text, ToolMessage
from recto.conversation.next_step import DeniedCall, Finished, Run, RunTools, Step, WaitForClient, next_step
from recto.errors import Conflict, InvalidRequest, NotFound, WireError
from tests.page.talk import asks, call, result, user

NOW = datetime(2026, 5, 14, 12, tzinfo=UTC)
HOUR = 3_600.0
RUN = Run(
    id="t1", now=NOW, client_tools=frozenset({"ask"}), repeatable=frozenset({"look"}), confirm=frozenset({"send"})
)
SEND, SEND_TOO, NOTE, ASK = call("c1", "send"), call("c2", "send"), call("c3", "note"), call("c4", "ask")
BOTH = (user("u1"), asks("a", SEND, SEND_TOO))
ONE = (user("u1"), asks("a", SEND))
THREAD = "11111111-1111-4111-8111-111111111111"


def confirm_entry(id: str = "i1", call_id: str = "c1", seconds: float = HOUR) -> ConfirmAsked:
    return ConfirmAsked(id=id, time=NOW, message="a", call=call_id, run="r1", seconds=seconds)


def decided(
    *, approved: bool = True, id: str = "i1", run: str = "t1", text: str = "", arguments: str | None = None
) -> ConfirmDecided:
    own = f"d-{id}-{run}"
    return ConfirmDecided(id=own, time=NOW, interrupt=id, run=run, approved=approved, text=text, arguments=arguments)


def started(call_id: str = "c1") -> ToolStarted:
    return ToolStarted(id=f"s-{call_id}", message="a", call=call_id)


WAITS = (*ONE, confirm_entry())
APPROVED = (*WAITS, decided())
LATE = (*ONE, confirm_entry(seconds=-1))


# What is next


@pytest.mark.parametrize(
    ("log", "step"),
    [
        pytest.param(ONE, WaitForClient(confirm=(SEND,)), id="a call that needs a person"),
        pytest.param(WAITS, WaitForClient(confirm=(SEND,)), id="asked"),
        pytest.param(APPROVED, RunTools(start=(SEND,)), id="approved"),
        # approved with other arguments
        ((*WAITS, decided(arguments='{"a":1}')), RunTools(start=(replace(SEND, arguments='{"a":1}'),))),
        pytest.param((*APPROVED, started()), RunTools(interrupted=(SEND,)), id="lost"),
        # denied
        ((*WAITS, decided(approved=False, text="No.")), RunTools(denied=(DeniedCall(call=SEND, words="No."),))),
        pytest.param((*WAITS, decided(run="t0")), WaitForClient(confirm=(SEND,)), id="approved for another run"),
        pytest.param(LATE, RunTools(expired=(SEND,)), id="expired"),
        pytest.param((*LATE, decided()), RunTools(start=(SEND,)), id="approved before it expired"),
        # asked anew
        ((*WAITS, decided(run="t0"), confirm_entry("i2"), decided(id="i2")), RunTools(start=(SEND,))),
        pytest.param(
            (*BOTH, confirm_entry(), confirm_entry("i2", "c2"), decided(), started(), result("r", "c1")),
            WaitForClient(confirm=(SEND_TOO,)),
            id="the rest stays",
        ),
        # nobody is asked by half a reply
        ((*ONE, Interrupted(id="x", message="a", reason="cancelled")), RunTools(cut_off=(SEND,))),
        pytest.param(
            (user("u1"), asks("a", SEND, NOTE), Interrupted(id="x", message="a", reason="cancelled"), started()),
            RunTools(interrupted=(SEND,), cut_off=(NOTE,)),
            id="started before its tool came to ask",
        ),
        # never twice after an undo
        ((*APPROVED, started(), RolledBack(id="b", to="u1"), Undone(id="z")), RunTools(interrupted=(SEND,))),
    ],
)
def test_P11_what_a_person_has_to_agree_to_is_made_when_they_did(log: tuple[Entry, ...], step: Step):
    assert next_step(log, RUN) == step


def test_a_run_that_is_to_end_acts_on_no_approval():
    assert next_step(APPROVED, replace(RUN, cancel=True)) == Finished(outcome="cancelled")
    assert next_step(APPROVED, replace(RUN, deadline=NOW)) == Finished(outcome="deadline")


def test_a_call_that_was_asked_about_needs_an_answer_though_its_tool_asks_no_more():
    assert next_step(WAITS, replace(RUN, confirm=frozenset())) == WaitForClient(confirm=(SEND,))


# What clients are told


def test_P15_an_interrupt_is_told_as_AG_UI_has_it_and_older_clients_see_a_call_that_waits():
    [one] = interrupts_of(view(WAITS))
    event = RunFinished(thread="t", run="r", interrupts=(interrupt_event(one, "en"),))
    [body] = encode_event(event)
    row = load_object(body) or {}
    kinds = {"approved": "boolean", "message": "string", "arguments": "object"}
    properties = {name: {"type": kind} for name, kind in kinds.items()}
    asking = {
        "id": "i1",
        "reason": "tool_call",
        "message": "Allow send with these arguments?",
        "toolCallId": "c1",
        "responseSchema": {"type": "object", "properties": properties, "required": ["approved"]},
        "expiresAt": "2026-05-14T13:00:00.000Z",
    }
    assert row["outcome"] == {"type": "interrupt", "interrupts": [asking]}
    assert load_object(for_older_client(body)) == {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}


def test_P7_a_run_whose_events_are_gone_still_tells_what_it_asked():
    context = RenderContext(url_of=lambda _: None, locale="zh")
    run_end = EndedRun(thread="t", run="r", outcome="waiting")
    last = load_object(snapshot_events(run_end, WAITS, context)[-1]) or {}
    [row] = interrupts_of(view(WAITS))
    assert last["outcome"] == {"type": "interrupt", "interrupts": [interrupt_event(row, "zh")]}
    assert "是否允许" in str(last)


# What clients answer


def item(**fields: Json) -> dict[str, Json]:
    return {"interruptId": "i1", "status": "resolved", "payload": {"approved": True}, **fields}


@pytest.mark.parametrize(
    ("body", "means"),
    [
        (item(), PersonDecision(approved=True)),
        (item(payload={"approved": False, "message": " Not now. "}), PersonDecision(approved=False, text="Not now.")),
        (item(payload={"approved": True, "arguments": {"b": 1}}), PersonDecision(approved=True, arguments='{"b":1}')),
        (item(status="cancelled", payload=None), PersonDecision(approved=False)),
        (
            item(status="cancelled", payload={"message": "Never mind."}),
            PersonDecision(approved=False, text="Never mind."),
        ),
    ],
)
def test_P15_an_answer_approves_denies_or_changes_arguments(body: dict[str, Json], means: PersonDecision):
    is_cancelled = body["status"] == "cancelled"
    assert list(decode_resume([body])) == [ResumeItem(interrupt="i1", decision=means, is_cancelled=is_cancelled)]
    snake = {"interrupt_id": body["interruptId"], **{name: body[name] for name in ("status", "payload")}}
    assert next(decode_resume([snake])).decision == means


@pytest.mark.parametrize(
    ("answer", "where"),
    [
        ("yes", "resume"),
        ([{"status": "resolved"}], "resume[0].interruptId"),
        ([item(interruptId=7)], "resume[0].interruptId"),
        ([item(), item()], "resume[1].interruptId"),
        ([item(status=None)], "resume[0].status"),
        ([item(status="done")], "resume[0].status"),
        ([item(payload={"approved": True, "message": 1})], "resume[0].payload.message"),
        ([item(payload=True)], "resume[0].payload"),
        ([item(payload={})], "resume[0].payload.approved"),
        ([item(payload={"approved": "yes"})], "resume[0].payload.approved"),
        ([item(payload={"approved": False, "message": "x" * 10_001})], "resume[0].payload.message"),
        ([item(payload={"approved": False, "arguments": {}})], "resume[0].payload.arguments"),
    ],
)
def test_P15_an_answer_that_is_none_is_refused_by_the_name_of_its_field(answer: Json, where: str):
    with pytest.raises(WireError) as caught_error:
        list(decode_resume(answer))
    assert caught_error.value.where == where


def test_P2_a_run_that_only_answers_needs_no_user_message_and_any_other_does():
    body: dict[str, Json] = {"threadId": THREAD, "runId": "r", "messages": []}
    assert check_input({**body, "resume": [item()]}).messages == ()
    system: Json = {"id": "s", "role": "system", "content": "x"}
    for change in ({}, {"resume": list[Json]()}, {"resume": [item()], "messages": [system]}):
        with pytest.raises(InvalidRequest, match="exactly one user message"):
            check_input({**body, **change})


@pytest.mark.parametrize(
    ("content", "error", "means"),
    [
        ('{"approved": true}', None, PersonDecision(approved=True)),
        ('{"approved": false, "message": "No."}', None, PersonDecision(approved=False, text="No.")),
        ("Yes", None, PersonDecision(approved=True)),
        ("true", None, PersonDecision(approved=True)),
        ('{"approved": "true"}', None, PersonDecision(approved=False, text='{"approved": "true"}')),
        (
            '{"approved": true, "arguments": 1}',
            None,
            PersonDecision(approved=False, text='{"approved": true, "arguments": 1}'),
        ),
        ("", None, PersonDecision(approved=False)),
        ("", "The form broke.", PersonDecision(approved=False, text="The form broke.")),
    ],
)
def test_P15_an_older_client_answers_with_a_payload_or_a_word_and_anything_else_denies(
    content: str, error: str | None, means: PersonDecision
):
    message = ToolMessage(id="m", tool_call_id="c1", parts=(Text(text=content),) if content else (), error=error)
    assert decision_of(message) == means


# What enters the log


def admit(at: datetime = NOW) -> AdmittedRun:
    ids = iter(f"n{number}" for number in range(99))
    return AdmittedRun(admitted_at=at, response_id="r", new_id=lambda: next(ids))


def make_decision(*items: ResumeItem, messages: tuple[ToolMessage, ...] = ()) -> DecisionInput:
    return DecisionInput(run="t1", resume=items, messages=messages)


def yes(id: str = "i1") -> ResumeItem:
    return ResumeItem(interrupt=id, decision=PersonDecision(approved=True))


def no(id: str = "i1", words: str = "") -> ResumeItem:
    return ResumeItem(interrupt=id, decision=PersonDecision(approved=False, text=words))


WAITING = (*BOTH, confirm_entry(), confirm_entry("i2", "c2"))


def marks(*entries: Entry) -> list[tuple[str, bool]]:
    return [(entry.interrupt, entry.approved) for entry in entries if isinstance(entry, ConfirmDecided)]


def test_P15_each_interrupt_is_decided_once_and_only_while_it_waits():
    assert marks(*admit_decisions(WAITING, make_decision(yes("i2"), yes("i9")), admit(), ())) == [("i2", True)]
    log = (*WAITING, decided())
    assert marks(*admit_decisions(log, make_decision(no(), no("i2")), admit(), ())) == [("i2", False)]
    late = admit(NOW + timedelta(seconds=HOUR + 1))
    assert list(admit_decisions(WAITING, make_decision(yes()), late, ())) == []
    assert list(admit_decisions((*WAITING, RolledBack(id="b", to="u1")), make_decision(yes()), admit(), ())) == []


def test_P15_the_result_an_older_client_sends_for_a_call_that_waits_is_its_decision():
    results = (result("x", "c1", "yes"), result("y", "c9", "yes"), result("z", "c2", "Rather not."))
    entries = list(admit_decisions(WAITING, make_decision(messages=results), admit(), ()))
    assert marks(*entries) == [("i1", True), ("i2", False)]


def test_P3_new_words_leave_nothing_waiting_and_act_on_nothing():
    entries = list(admit_decisions(WAITING, make_decision(), admit(), (user("u2"),)))
    assert [(one.tool_call_id, one.error) for one in entries if isinstance(one, ToolMessage)] == [
        ("c1", "denied"),
        ("c2", "denied"),
    ]
    assert "the user said something else" in str(entries[0])
    entries = list(admit_decisions(WAITING, make_decision(yes(), no("i2", "Too soon.")), admit(), (user("u2"),)))
    results = [one for one in entries if isinstance(one, ToolMessage)]
    assert "the user said something else" in str(results[0].parts)
    assert results[1].parts == (Text(text=denial_text("send", "Too soon.")),)
    late = list(admit_decisions(WAITING, make_decision(), admit(NOW + timedelta(days=2)), (user("u2"),)))
    assert [one.error for one in late if isinstance(one, ToolMessage)] == ["expired", "expired"]


def test_of_a_call_that_was_started_nobody_says_that_it_was_not():
    log = (*WAITS, decided(run="t0"), started())
    assert list(admit_decisions(log, make_decision(), admit(), (user("u2"),))) == []


@pytest.mark.parametrize(
    ("log", "items", "expected"),
    [
        pytest.param(WAITING, (yes(), no("i2")), None, id="all that waits"),
        pytest.param((*WAITING, decided()), (yes(),), "t1", id="the same again"),
        pytest.param((*WAITING, decided()), (no(),), Conflict, id="otherwise"),
        pytest.param((*WAITING, decided(text="ok")), (yes(),), Conflict, id="in other words"),
        pytest.param(WAITING, (yes("i9"),), NotFound, id="unknown"),
        pytest.param((*WAITING, result("r", "c1")), (yes(),), Conflict, id="has a result"),
        pytest.param(LATE, (yes(),), Conflict, id="expired"),
        pytest.param(LATE, (no(),), None, id="an expired one may be given up"),
    ],
)
def test_P15_answers_are_judged_by_what_waits(
    log: tuple[Entry, ...], items: tuple[ResumeItem, ...], expected: str | type[Exception] | None
):
    if isinstance(expected, type):
        with pytest.raises(expected):
            check_resume(view(log), items, NOW, has_messages=False)
    else:
        assert check_resume(view(log), items, NOW, has_messages=False) == expected


def test_P15_who_has_words_to_say_may_give_up_what_waits_no_longer():
    unknown = replace(no("i9"), is_cancelled=True)
    assert check_resume(view(WAITING), (unknown,), NOW, has_messages=True) is None
    with pytest.raises(NotFound):
        check_resume(view(WAITING), (unknown,), NOW, has_messages=False)
