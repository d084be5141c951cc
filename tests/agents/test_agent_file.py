"""C4, C5: AGENT.md: settings and persona, and what is said of each mistake in it, with its line."""

from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from recto.agents.agent import Agent, Sampling
from recto.agents.agent_folder import Toolbox
from recto.agents.file_input import OFF, FileInput
from recto.agents.folders import LoadedAgents, load_folder
from recto.config.settings import Limits
from recto.errors import SettingsError
from recto.page.fold.fold_settings import FoldSettings
from recto.page.fold.paths import Project
from recto.page.fold.rules import READS, SEARCH, TERMINAL
from recto.page.prompt.summarise import SummarySettings
from recto.page.prompt.system_prompt import Prompt
from recto.page.steps.compact import CompactSettings

SERVER = Limits(steps=3, seconds=4)
BUILT_IN = ("current_time", "calculator")
EVERYTHING = """\
---
name: it
description: 2026-01-31
tone: Warm.
rules: |
  Use tools.
  Twice.
locale: zh
model: openai:gpt-5:mini
temperature: 1
max_tokens: 100
reasoning_effort: low
tool_choice: calculator
output: {type: object, properties: {b: {type: 'null'}, a: {enum: [null, 1.5]}}}
options: {seed: 7, metadata: {a: null, list: [yes, 1e3]}}
tools: [calculator]
confirm: [calculator]
tool_calling: prompt
file_input:
  {documents: false, images: false, audio: true, video: true, endings: [gpx, .TeX], max_files: 3, max_bytes: 1000,
   mode: always, quote_tokens: 500, urls: [example.com]}
quote: Our rules.
datasets: [d1, d2]
history: 10
budget: 6000
fold:
  root: /srv/shop
  case_sensitive: false
  reads: {tools: [read], path_args: [file], keep: 2, keep_by_size: [[9, 1]], placeholder: gone}
  terminal: false
  search: {keep: 0, minutes: 1.5}
compact: {at: 0.5, least: 0}
summary: {tokens: 9000, summary_tokens: 100, characters_per_message: 50}
limits: {steps: 9, client_seconds: 0.5}
titles: model
client_system: true
---

You are it.
---
Still you.
"""
FILE_INPUT = FileInput(is_on=True, documents=False, images=False, audio=True, video=True, endings=("gpx", "tex"))
ATTACHED_INPUT = replace(
    FILE_INPUT, mode="always", quote_tokens=500, urls=("example.com",), max_files=3, max_bytes=1000
)


def load(folder: Path, text: str | bytes, own: Collection[str] = ()) -> LoadedAgents:
    """What comes of a file, in a folder named `it`."""
    (folder / "it").mkdir(exist_ok=True)
    (folder / "it" / "AGENT.md").write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_folder(folder, SERVER, Toolbox(built_in=(*BUILT_IN, "recall"), of_folder=lambda _: own))


def agent(folder: Path, settings: str = "") -> Agent:
    loaded_agents = load(folder, f"---\n{settings}\n---\nYou are it.")
    assert not loaded_agents.problems, loaded_agents.problems[0]
    return loaded_agents["it"]


def problems_of(folder: Path, text: str | bytes, own: Collection[str] = ()) -> list[tuple[int | None, str]]:
    """Lines and texts of the problems. An agent with problems is never among those that loaded."""
    loaded_agents = load(folder, text, own)
    assert bool(loaded_agents.problems) == ("it" not in loaded_agents)
    assert {problem.file for problem in loaded_agents.problems} <= {folder / "it" / "AGENT.md"}
    return [(problem.line, problem.text) for problem in loaded_agents.problems]


# Values


def test_C4_every_setting_becomes_a_value(tmp_path: Path):
    assert load(tmp_path, EVERYTHING)["it"] == Agent(
        name="it",
        prompt=Prompt(identity="You are it.\n---\nStill you.", tone="Warm.", rules="Use tools.\nTwice."),
        description="2026-01-31",
        model="openai:gpt-5:mini",
        sampling=Sampling(
            temperature=1,
            max_tokens=100,
            reasoning_effort="low",
            tool_choice="calculator",
            output='{"type":"object","properties":{"b":{"type":"null"},"a":{"enum":[null,1.5]}}}',
        ),
        titles="model",
        client_system=True,
        tools=("calculator",),
        confirm=("calculator",),
        file_input=ATTACHED_INPUT,
        quote="Our rules.",
        datasets=("d1", "d2"),
        history=10,
        budget=6000,
        locale="zh",
        tool_calling="prompt",
        options={"seed": 7, "metadata": {"a": None, "list": ["yes", 1000.0]}},
        fold=FoldSettings(
            reads=replace(
                READS, tools=("read",), path_args=("file",), keep=2, keep_by_size=((9, 1),), placeholder="gone"
            ),
            terminal=None,
            search=replace(SEARCH, keep=0, max_age=timedelta(seconds=90)),
            project=Project(root="/srv/shop", case_sensitive=False),
        ),
        compact=CompactSettings(at=0.5, least=0),
        summary=SummarySettings(tokens=9000, summary_tokens=100, characters_per_message=50, locale="zh"),
        limits=Limits(steps=9, seconds=4, client_seconds=0.5),
    )


