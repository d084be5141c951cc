"""P7 and P11 under attack: what tools of one client and replies of a model may cost everybody else."""

from collections.abc import Generator
from itertools import count

import pytest

from recto.conversation.json import Json, dump
from recto.testing.model_server import Answer, Call
from tests.api.scripted_server import Scripted, page_messages, scripted_server
from tests.costs import MEBIBYTE, Costs, costs_of, standstill_limit
from tests.support.client import ask

pytestmark = pytest.mark.full

NUMBERS = count()
MOST = 1_000_000
KEPT_BYTES = 64 * MEBIBYTE


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Scripted]:
    with scripted_server(tmp_path_factory.mktemp("costly") / "data") as server:
        server.reader(str(server.post(ask("hello")).json["taskId"])).wait()
        yield server


def tool(schema: Json, name: str = "act") -> dict[str, Json]:
    return {"name": name, "description": "It acts.", "parameters": schema}


def patterns(pattern: str, number: int) -> Json:
    """As many properties, each with another pattern."""
    return {"properties": {f"p{n}": {"type": "string", "pattern": f"{pattern}{next(NUMBERS)}"} for n in range(number)}}


def call(server: Scripted, schema: Json, arguments: Json) -> str:
    """A run whose model calls the client's tool, and then says something: how it ended."""
    server.answers[:] = [
        Answer(calls=(Call(name="act", arguments=dump(arguments).decode(), id="c1"),)),
        Answer(text="Well."),
    ]
    reply = server.post(ask("go on", tools=[tool(schema)]))
    assert reply.status == 202, reply.body
    server.reader(str(reply.json["taskId"])).wait()
    return str(server.get(f"/runs/{reply.json['taskId']}")["outcome"])


def test_P11_costly_patterns_are_not_compiled(server: Scripted):
    def attack() -> None:
        for _ in range(5):
            assert server.post(ask("go on", tools=[tool(patterns(r"\p{L}{100}", 330))])).status == 202

    costs = costs_of(server, attack)
    assert costs.standstill < standstill_limit()
    assert costs.memory < KEPT_BYTES


def test_P11_schemas_within_the_limits_stop_nobody_and_are_kept_within_their_bytes(server: Scripted):
    def attack() -> None:
        for _ in range(12):
            tools = [
                tool(patterns(r"\p{L}{10}", 6), "a"),
                tool({"properties": {f"p{next(NUMBERS)}": {"type": "string"} for _ in range(6000)}}, "b"),
            ]
            assert server.post(ask("go on", tools=tools)).status == 202

    costs = costs_of(server, attack)
    assert costs.standstill < standstill_limit()
    assert costs.memory < 128 * MEBIBYTE


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ({"properties": {"x": {"anyOf": [{"type": "integer"}] * 1000}}}, {"x": "x" * 400_000}),
        ({"properties": {"x": {"items": {"type": "integer"}}}}, {"x": ["a"] * 50_000}),
        ({"propertyNames": {"maxLength": 1}}, {f"aa{n}": 1 for n in range(15_000)}),
        ({"properties": {"x": {"items": {"allOf": [{"multipleOf": 0.01}] * 100}}}}, {"x": [1.23] * 5_000}),
        (
            {"properties": {"x": {"allOf": [{"pattern": f"[ab]*a[ab]{{400}}c{n}"} for n in range(99)]}}},
            {"x": "ab" * 9000},
        ),
    ],
)
def test_P11_arguments_that_are_costly_to_check_stop_nobody(server: Scripted, schema: Json, arguments: Json):
    def attack() -> None:
        assert call(server, schema, arguments) in ("done", "waiting")

    costs = costs_of(server, attack)
    assert costs.standstill < standstill_limit()
    assert costs.memory < 128 * MEBIBYTE


