"""C1: `recto agents check` and `recto agents new`, as people type them."""

import re
import sys
from pathlib import Path
from typing import cast

import pytest
from typer.testing import CliRunner

from recto.agents.agent import Agent
from recto.agents.agent_settings import AgentTable
from recto.agents.folders import load_folder
from recto.cli.agents import agents, load_toolbox, new_files
from recto.config.settings import Limits
from recto.conversation.json import Json, load_object
from recto.page.prompt.system_prompt import Prompt
from recto.tools.load_tools import make_built_in_tools
from tests.layers import ROOT

FAILED, WRONG_USE = 1, 2


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    done = CliRunner().invoke(agents, list(arguments), prog_name="recto agents")
    return done.exit_code, done.stdout, done.stderr


def write(path: str, text: str) -> None:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


# check


def test_C1_check_tells_each_good_agent_in_a_line():
    write("mine/baker/AGENT.md", "---\nmodel: openai:x\nlocale: zh\ntools: []\n---\nYou bake.")
    write("mine/gardener/AGENT.md", "You are a gardener.")
    write("mine/gardener/tools.py", "def water(plant: str) -> str:\n    'Water it.'\n    return plant\n")
    assert run("check", "mine") == (
        0,
        "baker: model openai:x; tools none; locale zh; 3 tokens\n"
        "gardener: model the server's; tools current_time, calculator, water; locale en; 5 tokens\n",
        "",
    )


def test_C1_check_tells_every_problem_with_its_line_and_fails():
    write("mine/baker/AGENT.md", "---\nlocale: fr\ntools: [hammer]\n---\n")
    write("mine/broken/tools.py", "print('words')\n\nnonsense\n")
    write("mine/good/AGENT.md", "You are good.")
    write("mine/half/AGENT.md", "You are half.")
    write("mine/half/tools.py", "\ndef half(a: int, b): ...\n")
    write("mine/oven/tools.py", "import no_such_oven\n")
    write("mine/twice/tools.py", "def calculator(a: int) -> int:\n    return a\n")
    code, out, err = run("check", "mine")
    assert (code, out) == (FAILED, "good: model the server's; tools current_time, calculator; locale en; 4 tokens\n")
    assert err.splitlines() == [
        "words",
        "mine/baker/AGENT.md:2: locale is \"fr\"; it is 'zh' or 'en'.",
        'mine/baker/AGENT.md:3: tools.0 is "hammer"; there is no such tool built in; Known: '
        f"{', '.join(sorted(tool.name for tool in make_built_in_tools()))}. Tools of tools.py are always available.",
        "mine/broken/tools.py:3: it cannot be imported: NameError: name 'nonsense' is not defined.",
        "mine/half/tools.py:2: half: parameter 'b' has no type hint; give it one.",
        "mine/oven/tools.py:1: it imports no_such_oven, which is not installed here. Install the package that has it, "
        f"often of the same name, into the Python that Recto runs in: {sys.executable} -m pip install no_such_oven.",
        "mine/twice/tools.py: the tool calculator is built in and in tools.py too. "
        "Rename yours, or leave calculator out of `tools`.",
    ]


def test_C1_check_prints_warnings_and_fails_for_them_only_when_strict():
    write("mine/baker/AGENT.md", "---\nhistory: 0\n---\nYou bake.")
    code, out, err = run("check", "mine")
    assert (code, out) == (0, "baker: model the server's; tools current_time, calculator; locale en; 3 tokens\n")
    assert re.fullmatch(r"mine/baker/AGENT\.md:2: history is 0, so .* \(warning\)\n", err)
    assert run("check", "mine", "--strict") == (FAILED, out, err)


def test_C1_check_as_json_has_agents_problems_and_warnings():
    write("mine/baker/AGENT.md", "---\ndescription: Bread.\nhistory: 0\n---\nYou bake.")
    write("mine/loud/AGENT.md", "---\n\nlocale: fr\n---\n")
    write("mine/loud/tools.py", "print('words')")
    code, out, _ = run("check", "mine", "--json")
    rows = cast("dict[str, list[dict[str, Json]]]", load_object(out))
    assert code == FAILED
    assert rows["agents"] == [
        {
            "name": "baker",
            "description": "Bread.",
            "model": None,
            "tools": ["current_time", "calculator"],
            "skills": [],
            "locale": "en",
            "tokens": 3,
        }
    ]
    text = "locale is \"fr\"; it is 'zh' or 'en'."
    assert rows["problems"] == [{"file": "mine/loud/AGENT.md", "line": 3, "text": text}]
    assert [(row["file"], row["line"]) for row in rows["warnings"]] == [("mine/baker/AGENT.md", 3)]