def test_C4_without_settings_there_are_defaults_and_the_limits_of_the_server(tmp_path: Path):
    plain = Agent(name="it", prompt=Prompt(identity="You are it."), tools=BUILT_IN, limits=SERVER)
    for text in (
        "You are it.",
        "\ufeffYou are it.\r\n",
        "---\n---\nYou are it.",
        "--- \r\n# nothing\r\n---\t\r\n\r\nYou are it.",
    ):
        assert load(tmp_path, text)["it"] == plain


def test_C4_a_line_that_is_not_the_first_begins_no_settings(tmp_path: Path):
    text = "\n---\nlocale: fr\n---"
    assert load(tmp_path, text)["it"].prompt.identity == text.strip()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("fold: eager", FoldSettings()),
        ("fold: off", FoldSettings(reads=None, terminal=None, search=None)),
        ("fold: {reads: false}", FoldSettings(reads=None)),
        ("fold: {search: true, terminal: true}", FoldSettings(search=SEARCH, terminal=TERMINAL)),
    ],
)
def test_R11_folding_is_named_switched_or_told_in_full(tmp_path: Path, settings: str, expected: FoldSettings):
    assert agent(tmp_path, settings).fold == expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("", OFF),
        ("file_input: true", FileInput(is_on=True)),
        ("file_input: {images: false}", FileInput(is_on=True, images=False)),
        ("file_input: {mode: always, quote_tokens: 9}", FileInput(is_on=True, mode="always", quote_tokens=9)),
        (
            'file_input: {urls: ["*", Example.COM, "*.a.b:8443", localhost]}',
            FileInput(is_on=True, urls=("*", "example.com", "*.a.b:8443", "localhost")),
        ),
        (
            'file_input: {urls: ["*:65535", my_host.example.com, 192.0.2.1, "192.0.2.1:1", 1.example.com]}',
            FileInput(is_on=True, urls=("*:65535", "my_host.example.com", "192.0.2.1", "192.0.2.1:1", "1.example.com")),
        ),
    ],
)
def test_D1_files_are_switched_on_or_told_in_full(tmp_path: Path, settings: str, expected: FileInput):
    assert agent(tmp_path, settings).file_input == expected


def test_D1_documents_come_to_who_takes_all_or_some_of_them():
    nothing = FileInput(is_on=True, documents=False)
    file_inputs = (OFF, FileInput(endings=("gpx",)), FileInput(is_on=True), nothing, replace(nothing, endings=("gpx",)))
    assert [one.takes_documents for one in file_inputs] == [False, False, True, False, True]


def test_S1_history_all_is_legal_and_means_no_limit(tmp_path: Path):
    assert (agent(tmp_path, "history: all").history, agent(tmp_path, "history: 0").history) == (None, 0)
    assert agent(tmp_path, "tools: []").tools == ()


# Mistakes


