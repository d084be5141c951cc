"""P11, P15 over real HTTP: a call that a person has to agree to waits, and is made, denied or changed as they say."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from ag_ui.core import Interrupt, RunAgentInput

from recto.conversation.json import Json, load_object
from recto.ids import new_id
from recto.testing.model_server import Answer, Call, Request
from tests.api.scripted_server import BOB, Scripted, page_messages
from tests.support.client import RUNS, ReceivedEvent, parse_events, request
from tests.support.client import ask as ask_anybody
from tests.test_docs import blocks, read

AG_UI = "/api/v1/agent/ag-ui"
DONE = Answer(text="It is done.")


def ask(words: str, *, thread: str = "", run: str = "", agent: str = "careful", **rest: Json) -> dict[str, Json]:
    return {**ask_anybody(words, thread=thread, run=run), "forwardedProps": {"agent": agent}, **rest}


def send(text: str, id: str = "s1", **more: str) -> Call:
    rest = "".join(f', "{name}": "{value}"' for name, value in more.items())
    return Call(name="send", arguments=f'{{"text": "{text}"{rest}}}', id=id)


def notes(folder: Path, word: str, agent: str = "careful") -> list[str]:
    """What the tools did of a test: each line a time one acted."""
    file = folder / "agents" / agent / "notes.txt"
    return [line for line in file.read_text().splitlines() if word in line] if file.exists() else []


def outcome(events: Sequence[ReceivedEvent]) -> Mapping[str, Json]:
    assert events[-1].event["type"] == "RUN_FINISHED", events[-1].body
    return cast("Mapping[str, Json]", events[-1].event["outcome"])


def interrupt_ids(events: Sequence[ReceivedEvent]) -> list[str]:
    """The ids of what a run waits for, as AG-UI's own package reads them."""
    end = outcome(events)
    assert end["type"] == "interrupt", end
    return [Interrupt.model_validate(one).id for one in cast("list[Json]", end["interrupts"])]


def results(events: Sequence[ReceivedEvent]) -> dict[str, str]:
    results = [received.event for received in events if received.event["type"] == "TOOL_CALL_RESULT"]
    return {str(event["toolCallId"]): str(event["content"]) for event in results}


def item(id: str, approved: bool = True, **payload: Json) -> dict[str, Json]:
    return {"interruptId": id, "status": "resolved", "payload": {"approved": approved, **payload}}


def resuming(body: Mapping[str, Json], *items: Json, run: str = "") -> dict[str, Json]:
    expected: dict[str, Json] = {
        "threadId": body["threadId"],
        "runId": run or new_id(),
        "messages": list[Json](),
        "resume": items,
        "protocolVersion": "1.0",
    }
    RunAgentInput.model_validate(expected)
    return expected


def waiting(server: Scripted, body: Mapping[str, Json]) -> list[Mapping[str, Json]]:
    return list(cast("list[Mapping[str, Json]]", server.get(f"/threads/{body['threadId']}")["interrupts"]))


def tool_results(model_request: Request) -> list[tuple[str, str]]:
    """What the model is shown: who, and what; a call by its id."""
    rows: list[tuple[str, str]] = []
    for message in page_messages(model_request):
        calls = cast("list[Mapping[str, Json]]", message.get("tool_calls") or [])
        rows += [(str(message["role"]), str(call["id"])) for call in calls]
        rows += [(str(message["role"]), str(message["content"]))] if not calls else []
    return rows[1:]


def test_P11_a_tool_that_was_agreed_to_once_and_for_all_asks_no_more_in_its_thread(
    server: Scripted, shared_folder: Path
):
    body = ask("Tell them.")
    events, _ = server.play(body, Answer(calls=(send("agreed-1"),)))
    path = f"/api/v1/agent/threads/{body['threadId']}"
    assert request(server.url, "PATCH", path, {"agreed": ["send"]}, token=server.token).status == 200
    again = Answer(calls=(send("agreed-2", "s2"),))
    card = Answer(calls=(Call(name="card", arguments='{"title": "x"}', id="s3"),))
    events, _ = server.play(resuming(body, item(interrupt_ids(events)[0])), again, card)
    assert notes(shared_folder, "agreed") == ["sent agreed-1 to all", "sent agreed-2 to all"]
    assert [row["tool"] for row in waiting(server, body)] == ["card"], "it is about that tool alone"
    elsewhere, _ = server.play(ask("Tell them."), Answer(calls=(send("agreed-3"),)))
    assert len(interrupt_ids(elsewhere)) == 1, "it is about that thread alone"
    assert request(server.url, "PATCH", path, {"agreed": []}, token=server.token).status == 200
    events, _ = server.play(
        {**ask("Once more."), "threadId": body["threadId"]}, Answer(calls=(send("agreed-4", "s4"),))
    )
    assert len(interrupt_ids(events)) == 1


