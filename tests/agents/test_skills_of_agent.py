"""S1, S5, S9, S11: agents with skills: phases, voices, profile, variants in other languages, and what is linted."""

from pathlib import Path

import pytest

from recto.agents.agent import Agent
from recto.agents.agent_folder import Toolbox, lint
from recto.agents.folders import LoadedAgents, load_folder
from recto.config.settings import Limits
from recto.conversation.json import load_object
from tests.end_to_end.skilled import write_guide

TOOLBOX = Toolbox(
    built_in=("current_time", "calculator"),
    of_folder=lambda folder: ("collect_birth_info", "compute_chart", "look", "hello") if folder.name == "guide" else (),
)


@pytest.fixture
def agents(tmp_path: Path) -> Path:
    write_guide(tmp_path)
    return tmp_path


def load(agents: Path, more: str = "") -> LoadedAgents:
    if more:
        write_guide(agents, more=more)
    return load_folder(agents, Limits(), TOOLBOX)


def problems(agents: Path) -> list[str]:
    return [str(problem).removeprefix(f"{agents}/") for problem in load(agents).problems]


def warnings(results: LoadedAgents, agents: Path) -> list[str]:
    linted = [one for name in results for one in lint(results[name], results.folders[name], TOOLBOX)]
    return [str(warning).removeprefix(f"{agents}/") for warning in (*results.warnings, *linted)]


def guide(agents: Path, more: str = "") -> Agent:
    return load(agents, more)["guide"]


def test_S1_an_agent_has_its_skills_and_the_phases_of_the_seed(agents: Path):
    agent = guide(agents)
    assert list(agent.skills) == ["chart", "mend", "notes"]
    assert [(one.name, one.history, one.budget) for one in (agent.select, agent.execute)] == [
        ("select", 5, 2_000),
        ("execute", 10, 8_000),
    ]
    assert (agent.directory_tokens, agent.cases) == (1_200, 2)


def test_S1_phases_are_settings_and_all_of_history_is_legal(agents: Path):
    agent = guide(agents, "phases: {select: {history: all}, execute: {history: 3, budget: 500}}\ncases: 0")
    assert (agent.select.history, agent.select.budget) == (None, 2_000)
    assert (agent.execute.history, agent.execute.budget, agent.cases) == (3, 500, 0)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("phases: {select: {history: -1}}", "phases.select.history is -1; input should be greater than or equal to 0."),
        ("phases: {choose: {}}", "there is no setting choose in phases; Known: execute, select."),
        ("directory_tokens: 10", "directory_tokens is 10; it is 300 or more."),
        ("voice: loud", 'voice is "loud"; voices has no such name; Known: direct, warm.'),
        ("tiers: {Pro!: {steps: 1}}", "lower-case letters, digits"),
        ("tiers: {pro: {stops: 1}}", "there is no setting stops in tiers.pro; did you mean steps?"),
    ],
)
def test_S1_S11_a_wrong_setting_is_told_with_its_line(agents: Path, setting: str, message: str):
    write_guide(agents, more=setting)
    change(agents, "tiers: {pro: {steps: 2}}\n", "" if setting.startswith("tiers") else "tiers: {pro: {steps: 2}}\n")
    (first, *_) = problems(agents)
    assert first.startswith("guide/AGENT.md:")
    assert message.partition(";")[0] in first


