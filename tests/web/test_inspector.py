"""Inspector (X1): the parts of each call with reasons, bytes and cost, and the changes between calls."""

from collections.abc import Generator
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import Json, load
from recto.ids import new_id
from recto.models.ports import Usage
from recto.testing.model_server import Answer, Call
from tests.api.scripted_server import ALICE, Scripted, agent_server
from tests.support.client import ask, request
from tests.web.conftest import AGENT, TOOLS
from tests.web.page import WRITE, PageOpener, WebPage

pytestmark = pytest.mark.full
PRICES = """\
currency = "USD"
as_of = 2026-11-16

[[prices]]
models = ["compatible:*"]
input = 100
output = 400
cached = 10
"""
READ = Answer(calls=(Call(name="lookup", arguments='{"path": "a.txt"}'),))
USAGE = Usage(input=1200, output=34, cached=800, reasoning=7)
LINES = "a.txt: " + "line of text. " * 40
PLACE = ".inspector-about strong"
# Elements wider than a phone, except those that scroll.
TOO_WIDE = """[...document.querySelectorAll('.inspector *')]
  .filter((one) => one.getBoundingClientRect().right > 391 && !one.closest('pre, .call-table, .tabs'))
  .map((one) => one.outerHTML.slice(0, 200))"""


@pytest.fixture(scope="module")
def priced(tmp_path_factory: pytest.TempPathFactory) -> Generator[Scripted]:
    """Return a server whose model has a price and whose agent folds all but the newest read of a file."""
    folder = tmp_path_factory.mktemp("inspected")
    (folder / "prices.toml").write_text(PRICES, "utf-8")
    with agent_server(folder, AGENT, TOOLS, prices=folder / "prices.toml") as server:
        yield server


@pytest.fixture
def read_twice(priced: Scripted) -> tuple[str, str]:
    """Return the id of a thread whose two turns read a file, and the id of its second run."""
    priced.answers[:] = [READ, Answer(text="It has lines."), READ, Answer(text="It still has.", usage=USAGE)]
    thread, run = new_id(), ""
    for text in ("What is in a.txt?", "And now?"):
        run = _run_turn(priced, thread, text)
    return thread, run


def _run_turn(server: Scripted, thread: str, text: str) -> str:
    reply = server.post(ask(text, thread=thread))
    assert reply.status == 202, reply.body
    run = str(reply.json["taskId"])
    server.reader(run).wait()
    return run


def _call(server: Scripted, run: str, n: int, query: str = "") -> bytes:
    reply = request(server.url, "GET", f"/api/v1/agent/runs/{run}/calls/{n}{query}", token=ALICE)
    assert reply.status == 200, reply.body
    return reply.body


def _open_call(
    open_page: PageOpener, server: Scripted, at: tuple[str, str], *, locale: str = "en-US", theme: str = "light"
) -> WebPage:
    page = open_page(server.url, at=f"#/threads/{at[0]}/runs/{at[1]}", locale=locale, theme=theme)
    page.wait(PLACE)
    return page


def _tab(page: WebPage, name: str) -> None:
    page.click(f"role=tab[name='{name}']")


def test_X1_one_click_on_an_answer_opens_its_model_input(
    open_page: PageOpener, priced: Scripted, read_twice: tuple[str, str]
):
    thread, run = read_twice
    page = open_page(priced.url, at=f"#/threads/{thread}")
    page.wait("text=It still has.")
    page.run("await page.getByRole('button', {name: 'View model input'}).last().click()")
    page.wait(PLACE)
    assert page.texts(PLACE) == ["Call 2 of 2"]
    assert page.evaluate("location.hash") == f"#/threads/{thread}/runs/{run}/calls/2"
    assert page.evaluate("document.activeElement.textContent") == "Model input"
    page.click("role=button[name='Close']")
    page.wait(".inspector", "hidden")
    assert page.evaluate("location.hash") == f"#/threads/{thread}"


def test_X1_each_part_has_its_kind_tokens_rule_and_reason(
    open_page: PageOpener, priced: Scripted, read_twice: tuple[str, str]
):
    page = _open_call(open_page, priced, read_twice)
    call = cast("dict[str, dict[str, list[dict[str, Json]]]]", load(_call(priced, read_twice[1], 2)))
    parts = call["manifest"]["parts"]
    items = page.texts(".part")
    assert len(items) == len(parts)
    for text, part in zip(items, parts, strict=True):
        assert str(part["reason"]) in text
        assert str(cast("dict[str, int]", part["tokens"])["after"]) in text
        assert not part["rule"] or f"Rule {part['rule']} · {part['ruleName']}" in text
    assert "System prompt" in page.texts(".composition")[0]
    assert "Tool results" in page.texts(".composition")[0]


