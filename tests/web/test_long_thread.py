"""A thread of 2,000 messages on the page: it opens in under a second, and nobody waits for it to type or scroll."""

import asyncio
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import dump
from recto.conversation.messages import AssistantMessage, Text, UserMessage
from recto.ids import new_id
from recto.store.ports import Admission, Claimant, RunChange, RunEnding
from recto.store.store import open_store
from tests.api.scripted_server import Scripted, scripted_server
from tests.web.page import WRITE, PageOpener, WebPage

pytestmark = pytest.mark.full
TURNS = 1_000
WHO = Claimant(node="test", boot="test", lease=timedelta(seconds=60))
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
TRACE = """
const session = await context.newCDPSession(page);
const events = [];
session.on('Tracing.dataCollected', ({value}) => events.push(...value));
const includedCategories = ['disabled-by-default-devtools.timeline', '__metadata'];
await session.send('Tracing.start', {transferMode: 'ReportEvents', traceConfig: {includedCategories}});
globalThis.endTrace = async () => {
  const whole = new Promise((resolve) => session.once('Tracing.tracingComplete', resolve));
  await session.send('Tracing.end');
  await whole;
  await session.detach();
  const main = new Set(events.filter(({args}) => args?.name === 'CrRendererMain').map(({pid, tid}) => `${pid} ${tid}`));
  const tasks = events.filter(({name, pid, tid}) => name === 'RunTask' && main.has(`${pid} ${tid}`));
  return tasks.map(({tdur}) => (tdur ?? 0) / 1000);
};
"""
LONGEST = 100
ROUNDS = 3
LAST = "section.turn:last-of-type"


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Scripted, str]]:
    """A server that has the thread, and the thread."""
    folder = tmp_path_factory.mktemp("long")
    thread = asyncio.run(write_thread(folder))
    with scripted_server(folder) as server:
        yield server, thread


async def write_thread(folder: Path) -> str:
    store, thread, id = await open_store(f"sqlite:///{folder / 'recto.db'}"), new_id(), new_id()
    body = {"threadId": thread, "runId": id, "messages": [{"id": "asked", "role": "user", "content": "Question 0?"}]}
    admission = Admission(
        id=id,
        name=id,
        owner="alice",
        thread=thread,
        agent="chat",
        input=dump(body),
        response_id=new_id(),
        created=datetime.now(UTC),
    )
    run = (await store.admit(admission, WHO)).run
    entries = [entry for number in range(TURNS) for entry in turn(number)]
    for at in range(0, len(entries), 500):
        await store.record(run.lease, RunChange(entries=entries[at : at + 500]), datetime.now(UTC))
    await store.record(run.lease, RunChange(entered=True, ending=RunEnding(outcome="done")), datetime.now(UTC))
    await store.close()
    return thread


def turn(number: int) -> tuple[UserMessage, AssistantMessage]:
    at = datetime.now(UTC)
    return (
        UserMessage(id=new_id(), time=at, response_id=new_id(), parts=(Text(text=f"Question {number}?"),)),
        AssistantMessage(id=new_id(), time=at, parts=(Text(text=ANSWER.format(n=number)),)),
    )


@contextmanager
def no_long_task(page: WebPage) -> Generator[None]:
    """No task of the page takes long meanwhile, by the clock of its thread: others keep the machine busy too."""
    page.run(TRACE)
    yield
    tasks = cast("list[float]", page.run("return await globalThis.endTrace()"))
    assert tasks
    assert max(tasks) < LONGEST


def test_P17_a_thread_of_two_thousand_messages_opens_in_under_a_second(
    open_page: PageOpener, long: tuple[Scripted, str]
):
    server, thread = long
    page = open_page(server.url)
    seconds: list[float] = []
    for _ in range(ROUNDS):
        page.go("#/")
        page.wait(".starters")
        with no_long_task(page):
            begin = time.monotonic()
            page.go(f"#/threads/{thread}")
            page.wait(f"text=Answer {TURNS - 1}:")
            seconds.append(time.monotonic() - begin)
            page.wait_until("document.querySelectorAll('section.turn').length >= 60")
        assert page.count("section.turn") < 100
    assert min(seconds) < 1


def test_P17_typing_and_scrolling_in_it_keep_nobody_waiting(open_page: PageOpener, long: tuple[Scripted, str]):
    server, thread = long
    page = open_page(server.url, at=f"#/threads/{thread}")
    page.wait_until("document.querySelectorAll('section.turn').length >= 60")
    with no_long_task(page):
        page.run("await page.locator(args.where).pressSequentially('A line, one key at a time.')", where=WRITE)
    with no_long_task(page):
        page.run("await page.locator('.log-scroll').hover()")
        page.run("for (let n = 0; n < 90; n += 1) { await page.mouse.wheel(0, -900); await page.waitForTimeout(15); }")
        page.wait_until("document.querySelectorAll('section.turn').length > 100")
    server.go.clear()
    with no_long_task(page):
        page.say("hold it here")
        page.wait(f"{LAST} >> text=one two")
        server.go.set()
        page.wait(f"{LAST} >> text=one two three four five six")
        page.expect(".round.stop", state="hidden")


def test_P17_what_is_read_stays_where_it_is_when_older_turns_come(open_page: PageOpener, long: tuple[Scripted, str]):
    server, thread = long
    page = open_page(server.url, at=f"#/threads/{thread}")
    page.wait_until("document.querySelectorAll('section.turn').length >= 60")
    page.run("await page.locator('.log-scroll').evaluate((one) => { one.scrollTop = 1300; })")
    page.run("await page.waitForTimeout(300)")
    before = place(page)
    page.run("await page.locator('.log-scroll').evaluate((one) => { one.scrollTop -= 150; })")
    page.wait_until("document.querySelectorAll('section.turn').length > 60")
    page.run("await page.waitForTimeout(300)")
    after = place(page, before["turn"])
    assert abs(float(after["top"]) - float(before["top"]) - 150) < 5


def place(page: WebPage, turn: str | None = None) -> dict[str, str]:
    """The first turn that is in sight, or the given one, and how far it is from the top."""
    found = page.run(
        """return await page.evaluate((turn) => {
          const turns = [...document.querySelectorAll('section.turn')];
          const outer = document.querySelector('.log-scroll').getBoundingClientRect().top;
          const isIn = (each) => each.getBoundingClientRect().bottom > outer;
          const one = turns.find((each) => turn ? each.dataset.turn === turn : isIn(each));
          return {turn: one.dataset.turn, top: one.getBoundingClientRect().top};
        }, args.turn)""",
        turn=turn,
    )
    return cast("dict[str, str]", found)
