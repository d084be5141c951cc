"""What the model saw, in the page (X1): each call part by part with its reasons, bytes and cost, and what changed."""

from collections.abc import Generator
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import Json, load
from recto.ids import new_id
from recto.models.ports import Usage
from recto.testing.model_server import Answer, Call
from tests.api.scripted_server import ALICE, Scripted, scripted_server
from tests.support.client import ask, request
from tests.web.conftest import write_agent
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
# What reaches over the edge of a phone, but for what scrolls by itself.
TOO_WIDE = """[...document.querySelectorAll('.inspector *')]
  .filter((one) => one.getBoundingClientRect().right > 391 && !one.closest('pre, .call-table, .tabs'))
  .map((one) => one.outerHTML.slice(0, 200))"""


@pytest.fixture(scope="module")
def priced(tmp_path_factory: pytest.TempPathFactory) -> Generator[Scripted]:
    """A server whose model has a price, and whose agent folds all but the newest read of a file."""
    folder = tmp_path_factory.mktemp("inspected")
    write_agent(folder / "agents" / "helper")
    (folder / "prices.toml").write_text(PRICES, "utf-8")
    settings = {"RECTO_AGENTS": str(folder / "agents"), "RECTO_AGENT": "helper"}
    with scripted_server(folder / "data", {**settings, "RECTO_PRICES": str(folder / "prices.toml")}) as server:
        yield server


@pytest.fixture
def read_twice(priced: Scripted) -> tuple[str, str]:
    """A thread where a file was read in each of two turns: its id, and that of its second run."""
    priced.answers[:] = [READ, Answer(text="It has lines."), READ, Answer(text="It still has.", usage=USAGE)]
    thread, run = new_id(), ""
    for words in ("What is in a.txt?", "And now?"):
        run = _said(priced, thread, words)
    return thread, run


def _said(server: Scripted, thread: str, words: str) -> str:
    reply = server.post(ask(words, thread=thread))
    assert reply.status == 202, reply.body
    run = str(reply.json["taskId"])
    server.reader(run).wait()
    return run


def _call(server: Scripted, run: str, n: int, query: str = "") -> bytes:
    reply = request(server.url, "GET", f"/api/v1/agent/runs/{run}/calls/{n}{query}", token=ALICE)
    assert reply.status == 200, reply.body
    return reply.body


def _opened(
    open_page: PageOpener, server: Scripted, at: tuple[str, str], *, locale: str = "en-US", theme: str = "light"
) -> WebPage:
    page = open_page(server.url, at=f"#/threads/{at[0]}/runs/{at[1]}", locale=locale, theme=theme)
    page.wait(PLACE)
    return page


def _tab(page: WebPage, name: str) -> None:
    page.click(f"role=tab[name='{name}']")


def test_X1_one_click_on_an_answer_shows_what_the_model_saw(
    open_page: PageOpener, priced: Scripted, read_twice: tuple[str, str]
):
    thread, run = read_twice
    page = open_page(priced.url, at=f"#/threads/{thread}")
    page.wait("text=It still has.")
    page.run("await page.getByRole('button', {name: 'What the model saw'}).last().click()")
    page.wait(PLACE)
    assert page.texts(PLACE) == ["Call 2 of 2"]
    assert page.evaluate("location.hash") == f"#/threads/{thread}/runs/{run}/calls/2"
    assert page.evaluate("document.activeElement.textContent") == "What the model saw"
    page.click("role=button[name='Close']")
    page.wait(".inspector", "hidden")
    assert page.evaluate("location.hash") == f"#/threads/{thread}"


def test_X1_each_part_has_its_kind_tokens_rule_and_reason(
    open_page: PageOpener, priced: Scripted, read_twice: tuple[str, str]
):
    page = _opened(open_page, priced, read_twice)
    call = cast("dict[str, dict[str, list[dict[str, Json]]]]", load(_call(priced, read_twice[1], 2)))
    parts = call["manifest"]["parts"]
    shown = page.texts(".part")
    assert len(shown) == len(parts)
    for text, part in zip(shown, parts, strict=True):
        assert str(part["reason"]) in text
        assert str(cast("dict[str, int]", part["tokens"])["after"]) in text
        assert not part["rule"] or f"Rule {part['rule']} · {part['ruleName']}" in text
    assert "System prompt" in page.texts(".composition")[0]
    assert "Tool results" in page.texts(".composition")[0]


