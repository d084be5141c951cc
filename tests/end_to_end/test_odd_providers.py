"""Providers that send what no provider should: the run ends in order, and its thread goes on. On PostgreSQL."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from recto.testing.model_server import Answer, Request, failure
from tests.end_to_end.harness import Harness
from tests.support.client import ask, run
from tests.support.postgres import postgres_server

pytestmark = pytest.mark.full

DEEP = 900
ODD = "a\\u0000b\\ud800c"


def stream(*chunks: str) -> Answer:
    """Return an answer with these events."""
    body = "".join(f"data: {chunk}\n\n" for chunk in (*chunks, "[DONE]")).encode()
    return Answer(body=body, headers=(("Content-Type", "text/event-stream"),))


def words(text: str, usage: str = "null") -> Answer:
    chunk = f'{{"choices": [{{"index": 0, "delta": {{"content": "{text}"}}, "finish_reason": null}}]}}'
    return stream(chunk, f'{{"choices": [{{"index": 0, "delta": {{}}, "finish_reason": "stop"}}], "usage": {usage}}}')


def calls(arguments: str, *, name: str = "note", id: str = "c1") -> Answer:
    call = f'{{"index": 0, "id": "{id}", "function": {{"name": "{name}", "arguments": {json.dumps(arguments)}}}}}'
    chunk = f'{{"choices": [{{"index": 0, "delta": {{"tool_calls": [{call}]}}, "finish_reason": "tool_calls"}}]}}'
    return stream(chunk)


ANSWERS = {
    "a count beyond 64 bits": words("Hello.", '{"prompt_tokens": 99999999999999999999, "completion_tokens": 1}'),
    "a count of 64 bits": words("Hello.", '{"prompt_tokens": 9223372036854775807, "completion_tokens": 1}'),
    "a count without end": words("Hello.", '{"prompt_tokens": NaN, "completion_tokens": -1e999}'),
    "odd words": words(ODD),
    "odd arguments": calls('{"text": "a\\u0000b\\ud800c"}'),
    "deep arguments": calls(f'{{"text": {"[" * DEEP}{"]" * DEEP}}}'),
    "a huge number in arguments": calls(f'{{"text": {10**400}}}'),
    "no number in arguments": calls('{"text": NaN}'),
    "an odd name of a tool": calls("{}", name=ODD),
    "an odd id of a call": calls('{"text": "milk"}', id=ODD),
    "a tool with a huge number": calls("{}", name="count"),
}
FAILED = {
    "an odd error": failure(500, "a\0b"),
    "an odd error in the stream": stream(f'{{"error": {{"type": "server_error", "message": "{ODD}"}}}}'),
    "deep events": stream(f'{{"choices": {"[" * DEEP * 3}{"]" * DEEP * 3}}}'),
}
SCRIPTS = {**ANSWERS, **FAILED}
COUNT = '''

@tool
def count() -> object:
    """Count to a number of thirty-one digits."""
    return {"of": [10**30, float("nan")]}
'''


def script(model_request: Request) -> Answer:
    messages = cast("list[dict[str, object]]", model_request.page["messages"])
    last = str(messages[-1]["content"])
    return next((answer for name, answer in SCRIPTS.items() if last.endswith(f"Give me {name}.")), Answer(text="Well."))


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    folder: Path = tmp_path_factory.mktemp("odd")
    with postgres_server() as postgres, Harness(folder, script) as harness:
        harness.database = postgres.url(postgres.create_database())
        with (harness.agent / "tools.py").open("a", encoding="utf-8") as tools:
            tools.write(COUNT)
        with harness.serve(retry_seconds=0.01, storage_url=f"file://{folder / 'files'}"):
            yield harness


@pytest.mark.parametrize("odd", SCRIPTS)
def test_X4_whatever_a_provider_sends_the_run_ends_in_order_and_its_thread_goes_on(harness: Harness, odd: str):
    first = ask(f"Give me {odd}.")
    end = run(harness.url, first)[-1].event
    expected = ("RUN_ERROR", "model_failed") if odd in FAILED else ("RUN_FINISHED", None)
    assert (end["type"], end.get("code")) == expected
    after = run(harness.url, ask("And now?", thread=str(first["threadId"])))
    assert after[-1].event["type"] == "RUN_FINISHED"


def test_P11_a_huge_number_in_a_tools_result_reaches_the_model_with_all_its_digits(harness: Harness):
    run(harness.url, ask("Give me a tool with a huge number."))
    (page,) = [model_request.page for model_request in harness.model.requests[-1:]]
    messages = cast("list[dict[str, object]]", page["messages"])
    assert messages[-1]["content"] == f'{{"of":[{10**30},null]}}'
