"""P7 and P11 under attack: what a reply of a model may cost everybody else, however it is made."""

from collections.abc import Generator

import pytest

from recto.conversation.json import Json, dump
from recto.testing.client import ask
from recto.testing.model_server import Answer, Call
from tests.api.scripted_server import Scripted, scripted_server
from tests.costs import MEBIBYTE, STANDSTILL, Costs, costs_of

pytestmark = pytest.mark.full

MOST = 1_000_000
KEPT = 64 * MEBIBYTE


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Scripted]:
    with scripted_server(tmp_path_factory.mktemp("replies") / "data") as made:
        made.reader(str(made.post(ask("hello")).json["taskId"])).wait()
        yield made


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
    assert costs.standstill < STANDSTILL
    assert costs.kept < KEPT
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
    assert costs.standstill < STANDSTILL
    assert costs.kept < KEPT


@pytest.mark.parametrize("piece", ["x" * 20, '{"x":1}'])
def test_P11_a_provider_that_names_the_tool_with_every_fragment_stops_nobody(server: Scripted, piece: str):
    end = chunk({}, "tool_calls") + b"data: [DONE]\n\n"
    pieces = fragment('{"timezone":"', "current_time") + fragment(piece, "current_time") * 20_000
    whole = Answer(body=pieces + fragment('"}', "current_time") + end)
    assert costs_of_replies(server, whole, Answer(text="Well.")).standstill < STANDSTILL


def test_P7_thoughts_and_words_in_turn_stop_nobody(server: Scripted):
    both = (chunk({"reasoning_content": "x"}) + chunk({"content": "y"})) * 20_000
    whole = Answer(body=both + chunk({}, "stop") + b"data: [DONE]\n\n")
    assert costs_of_replies(server, whole).standstill < STANDSTILL


def test_P11_the_same_calls_in_every_reply_cost_no_more_than_others(server: Scripted):
    replies = [
        Answer(calls=tuple(Call(name="current_time", id=f"c{turn}-{number}") for number in range(128)))
        for turn in range(8)
    ]
    assert costs_of_replies(server, *replies, Answer(text="Well.")).standstill < STANDSTILL
