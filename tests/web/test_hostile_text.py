"""Hostile text of models, tools, files and users: no script runs, and nothing loads from other origins.

Each text sets `window.ran` in a page that does not escape it.
"""

import json
from pathlib import Path

import pytest

from recto.testing.model_server import Answer, Call
from tests.api.scripted_server import ALICE, Scripted
from tests.support.client import request
from tests.web.page import PageOpener, WebPage

pytestmark = pytest.mark.full
_RUN = "window.ran=1"
_SCRIPTS = [
    f"<script>{_RUN}</script>",
    f"<SCRIPT>{_RUN}</SCRIPT>",
    f"<script/x>{_RUN}</script>",
    f"<scr<script>ipt>{_RUN}</scr</script>ipt>",
    f"<script src=data:text/javascript,{_RUN}></script>",
    f"</p></div><script>{_RUN}</script>",
    f"<!--<img src='--><img src=x onerror={_RUN}//'>",
    f"<![CDATA[<script>{_RUN}</script>]]>",
    f"<noscript><p title='</noscript><img src=x onerror={_RUN}>'>",
    f"<template><script>{_RUN}</script></template>",
]
_HANDLERS = [
    f"<img src=x onerror={_RUN}>",
    f"<img src=x onerror='{_RUN}'/>",
    f"<IMG SRC=x OnErRoR={_RUN}>",
    f"<img/src=x/onerror={_RUN}>",
    f"<img src=x:x onerror\n=\n{_RUN}>",
    f"<body onload={_RUN}>",
    f"<details open ontoggle={_RUN}><summary>x</summary></details>",
    f"<input autofocus onfocus={_RUN}>",
    f"<select autofocus onfocus={_RUN}></select>",
    f"<textarea autofocus onfocus={_RUN}></textarea>",
    f"<video src=x onerror={_RUN}></video>",
    f"<video><source onerror={_RUN}></video>",
    f"<audio src=x onerror={_RUN}></audio>",
    f"<marquee onstart={_RUN}>x</marquee>",
    f"<div style=animation-name:running-dot onanimationstart={_RUN}>x</div>",
    f"<p onpointerover={_RUN} onclick={_RUN}>hover</p>",
    f"<object data=javascript:{_RUN}></object>",
    f"<embed src=javascript:{_RUN}>",
    f"<iframe src=javascript:{_RUN}></iframe>",
    "<iframe srcdoc='<script>parent.ran=1</script>'></iframe>",
    f"<form action=javascript:{_RUN}><button>go</button></form>",
    f"<button formaction=javascript:{_RUN}>go</button>",
    f"<link rel=stylesheet href=javascript:{_RUN}>",
    f"<meta http-equiv=refresh content='0;url=javascript:{_RUN}'>",
    f"<base href=javascript:{_RUN}//>",
    f"<style>@import 'javascript:{_RUN}';</style>",
]
_SVG = [
    f"<svg onload={_RUN}>",
    f"<svg><script>{_RUN}</script></svg>",
    f"<svg><animate onbegin={_RUN} attributeName=x></animate></svg>",
    f"<svg><a xlink:href=javascript:{_RUN}><text y=20>x</text></a></svg>",
    f"<svg><foreignObject><img src=x onerror={_RUN}></foreignObject></svg>",
    f"<svg><use href='data:image/svg+xml,<svg id=x onload={_RUN}>#x'></use></svg>",
    f"<math><mtext><table><mglyph><style><img src=x onerror={_RUN}></style></mglyph></table></mtext></math>",
    f"<svg></p><style><a id='</style><img src=x onerror={_RUN}>'>",
]
_MARKDOWN = [
    f"[click](javascript:{_RUN})",
    f"[click](JaVaScRiPt:{_RUN})",
    f"[click](java\tscript:{_RUN})",
    f"[click](&#106;avascript:{_RUN})",
    f"[click](data:text/html,<script>{_RUN}</script>)",
    f"[click](vbscript:{_RUN})",
    f"[click](<javascript:{_RUN}>)",
    f"[click][ref]\n\n[ref]: javascript:{_RUN}",
    f"<javascript:{_RUN}>",
    f'[click](https://example.com "x" onmouseover="{_RUN}")',
    f"![x](javascript:{_RUN})",
    f'![x](x "onerror={_RUN}")',
    f'![" onerror="{_RUN}](x)',
    "![x](https://example.com/tracker.png)",
    f"```html\n<script>{_RUN}</script>\n```",
    f'```" onmouseover="{_RUN}\nx\n```',
    f"`<img src=x onerror={_RUN}>`",
    f"| a |\n|---|\n| <img src=x onerror={_RUN}> |",
    f"- <a href=javascript:{_RUN}>x</a>",
    f"# <img src=x onerror={_RUN}>",
]
HOSTILE = (*_SCRIPTS, *_HANDLERS, *_SVG, *_MARKDOWN)
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
