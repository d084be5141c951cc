"""Accessibility of the start page and of conversations in both themes, checked by axe."""

import pytest

from recto.testing.model_server import Answer, Call
from tests.api.scripted_server import Scripted
from tests.web.page import WRITE, PageOpener

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
themes = pytest.mark.parametrize("theme", ["light", "dark"])


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
def test_a_conversation_is_accessible(open_page: PageOpener, server: Scripted, theme: str):
    lookup = Call(name="lookup", arguments='{"path": "a.txt"}')
    server.answers.extend([Answer(calls=(lookup,)), Answer(text=ANSWER, reasoning="Let me think.")])
    page = open_page(theme=theme)
    page.send("Show me everything.")
    page.wait("text=Twice as much.")
    page.run("for (const one of await page.locator('main summary').all()) await one.click()")
    assert page.axe() == []