def test_C1_check_of_an_agent_or_missing_folder_is_a_usage_error():
    code, out, err = run("check", "nowhere")
    assert (code, out) == (WRONG_USE, "")
    assert err.startswith("recto agents check: Setting agents is 'nowhere'; it cannot be read (No such file")
    write("mine/baker/AGENT.md", "You bake.")
    code, out, err = run("check", "mine/baker")
    assert (code, out) == (WRONG_USE, "")
    assert "it contains AGENT.md, so it is an agent. Name its parent folder: " in err
    assert run("check")[0] == WRONG_USE


# new


def test_C1_new_creates_a_valid_agent_and_prints_the_next_steps():
    made_files = (
        "Created {into}/my-agent_2 with AGENT.md (instructions and settings) and tools.py (tools). Next:\n"
        "  recto agents check{named}\n"
        '  recto agents try {into}/my-agent_2 "How many words are in this?"\n'
        "  RECTO_AGENT=my-agent_2 recto serve{flag}\n"
    )
    for flags, into, option, flag in (((), "agents", "", ""), (("--into", "a/b"), "a/b", " a/b", " --agents a/b")):
        assert run("new", "my-agent_2", *flags) == (0, made_files.format(into=into, named=option, flag=flag), "")
        line = "my-agent_2: model the server's; tools current_time, calculator, count_words; locale en; "
        code, out, err = run("check", into, "--strict")
        assert (code, err) == (0, "")
        assert out.startswith(line)


@pytest.mark.parametrize("name", ["", "a b", "../a", "a/b", ".a", "_a", "ä", "a" * 65, "a\n"])
def test_C1_new_refuses_a_name_that_is_none(name: str):
    code, out, err = run("new", "--", name)
    assert (code, out) == (WRONG_USE, "")
    assert (
        err == f"recto agents new: {name!r} is not a valid name: an agent's name has 1 to 64 letters, digits, - or _, "
        "all ASCII, and does not begin with _.\n"
    )
    assert list(Path.cwd().iterdir()) == []


def test_C1_new_refuses_a_folder_that_exists_and_leaves_it_alone():
    write("agents/baker/AGENT.md", "You bake.")
    message = "recto agents new: agents/baker exists. Choose another name, or another folder with --into.\n"
    assert run("new", "baker") == (WRONG_USE, "", message)
    assert Path("agents/baker/AGENT.md").read_text() == "You bake."


def uncommented(text: str) -> str:
    return re.sub(r"^# (?= *[a-z_]+:)", "", text, flags=re.MULTILINE)


def test_C1_the_new_file_shows_every_setting_with_its_default():
    text = new_files("it")["AGENT.md"]
    assert set(re.findall(r"^(?:# )?([a-z_]+):", text, flags=re.MULTILINE)) == set(AgentTable.model_fields)
    write("mine/it/AGENT.md", uncommented(text).replace("openai:NAME", "openai:x"))
    modules = load_folder(Path("mine"), Limits(steps=1), load_toolbox())
    assert [str(problem) for problem in modules.problems] == []
    result, plain = modules["it"], Agent(name="it", prompt=Prompt(identity=""), tools=("current_time", "calculator"))
    for name in ("locale", "titles", "client_system", "tools", "history", "call_form", "options", "fold"):
        assert getattr(result, name) == getattr(plain, name)
    assert (result.compact, result.summary, result.limits) == (plain.compact, plain.summary, plain.limits)
    message = set(re.findall(r"^# ([a-z_]+):", text, flags=re.MULTILINE))
    unset = {name for name, value in AgentTable() if value in (None, "")} - {"name", "description", "history"}
    assert unset <= message


# The guide


def test_C1_the_guide_names_every_setting_and_no_other():
    guide = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    table = guide.partition("| Setting |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE) == list(AgentTable.model_fields)


def test_C4_the_example_of_the_guide_is_an_agent():
    guide = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```markdown\n(.*?)^```$", guide, flags=re.MULTILINE | re.DOTALL)
    write("mine/gardener/AGENT.md", str(example))
    assert run("check", "mine", "--strict")[0] == 0
