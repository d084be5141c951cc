"""One call of one tool, whatever the tool does."""

import asyncio
from collections.abc import Awaitable

import pytest

from recto.page import ToolOffer
from recto.page.messages import Text, ToolCall
from recto.tools import ToolContext, ToolResult
from recto.tools.call import Limits, call_tool
from recto.tools.function import Function, tool_from
from recto.tools.ports import Tool
from recto.tools.registry import Registry
from tests.tools.runs import context, text_of


def call(name: str, *functions: Function, arguments: str = "{}", limits: Limits | None = None) -> ToolResult:
    tools = Registry(map(tool_from, functions))
    asked = ToolCall(id="c1", name=name, arguments=arguments)
    return asyncio.run(call_tool(tools, asked, context(), limits or Limits()))


def search(words: str) -> str:
    return words


async def sleep() -> None:
    await asyncio.sleep(60)


async def expire() -> None:
    raise TimeoutError("the other side")


def test_a_tool_is_called_with_what_the_model_wrote():
    assert call("search", search, sleep, arguments='{"words": "x"}') == ToolResult(parts=(Text(text="x"),))


def test_an_unknown_tool_is_told_with_the_closest_and_all_known_names():
    result = call("serch", search, sleep)
    assert result.error == "unknown_tool"
    assert text_of(result) == "There is no tool 'serch'. Did you mean 'search'? Known tools: search, sleep."


def test_an_unknown_tool_like_no_other_gets_the_names_alone():
    assert text_of(call("zzz", search)) == "There is no tool 'zzz'. Known tools: search."
    assert text_of(call("zzz")) == "There is no tool 'zzz'. Known tools: none."


def test_a_tool_that_takes_too_long_is_stopped_and_the_model_told():
    result = call("sleep", sleep, limits=Limits(seconds=0.01))
    assert result.error == "timeout"
    assert text_of(result).startswith("sleep took longer than 0.01 seconds and was stopped.")


def test_a_timeout_inside_the_tool_is_its_own_failure():
    result = call("expire", expire)
    assert (result.error, text_of(result)) == ("failed", "expire failed: TimeoutError: the other side")


def test_what_a_tool_answers_is_bounded():
    result = call("search", search, arguments='{"words": "' + "x" * 1000 + '"}', limits=Limits(characters=300))
    assert len(text_of(result)) <= 300


def test_a_tool_made_by_hand_that_raises_is_a_failure_too():
    def act(arguments: str, context: ToolContext) -> Awaitable[ToolResult]:
        raise KeyError("k")

    tool = Tool(offer=ToolOffer(name="raw", description="", parameters="{}"), act=act)
    result = asyncio.run(call_tool({"raw": tool}, ToolCall(id="c", name="raw", arguments=""), context()))
    assert (result.error, text_of(result)) == ("failed", "raw failed: KeyError: 'k'")


def test_a_cancel_passes_through():
    async def cancelled() -> None:
        asked = ToolCall(id="c", name="sleep", arguments="{}")
        task = asyncio.create_task(call_tool(Registry([tool_from(sleep)]), asked, context()))
        await asyncio.sleep(0.01)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