def change(agents: Path, old: str, new: str) -> None:
    file = agents / "guide" / "AGENT.md"
    file.write_text(file.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def test_S9_an_agent_in_another_language_says_what_differs_and_has_the_rest(agents: Path):
    loaded_agents = load(agents)
    assert list(loaded_agents) == ["guide", "guide-en"]
    own, other = loaded_agents["guide"], loaded_agents["guide-en"]
    assert (own.locale, other.locale) == ("zh", "en")
    assert (other.prompt.identity, other.prompt.rules, other.description) == (
        "You are a guide.",
        "Think first.",
        "The same.",
    )
    assert (dict(other.voices), dict(own.voices)) == ({"warm": "Be warm."}, {"warm": "温和。", "direct": "直接。"})
    assert other.tiers == own.tiers
    assert list(other.skills) == list(own.skills)
    assert loaded_agents.folders["guide-en"] == loaded_agents.folders["guide"]


def test_S9_a_fault_of_a_variant_is_its_own_and_leaves_the_agent_alone(agents: Path):
    (agents / "guide" / "AGENT.en.md").write_text("---\nxyz: 1\n---\nHi.\n", encoding="utf-8")
    loaded_agents = load(agents)
    assert list(loaded_agents) == ["guide"]
    assert [one[:43] for one in problems(agents)] == ["guide/AGENT.en.md:2: there is no setting xy"]


def test_S9_a_folder_of_the_name_of_a_variant_is_in_its_way(agents: Path):
    (agents / "guide-en").mkdir()
    (agents / "guide-en" / "AGENT.md").write_text("Hello.", encoding="utf-8")
    loaded_agents = load(agents)
    assert "guide" in loaded_agents
    assert any("there is a folder guide-en too" in problem for problem in problems(agents))


def variants(agents: Path, first: str, other: str, name: str = "AGENT.en.md") -> tuple[LoadedAgents, list[str]]:
    """An agent `it` without skills in two languages, and all that is said of it."""
    (agents / "it").mkdir(parents=True)
    for file, text in (("AGENT.md", first), (name, other)):
        (agents / "it" / file).write_text(text, encoding="utf-8")
    loaded_agents = load(agents)
    return loaded_agents, [
        str(one).removeprefix(f"{agents}/it/") for one in (*loaded_agents.problems, *loaded_agents.warnings)
    ]


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ("history: 0", "history is 0, so "),
        ("tool_calling: prompt\ntool_choice: none", "tool_choice has no effect "),
        ("budget: 64", "budget is 64, but "),
        ("cases: 3", "cases has no effect without skills"),
        ("file_input: {on: false, mode: always}", "file_input.mode has no effect "),
        ("file_input: {on: false, urls: [a.org]}", "file_input.urls has no effect "),
        ("file_input: {documents: false, mode: always}", "file_input.mode is always, but "),
        ("quote: Ours.\nfile_input: {mode: always}", "quote replaces the documents "),
    ],
)
def test_S9_what_is_hardly_meant_is_told_of_the_file_that_says_it(tmp_path: Path, settings: str, line: str):
    texts = f"---\n{settings}\n---\n{'Long. ' * 64}", "---\ndescription: x\n---\n"
    others = "Long. " * 64, f"---\n{settings}\n---\n"
    for folder, files, file in ((tmp_path, texts, "AGENT.md"), (tmp_path / "other", others, "AGENT.en.md")):
        variant, (one,) = variants(folder, *files)
        assert list(variant) == ["it", "it-en"]
        assert one.startswith(f"{file}:")
        assert line in one


@pytest.mark.parametrize(
    ("first", "settings", "expected"),
    [
        ("---\ntool_choice: none\n---\nHi.", "tool_calling: prompt", "AGENT.en.md:2: tool_choice has no effect with "),
        ("Hi.", "tools: [hammer]", 'AGENT.en.md:2: tools.0 is "hammer"'),
    ],
)
def test_S9_what_is_wrong_of_two_files_together_is_told_of_the_variant(
    tmp_path: Path, first: str, settings: str, expected: str
):
    _, (one,) = variants(tmp_path, first, f"---\n{settings}\n---\n")
    assert one.startswith(expected)


def test_S9_a_variant_without_the_file_it_differs_from_says_so(tmp_path: Path):
    (tmp_path / "it").mkdir()
    (tmp_path / "it" / "AGENT.en.md").write_text("Hi.", encoding="utf-8")
    missing = (
        "it/AGENT.en.md: there is no AGENT.md beside it, and it contains only differences from that. "
        "Write AGENT.md, or rename it to that."
    )
    assert (list(load(tmp_path)), problems(tmp_path)) == ([], [missing])
    (tmp_path / "it" / "tools.py").write_text("", encoding="utf-8")
    assert (list(load(tmp_path)), problems(tmp_path)) == (["it"], [missing])


def test_S9_a_variant_whose_name_would_be_too_long_says_so(tmp_path: Path):
    name = "a" * 62
    for file in ("AGENT.md", "AGENT.en.md"):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / file).write_text("Hi.", encoding="utf-8")
    assert list(load(tmp_path)) == [name]
    assert problems(tmp_path) == [
        f"{name}: in another language it would be {name}-en, but an agent's name has 1 to 64 letters, digits, - or _, "
        "all ASCII, and does not begin with _. Shorten the folder's name."
    ]


def test_S9_the_name_of_a_variant_says_its_language(tmp_path: Path):
    variant, problem = variants(tmp_path, "Hi.", "---\nlocale: zh\n---\nHi.")
    assert list(variant) == ["it"]
    assert problem == ['AGENT.en.md:2: locale is "zh"; the file name selects en. Remove the line or rename the file.']
    _, problem = variants(tmp_path / "none", "Hi.", "---\nlocale: fr\n---\nHi.", "AGENT.zh.md")
    assert problem == ["AGENT.zh.md:2: locale is \"fr\"; it is 'zh' or 'en'."]
    variant, problem = variants(tmp_path / "same", "Hi.", "---\nlocale: en\n---\nHi.")
    assert (list(variant), problem) == (["it", "it-en"], [])