@pytest.mark.parametrize("name", ["current_time", "act"])
def test_P11_a_reply_of_three_thousand_calls_stops_nobody_and_the_rest_is_told_to_the_model(
    server: Scripted, name: str
):
    calls = tuple(Call(name=name, arguments="{}", id=f"c{number}") for number in range(3000))
    threads = list[Json]()

    def attack() -> None:
        server.answers[:] = [Answer(calls=calls), Answer(text="Well.")]
        reply = server.post(ask("go on", tools=[tool({"type": "object"})]))
        server.reader(str(reply.json["taskId"])).wait()
        threads.append(reply.json["threadId"])

    assert costs_of(server, attack).standstill < standstill_limit()
    if name == "act":
        assert len(server.rows(f"/threads/{threads[-1]}", "pendingCalls")) == 128
        return
    *_, last = page_messages(server.model.requests[-1])
    assert last["tool_call_id"] == "c128"
    assert last["content"] == (
        "At most 128 calls of one reply are run. This one and those after it were not: make them again if you still "
        "need them, fewer at a time."
    )


# Replies


def chunk(delta: Json, finish: str | None = None) -> bytes:
    return b"data: " + dump({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}) + b"\n\n"


def fragment(arguments: str, name: str = "") -> bytes:
    function = {"name": name, "arguments": arguments} if name else {"arguments": arguments}
    return chunk({"tool_calls": [{"index": 0, "function": function}]})


def reply(server: Scripted, *answers: Answer) -> tuple[str, str]:
    """A run of these replies: its id, and how it ended."""
    server.answers[:] = answers
    run = str(server.post(ask("go on")).json["taskId"])
    server.reader(run).wait()
    return run, str(server.get(f"/runs/{run}")["outcome"])


def costs_of_replies(server: Scripted, *answers: Answer, outcome: str = "done") -> Costs:
    def attack() -> None:
        assert reply(server, *answers)[1] == outcome

    return costs_of(server, attack)


@pytest.mark.parametrize("field", ["content", "reasoning_content"])
def test_P7_a_model_that_never_stops_talking_is_stopped_and_what_it_said_is_paid_for(server: Scripted, field: str):
    endless = Answer(body=chunk({field: "words " * 10_000}) * 500)
    costs = costs_of_replies(server, endless, outcome="length")
    assert costs.standstill < standstill_limit()
    assert costs.memory < KEPT_BYTES
    run, _ = reply(server, endless)
    (call,) = server.rows(f"/runs/{run}/calls", "calls")
    usage = call["usage"]
    assert isinstance(usage, dict)
    assert (call["finish"], usage["estimated"]) == ("length", True)
    assert MOST / 8 < int(str(usage["outputTokens"])) < MOST


def test_P11_a_call_whose_arguments_never_end_is_not_run_and_the_model_is_told(server: Scripted):
    before = len(server.model.requests)
    endless = fragment('{"timezone":"', "current_time") + fragment("x" * 20_000) * 500
    costs = costs_of_replies(server, Answer(body=endless), Answer(text="Well."))
    assert b"was cut off while you were writing it" in server.model.requests[before + 1].body
    assert costs.standstill < standstill_limit()
    assert costs.memory < KEPT_BYTES


@pytest.mark.parametrize("piece", ["x" * 20, '{"x":1}'])
def test_P11_a_provider_that_names_the_tool_with_every_fragment_stops_nobody(server: Scripted, piece: str):
    end = chunk({}, "tool_calls") + b"data: [DONE]\n\n"
    pieces = fragment('{"timezone":"', "current_time") + fragment(piece, "current_time") * 20_000
    whole = Answer(body=pieces + fragment('"}', "current_time") + end)
    assert costs_of_replies(server, whole, Answer(text="Well.")).standstill < standstill_limit()


def test_P7_thoughts_and_words_in_turn_stop_nobody(server: Scripted):
    both = (chunk({"reasoning_content": "x"}) + chunk({"content": "y"})) * 20_000
    whole = Answer(body=both + chunk({}, "stop") + b"data: [DONE]\n\n")
    assert costs_of_replies(server, whole).standstill < standstill_limit()


def test_P11_the_same_calls_in_every_reply_cost_no_more_than_others(server: Scripted):
    replies = [
        Answer(calls=tuple(Call(name="current_time", id=f"c{turn}-{number}") for number in range(128)))
        for turn in range(8)
    ]
    assert costs_of_replies(server, *replies, Answer(text="Well.")).standstill < standstill_limit()
