"""S3, S5: the tools that activate a skill and read its files."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from recto.conversation.json import Json, dump, load
from recto.conversation.messages import ToolCall
from recto.errors import ToolError
from recto.skills.skill import BundledFile, Skill
from recto.tools.call import call_tool
from recto.tools.load_tools import make_skill_tools
from recto.tools.ports import Activation, ToolResult
from recto.tools.registry import Registry
from tests.tools.runs import context, text_of

TEXT = "十个字的一行文字啊。" * 3_000


@dataclass(frozen=True, kw_only=True)
class Skills:
    """Fake of an agent's skills."""

    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])

    names = ("bazi", "core")

    async def activate(self, skill: str, scenario: str | None) -> Activation:
        if skill not in self.names:
            raise ToolError(f"There is no skill {skill!r}.")
        missing = ("birth_info",) if scenario == "love" else ()
        skill_name = None if skill == "core" else skill
        return Activation(skill=skill_name, scenario=scenario, missing=missing, collect_tool="collect_birth_info")

    async def read(self, path: str) -> bytes:
        if path not in self.files:
            raise ToolError(f"There is no file {path!r}.")
        return self.files[path]


def a_skill(*files: str) -> Skill:
    bundled = tuple(BundledFile(path=path, size=1) for path in files)
    return Skill(name="bazi", description="d", heading="t", identity="i", folder=Path(), files=bundled)


FILES = {"a.md": b"# One\n", "long.md": TEXT.encode(), "p.png": b"\x89PNG\xff\xfe", "bom.md": b"\xef\xbb\xbfhi"}
TOOLS = Registry(make_skill_tools([a_skill("a.md")]))
SKILLS = Skills(files=FILES)


async def call_skill_tool(name: str, skills: Skills | None = SKILLS, /, **arguments: Json) -> ToolResult:
    call = ToolCall(id="c", name=name, arguments=dump(arguments).decode())
    return await call_tool(TOOLS, call, replace(context(), skills=skills))


async def read(path: str, offset: int = 0) -> str:
    return text_of(await call_skill_tool("read_skill_file", path=path, offset=offset))


async def test_S3_S4_a_skill_taken_up_or_left_for_core_is_told_and_changes_the_thread():
    result = await call_skill_tool("use_skill", skill="bazi", scenario="basic")
    assert text_of(result) == '{"status":"activated","skill":"bazi","scenario":"basic"}'
    assert result.activates == Activation(skill="bazi", scenario="basic", collect_tool="collect_birth_info")
    result = await call_skill_tool("use_skill", skill="core")
    assert text_of(result) == '{"status":"activated","skill":"core","scenario":null}'
    assert result.activates == Activation(skill=None, collect_tool="collect_birth_info")


async def test_S3_what_is_missing_is_named_with_the_tool_that_asks_for_it():
    result = await call_skill_tool("use_skill", skill="bazi", scenario="love")
    expected = {"status": "need_info", "skill": "bazi", "scenario": "love"}
    assert load(text_of(result)) == expected | {"missing": ["birth_info"], "collect_tool": "collect_birth_info"}
    assert result.activates is not None


@pytest.mark.parametrize("arguments", [{}, {"skill": 7}, {"skill": "x"}, {"skill": "bazi", "more": 1}])
async def test_S3_a_bad_call_changes_nothing_and_without_skills_there_is_nothing_to_take_up(arguments: dict[str, Json]):
    result = await call_skill_tool("use_skill", **arguments)
    assert (result.error is not None, result.activates) == (True, None)
    for none in (
        await call_skill_tool("use_skill", None, skill="x"),
        await call_skill_tool("read_skill_file", None, path="a"),
    ):
        assert text_of(none) == "This agent has no skills. Answer without one."


async def test_S5_a_short_file_is_read_whole_and_a_long_one_says_how_to_go_on():
    assert [await read("a.md"), await read("bom.md")] == ["# One\n", "hi"]
    head, _, text = (await read("long.md")).partition("\n")
    more = 'read_skill_file({"path":"long.md","offset":20000})'
    assert head == f"[characters 1-20000 of 30000 of long.md; for more: {more}]"
    rest = (await read("long.md", 20_000)).partition("\n")
    assert rest[0] == "[characters 20001-30000 of 30000 of long.md]"
    assert text + rest[2] == TEXT


async def test_S5_what_is_no_text_and_what_is_not_there_is_said():
    assert await read("p.png") == "p.png has 6 bytes that are no text, so it cannot be shown."
    assert await read("nope") == "There is no file 'nope'."
    assert await read("a.md", 99) == "a.md has 6 characters. Ask for an offset below that."


def test_S5_reading_files_is_offered_where_a_skill_has_any():
    assert list(TOOLS) == ["use_skill", "read_skill_file"]
    assert [tool.name for tool in make_skill_tools([a_skill()])] == ["use_skill"]
    assert make_skill_tools([]) == ()
