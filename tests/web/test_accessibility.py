"""Accessibility of every view in both themes, checked by axe."""

import json

import pytest

from recto.ids import new_id
from recto.testing.model_server import Answer, Call
from tests.api.scripted_server import Scripted
from tests.web.page import WRITE, PageOpener, WebPage

pytestmark = pytest.mark.full
ANSWER = """\
# A title

Words with **weight**, a [link](https://example.com) and `code`.

| a | b |
|---|---|
| 1 | 2 |

- one
- two

```python
def double(number: int) -> int:
    # Twice as much.
    return 2 * number
```
"""
NODES = [
    {"type": "text", "content": "A title", "role": "title"},
    {"type": "badge", "label": "fine", "status": "success"},
    {"type": "fields", "items": [{"label": "Name", "value": "Ada"}, {"label": "Age", "value": None}]},
    {"type": "table", "columns": ["a", "b"], "rows": [[1, 2], [3, None]]},
    {"type": "progress", "value": 3, "max": 4, "label": "Three of four"},
    {"type": "chart", "kind": "bar", "labels": ["x", "y"], "series": [{"name": "n", "values": [1, 2]}]},
    {"type": "chart", "kind": "pie", "labels": ["x", "y"], "series": [{"name": "n", "values": [1, 2]}]},
    {"type": "button", "label": "Go on", "message": "Go on."},
]
themes = pytest.mark.parametrize("theme", ["light", "dark"])


def run_turn(page: WebPage, server: Scripted) -> None:
    """Run a turn with reasoning, a call, a card and an answer with all kinds of Markdown."""
    show = Call(name="show", arguments=json.dumps({"nodes": NODES}), id="call_0")
    server.answers.extend([Answer(text="", calls=(show,)), Answer(text=ANSWER, reasoning="Let me think.")])
    page.send("Show me everything.")
    page.wait("text=Twice as much.")
    page.wait_until("document.querySelector('#write') !== null")


@themes
def test_the_sign_in_form_and_an_empty_thread_are_accessible(open_page: PageOpener, theme: str):
    page = open_page(token=None, theme=theme)
    page.wait("#token")
    assert page.axe() == []
    page = open_page(theme=theme)
    page.wait(WRITE)
    assert page.axe() == []
    page.run("await page.locator('main').focus()")
    page.key("?")
    page.wait("role=dialog")
    assert page.axe() == []


@themes
def test_a_conversation_and_the_inspector_are_accessible(open_page: PageOpener, server: Scripted, theme: str):
    page = open_page(theme=theme)
    run_turn(page, server)
    page.run("for (const one of await page.locator('main summary').all()) await one.click()")
    assert page.axe() == []
    page.run("await page.locator('main').focus()")
    page.key("i")
    page.wait("role=tab")
    for tab in range(page.count("role=tab")):
        page.run("await page.getByRole('tab').nth(args.tab).click()", tab=tab)
        page.draw()
        assert page.axe() == []


@themes
def test_an_approval_is_accessible(open_page: PageOpener, server: Scripted, theme: str):
    server.answers.append(Answer(text="", calls=(Call(name="send", arguments='{"text": "hello"}', id=new_id()),)))
    page = open_page(theme=theme)
    page.send("Tell everybody.")
    page.wait("role=button[name=/Approve/]")
    assert page.axe() == []


@themes
def test_a_form_and_the_profile_are_accessible(open_page: PageOpener, demo: str, theme: str):
    page = open_page(demo, theme=theme)
    page.wait(WRITE)
    page.run("await page.locator('input[type=radio][value=vibe-en]').check()")
    page.send("Read my bazi, please.")
    page.wait("main form >> role=button")
    assert page.axe() == []
    page.go("#/profile")
    page.wait("main h1")
    page.draw()
    assert page.axe() == []