def test_S11_without_warm_the_first_voice_is_the_one(agents: Path):
    change(agents, "{warm: 温和。, direct: 直接。}", "{direct: 直接。, soft: 轻。}")
    agent = guide(agents)
    assert (agent.voice, agent.tone_of(None), agent.tone_of("soft")) == ("direct", "直接。", "轻。")


def test_S5_a_broken_skill_is_a_problem_and_the_agent_works_without(agents: Path):
    (agents / "guide" / "skills" / "mend" / "SKILL.md").write_text("---\nname: mend\n---\nHi.\n", encoding="utf-8")
    loaded_agents = load(agents)
    assert list(loaded_agents["guide"].skills) == ["chart", "notes"]
    assert [one for one in problems(agents) if "guide/skills/mend/SKILL.md" in one]


def test_S6_the_profile_has_a_schema_and_its_titles_head_the_data(agents: Path):
    agent = guide(agents)
    assert (load_object(agent.profile_schema or "") or {}).get("type") == "object"
    assert dict(agent.field_titles) == {"birth_info": "出生信息", "life_context": "生活背景"}


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (b"type: 7\n", ":1: "),
        (b"- a\n", ":1: settings are lines"),
        (b"type: object\nproperties: {a: {type: nonsense}}\n", ":2: properties.a.type is not a JSON Schema"),
        (b"\xff\xfe\xff", ":1: byte 0 is not UTF-8"),
        (b"type: object\n".ljust(262_144, b"#"), None),
        (b"type: object\n".ljust(262_145, b"#"), ":1: it has more than 262144 bytes. Shorten it."),
    ],
    ids=["type", "list", "no schema", "no text", "long", "too long"],
)
def test_S6_a_schema_that_is_none_is_told_with_its_line(agents: Path, schema: bytes, message: str | None):
    (agents / "guide" / "profile.yaml").write_bytes(schema)
    matching = [one for one in problems(agents) if message and one.startswith(f"guide/profile.yaml{message}")]
    assert ("guide" in load(agents), bool(matching)) == (message is None, message is not None)


@pytest.mark.parametrize(
    ("choice", "having"), [("compute_chart", "chart"), ("look", "chart"), ("hello", ""), ("auto", "")]
)
def test_S3_lint_tells_of_a_choice_that_only_some_skills_have(agents: Path, choice: str, having: str):
    message = (
        f"guide/AGENT.md: tool_choice is {choice}, which only {having} may call, so pages of other skills ignore it. "
        "Choose a tool that no skill names, or remove it."
    )
    assert (message in warnings(load(agents, f"tool_choice: {choice}"), agents)) == bool(having)
    in_words = warnings(load(agents, f"tool_choice: {choice}\ntool_calling: prompt"), agents)
    assert not [one for one in in_words if "may call" in one]


def test_S5_lint_tells_what_is_hardly_meant(agents: Path):
    loaded_agents = load(agents, "history: 5\nbudget: 100\nphases: {execute: {budget: 20}}")
    message = "\n".join(warnings(loaded_agents, agents))
    assert "history has no effect with skills" in message
    assert "budget has no effect with skills" in message
    assert "skills/mend/SKILL.md: this agent has no tool Bash, Read, so the skill works without it" in message
    assert "over the 20 of phases.execute" in message


def test_S5_lint_tells_of_a_directory_that_is_shortened_and_a_field_nobody_described(agents: Path):
    for number in range(40):
        folder = agents / "guide" / "skills" / f"more-{number}"
        folder.mkdir()
        keys = f"name: more-{number}\ndescription: {'Does one thing after another. ' * 9}\nprofile_fields: [moods]"
        text = f"---\n{keys}\n---\nHi.\n"
        (folder / "SKILL.md").write_text(text, encoding="utf-8")
    message = "\n".join(warnings(load(agents), agents))
    assert "to keep 1200 tokens. Shorten descriptions, or raise directory_tokens." in message
    assert "profile.yaml has no field moods" in message


def test_S3_a_tool_of_ones_own_may_not_be_called_as_those_of_skills(agents: Path):
    box = Toolbox(built_in=TOOLBOX.built_in, of_folder=lambda _: ("use_skill",))
    loaded_agents = load_folder(agents, Limits(), box)
    assert [
        str(one) for one in loaded_agents.problems if "the tool use_skill is built in and in tools.py too" in str(one)
    ]


def test_S1_a_folder_with_skills_alone_is_an_agent(tmp_path: Path):
    (tmp_path / "it" / "skills" / "one").mkdir(parents=True)
    (tmp_path / "it" / "skills" / "one" / "SKILL.md").write_text("---\ndescription: One.\n---\nHi.\n", encoding="utf-8")
    assert list(load(tmp_path)["it"].skills) == ["one"]