@pytest.mark.parametrize(
    ("settings", "line", "text"),
    [
        ("modell: x", 2, "there is no setting modell; did you mean model? Known: activation, "),
        ("workspace: ../none", 2, 'workspace is "../none"; there is no such folder. Make it first'),
        ("mode: careful", 2, "mode is \"careful\"; it is 'ask', 'edits' or 'full'"),
        ("limits:\n  stepz: 1", 3, "there is no setting stepz in limits; did you mean steps? Known: bad_arguments, "),
        # Beyond the calendar.
        ("limits: {seconds: 1000000000000}", 2, "limits.seconds is 1000000000000; it is 31536000 or less."),
        ("name: other", 2, "name is \"other\"; the folder's name applies, and it is 'it'. Remove the line or "),
        ("model: gpt", 2, 'model is "gpt"; it is demo, openai:NAME, openai-responses:NAME, anthropic:NAME, '),
        ("locale: no", 2, "locale is \"no\"; it is 'zh' or 'en'."),
        ("file_input: yes", 2, 'file_input is "yes"; it is true, false or a table.'),
        ("file_input:\n  image: true", 3, "there is no setting image in file_input; did you mean images? Known: "),
        ("file_input:\n  urls: [https://a.b/]", 3, 'file_input.urls.0 is "https://a.b/"; it is a host such as '),
        ("file_input: {urls: ['a.org:0']}", 2, 'file_input.urls.0 is "a.org:0"; ports are 1 to 65535.'),
        ("file_input: {urls: ['127.1']}", 2, 'file_input.urls.0 is "127.1"; a host that ends in a number is an IPv4 '),
        ("file_input:\n  endings:\n  - gpx\n  - tar.gz", 5, 'file_input.endings.1 is "tar.gz"; it is a file name '),
        ("file_input: {endings: [PNG]}", 2, 'file_input.endings.0 is "PNG"; such files are of kind image, '),
        ("datasets:\n- d1\n- ''", 4, 'datasets.1 is ""; it is not empty.'),
        ("history: many", 2, 'history is "many"; it is `all` or a number of messages, 0 or more.'),
        ("budget: 0", 2, "budget is 0; it is 1 or more."),
        ("tools:\n- calculator\n- calculater", 4, 'tools.1 is "calculater"; there is no such tool built in; did you '),
        ("tool_choice: the best", 2, 'tool_choice is "the best"; it is auto, none, required or the name of a tool.'),
        ("confirm: [current_time, currant_time]", 2, 'confirm.1 is "currant_time"; this agent has no such tool; did '),
        ("tool_choice: water", 2, 'tool_choice is "water"; this agent has no such tool. Known: auto, none, required, '),
        ("fold: costs", 2, 'fold is "costs"; it is `eager`, `cost`, `off` or a table.'),
        ("fold:\n  mode: cost\n  cost: {window: -1}", 4, "fold.cost.window is -1; it is 0 or more."),
        ("fold: {reads: {keep: 0}}", 2, "fold.reads.keep is 0; it is 1 or more."),
        ("fold: {reads: {keep_by_size: [[1, 1],\n [1, 0]]}}", 3, "fold.reads.keep_by_size.1 is [1,0]; at least 1 read"),
        ("compact: {at: 80}", 2, "compact.at is 80; it is 1 or less."),
        ("summary:\n  tokens: 5", 3, "summary.tokens is 5; with 4000 of them for the summary so far, it is "),
        ("options:\n  seed: 1\n  messages: []", 4, "options.messages is not allowed: Recto sets it itself. Remove "),
        ("output:\n  properties:\n    a: {type: objekt}", 4, "output.properties.a.type is not a JSON Schema: "),
        ("output: {$ref: 'http://127.0.0.1:1/x'}", 2, "output is not a JSON Schema: Resource 'http://127.0.0.1:1/x' "),
        ("a: [", 3, "it is not YAML: while parsing a flow node, expected the node content, but found "),
        ("description: a: b", 2, "it is not YAML: mapping values are not allowed here; text with `: `, ` #` or a "),
        ("description: &a b", 2, "`&` and `*` would name a value and repeat it; write it out, or put text in quotes."),
        ("tone: !!python/name:os.system x", 2, "`!` would give a value a type; write it plainly, or put text in "),
        ("tone: a\n...\nrules: b", 4, "it is not YAML: expected '<document start>', but found "),
        ('\ntone: "\\UFFFFFFFF"', 3, "it is not YAML: an escape or a number is too large."),
        ("? [a]\n: b", 2, "a name is text; put this one in quotes."),
        ("budget: 99999999999999999999", 2, "the number 99999999999999999999 is too large; put it in quotes if it is "),
        ("options: {a: 1e999}", 2, "the number 1e999 is too large; put it in quotes if it is text."),
        (f"options: {{a: {'[' * 40}{']' * 40}}}", 2, "it is nested more than 32 levels deep."),
    ],
)
def test_C4_a_mistake_is_told_with_its_line_and_what_is_allowed(tmp_path: Path, settings: str, line: int, text: str):
    problems = problems_of(tmp_path, f"---\n{settings}\n---\nYou are it.")
    assert [(fault_line, words[: len(text)]) for fault_line, words in problems] == [(line, text)]
    assert problems[0][1].endswith((".", "keyword", "1/x"))


@pytest.mark.parametrize(
    ("raw", "line", "text"),
    [
        (
            b"---\nlocale: zh\n\nYou are it. ---\n",
            1,
            "`---` begins settings that never end. Close them with a line of `---`.",
        ),
        (b"a\nb\r\nc\xff", 3, "byte 6 is not UTF-8 (invalid start byte). Save the file as UTF-8."),
        (b"a" * 262_145, 1, "it has more than 262144 bytes. Shorten it."),
        (
            b"---\ntone: " + b"a" * 65_536 + b"\n---\n",
            1,
            "the settings have 65543 characters, 65536 are allowed. Shorten them.",
        ),
    ],
    ids=["never end", "no text", "too long", "settings too long"],
)
def test_C4_a_file_that_cannot_be_read_as_one_is_told_with_its_line(tmp_path: Path, raw: bytes, line: int, text: str):
    assert problems_of(tmp_path, raw) == [(line, text)]