def test_P11_a_call_waits_for_a_person_and_is_made_once_they_agree(server: Scripted, shared_folder: Path):
    body = ask("Tell them.")
    events, _ = server.play(body, Answer(text="One moment.", calls=(send("hello-1"),)))
    [id] = interrupt_ids(events)
    assert notes(shared_folder, "hello-1") == []
    response = server.get(f"/runs/{body['runId']}")
    assert (response["status"], response["outcome"]) == ("waiting", "waiting")
    [row] = waiting(server, body)
    names = ("id", "toolCallId", "tool", "arguments", "reason", "runId")
    assert [row[name] for name in names] == [id, "s1", "send", '{"text": "hello-1"}', "tool_call", body["runId"]]
    assert str(row["created"]) < str(row["expiresAt"])
    events, [model_request] = server.play(resuming(body, item(id)), DONE)
    assert outcome(events) == {"type": "success"}
    assert results(events) == {"s1": "sent hello-1"}
    assert tool_results(model_request)[-2:] == [("assistant", "s1"), ("tool", "sent hello-1")]
    assert notes(shared_folder, "hello-1") == ["sent hello-1 to all"]
    assert waiting(server, body) == []


def test_P15_arguments_that_a_person_changes_are_checked_and_the_model_is_told(server: Scripted, shared_folder: Path):
    body = ask("Tell them.")
    [id] = interrupt_ids(server.play(body, Answer(calls=(send("rough"),)))[0])
    bad = server.post(resuming(body, item(id, arguments={"txt": "x"})))
    assert bad.status == 422
    assert "resume[0].payload.arguments" in str(bad.json["errors"])
    assert "text" in str(bad.json["detail"])
    assert [one["id"] for one in waiting(server, body)] == [id]
    changed = item(id, arguments={"text": "polite", "to": "some"}, message="Be kind.")
    events, [model_request] = server.play(resuming(body, changed), DONE)
    assert notes(shared_folder, "polite") == ["sent polite to some"]
    text = 'It was called with: {"text":"polite","to":"some"})\n\n(The person who agreed said: Be kind.)'
    assert results(events)["s1"].endswith(text)
    assert tool_results(model_request)[-1][1] == results(events)["s1"]
    assert notes(shared_folder, "rough") == []


def test_P15_others_run_at_once_and_some_of_the_answers_leave_the_rest_waiting(server: Scripted, shared_folder: Path):
    body = ask("Tell them.")
    plain = Call(name="note", arguments='{"text": "plain-3"}', id="n")
    events, _ = server.play(body, Answer(calls=(send("part-1", "a"), plain, send("part-2", "b"))))
    first, second = interrupt_ids(events)
    assert results(events) == {"n": "noted plain-3"}
    events, model_request = server.play(resuming(body, item(second)))
    assert interrupt_ids(events) == [first]
    assert (model_request, notes(shared_folder, "part-")) == ([], ["sent part-2 to all"])
    assert [one["id"] for one in waiting(server, body)] == [first]
    events, [page] = server.play(resuming(body, item(first)), DONE)
    assert [text for who, text in tool_results(page) if who == "tool"] == [
        "sent part-1",
        "noted plain-3",
        "sent part-2",
    ]
    assert notes(shared_folder, "part-") == ["sent part-2 to all", "sent part-1 to all"]


def test_P15_a_run_is_answered_by_its_own_address_too(server: Scripted, shared_folder: Path):
    body = ask("Tell them.", context=[{"description": "Mood", "value": "sunny"}])
    [id] = interrupt_ids(server.play(body, Answer(calls=(send("route-1"),)))[0])
    server.answers[:] = [DONE]
    path, items = f"{RUNS}/{body['runId']}/resume", {"resume": [item(id)]}
    reply = request(server.url, "POST", path, items, token=server.token)
    assert (reply.status, reply.json["threadId"]) == (202, body["threadId"])
    events = server.reader(str(reply.json["taskId"])).wait()
    assert outcome(events) == {"type": "success"}
    assert events[0].event["parentRunId"] == body["runId"]
    assert "sunny" in str(server.model.requests[-1].page)
    again = request(server.url, "POST", path, items, token=server.token, accept="text/event-stream")
    assert again.headers["content-type"] == "text/event-stream"
    assert list(parse_events(iter(again.body.splitlines(keepends=True)))) == list(events)
    assert notes(shared_folder, "route-1") == ["sent route-1 to all"]
    otherwise = request(server.url, "POST", path, {"resume": [item(id, approved=False)]}, token=server.token)
    assert (otherwise.status, otherwise.json["code"]) == (409, "conflict")
    for wrong in (b'{"resume": []}', b'{"resume": [{"interruptId": "x"}]}', b"[1]", b"{"):
        assert request(server.url, "POST", path, wrong, token=server.token).status == 422
    assert request(server.url, "POST", f"{RUNS}/none/resume", items, token=server.token).status == 404


