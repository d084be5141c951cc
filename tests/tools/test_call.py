"""One call of one tool, whatever the tool does."""

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from dataclasses import replace

import pytest

from recto.conversation.messages import Text, ToolCall, ToolOffer
from recto.tools.call import LIMITS, ToolLimits, call_tool
from recto.tools.function import Function, tool_from
from recto.tools.ports import Tool, ToolContext, ToolResult
from recto.tools.registry import Registry
from tests.tools.runs import context, text_of
from tests.waiting import settle, wait_until

# What does not heed a cancel is left behind soon.
HASTY = ToolLimits(seconds=0.01, cleaning_seconds=0.01)


def call(
    name: str, *tools: Function | Tool, arguments: str = "{}", limits: ToolLimits = LIMITS, others: Sequence[str] = ()
) -> ToolResult:
    registry = Registry([one if isinstance(one, Tool) else tool_from(one) for one in tools])
    asked = ToolCall(id="c1", name=name, arguments=arguments)
    return asyncio.run(call_tool(registry, asked, context(), limits, others))


def search(words: str) -> str:
    return words


async def wait() -> None:
    await asyncio.Event().wait()


async def expire() -> None:
    raise TimeoutError("the other side")


async def give_up() -> None:
    raise asyncio.CancelledError


def stubborn(done: list[str], release: asyncio.Event | None = None) -> Function:
    """A tool that does not heed a cancel until it is released, then fails."""
    released = release or asyncio.Event()

    async def persist() -> None:
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                done.append("cancelled")
        done.append("ended")
        raise ValueError("late")

    return persist


async def cancelled_call(function: Function, limits: ToolLimits) -> None:
    tool = tool_from(function)
    asked = ToolCall(id="c", name=tool.name, arguments="{}")
    task = asyncio.create_task(call_tool(Registry([tool]), asked, context(), limits))
    await settle()
    task.cancel()
    await task


@pytest.mark.parametrize(
    ("name", "functions", "others", "text"),
    [
        ("serch", (search, wait), (), "There is no tool 'serch'. Did you mean 'search'? Known tools: search, wait."),
        ("pik", (search,), ("pick",), "There is no tool 'pik'. Did you mean 'pick'? Known tools: pick, search."),
        ("zzz", (search,), ("search",), "There is no tool 'zzz'. Known tools: search."),
        ("zzz", (), (), "There is no tool 'zzz'. Known tools: none."),
    ],
)
def test_P11_an_unknown_tool_is_told_with_the_closest_and_all_known_names_of_the_client_too(
    name: str, functions: tuple[Function, ...], others: tuple[str, ...], text: str
):
    result = call(name, *functions, others=others)
    assert (result.error, text_of(result)) == ("unknown_tool", text)


def test_P11_a_tool_that_is_the_clients_by_now_is_told_to_be_called_again():
    result = call("pick", others=["pick"])
    assert (result.error, text_of(result)[:19]) == ("unknown_tool", "The tool pick that ")


def test_F6_a_hidden_tool_runs_and_is_not_among_the_known_ones():
    hidden = replace(tool_from(search), is_offered=False)
    assert text_of(call("serch", wait, hidden)) == "There is no tool 'serch'. Known tools: wait."
    assert call("search", wait, hidden, arguments='{"words": "x"}') == ToolResult(parts=(Text(text="x"),))


@pytest.mark.parametrize(("limit", "answer"), [(300, "300"), (1, "200")])
def test_a_tool_knows_how_much_it_may_answer(limit: int, answer: str):
    def room(context: ToolContext) -> str:
        return str(context.characters)

    assert text_of(call("room", room, limits=ToolLimits(characters=limit))) == answer


def test_a_tool_that_takes_too_long_is_stopped_and_the_model_told():
    result = call("wait", wait, limits=ToolLimits(seconds=0.01))
    assert result.error == "timeout"
    assert text_of(result).startswith("wait took longer than 0.01 seconds and was stopped.")


def test_what_a_tool_answers_is_bounded():
    result = call("search", search, arguments='{"words": "' + "x" * 1000 + '"}', limits=ToolLimits(characters=300))
    assert len(text_of(result)) <= 300


def test_a_tool_that_fails_times_out_itself_or_cancels_itself_has_failed_and_nothing_else():
    def act(arguments: str, context: ToolContext) -> Awaitable[ToolResult]:
        raise KeyError("k")

    by_hand = Tool(offer=ToolOffer(name="raw", description="", parameters="{}"), act=act)
    for name, tool, reason in (
        ("expire", expire, "TimeoutError: the other side"),
        ("give_up", give_up, "it cancelled itself."),
        ("raw", by_hand, "KeyError: 'k'"),
    ):
        result = call(name, tool)
        assert (result.error, text_of(result)) == ("failed", f"{name} failed: {reason}")


def test_a_cancel_passes_through():
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled_call(wait, ToolLimits()))


# Tools that do not heed a cancel


def test_a_cancel_does_not_wait_for_a_tool_that_does_not_heed_it():
    done: list[str] = []
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled_call(stubborn(done), ToolLimits(cleaning_seconds=0.01)))
    assert done == ["cancelled"]


def test_a_tool_has_the_time_to_clean_up():
    done: list[str] = []

    async def tidy() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await settle()
            done.append("tidied")

    assert call("tidy", tidy, limits=ToolLimits(seconds=0.01)).error == "timeout"
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled_call(tidy, ToolLimits()))
    assert done == ["tidied", "tidied"]


async def test_a_tool_that_does_not_heed_its_time_limit_is_left_behind_with_its_end(
    caplog: pytest.LogCaptureFixture,
):
    done, release = list[str](), asyncio.Event()
    tool = tool_from(stubborn(done, release))
    asked = ToolCall(id="c", name="persist", arguments="{}")
    result = await call_tool(Registry([tool]), asked, context(), HASTY)
    assert (result.error, done) == ("timeout", ["cancelled"])
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING] == [
        "Tool persist was cancelled and does not end. It is left behind, and what it answers is not read."
    ]
    release.set()
    await wait_until(lambda: done == ["cancelled", "ended"])
    await settle()
    assert [record.name for record in caplog.records] == ["recto.tools", "recto.tools"]
