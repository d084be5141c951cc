"""C4: whatever stands in an AGENT.md, it gives an agent or problems with lines of the file, and never takes long."""

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from recto.agents.agent_folder import Toolbox
from recto.agents.agent_settings import AgentTable, FileInputTable
from recto.agents.folders import load_folder
from recto.cli.agents import new_files
from recto.config.settings import Limits
from recto.errors import FileRefused
from recto.files.fetch.addresses import check_url, read_url
from tests.agents.test_agent_file import EVERYTHING
from tests.agents.yaml_pieces import PIECES as YAML_PIECES

TOOLBOX = Toolbox(built_in=("current_time", "calculator"), of_folder=lambda _: ())
SOURCES = (EVERYTHING, new_files("it")["AGENT.md"])
SETTINGS = tuple(AgentTable.model_fields)
PIECES = (*YAML_PIECES, *SETTINGS)


def mutated(seed: int) -> str:
    """A good file with pieces put in, taken out and doubled."""
    chance = random.Random(seed)
    text = chance.choice(SOURCES)
    for _ in range(chance.randint(1, 6)):
        start = chance.randrange(len(text) + 1)
        end = min(len(text), start + chance.choice((0, 0, 1, 5, 40)))
        text = text[:start] + chance.choice((chance.choice(PIECES), text[start:end] * 2, "")) + text[end:]
    return text


def assert_told(folder: Path, raw: bytes) -> None:
    """An agent, or problems with a line each; never both, never neither."""
    (folder / "it").mkdir(exist_ok=True)
    (folder / "it" / "AGENT.md").write_bytes(raw)
    loaded_agents = load_folder(folder, Limits(), TOOLBOX)
    lines = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n").count(b"\n") + 1
    assert ("it" in loaded_agents) != bool(loaded_agents.problems)
    for problem in (*loaded_agents.problems, *loaded_agents.warnings):
        assert problem.line is not None
        assert 1 <= problem.line <= lines
        assert problem.text
        assert "\n" not in problem.text


@pytest.mark.parametrize("start", range(0, 500, 50))
def test_C4_a_mutated_file_gives_an_agent_or_problems(tmp_path: Path, start: int):
    for seed in range(start, start + 50):
        assert_told(tmp_path, mutated(seed).encode())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(raw=st.binary(max_size=200) | st.lists(st.sampled_from(PIECES)).map("".join).map(str.encode))
def test_C4_any_bytes_give_an_agent_or_problems(tmp_path: Path, raw: bytes):
    assert_told(tmp_path, raw)
    assert_told(tmp_path, b"---\n" + raw + b"\n---\nYou are it.")


@pytest.mark.parametrize(
    "settings_text",
    [
        pytest.param("[" * 60_000, id="deep"),
        pytest.param("a: " * 20_000, id="keys in a line"),
        pytest.param("a: &a [x]\nb: [" + "*a, " * 15_000 + "]", id="aliases"),
        pytest.param("options: {" + ", ".join(f"k{n}: {n}" for n in range(5_000)) + "}", id="wide"),
        pytest.param("tone: " + "9" * 60_000, id="a long number"),
        pytest.param("\n".join(f"k{n}: {n}" for n in range(5_000)), id="unknown names"),
    ],
)
def test_C4_a_file_made_to_take_long_does_not(tmp_path: Path, settings_text: str):
    assert_told(tmp_path, f"---\n{settings_text}\n---\n".encode())


LABELS = ("a", "B", "my_host", "a-b", "-a", "1", "127", "04", "0x7f", "256", "x" * 57, "x" * 63, "x" * 64, "", "é")
PORTS = ("", ":", ":0", ":1", ":080", ":65535", ":65536", ":99999", ":100000", ":a")
HOSTS = st.lists(st.sampled_from(LABELS), min_size=1, max_size=6).map(".".join)
NAMES = st.tuples(HOSTS, st.sampled_from(PORTS)).map("".join)


@given(name=NAMES)
def test_D7_a_host_is_taken_by_an_agent_just_where_a_url_may_have_it(name: str):
    # Urls may spell a host so too, settings have one spelling.
    if not name.isascii() or name.partition(":")[0].endswith("."):
        assert not takes(name)
        return
    try:
        read_url(f"http://{name}/")
    except FileRefused:
        assert not takes(name)
    else:
        assert takes(name)
        assert check_url(f"http://{name}/", FileInputTable(urls=[name]).urls or ())


@given(name=NAMES)
def test_D7_what_an_agent_takes_as_all_below_a_host_is_what_some_url_may_have(name: str):
    if takes(f"*.{name}"):
        assert check_url(f"http://a.{name}/", FileInputTable(urls=[f"*.{name}"]).urls or ())


def takes(name: str) -> bool:
    try:
        FileInputTable(urls=[name])
    except ValidationError:
        return False
    return True