def test_R12_a_folded_part_is_struck_through_and_opens_its_original(
    open_page: PageOpener, priced: Scripted, read_twice: tuple[str, str]
):
    page = _open_call(open_page, priced, read_twice)
    part = ".part.folded"
    assert page.count(part) == 1
    assert page.texts(f"{part} del")[0].startswith("a.txt: line of text.")
    assert "Rule R2 · newer reads" in page.texts(part)[0]
    assert LINES.strip() not in page.texts(part)[0]
    page.click(f"{part} >> role=button[name='Original']")
    assert page.texts(f"{part} .original pre") == [LINES.strip()]


def test_X1_a_part_opens_to_the_bytes_that_were_sent(
    open_page: PageOpener, priced: Scripted, read_twice: tuple[str, str]
):
    page = _open_call(open_page, priced, read_twice)
    raw, call = _call(priced, read_twice[1], 2, "?raw=1"), load(_call(priced, read_twice[1], 2))
    parts = cast("dict[str, dict[str, list[dict[str, list[int]]]]]", call)["manifest"]["parts"]
    place = next(at for at, part in enumerate(parts) if cast("Json", part["source"]) == "system prompt")
    page.run("await page.locator('.part-button').nth(args.place).click()", place=place)
    page.wait(".part-text pre")
    text = page.run("return await page.locator('.part-text pre').textContent()")
    assert str(text).encode() == raw[slice(*parts[place]["span"])]


def test_X1_the_request_tab_shows_the_raw_request_and_a_curl_command_without_secrets(
    open_page: PageOpener, priced: Scripted, read_twice: tuple[str, str]
):
    page = _open_call(open_page, priced, read_twice)
    _tab(page, "Request")
    page.wait("pre.curl")
    request_text = str(page.run("return await page.locator('pre.raw-request').textContent()"))
    assert load(request_text.encode()) == load(_call(priced, read_twice[1], 2, "?raw=1"))
    curl = str(page.run("return await page.locator('pre.curl').textContent()"))
    assert curl.encode() == _call(priced, read_twice[1], 2, "?as=curl")
    assert ALICE not in curl
    assert "no keys or other secrets" in page.texts(".tab-panel")[0]
    page.click("section.source:nth-of-type(2) >> role=button[name='Copy']")
    page.wait("text=Copied")
    assert page.evaluate("navigator.clipboard.readText()") == curl


def test_X1_a_call_shows_usage_cost_timing_and_a_verified_digest(
    open_page: PageOpener, priced: Scripted, read_twice: tuple[str, str]
):
    page = _open_call(open_page, priced, read_twice)
    figures = page.run(
        "return await page.locator('.figures dl > div').evaluateAll("
        "  (all) => Object.fromEntries(all.map((one) => [one.children[0].textContent, one.children[1].textContent])))"
    )
    values = cast("dict[str, str]", figures)
    assert (values["Input"], values["Output"], values["Cache read"], values["Reasoning"]) == ("1,200", "34", "800", "7")
    assert values["Cost"] == "$0.0616"
    assert all(values[name].endswith((" ms", " s")) for name in ("Time to first token", "Total time"))
    assert "Verified" in page.texts(".digest")[0]


def _replace_call(page: WebPage, run: str, call: dict[str, Json]) -> None:
    """Make the page receive a different call 2 of a run."""
    page.run(
        "await page.route((url) => url.pathname.endsWith(args.path) && !url.search,"
        "  (route) => route.fulfill({json: args.call}))",
        path=f"/runs/{run}/calls/2",
        call=call,
    )


def test_X1_a_damaged_call_says_so(open_page: PageOpener, priced: Scripted, read_twice: tuple[str, str]):
    thread, run = read_twice
    page = open_page(priced.url)
    call = cast("dict[str, Json]", load(_call(priced, run, 2)))
    damaged: list[Json] = ["manifest", "9f86d081884c7d659a2feaa0c55ad015"]
    _replace_call(page, run, {**call, "verified": False, "damaged": damaged, "page": None, "manifest": None})
    page.go(f"#/threads/{thread}/runs/{run}")
    page.wait(PLACE)
    assert "Damaged: manifest, segment 9f86d081884c." in page.texts(".digest")[0]
    assert "can't be shown" in page.texts(".tab-panel")[0]