def test_C4_all_mistakes_of_a_file_are_told_in_the_order_of_their_lines(tmp_path: Path):
    settings = "locale: fr\ntools: [3, hammer]\nbudget:\nname: other\noptions: {model: x}\nlocale: zh\nmodle: x\n"
    lines = [line for line, _ in problems_of(tmp_path, f"---\n{settings}---\n")]
    assert sorted(line or 0 for line in lines) == [2, 3, 3, 4, 5, 6, 7, 8]


def test_C4_lines_are_those_of_an_editor_whatever_ends_them(tmp_path: Path):
    # YAML takes the third for an end of a line, editors do not.
    for text in (
        "---\r\ntone: a\r\nbudget: x\r\n---\r\n",
        "---\rtone: a\rbudget: x\r---\r",
        "---\ntone: 'a\u2028b'\nbudget: x\n---",
    ):
        assert problems_of(tmp_path, text) == [(3, 'budget is "x"; it is a whole number.')]


# Tools


def test_C5_a_tool_that_is_built_in_and_in_the_folder_is_told(tmp_path: Path):
    text = "the tool calculator is built in and in tools.py too. Rename yours, or leave calculator out of `tools`."
    assert problems_of(tmp_path, "---\n\ntools: [calculator]\n---\n", own=["calculator"]) == [(3, text)]
    assert problems_of(tmp_path, "---\ntools: []\n---\n", own=["calculator"]) == []
    assert problems_of(tmp_path, "---\ntool_choice: water\nconfirm: [water]\n---\n", own=["water"]) == []


def test_F5_who_takes_documents_may_choose_the_tool_that_reads_them(tmp_path: Path):
    assert problems_of(tmp_path, "---\ntool_choice: read_files\nfile_input: true\n---\n") == []
    problems = problems_of(tmp_path, "---\ntool_choice: read_files\n---\n")
    assert [line for line, _ in problems] == [2]


def test_F6_a_tool_of_the_folder_may_not_have_the_name_of_one_that_comes_with_documents(tmp_path: Path):
    for name in ("read_files", "file_read"):
        text = f"the tool {name} is built in and in tools.py too. Rename yours; agents that accept documents have it."
        assert problems_of(tmp_path, "---\ntools: []\nfile_input: true\n---\n", own=[name]) == [(2, text)]
        assert problems_of(tmp_path, "---\ntools: []\n---\n", own=[name]) == []
    # That of old logs is offered to nobody.
    ((line, text),) = problems_of(tmp_path, "---\ntools: [file_read]\n---\n")
    assert (line, text[:56]) == (2, 'tools.0 is "file_read"; there is no such tool built in; '[:56])


def test_C5_what_is_wrong_beside_the_file_itself_is_told_as_it_is(tmp_path: Path):
    def of_folder(_: Path) -> Collection[str]:
        raise SettingsError(name="tools", value="f in /elsewhere.py:9", allowed="rename it")

    load(tmp_path, "You are it.")
    loaded_agents = load_folder(tmp_path, SERVER, Toolbox(built_in=(*BUILT_IN, "recall"), of_folder=of_folder))
    expected = f"{tmp_path / 'it' / 'tools.py'}: Setting tools is 'f in /elsewhere.py:9'; rename it."
    assert [str(problem) for problem in loaded_agents.problems] == [expected]


# Warnings


def test_C4_what_is_hardly_meant_is_warned_of_and_loads(tmp_path: Path):
    loaded_agents = load(tmp_path, "---\nhistory: 0\nbudget: 3\n---\nYou are a gardener, and a good one.")
    assert "it" in loaded_agents
    assert [(warning.line, warning.text) for warning in loaded_agents.warnings] == [
        (2, "history is 0, so the model sees no earlier messages. Remove it to show all."),
        (3, "budget is 3, but the persona has 10 tokens and is never cut. Raise the budget."),
    ]


def test_D2_settings_of_files_that_do_nothing_together_are_warned_of_and_others_are_not(tmp_path: Path):
    for good in ("file_input: {mode: always}", "file_input: {mode: always, documents: false, endings: [gpx]}"):
        assert load(tmp_path, f"---\n{good}\n---\nYou are it.").warnings == ()
    loaded_agents = load(
        tmp_path, "---\nfile_input:\n  on: false\n  urls: [a.b]\n  mode: always\nquote: x\n---\nYou are it."
    )
    assert "it" in loaded_agents
    nothing = "has no effect with file_input.on: false. Enable that, or remove it."
    assert [(warning.line, warning.text) for warning in loaded_agents.warnings] == [
        (5, f"file_input.mode {nothing}"),
        (4, f"file_input.urls {nothing}"),
    ]
