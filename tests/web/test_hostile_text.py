"""Hostile text of models, tools, files and users: no script runs, and nothing loads from other origins."""

import json
from pathlib import Path

import pytest

from recto.testing.model_server import Answer, Call
from tests.api.scripted_server import ALICE, Scripted
from tests.support.client import request
from tests.web.hostile import HOSTILE
from tests.web.page import PageOpener, WebPage

pytestmark = pytest.mark.full
BLOCKS = "\n\n".join(HOSTILE)
SAFE = r"/^(https?:|mailto:|\/|\.\/|#|blob:|data:image\/)/i"
NAMES = "/^(href|src|action|formaction|xlink:href|data)$/"
ODD = "iframe, object, embed, style, base, meta[http-equiv], script:not([src]), form[action]"
LOOK = f"""(() => {{
  const bad = [...document.querySelectorAll("{ODD}")].map((one) => one.tagName);
  for (const one of document.querySelectorAll("*"))
    for (const {{ name, value }} of one.attributes)
      if (name.startsWith("on") || ({NAMES}.test(name) && !{SAFE}.test(value)))
        bad.push(`${{one.tagName}} ${{name}}=${{value}}`);
  return bad;
}})()"""
HOVER = """
for (const one of await page.locator('main a, main summary').all()) await one.hover({timeout: 300}).catch(() => {});
"""


def expect_harmless(page: WebPage, server: Scripted) -> None:
    """Hover over everything and assert that no script ran."""
    page.run(HOVER)
    page.draw()
    assert page.evaluate("window.ran ?? null") is None
    assert page.evaluate(LOOK) == []
    other_origins = [url for url in page.requested_urls() if not url.startswith((server.url, "blob:", "data:"))]
    assert other_origins == []


def create_thread(server: Scripted, text: str, *answers: Answer) -> str:
    server.answers.extend(answers)
    return server.create_thread(text)


def test_an_answer_is_markdown_without_html_while_it_streams_and_after_a_reload(
    open_page: PageOpener, server: Scripted
):
    server.answers.append(Answer(text=BLOCKS + "\n\nThe end of it."))
    page = open_page()
    page.send("Say something bad.")
    page.wait("text=The end of it.")
    expect_harmless(page, server)
    page.reload()
    page.wait("text=The end of it.")
    expect_harmless(page, server)


def test_user_messages_and_titles_are_plain_text(open_page: PageOpener, server: Scripted):
    thread = create_thread(server, BLOCKS[:9000], Answer(text="Understood."))
    for number, text in enumerate(HOSTILE[:20]):
        title = " ".join(text.split())[:200]
        reply = request(
            server.url,
            "PATCH",
            f"/api/v1/agent/threads/{create_thread(server, f'thread {number}')}",
            {"title": title},
            token=ALICE,
        )
        assert reply.status == 200
    page = open_page(at=f"#/threads/{thread}")
    page.wait("text=Understood.")
    page.wait(".thread-title")
    expect_harmless(page, server)


def test_results_arguments_and_reasoning_are_plain_text(open_page: PageOpener, server: Scripted):
    call = Call(name="weather", arguments=json.dumps({"city": BLOCKS}), id="call_0")
    thread = create_thread(
        server, "How is the weather?", Answer(text="", calls=(call,)), Answer(text="Bad.", reasoning=BLOCKS)
    )
    page = open_page(at=f"#/threads/{thread}")
    page.wait("text=Bad.")
    page.run("for (const one of await page.locator('main summary').all()) await one.click()")
    expect_harmless(page, server)


def test_cards_show_hostile_text_as_text(open_page: PageOpener, server: Scripted):
    nodes = [{"type": "text", "content": text} for text in HOSTILE]
    nodes += [{"type": "markdown", "content": text} for text in HOSTILE]
    nodes += [{"type": "code", "content": text, "language": "html"} for text in HOSTILE[:10]]
    nodes += [{"type": "link", "label": text, "url": "javascript:window.ran=1"} for text in HOSTILE[:10]]
    nodes += [{"type": "image", "url": "https://example.com/x.png", "alt": text} for text in HOSTILE[:10]]
    nodes += [{"type": "table", "columns": [text], "rows": [[text]]} for text in HOSTILE[:10]]
    calls = [
        Call(name="show", arguments=json.dumps({"nodes": nodes[at : at + 60]}), id=f"call_{at}")
        for at in range(0, len(nodes), 60)
    ]
    thread = create_thread(server, "Show it.", Answer(text="", calls=tuple(calls)), Answer(text="There it is."))
    page = open_page(at=f"#/threads/{thread}")
    page.wait("text=There it is.")
    expect_harmless(page, server)


def test_file_names_are_plain_text(open_page: PageOpener, server: Scripted, tmp_path: Path):
    names = [
        "<img src=x onerror=window.ran=1>.txt",
        "'\"><script>window.ran=1<∕script>.txt",
        "javascript:window.ran=1.txt",
    ]
    for name in names:
        (tmp_path / name).write_text("words", encoding="utf-8")
    page = open_page()
    page.choose_files("input[type=file]", *[tmp_path / name for name in names])
    page.wait_until("document.querySelectorAll('[role=progressbar]').length === 0")
    page.send("Look at these.")
    page.wait("text=one two three four five six")
    expect_harmless(page, server)
    page.reload()
    page.wait("text=one two three four five six")
    expect_harmless(page, server)
