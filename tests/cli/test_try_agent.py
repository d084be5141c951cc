"""C1: `recto agents try`, as people type it: one turn with an agent, on a server whose data is thrown away."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from recto.testing.model_server import Answer, Call, ModelServer, failure
from tests.cli.in_process import Done, recto_process

pytestmark = pytest.mark.full

AGENT = "---\nmodel: openai:costly\n---\n\nYou are a gardener.\n"
TOOLS = '''
from recto import tool

@tool
def water(plant: str, litres: float = 0.5) -> str:
    """Water a plant."""
    return f"{plant} has {litres} litres"

@tool(confirm=True)
def cut(plant: str) -> str:
    """Cut a plant."""
    return f"{plant} is short now"
'''
MODEL = ("--model", "compatible:small")


def write_agent(folder: Path, agent: str = AGENT, tools: str = TOOLS) -> Path:
    gardener = folder / "agents" / "gardener"
    gardener.mkdir(parents=True)
    (gardener / "AGENT.md").write_text(agent, encoding="utf-8")
    (gardener / "tools.py").write_text(tools, encoding="utf-8")
    return gardener


def try_agent(folder: Path, *words: str, answers: Sequence[Answer] = (), **environment: str) -> Done:
    with ModelServer(answers) as model:
        environment_in_use = {"RECTO_MODEL_URL": model.url, **environment}
        return recto_process(folder, "agents", "try", *words, stdin=b"", COLUMNS="200", **environment_in_use)


def test_C1_try_prints_pages_with_reasons_calls_results_and_the_answer_and_leaves_nothing(tmp_path: Path):
    write_agent(tmp_path)
    call = Call(name="water", arguments='{"plant": "fern"}')
    elsewhere = f"sqlite:///{tmp_path / 'elsewhere.db'}"
    code, out, err = try_agent(
        tmp_path,
        *("agents/gardener", "Water the fern.", *MODEL),
        answers=(Answer(text="Yes.", calls=(call,)), Answer(text="It has [half] a litre.")),
        RECTO_DATABASE_URL=elsewhere,
        RECTO_API_KEYS="ada:a-key-of-16-letters",
    )
    assert (code, err) == (0, "")
    first, second, answer = out.split("\n\n")
    assert re.match(r"Page 1: \d+ tokens for compatible:small\n", first)
    assert re.search(r"^\d+ +tool water +\d+ +kept", first, re.MULTILINE)
    assert re.search(r"^\d+ +system +\d+ +injected S9 +system prompt: who the agent is", first, re.MULTILINE)
    assert first.endswith('calls water {"plant": "fern"}\nresult fern has 0.5 litres')
    assert re.search(r"^\d+ +result \w+ +\d+ +kept", second, re.MULTILINE)
    assert answer == "Answer (success)\nIt has [half] a litre.\n"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["AGENT.md", "agents", "gardener", "tools.py"]


@pytest.mark.parametrize(
    ("more", "end"),
    [
        ((), 'calls cut {"plant": "rose"}\n\nA tool call needs approval. Run with --agree to approve all calls.\n'),
        (("--agree",), "Answer (success)\nDone.\n"),
    ],
)
def test_C1_try_makes_calls_that_need_approval_only_with_agree(tmp_path: Path, more: tuple[str, ...], end: str):
    write_agent(tmp_path)
    answers = (Answer(calls=(Call(name="cut", arguments='{"plant": "rose"}'),)), Answer(text="Done."))
    code, out, _ = try_agent(tmp_path, "agents/gardener", "Cut the rose.", *MODEL, *more, answers=answers)
    assert (code, out[-len(end) :]) == (0, end)
    assert 'calls cut {"plant": "rose"}\n' in out
    assert ("result rose is short now" in out) == bool(more)


def test_C1_try_reports_a_failed_turn(tmp_path: Path):
    write_agent(tmp_path)
    code, out, err = try_agent(tmp_path, "agents/gardener", "Hello?", *MODEL, answers=(failure(400, "never"),))
    assert code == 1
    assert out.startswith("Page 1: ")
    assert err.startswith("recto agents try: The model rejected the request.")


def test_C1_try_of_a_folder_without_an_agent_is_a_usage_error(tmp_path: Path):
    write_agent(tmp_path)
    code, out, err = try_agent(tmp_path, "agents", "Hello?")
    assert (code, out) == (2, "")
    assert err == (
        "recto agents try: Setting FOLDER is 'agents'; it contains no AGENT.md, tools.py or skills. "
        "Name the folder of an agent.\n"
    )
