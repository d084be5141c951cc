"""C1, S7, S8: `recto agents explain`, as people type it: the prompt that would be built, and why."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from recto.cli.agents import agents
from recto.conversation.json import load_object
from recto.page.assemble import assemble
from recto.page.facts import Facts
from recto.page.preamble import OF_REMINDERS
from recto.page.text.tokens import OFFLINE
from recto.page.wire.base import Target
from recto.page.wire.formats import SPEAKERS
from recto.store.store import open_store
from recto.store.users.users import ProfileChange
from recto.tools.load_tools import load_folder_tools
from recto.tools.registry import Registry
from tests.end_to_end.skilled import write_guide

WRONG_USE = 2
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def in_a_folder_with_agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_guide(tmp_path / "agents")


def run(*arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    done = CliRunner().invoke(agents, ["explain", *arguments], prog_name="recto agents")
    return done.exit_code, done.stdout, done.stderr


def explained(*arguments: str) -> tuple[list[str], str]:
    """The lines about the prompt, and the prompt."""
    code, out, err = run("guide", "--agents", "agents", *arguments)
    assert (code, err) == (0, "")
    head, _, prompt = out.partition("\n\n")
    return head.splitlines(), prompt


async def keep() -> None:
    store = await open_store("sqlite:///data/recto.db")
    chart = {"element": "木", "of": {"birth_info": {"date": "1990-05-15"}}}
    change = ProfileChange(fields={"birth_info": {"date": "1990-05-15"}}, skill_data={"chart": chart})
    await store.users.change_profile("ann", change, NOW, 10_000)
    await store.users.set_tier("ann", "pro", NOW)
    await store.close()


def test_C1_without_a_skill_it_is_the_lean_page():
    lines, prompt = explained()
    assert lines[:4] == [
        "agent   guide; phase select: no skill is active",
        "user    none (use the data of a user with --user)",
        "read    nothing",
        "history the newest 5 messages before the current turn",
    ]
    assert prompt == f"你是向导。\n\n{OF_REMINDERS['zh']}\n\n## 语气\n温和。\n\n## 工具调用规则\n先想后做。\n"
    assert lines[4].startswith("tokens  ")
    assert "a budget of 2000" in lines[4]


def test_S7_S8_explain_shows_step_cases_and_data_of_a_skill():
    Path("data").mkdir()
    asyncio.run(keep())
    lines, prompt = explained("--skill", "chart", "--scenario", "love", "--user", "ann", "--data", "data")
    assert lines[0] == (
        "agent   guide; phase execute: skill chart, scenario love; next step ready; best cases b (score 3), a (score 1)"
    )
    assert lines[1:3] == ["user    ann", "read    birth_info (known), skill_data.chart (known)"]
    assert "1990-05-15" in prompt
    assert "解读命盘。" in prompt
    nobody = explained("--skill", "chart")
    assert "read    birth_info (unknown), skill_data.chart (unknown)" in nobody[0]
    assert "调用 collect_birth_info。" in nobody[1]


def test_C1_parts_cut_by_the_budget_are_listed():
    Path("data").mkdir()
    asyncio.run(keep())
    write_guide(Path("agents"), more="phases: {execute: {budget: 60}}")
    lines, _ = explained("--skill", "chart", "--user", "ann", "--data", "data")
    assert [line for line in lines if line.startswith("dropped case b: prompt budget: over the budget of 60 tokens")]
    assert [line for line in lines if line.startswith("over    ")]


@pytest.mark.parametrize("model", ["openai:gpt", "anthropic:claude", "gemini:gemini-3-pro", "compatible:qwen"])
def test_C1_tools_have_the_tokens_that_a_page_counts_for_them(model: str):
    write_guide(Path("agents"), more=f"model: {model}")
    code, out, _ = run("guide", "--agents", "agents", "--skill", "mend", "--json")
    tools, wire = (load_object(out) or {})["tools"], SPEAKERS[model.partition(":")[0]]
    offers = Registry(load_folder_tools(Path("agents/guide"))).offers(["hello"])
    facts = Facts(log=(), target=Target(wire=wire), tools=offers)
    tokens_by_source = {part.source: part.tokens_after for part in assemble(facts)[1].parts if part.kind == "tool"}
    assert isinstance(tools, dict)
    assert (code, tools["hello"]) == (0, tokens_by_source["hello"])


def test_P11_tools_in_the_prompt_count_towards_its_budget():
    write_guide(Path("agents"), more="tool_calling: prompt\ndirectory_tokens: 300\nphases: {select: {budget: 100}}")
    lines, prompt = explained()
    assert prompt.startswith("你是向导。")
    assert "<!-- TOOLS_START -->\n- use_skill: " in prompt
    tokens = OFFLINE.count((prompt.removesuffix("\n"),))[0]
    assert f"tokens  {tokens} of the system prompt, a budget of 100; including the tools" in lines
    assert "tool    hello: Say hello, whatever the skill." in lines
    expected_line = "cut     use_skill: skill directory: 3 skills: triggers and scenarios left out"
    assert [line for line in lines if line.startswith(expected_line)]
    assert f"over    {tokens} tokens, over the budget of 100: identity, SOP and tools are never cut" in lines


def test_C1_as_json_it_has_the_prompt_and_why():
    code, out, _ = run("guide", "--agents", "agents", "--skill", "mend", "--voice", "direct", "--json")
    row = load_object(out) or {}
    assert code == 0
    assert (row["skill"], row["history"], row["budget"]) == ("mend", 10, 8_000)
    assert str(row["prompt"]).startswith(f"# Mending\n\nRead parts.md first.\n\n{OF_REMINDERS['zh']}\n\n## 语气\n")
    assert list(row["tools"] if isinstance(row["tools"], dict) else ()) == ["use_skill", "read_skill_file", "hello"]
    assert isinstance(row["words"], dict)
    assert row["words"]["hello"] == "Say hello, whatever the skill."


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("nobody",), "Setting AGENT is 'nobody'; there is none; Known: "),
        (("guide", "--skill", "chrt"), "Setting --skill is 'chrt'; there is none; did you mean chart? Known: "),
        (
            ("guide", "--skill", "chart", "--scenario", "war"),
            "Setting --scenario is 'war'; there is none; Known: basic, love",
        ),
        (
            ("guide", "--scenario", "love"),
            "Setting --scenario is 'love'; a scenario belongs to a skill. Name the skill with --skill.",
        ),
        (("guide", "--skill", "core", "--scenario", "love"), "Name the skill with --skill."),
        (("guide", "--voice", "loud"), "Setting --voice is 'loud'; there is none; Known: direct, warm"),
        (("guide", "--skill", "chart", "--user", "ann", "--data", "nowhere"), "there is no database"),
    ],
)
def test_C1_an_unknown_name_is_reported_with_the_available_ones(arguments: tuple[str, ...], problem: str):
    code, out, err = run(*arguments, "--agents", "agents")
    assert (code, out) == (WRONG_USE, "")
    assert problem in err
