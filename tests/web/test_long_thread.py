"""A thread of 2,000 messages: it opens at its end and renders a part of its turns."""

import asyncio
from collections.abc import Generator
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.messages import AssistantMessage, Text, UserMessage
from recto.ids import new_id
from recto.store.store import open_store
from tests.api.scripted_server import Scripted, scripted_server
from tests.stored_runs import write_log
from tests.waiting import wait_for
from tests.web.page import PageOpener, WebPage

pytestmark = pytest.mark.full
TURNS = 1_000
ANSWER = """\
Answer {n}: here is **what** I found, with `code` and a [link](https://example.com/{n}).

- one thing
- another thing

| Day | Hours |
|---|---:|
| Monday | {n} |

```python
def answer_{n}(value: int) -> int:
    return value * {n}  # {n} times
```
"""
LAST = "section.turn:last-of-type"


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Scripted, str]]:
    """Return a server and the id of its long thread."""
    folder = tmp_path_factory.mktemp("long")
    thread = asyncio.run(write_thread(folder))
    with scripted_server(folder) as server:
        yield server, thread


async def write_thread(folder: Path) -> str:
    store, thread = await open_store(f"sqlite:///{folder / 'recto.db'}"), new_id()
    await write_log(store, thread, [entry for number in range(TURNS) for entry in turn(number)], "alice")
    await store.close()
    return thread


def turn(number: int) -> tuple[UserMessage, AssistantMessage]:
    at = datetime.now(UTC)
    return (
        UserMessage(id=new_id(), time=at, response_id=new_id(), parts=(Text(text=f"Question {number}?"),)),
        AssistantMessage(id=new_id(), time=at, parts=(Text(text=ANSWER.format(n=number)),)),
    )


def test_P17_a_thread_of_two_thousand_messages_opens_at_its_end_and_renders_a_part(
    open_page: PageOpener, long: tuple[Scripted, str]
):
    server, thread = long
    page = open_page(server.url, at=f"#/threads/{thread}")
    page.wait(f"text=Answer {TURNS - 1}:")
    page.wait_until("document.querySelectorAll('section.turn').length >= 60")
    assert page.count("section.turn") < 100
    page.send("hold it here")
    page.wait(f"{LAST} >> text=one two")
    assert page.count("section.turn") < 100
    server.go.set()
    page.wait(f"{LAST} >> text=one two three four five six")
    page.expect(".round.stop", state="hidden")


def test_P17_visible_turns_keep_their_position_when_older_turns_load(open_page: PageOpener, long: tuple[Scripted, str]):
    server, thread = long
    page = open_page(server.url, at=f"#/threads/{thread}")
    page.wait_until("document.querySelectorAll('section.turn').length >= 60")
    page.run("await page.locator('.log-scroll').evaluate((one) => { one.scrollTop = 1300; })")
    page.draw()
    before = place(page)
    page.run("await page.locator('.log-scroll').evaluate((one) => { one.scrollTop -= 150; })")
    page.wait_until("document.querySelectorAll('section.turn').length > 60")
    top = float(before["top"]) + 150
    assert wait_for(lambda: abs(float(place(page, before["turn"])["top"]) - top) < 5, "the turn to keep its position")


def place(page: WebPage, turn: str | None = None) -> dict[str, str]:
    """Return a turn, by default the first visible one, and its distance from the top."""
    position = page.run(
        """return await page.evaluate((turn) => {
          const turns = [...document.querySelectorAll('section.turn')];
          const outer = document.querySelector('.log-scroll').getBoundingClientRect().top;
          const isIn = (each) => each.getBoundingClientRect().bottom > outer;
          const one = turns.find((each) => turn ? each.dataset.turn === turn : isIn(each));
          return {turn: one.dataset.turn, top: one.getBoundingClientRect().top};
        }, args.turn)""",
        turn=turn,
    )
    return cast("dict[str, str]", position)
