"""C1, X1: what people are shown of a page in the terminal: of the next one, of a call, and of what changed."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from recto.api.threads.calls import ACTIVE_RUN
from recto.cli.calls.call_report import (
    BAR_WIDTH,
    PageReport,
    bar_cells,
    composition_view,
    left_out,
    money,
    part_lines,
    read_page_report,
)
from recto.cli.calls.page_views import context_view, report_call, report_context
from recto.conversation.json import Json, Object
from recto.conversation.log import Entry
from recto.conversation.messages import AssistantMessage, Text, ToolCall, ToolMessage, ToolOffer, UserMessage
from recto.errors import RequestRefused
from recto.ids import new_id
from recto.page.assemble import assemble
from recto.page.facts import Facts
from recto.page.manifest_rows import shown_rows
from recto.page.prefix import SentPage
from recto.page.prompt.system_prompt import Prompt
from recto.testing.model_server import Answer, Call
from recto.worker.load_run import BEFORE, FULL
from tests.flow.in_process import InProcess, in_process

WIDTH = 80
PRICES: Json = {"currency": "USD", "input": 2.0, "cached": 0.5}


def says(id: str, words: str) -> UserMessage:
    return UserMessage(id=id, parts=(Text(text=words),))


def reads(n: int) -> tuple[Entry, ...]:
    call = ToolCall(id=f"c{n}", name="filesystem-read", arguments='{"filePath": "a.ts"}')
    result = ToolMessage(id=f"t{n}", tool_call_id=f"c{n}", parts=(Text(text="content " * 30),))
    return AssistantMessage(id=f"a{n}", parts=(call,)), result


LOG: tuple[Entry, ...] = (says("u0", "你好"), *[entry for n in range(6) for entry in reads(n)])
TOOL = ToolOffer(name="查询天气", description="d", parameters="{}")


def a_page(log: tuple[Entry, ...] = LOG, history: int | None = None) -> SentPage:
    facts = Facts(log=log, tools=(TOOL,), prompt=Prompt(identity="I am."), history=history)
    return SentPage.of(*assemble(facts))


def row_of(page: SentPage, **more: Json) -> Object:
    rows = shown_rows(page.manifest.rows(), page.body)
    return {**page.manifest.to_stored(), "parts": rows, "bytes": len(page.body), **more}


def make_report(page: SentPage) -> PageReport:
    return read_page_report(row_of(page))


def printed(what: object, **options: bool) -> list[str]:
    console = Console(width=WIDTH, highlight=False, **options)  # pyright: ignore[reportArgumentType] - flags of a console
    with console.capture() as capture:
        console.print(what)
    return capture.get().splitlines()


def test_C1_parts_show_tokens_rule_and_reason_and_unchanged_ones_are_grouped():
    page = make_report(a_page())
    lines = list(part_lines(page, every=False))
    (folded_line,) = [line for line in lines if (line.decision, line.rule) == ("folded", "R2")]
    assert (folded_line.what, folded_line.before > folded_line.after) == ("result t0", True)
    assert folded_line.why == "newer reads: a.ts: read 6 counted from the newest, 5 stay"
    assert folded_line.words == "[该文件的历史读取内容已压缩,请参看最新读取结果]"
    assert [line.words for line in lines if line.what == "user u0"] == ["你好"]
    assert (lines[-2].what, lines[-2].number) == ("10 messages", "6-15")
    assert len(list(part_lines(page, every=True))) == len(page.manifest.parts)


def test_C1_parts_left_out_by_the_window_are_listed_with_their_rule():
    log = (*LOG, AssistantMessage(id="z", parts=(Text(text="Done."),)), says("u1", "more"))
    printed_text = " ".join(printed(left_out(a_page(log, history=2).manifest)))
    assert "S2 window of history: outside the newest 2 messages" in " ".join(printed_text.split())
    assert "messages" in printed_text
    assert printed(left_out(a_page().manifest)) == ["Nothing was left out."]


# The next page


def next_page(*, log: tuple[Entry, ...] = LOG, prices: Json = None, **more: Json) -> list[str]:
    room: dict[str, Json] = {"window": 1_000, "compactAt": 800, "prices": prices}
    settings: dict[str, Json] = {"agent": "coder", "model": "x:y", "next": "finished", "notes": [BEFORE["finished"]]}
    row = row_of(a_page(log), **(settings | room | more))
    return printed(context_view(row))


def test_X1_the_view_of_the_next_page_shows_composition_room_folds_and_savings():
    lines = next_page(prices=PRICES)
    tokens, savings = a_page().manifest.tokens.tokens, a_page().manifest.tokens_saved
    assert lines[0] == "The next page: coder with x:y"
    assert set(lines[3]) == set("etsuar")
    text = "\n".join(lines)
    assert f"Window: {tokens} of 1,000 tokens, {tokens / 10:.0f} %." in text
    assert f"Older messages are summarised at 800 tokens (80 %): {800 - tokens} to go." in text
    assert f"save {savings} tokens on each call." in text
    assert f"This is {money(savings * 2 / 1e6)} USD, or {money(savings / 2e6)} USD if the provider" in text
    folded_line = next(line for line in lines if "folded R2" in line)
    assert "result t0" in folded_line
    assert "a.ts: read 6 counted from the newest, 5 stay" in " ".join(" ".join(lines).split())
    # The note that there is nothing to answer yet is omitted.
    assert "nothing to answer" not in text


def test_X1_the_chinese_view_aligns_wide_characters(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    lines = next_page(prices=PRICES, notes=[ACTIVE_RUN, FULL], next="compact")
    text = "\n".join(lines)
    assert max(map(cell_len, lines)) <= WIDTH
    for words in ("下一个页面", "窗口：", "折叠 R2", "正在生成回答", "空间不足"):
        assert words in text, text
    assert "更新的读取：a.ts：从最新数起第6次读取" in "".join(text.split())
    head = next(number for number, line in enumerate(lines) if "占比" in line)
    column = cell_len(lines[head][: lines[head].index("占比")])
    rows = lines[head + 1 : head + 7]
    assert [row[0] for row in rows] == list("etsuar")
    assert all(cell_len(row) == column + cell_len("占比") for row in rows)


def test_X1_the_bar_shows_each_kind_by_colour_or_letter():
    kinds = {"tool": 10_000, "system": 1, "user": 1, "result": 5_000}
    cells = bar_cells(kinds)
    assert (sum(count for _, count in cells), min(count for _, count in cells)) == (BAR_WIDTH, 1)
    assert [kind for kind, _ in cells] == list(kinds)
    view = composition_view(a_page().manifest)
    coloured = printed(view, force_terminal=True)
    assert coloured[0].count("█") == BAR_WIDTH
    assert all(code in coloured[0] for code in ("\x1b[35m", "\x1b[34m", "\x1b[32m", "\x1b[36m"))
    plain = printed(view, force_terminal=True, no_color=True)
    assert set(plain[0]) == set("etsuar")
    assert [line[0] for line in plain[2:]] == list("etsuar")


# Asked of a server


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[InProcess]:
    async with in_process(tmp_path, monkeypatch) as server:
        yield server


async def test_X1_context_and_calls_of_a_thread_are_shown_as_a_server_tells_of_them(
    server: InProcess, monkeypatch: pytest.MonkeyPatch
):
    thread = new_id()

    async def ask(path: str, body: Object | None) -> Object:
        reply = await server.send("GET" if body is None else "POST", f"/api/v1/agent{path}", body)
        if reply.status >= 300:
            raise RequestRefused(status=reply.status, detail=str(reply.body))
        return reply.json

    async def context() -> str:
        return "\n".join(printed(await report_context(ask, thread, "helper")))

    async def call(number: int) -> str:
        return " ".join(" ".join(printed(await report_call(ask, thread, number))).split())

    # Nothing was said: it is the page that the agent begins with.
    assert set((await context()).splitlines()[3]) == set("ets")
    assert "There are no model calls in this thread yet." in await call(1)
    server.answers[:] = [Answer(calls=(Call(name="note", arguments='{"text": "x"}'),)), Answer(text="Noted.")]
    await server.run("Note x.", thread=thread)
    assert set((await context()).splitlines()[3]) == set("etsuarc")
    newest = await call(1)
    assert newest.startswith("Call 1 of 2, counted from the newest; run ")
    assert "Since call 2" in newest
    assert "The prefix holds" in newest
    assert "> 1 reply" in newest
    assert "There is no call 3: this thread has 2" in await call(3)
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert "第 2 次调用" in await call(2)
    assert "没有可比较的调用" in await call(2)
