"""P11 under attack: what tools of one client may cost everybody else."""

import json
from collections.abc import Generator
from itertools import count

import pytest

from recto.conversation.json import Json
from recto.testing.client import ask
from recto.testing.model_server import Answer, Call
from tests.api.scripted_server import Scripted, page_messages, scripted_server
from tests.costs import MEBIBYTE, STANDSTILL, costs_of

pytestmark = pytest.mark.full

NUMBERS = count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Scripted]:
    with scripted_server(tmp_path_factory.mktemp("costly") / "data") as made:
        yield made


def tool(schema: Json, name: str = "act") -> dict[str, Json]:
    return {"name": name, "description": "It acts.", "parameters": schema}


def patterns(pattern: str, number: int) -> Json:
    """As many properties, each with another pattern."""
    return {"properties": {f"p{n}": {"type": "string", "pattern": f"{pattern}{next(NUMBERS)}"} for n in range(number)}}


def call(server: Scripted, schema: Json, arguments: Json) -> str:
    """A run whose model calls the client's tool, and then says something: how it ended."""
    server.answers[:] = [
        Answer(calls=(Call(name="act", arguments=json.dumps(arguments), id="c1"),)),
        Answer(text="Well."),
    ]
    reply = server.post(ask("go on", tools=[tool(schema)]))
    assert reply.status == 202, reply.body
    server.reader(str(reply.json["taskId"])).wait()
    return str(server.get(f"/runs/{reply.json['taskId']}")["outcome"])


@pytest.mark.parametrize("number", [70, 330])
def test_P11_costly_patterns_of_three_and_fourteen_kilobytes_are_refused_at_once(server: Scripted, number: int):
    def attack() -> None:
        for _ in range(5):
            reply = server.post(ask("go on", tools=[tool(patterns(r"\p{L}{100}", number))]))
            assert reply.status == 422
            assert "the schema of tool 'act' takes the tools beyond 4194304 bytes of compiled patterns" in str(
                reply.json
            )

    costs = costs_of(server, attack)
    assert costs.standstill < STANDSTILL
    assert costs.kept < 64 * MEBIBYTE


def test_P11_schemas_within_the_limits_stop_nobody_and_are_kept_within_their_bytes(server: Scripted):
    def attack() -> None:
        for _ in range(12):
            tools = [
                tool(patterns(r"\p{L}{10}", 6), "a"),
                tool({"properties": {f"p{next(NUMBERS)}": {"type": "string"} for _ in range(6000)}}, "b"),
            ]
            assert server.post(ask("go on", tools=tools)).status == 202

    costs = costs_of(server, attack)
    assert costs.standstill < STANDSTILL
    assert costs.kept < 128 * MEBIBYTE


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
    assert costs.standstill < STANDSTILL
    assert costs.kept < 128 * MEBIBYTE


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

    assert costs_of(server, attack).standstill < STANDSTILL
    if name == "act":
        assert len(server.rows(f"/threads/{threads[-1]}", "pendingCalls")) == 128
        return
    *_, last = page_messages(server.model.requests[-1])
    assert last["tool_call_id"] == "c128"
    assert last["content"] == (
        "At most 128 calls of one reply are run. This one and those after it were not: make them again if you still "
        "need them, fewer at a time."
    )