def test_R12_a_folded_part_is_struck_through_with_its_original_one_click_away(
    open_page: PageOpener, priced: Scripted, read_twice: tuple[str, str]
):
    page = _opened(open_page, priced, read_twice)
    folded = ".part.folded"
    assert page.count(folded) == 1
    assert page.texts(f"{folded} del")[0].startswith("a.txt: line of text.")
    assert "Rule R2 · newer reads" in page.texts(folded)[0]
    assert LINES.strip() not in page.texts(folded)[0]
    page.click(f"{folded} >> role=button[name='Original']")
    assert page.texts(f"{folded} .original pre") == [LINES.strip()]


def test_X1_a_part_opens_to_the_very_bytes_that_were_sent(
    open_page: PageOpener, priced: Scripted, read_twice: tuple[str, str]
):
    page = _opened(open_page, priced, read_twice)
    raw, call = _call(priced, read_twice[1], 2, "?raw=1"), load(_call(priced, read_twice[1], 2))
    parts = cast("dict[str, dict[str, list[dict[str, list[int]]]]]", call)["manifest"]["parts"]
    place = next(at for at, part in enumerate(parts) if cast("Json", part["source"]) == "system prompt")
    page.run("await page.locator('.part-button').nth(args.place).click()", place=place)
    page.wait(".part-text pre")
    sent = page.run("return await page.locator('.part-text pre').textContent()")
    assert str(sent).encode() == raw[slice(*parts[place]["span"])]


def test_X1_the_raw_request_is_what_was_sent_and_curl_makes_it_again_without_a_secret(
    open_page: PageOpener, priced: Scripted, read_twice: tuple[str, str]
):
    page = _opened(open_page, priced, read_twice)
    _tab(page, "Request")
    page.wait("pre.curl")
    shown = str(page.run("return await page.locator('pre.raw-request').textContent()"))
    assert load(shown.encode()) == load(_call(priced, read_twice[1], 2, "?raw=1"))
    curl = str(page.run("return await page.locator('pre.curl').textContent()"))
    assert curl.encode() == _call(priced, read_twice[1], 2, "?as=curl")
    assert ALICE not in curl
    assert "no secret" in page.texts(".tab-panel")[0]
    page.click("section.source:nth-of-type(2) >> role=button[name='Copy']")
    page.wait("text=Copied")
    assert page.evaluate("navigator.clipboard.readText()") == curl


def test_X1_usage_cache_price_time_and_a_checked_digest_are_told(
    open_page: PageOpener, priced: Scripted, read_twice: tuple[str, str]
):
    page = _opened(open_page, priced, read_twice)
    figures = page.run(
        "return await page.locator('.figures dl > div').evaluateAll("
        "  (all) => Object.fromEntries(all.map((one) => [one.children[0].textContent, one.children[1].textContent])))"
    )
    told = cast("dict[str, str]", figures)
    assert (told["Input"], told["Output"], told["Read from cache"], told["Reasoning"]) == ("1,200", "34", "800", "7")
    assert told["Price"] == "$0.0616"
    assert all(told[name].endswith((" ms", " s")) for name in ("First token after", "Whole reply after"))
    assert "Verified" in page.texts(".digest")[0]


def _told_otherwise(page: WebPage, run: str, call: dict[str, Json]) -> None:
    """Have the page be told another call 2 of a run than the server has."""
    page.run(
        "await page.route((url) => url.pathname.endsWith(args.path) && !url.search,"
        "  (route) => route.fulfill({json: args.call}))",
        path=f"/runs/{run}/calls/2",
        call=call,
    )


def test_X1_a_call_that_is_damaged_is_told_as_such(
    open_page: PageOpener, priced: Scripted, read_twice: tuple[str, str]
):
    thread, run = read_twice
    page = open_page(priced.url)
    call = cast("dict[str, Json]", load(_call(priced, run, 2)))
    damaged: list[Json] = ["manifest", "9f86d081884c7d659a2feaa0c55ad015"]
    _told_otherwise(page, run, {**call, "verified": False, "damaged": damaged, "page": None, "manifest": None})
    page.go(f"#/threads/{thread}/runs/{run}")
    page.wait(PLACE)
    assert "Damaged: the manifest, piece 9f86d081884c." in page.texts(".digest")[0]
    assert "cannot be told" in page.texts(".tab-panel")[0]