def test_P15_who_goes_on_has_the_state_as_it_is_and_the_name_of_the_thread(server: Scripted):
    name, question = f"a chat {new_id()}", {"id": "u1", "role": "user", "content": "Tell them."}
    body: dict[str, Json] = {"threadId": name, "runId": new_id(), "messages": [question], "protocolVersion": "1.0"}
    server.answers[:] = [Answer(calls=(Call(name="count", arguments="{}", id="c1"), send("named-1"))), DONE]
    response = request(server.url, "POST", f"{AG_UI}/careful", {**body, "state": {"n": 10}}, token=server.token)
    [id] = interrupt_ids(list(parse_events(iter(response.body.splitlines(keepends=True)))))
    path = f"{RUNS}/{body['runId']}/resume"
    reply = request(server.url, "POST", path, {"resume": [item(id)]}, token=server.token, accept="text/event-stream")
    events = [event.event for event in parse_events(iter(reply.body.splitlines(keepends=True)))]
    assert {str(event["threadId"]) for event in events if "threadId" in event} == {name}
    assert [event["snapshot"] for event in events if event["type"] == "STATE_SNAPSHOT"] == [{"n": 11}]


def test_P5_nobody_else_sees_or_answers_what_waits(server: Scripted, shared_folder: Path):
    body = ask("Tell them.")
    [id] = interrupt_ids(server.play(body, Answer(calls=(send("mine-1"),)))[0])
    path = f"{RUNS}/{body['runId']}/resume"
    assert server.post(resuming(body, item(id)), token=BOB).status == 404
    assert request(server.url, "POST", path, {"resume": [item(id)]}, token=BOB).status == 404
    own = ask("Mine.")
    server.answers[:] = [DONE]
    assert server.post(own, token=BOB).status == 202
    server.reader(str(own["runId"]), token=BOB).wait()
    assert server.post(resuming(own, item(id)), token=BOB).status == 404
    assert [one["id"] for one in waiting(server, body)] == [id]
    assert notes(shared_folder, "mine-1") == []


def test_C5_an_agent_may_have_any_of_its_tools_ask(server: Scripted, shared_folder: Path):
    body = ask("Write.", agent="strict")
    [id] = interrupt_ids(
        server.play(body, Answer(calls=(Call(name="note", arguments='{"text": "by-name"}', id="n"),)))[0]
    )
    events, _ = server.play(resuming(body, item(id)), DONE)
    assert results(events) == {"n": "noted by-name"}
    assert notes(shared_folder, "by-name", "strict") == ["by-name"]


def test_P15_the_bodies_in_the_page_on_interrupts_do_what_it_says(server: Scripted, shared_folder: Path):
    first, run, alone = [block.text for block in blocks(read("docs/interrupts.md")) if block.language == "json"]
    end = load_object(first) or {}
    body = ask("Tell them.", thread=str(end["threadId"]), run=str(end["runId"]))
    events, _ = server.play(body, Answer(calls=(send("page-1", "call_1"),)))
    [id] = interrupt_ids(events)
    [one] = cast("list[dict[str, Json]]", outcome(events)["interrupts"])
    [interrupt] = cast("list[dict[str, Json]]", cast("Mapping[str, Json]", end["outcome"])["interrupts"])
    assert one == {**interrupt, "id": id, "expiresAt": one["expiresAt"]}
    events, _ = server.play(load_object(run.replace("INTERRUPT", id)) or {}, DONE)
    assert results(events) == {"call_1": "sent page-1"}
    body = ask("Tell them.")
    [id] = interrupt_ids(server.play(body, Answer(calls=(send("page-2"),)))[0])
    server.answers[:] = [DONE]
    path = f"{RUNS}/{body['runId']}/resume"
    reply = request(server.url, "POST", path, alone.replace("INTERRUPT", id).encode(), token=server.token)
    assert "Not before Friday." in results(server.reader(str(reply.json["taskId"])).wait())["s1"]
    assert notes(shared_folder, "page-") == ["sent page-1 to all"]


def test_P14_a_result_that_is_shown_stays_one_and_tells_what_a_person_changed(server: Scripted):
    body = ask("Show it.")
    [id] = interrupt_ids(server.play(body, Answer(calls=(Call(name="card", arguments='{"title": "A"}', id="k"),)))[0])
    events, _ = server.play(resuming(body, item(id, arguments={"title": "B"}, message="Shorter.")), DONE)
    decision = load_object(results(events)["k"]) or {}
    assert (decision["title"], decision["called_with"], decision["person_said"]) == ("B", {"title": "B"}, "Shorter.")
    assert [received.event["name"] for received in events if received.event["type"] == "CUSTOM"] == ["recto.ui"]
