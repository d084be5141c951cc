"""Settings of tools elsewhere: what they become, and every fault with its line."""

from pathlib import Path

import pytest

from recto.agents.agent import Agent
from recto.agents.agent_folder import load_agent
from recto.config.settings import Limits


def load(folder: Path, settings: str) -> tuple[list[tuple[int | None, str]], Agent]:
    agent = folder / "seller"
    agent.mkdir(exist_ok=True)
    (agent / "AGENT.md").write_text(f"---\n{settings}\n---\nYou sell.\n", encoding="utf-8")
    read = load_agent(agent, Limits())
    return [(problem.line, problem.text) for problem in read.problems], read.agent


def test_servers_and_services_are_values_with_the_line_they_stand_in(tmp_path: Path):
    text = "mcp:\n  files: {command: [python, a.py], env: {A: 'secret:B'}, tools: [x], seconds: 5}\n"
    text += "  far: {url: 'https://example.com/mcp', internal: true}\nopenapi:\n  shop: {file: shop.yaml}"
    problems, agent = load(tmp_path, text)
    assert problems == []
    files, far = agent.mcp
    assert (files.name, files.command, files.env) == ("files", ("python", "a.py"), {"A": "secret:B"})
    assert (files.tools, files.seconds, files.sandbox, files.network, files.place.line) == (("x",), 5, True, False, 3)
    assert (far.url, far.internal, far.tools) == ("https://example.com/mcp", True, None)
    assert agent.openapi[0].file == tmp_path / "seller" / "shop.yaml"


@pytest.mark.parametrize(
    ("settings", "line", "text"),
    [
        ("mcp: {files: {}}", 2, "mcp.files needs either a command or a url."),
        ("mcp:\n  a: {command: [x], url: 'https://a.example'}", 3, "mcp.a needs either a command"),
        ("mcp:\n  a: {command: []}", 3, "mcp.a.command is []; it has at least 1."),
        ("mcp:\n  a:\n    command: [x]\n    headers: {A: b}", 5, "mcp.a.headers has no effect without a url."),
        ("mcp:\n  a: {url: 'https://a.example', env: {A: b}}", 3, "mcp.a.env has no effect without a command."),
        ("mcp:\n  a: {url: 'ftp://a.example'}", 3, "it is an http or https URL"),
        ("mcp:\n  a: {url: 'https://ada:pw@a.example/'}", 3, "a name or password in it would be shown"),
        ("mcp:\n  a: {command: [x], enw: {}}", 3, "there is no setting enw in mcp.a; did you mean env?"),
        ("mcp:\n  a: {command: [x], env: {1A: b}}", 3, "an environment variable has letters"),
        ("mcp:\n  a: {command: [x], readable: [docs]}", 3, "it is an absolute path, such as /srv/documents"),
        ("mcp:\n  a: {url: 'https://a.example', headers: {'A B': c}}", 3, "it is not a header name"),
        ("mcp:\n  A__b: {command: [x]}", 3, "a name has 1 to 24 lower-case letters"),
        ("openapi:\n  a: {file: ../a.yaml}", 3, "it is a YAML or JSON file in the agent's folder"),
        ("mcp: {a: {command: [x]}}\nopenapi:\n  a: {file: a.yaml}", 4, "there is an mcp of that name too"),
    ],
)
def test_every_fault_has_its_line(tmp_path: Path, settings: str, line: int, text: str):
    problems, _ = load(tmp_path, settings)
    assert [(fault_line, text in words) for fault_line, words in problems] == [(line, True)], problems
