"""Cards on the page: tool calls, all nodes of a uiSchema (P14), and the badge of an activated skill (S3)."""

import json
from pathlib import Path

import pytest

from recto.conversation.json import Json
from recto.testing.model_server import Answer, Call
from tests.api.scripted_server import Scripted
from tests.web.page import WRITE, PageOpener, WebPage

pytestmark = pytest.mark.full
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SERIES: list[Json] = [{"name": "Bonn", "values": [3, None, 7]}, {"name": "Rome", "values": [12, 15, 18]}]
NODES: list[Json] = [
    {"type": "text", "content": "A title of a card", "role": "title"},
    {"type": "text", "content": "A subtitle", "role": "subtitle"},
    {"type": "text", "content": "<b>Plain</b> words", "role": "body"},
    {"type": "text", "content": "A caption", "role": "caption"},
    {
        "type": "stack",
        "direction": "horizontal",
        "children": [
            {"type": "badge", "label": f"It is {status}", "status": status}
            for status in ("info", "success", "warning", "error", "pending")
        ],
    },
    {"type": "markdown", "content": "Some **bold** words"},
    {"type": "image", "url": PIXEL, "alt": "A dot", "caption": "Inside the url"},
    {"type": "image", "url": "https://pictures.example/a.png", "alt": "far away"},
    {"type": "link", "label": "A page elsewhere", "url": "https://example.com/there"},
    {"type": "button", "label": "Open it", "url": "https://example.com/open", "style": "primary"},
    {"type": "button", "label": "Ask more", "message": "Tell me more of it", "style": "secondary"},
    {"type": "list", "ordered": True, "items": [{"type": "text", "content": "first"}]},
    {"type": "table", "columns": ["City", "Degrees"], "rows": [["Bonn", 22], ["Rome", None]]},
    {"type": "fields", "items": [{"label": "Wind", "value": "north"}, {"label": "Rain", "value": None}]},
    {"type": "code", "content": "print('hello')", "language": "python"},
    {"type": "divider"},
    {"type": "progress", "value": 3, "max": 4, "label": "Read"},
    *(
        {"type": "chart", "kind": kind, "title": f"A {kind} chart", "labels": ["Mo", "Tu", "We"], "series": SERIES}
        for kind in ("bar", "line", "area", "pie")
    ),
]


def show_card(page: WebPage, server: Scripted, nodes: list[Json]) -> None:
    server.answers.extend(
        [Answer(calls=(Call(name="show", arguments=json.dumps({"nodes": nodes})),)), Answer(text="There it is.")]
    )
    page.send("Show me")
    page.wait("text=There it is.")


@pytest.mark.parametrize(("theme", "size"), [("light", (1280, 860)), ("dark", (390, 844))])
def test_P14_every_node_renders(
    open_page: PageOpener, server: Scripted, tmp_path: Path, theme: str, size: tuple[int, int]
):
    page = open_page(theme=theme, size=size)
    show_card(page, server, NODES)
    card = ".ui-root"
    text = page.texts(card)[0]
    for part in ("A subtitle", "Plain", "A caption", "It is pending", "first", "north", "unknown"):
        assert part in text
    assert page.texts(f"{card} h2") == ["A title of a card"]
    assert page.texts(f"{card} .markdown strong") == ["bold"]
    assert page.count(f"{card} img") == 1
    assert page.count("role=link[name='Open image: far away']") == 1
    assert page.texts(f"{card} ol > li") == ["first"]
    assert page.texts(f"{card} .ui-table >> nth=0 >> td") == ["Bonn", "22", "Rome", ""]
    assert page.texts(f"{card} pre code") == ["print('hello')"]
    assert page.count("role=progressbar[name='Read']") == 1
    assert page.count(f"{card} hr") == 1
    for kind in ("bar", "line", "area", "pie"):
        assert page.count(f"role=img[name='A {kind} chart']") == 1
    # Null is a gap, which splits a line in two.
    assert page.count("svg[aria-label='A line chart'] polyline") == 3
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.screenshot(tmp_path / "nodes.png")
    assert page.axe("main") == []
    assert [url for url in page.requested_urls() if "example" in url] == []


def test_P14_links_open_a_new_tab_and_a_button_sends_its_message(open_page: PageOpener, server: Scripted):
    page = open_page()
    show_card(page, server, NODES)
    link = "a[href='https://example.com/there']"
    assert page.run("return await page.locator(args.link).getAttribute('target')", link=link) == "_blank"
    assert page.run("return await page.locator(args.link).getAttribute('rel')", link=link) == "noopener noreferrer"
    assert page.count("a[href='https://example.com/open']") == 1
    server.answers.append(Answer(text="More of it, then."))
    page.click("role=button[name='Ask more']")
    page.wait("text=More of it, then.")
    assert "Tell me more of it" in " ".join(page.texts("role=log"))


def test_P14_a_call_shows_its_arguments_and_result(open_page: PageOpener, server: Scripted):
    page = open_page()
    server.answers.extend(
        [Answer(calls=(Call(name="weather", arguments='{"city": "Bonn"}'),)), Answer(text="It is sunny.")]
    )
    page.send("How is the weather?")
    page.wait("text=It is sunny.")
    assert page.texts("details.call summary")[0].split("\n")[:2] == ["weather", "done"]
    page.press("details.call summary", "Enter")
    assert '"city": "Bonn"' in page.texts(".call-details")[0]
    assert '"degrees": 22' in page.texts(".call-details")[0]
    assert "Weather in Bonn" in page.texts(".ui-root")[0]
    page.reload()
    page.wait(".ui-root >> text=Weather in Bonn")
    assert page.count("details.call.done") == 1


def test_P14_a_failed_call_is_marked_and_a_long_result_is_cut(open_page: PageOpener, server: Scripted):
    page = open_page()
    calls = (
        Call(name="nobody_has_this", id="call_a"),
        Call(name="lookup", arguments=json.dumps({"path": "p" * 3000}), id="call_b"),
    )
    server.answers.extend([Answer(calls=calls), Answer(text="That was all.")])
    page.send("Try")
    page.wait("text=That was all.")
    page.reload()
    page.click("details.call.failed summary")
    page.wait(".call-error")
    assert "Error" in page.texts("details.call.failed .call-part")
    page.click("details.call.done summary")
    long = "details.call.done .call-text >> nth=1"
    assert len(page.texts(long)[0]) < 2100
    page.run("await page.locator('details.call.done .call-all').last().click()")
    assert len(page.texts(long)[0]) > 3000
    assert page.axe("main") == []


@pytest.mark.parametrize(
    ("locale", "agent", "message", "badge"),
    [
        ("zh-CN", "vibe", "帮我看看八字", "✨ 已激活八字命理"),
        ("en-US", "vibe-en", "Read my bazi, please.", "✨ Activated: Bazi"),
    ],
)
def test_S3_an_activated_skill_shows_a_badge(
    open_page: PageOpener, demo: str, *, locale: str, agent: str, message: str, badge: str
):
    page = open_page(demo, locale=locale)
    page.wait(WRITE)
    page.run("await page.locator(`input[name=agent][value=${args.agent}]`).check()", agent=agent)
    page.send(message)
    page.wait(".activation")
    assert page.texts(".activation") == [badge]
    assert page.count(".activation[role=status]") == 1