def test_X1_the_difference_marks_the_cache_break_and_says_its_cause(
    open_page: PageOpener, priced: Scripted, read_twice: tuple[str, str]
):
    page = _opened(open_page, priced, read_twice)
    _tab(page, "Changes")
    page.wait(".cache-break")
    assert "An old result was folded." in page.texts(".cache-break")[0]
    assert page.count(".break-mark") == 1
    changed = page.texts(".change.changed:has(.break-mark)")[0]
    assert "Changed: decision, rule, reason, receipts, tokens, content" in changed
    page.key("[")
    page.wait("text=A new turn began")
    assert "of an earlier answer" in page.texts(".changes")[0]


def test_X1_a_preview_shows_what_the_words_in_the_box_would_send_and_sends_nothing(
    open_page: PageOpener, priced: Scripted, read_twice: tuple[str, str]
):
    page = _opened(open_page, priced, read_twice)
    asked = len(priced.model.requests)
    page.click("text=What would be sent now")
    page.wait("text=The box is empty")
    page.fill(WRITE, "Tell me about b.txt, 谢谢")
    page.wait(".part >> text=Tell me about b.txt, 谢谢")
    assert "The model would be called with this page." in page.texts(".preview-next")[0]
    page.wait("pre.raw-request >> text=Tell me about b.txt, 谢谢")
    assert len(priced.model.requests) == asked
    assert page.value(WRITE) == "Tell me about b.txt, 谢谢"


def test_X1_a_call_is_exported_as_json(
    open_page: PageOpener, priced: Scripted, read_twice: tuple[str, str], tmp_path: Path
):
    page = _opened(open_page, priced, read_twice)
    page.run(
        "const [file] = await Promise.all([page.waitForEvent('download'), page.getByText('Export as JSON').click()]);"
        "await file.saveAs(args.path)",
        path=str(tmp_path / "call.json"),
    )
    saved = cast("dict[str, Json]", load((tmp_path / "call.json").read_bytes()))
    call = cast("dict[str, Json]", load(_call(priced, read_twice[1], 2)))
    assert {name: saved[name] for name in call} == call
    assert saved["run"] == read_twice[1]


def test_X1_a_call_has_an_address_of_its_own_that_outlasts_a_reload(
    open_page: PageOpener, priced: Scripted, read_twice: tuple[str, str]
):
    thread, run = read_twice
    page = open_page(priced.url, at=f"#/threads/{thread}/runs/{run}/calls/1")
    page.wait(PLACE)
    page.click("role=button[name='Copy link']")
    page.wait("text=Copied")
    address = f"{priced.url}/#/threads/{thread}/runs/{run}/calls/1"
    assert page.evaluate("navigator.clipboard.readText()") == address
    page.reload()
    page.wait(PLACE)
    assert page.texts(PLACE) == ["Call 1 of 2"]
    assert page.evaluate("location.href") == address


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_X1_the_inspector_speaks_chinese_and_axe_finds_no_fault_with_it(
    open_page: PageOpener, priced: Scripted, read_twice: tuple[str, str], theme: str
):
    page = _opened(open_page, priced, read_twice, locale="zh-CN", theme=theme)
    assert page.texts(PLACE) == ["第 2 次调用（共 2 次）"]
    assert "规则 R2 · 更新的读取 a.txt：从最新数起第 2 次读取，只保留 1 次" in page.texts(".part.folded")[0]
    page.click(".part.folded >> role=button[name='原文']")
    assert page.axe(".beside") == []
    for name, words in (
        ("变化", "一个旧的结果被折叠了。"),
        ("请求", "其中没有密钥"),
        ("整个对话", "每根柱子是一次调用"),
    ):
        _tab(page, name)
        page.wait(f"text={words}")
        assert page.axe(".beside") == []


def test_X1_on_a_phone_the_inspector_stands_alone(open_page: PageOpener, priced: Scripted, read_twice: tuple[str, str]):
    thread, run = read_twice
    page = open_page(priced.url, at=f"#/threads/{thread}/runs/{run}", size=(390, 844), touch=True)
    page.wait(PLACE)
    assert page.axe() == []
    for name in ("Page", "Changes", "Request", "Thread"):
        _tab(page, name)
        page.draw()
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        assert page.evaluate(TOO_WIDE) == []
