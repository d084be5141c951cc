"""Calls of single tools, whatever a tool does."""

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.messages import File, Opaque, Text, ToolCall, ToolOffer, ToolPart, Url
from recto.tools.call import LEAST_CHARACTERS, LIMITS, ToolLimits, bound_result, call_tool
from recto.tools.function import Function, make_tool
from recto.tools.ports import Tool, ToolContext, ToolResult
from recto.tools.registry import Registry
from tests.tools.runs import context, text_of
from tests.waiting import settle, wait_until

# What does not heed a cancel is left behind soon.
HASTY = ToolLimits(seconds=0.01, cleanup_seconds=0.01)


def call(
    name: str, *tools: Function | Tool, arguments: str = "{}", limits: ToolLimits = LIMITS, others: Sequence[str] = ()
) -> ToolResult:
    registry = Registry([one if isinstance(one, Tool) else make_tool(one) for one in tools])
    tool_call = ToolCall(id="c1", name=name, arguments=arguments)
    return asyncio.run(call_tool(registry, tool_call, context(), limits, others))


def search(words: str) -> str:
    return words


async def wait() -> None:
    await asyncio.Event().wait()


async def expire() -> None:
    raise TimeoutError("the other side")


async def give_up() -> None:
    raise asyncio.CancelledError


def stubborn(done: list[str], release: asyncio.Event | None = None) -> Function:
    """Ignore cancels until released, then fail."""
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
    tool = make_tool(function)
    tool_call = ToolCall(id="c", name=tool.name, arguments="{}")
    task = asyncio.create_task(call_tool(Registry([tool]), tool_call, context(), limits))
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
    hidden = replace(make_tool(search), is_offered=False)
    assert text_of(call("serch", wait, hidden)) == "There is no tool 'serch'. Known tools: wait."
    assert call("search", wait, hidden, arguments='{"words": "x"}') == ToolResult(parts=(Text(text="x"),))


def test_a_tool_knows_how_much_it_may_answer_and_its_answer_is_bounded():
    def room(context: ToolContext) -> str:
        return str(context.characters)

    rooms = [text_of(call("room", room, limits=ToolLimits(characters=limit))) for limit in (300, 1)]
    assert rooms == ["300", "200"]
    long = call("search", search, arguments='{"words": "' + "x" * 1000 + '"}', limits=ToolLimits(characters=300))
    assert len(text_of(long)) <= 300


def test_a_tool_that_takes_too_long_is_stopped_and_the_model_told():
    result = call("wait", wait, limits=ToolLimits(seconds=0.01))
    assert result.error == "timeout"
    assert text_of(result).startswith("wait took longer than 0.01 seconds and was stopped.")


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


# Tools that do not heed a cancel


def test_a_cancel_waits_for_a_tool_to_clean_up_but_not_for_one_that_does_not_heed_it():
    done: list[str] = []
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled_call(stubborn(done), ToolLimits(cleanup_seconds=0.01)))

    async def tidy() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await settle()
            done.append("tidied")

    assert call("tidy", tidy, limits=ToolLimits(seconds=0.01)).error == "timeout"
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled_call(tidy, ToolLimits()))
    assert done == ["cancelled", "tidied", "tidied"]


async def test_a_tool_that_does_not_heed_its_time_limit_is_left_behind_with_its_end(caplog: pytest.LogCaptureFixture):
    done, release = list[str](), asyncio.Event()
    tool = make_tool(stubborn(done, release))
    tool_call = ToolCall(id="c", name="persist", arguments="{}")
    result = await call_tool(Registry([tool]), tool_call, context(), HASTY)
    assert (result.error, done) == ("timeout", ["cancelled"])
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING] == [
        "Tool persist was cancelled and does not end. It is left behind, and what it answers is not read."
    ]
    release.set()
    await wait_until(lambda: done == ["cancelled", "ended"])
    await settle()
    assert [record.name for record in caplog.records] == ["recto.tools", "recto.tools"]


# Bounds of an answer


IMAGE = File(kind="image", source=Url(url="u"))
STATE = Opaque(provider="p", model=None, place="block", name="n", data="{}")


def result_of(*parts: ToolPart, error: str | None = None) -> ToolResult:
    return ToolResult(parts=parts, error=error)


def results() -> st.SearchStrategy[ToolResult]:
    words = st.builds(Text, text=st.text(max_size=300), path=st.sampled_from((None, "a.py")))
    return st.builds(
        result_of, words, words, st.just(IMAGE), words, st.just(STATE), words, error=st.none() | st.just("x")
    )


def test_a_short_result_stays_as_it_is_and_a_long_text_keeps_head_and_tail_around_a_mark():
    short = result_of(Text(text="x" * 50_000), IMAGE)
    assert bound_result(short) is short
    assert bound_result(result_of(Text(text="a\ud800b"))) == result_of(Text(text="a\ufffdb"))
    text = text_of(bound_result(result_of(Text(text="a" * 500 + "b" * 500)), limit_characters=300))
    mark = "\n[798 of 1000 characters left out here. Ask for less at a time: a range, a filter, fewer items.]\n"
    assert text == "a" * 101 + mark + "b" * 101


def test_a_cut_over_several_parts_leaves_out_the_middle_ones_and_keeps_files_and_paths():
    parts = [Text(text=letter * 400, path=f"{letter}.py") for letter in "abc"]
    bounded = bound_result(result_of(parts[0], IMAGE, parts[1], STATE, parts[2], error="half"), limit_characters=400)
    first, image, state, last = bounded.parts
    assert (image, state, bounded.error) == (IMAGE, STATE, "half")
    assert isinstance(first, Text) and isinstance(last, Text)
    assert (first.path, last.path) == ("a.py", "c.py")
    assert ("characters left out here" in first.text, set(last.text)) == (True, {"c"})


@given(given_result=results(), limit=st.integers(0, 1000))
def test_no_result_has_more_than_the_limit_and_bounding_twice_changes_nothing(given_result: ToolResult, limit: int):
    bounded = bound_result(given_result, limit_characters=limit)
    assert len(text_of(bounded)) <= max(limit, LEAST_CHARACTERS)
    assert bound_result(bounded, limit_characters=limit) == bounded
    assert [one for one in bounded.parts if not isinstance(one, Text)] == [IMAGE, STATE]


@given(given_result=results(), limit=st.integers(0, 1000))
def test_what_is_left_out_is_counted(given_result: ToolResult, limit: int):
    before, after = text_of(given_result), text_of(bound_result(given_result, limit_characters=limit))
    if after == before:
        return
    head, _, rest = after.rpartition(f" of {len(before)} characters left out here")
    head, _, count = head.rpartition("\n[")
    tail = rest.partition(".]\n")[2]
    assert before == head + before[len(head) : len(head) + int(count)] + tail