def test_X1_the_changes_tab_marks_the_prefix_break_and_its_cause(
    open_page: PageOpener, priced: Scripted, read_twice: tuple[str, str]
):
    page = _open_call(open_page, priced, read_twice)
    _tab(page, "Changes")
    page.wait(".cache-break")
    assert "An old result was folded." in page.texts(".cache-break")[0]
    assert page.count(".break-mark") == 1
    changed = page.texts(".change.changed:has(.break-mark)")[0]
    assert "Changed: decision, rule, reason, receipts, tokens, content" in changed
    page.key("[")
    page.wait("text=A new turn started")
    assert "of an earlier response" in page.texts(".changes")[0]


def test_X1_the_preview_contains_the_draft_and_sends_nothing(
    open_page: PageOpener, priced: Scripted, read_twice: tuple[str, str]
):
    page = _open_call(open_page, priced, read_twice)
    count = len(priced.model.requests)
    page.click("text=Preview next request")
    page.wait("text=The message box is empty")
    page.fill(WRITE, "Tell me about b.txt, 谢谢")
    page.wait(".part >> text=Tell me about b.txt, 谢谢")
    assert "Recto would call the model with this page." in page.texts(".preview-next")[0]
    page.wait("pre.raw-request >> text=Tell me about b.txt, 谢谢")
    assert len(priced.model.requests) == count
    assert page.value(WRITE) == "Tell me about b.txt, 谢谢"


def test_X1_a_call_is_exported_as_json(
    open_page: PageOpener, priced: Scripted, read_twice: tuple[str, str], tmp_path: Path
):
    page = _open_call(open_page, priced, read_twice)
    page.run(
        "const [file] = await Promise.all([page.waitForEvent('download'), page.getByText('Export JSON').click()]);"
        "await file.saveAs(args.path)",
        path=str(tmp_path / "call.json"),
    )
    export = cast("dict[str, Json]", load((tmp_path / "call.json").read_bytes()))
    call = cast("dict[str, Json]", load(_call(priced, read_twice[1], 2)))
    assert {name: export[name] for name in call} == call
    assert export["run"] == read_twice[1]


def test_X1_the_url_of_a_call_survives_a_reload(open_page: PageOpener, priced: Scripted, read_twice: tuple[str, str]):
    thread, run = read_twice
    page = open_page(priced.url, at=f"#/threads/{thread}/runs/{run}/calls/1")
    page.wait(PLACE)
    page.click("role=button[name='Copy link']")
    page.wait("text=Copied")
    url = f"{priced.url}/#/threads/{thread}/runs/{run}/calls/1"
    assert page.evaluate("navigator.clipboard.readText()") == url
    page.reload()
    page.wait(PLACE)
    assert page.texts(PLACE) == ["Call 1 of 2"]
    assert page.evaluate("location.href") == url


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_X1_the_inspector_is_accessible_and_available_in_chinese(
    open_page: PageOpener, priced: Scripted, read_twice: tuple[str, str], theme: str
):
    page = _open_call(open_page, priced, read_twice, locale="zh-CN", theme=theme)
    assert page.texts(PLACE) == ["第 2 次调用（共 2 次）"]
    assert "规则 R2 · 更新的读取 a.txt：从最新数起第 2 次读取，只保留 1 次" in page.texts(".part.folded")[0]
    page.click(".part.folded >> role=button[name='原文']")
    assert page.axe(".beside") == []
    for name, text in (("差异", "一个旧的结果被折叠。"), ("请求", "其中不含密钥"), ("对话", "每根柱子是一次调用")):
        _tab(page, name)
        page.wait(f"text={text}")
        assert page.axe(".beside") == []


def test_X1_on_a_phone_the_inspector_fills_the_screen(
    open_page: PageOpener, priced: Scripted, read_twice: tuple[str, str]
):
    thread, run = read_twice
    page = open_page(priced.url, at=f"#/threads/{thread}/runs/{run}", size=(390, 844), touch=True)
    page.wait(PLACE)
    assert page.axe() == []
    for name in ("Page", "Changes", "Request", "Conversation"):
        _tab(page, name)
        page.draw()
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        assert page.evaluate(TOO_WIDE) == []
