"""Conversations on the page: streaming, stop, retry, edit, fork, and lost connections."""

import json
from typing import cast

import pytest

from recto.conversation.json import Json
from recto.testing.model_server import Answer, failure
from tests.api.scripted_server import Scripted
from tests.support.client import ask
from tests.waiting import wait_for
from tests.web.page import WRITE, PageOpener, WebPage

pytestmark = pytest.mark.full
PLAIN = "one two three four five six"
LAST = "section.turn:last-of-type"
STOP, UNDO = "role=button[name='Stop generating']", "role=button[name='Restore removed messages']"
RETRY, FORK, COPY = (f"role=button[name='{name}']" for name in ("Try again", "Fork from here", "Copy response"))


def answers(page: WebPage) -> list[str]:
    return page.texts(".answer .markdown")


def wait_for_end(page: WebPage) -> None:
    """Wait until the run has ended."""
    page.wait(".round.stop", state="hidden")


def user_messages(page: WebPage) -> list[str]:
    return page.texts(".bubble .plain-text")


@pytest.mark.parametrize("key", ["Enter", "Escape"])
def test_P17_an_answer_streams_and_can_be_stopped(open_page: PageOpener, server: Scripted, key: str):
    page = open_page()
    page.send("hold this")
    page.wait("text=one two")
    page.wait_until("location.hash.startsWith('#/threads/')")
    assert answers(page)[-1] != PLAIN
    page.press(STOP, key)
    wait_for_end(page)
    page.wait("role=button[name='Send']")
    page.wait("text=Stopped before it was complete.")
    page.reload()
    page.wait("text=Stopped before it was complete.")
    assert PLAIN not in answers(page)


def test_R12_a_retry_replaces_the_answer_and_undo_restores_it(open_page: PageOpener, server: Scripted):
    page = open_page(at=f"#/threads/{server.create_thread('Tell me')}")
    page.wait(f"text={PLAIN}")
    server.answers[:] = [Answer(text="Something else.")]
    page.click(f"{LAST} >> {RETRY}")
    page.wait("text=Something else.")
    assert (user_messages(page), answers(page)) == (["Tell me"], ["Something else."])
    wait_for_end(page)
    page.click(UNDO)
    page.wait(f"text={PLAIN}")
    assert (user_messages(page), answers(page)) == (["Tell me"], [PLAIN])


def test_R12_edit_moves_a_message_into_the_box_and_undo_restores_the_conversation(
    open_page: PageOpener, server: Scripted
):
    page = open_page(at=f"#/threads/{server.create_thread('First words', 'Second words')}")
    page.wait("text=Second words")
    page.fill(WRITE, "half a thought")
    page.run("await page.locator('.turn').first().hover()")
    page.click("role=button[name='Edit message']")
    page.wait_until("document.querySelector('#write').value === 'First words'")
    page.wait("section.turn", state="hidden")
    page.wait_until("document.activeElement.id === 'write'")
    page.click(UNDO)
    page.wait("text=Second words")
    assert user_messages(page) == ["First words", "Second words"]
    assert page.value(WRITE) == "half a thought"
    page.fill(WRITE, "")
    page.press(WRITE, "ArrowUp")
    page.wait_until("document.querySelector('#write').value === 'Second words'")
    page.fill(WRITE, "Other words")
    page.press(WRITE, "Enter")
    page.wait("text=Other words")
    wait_for_end(page)
    assert user_messages(page) == ["First words", "Other words"]


def test_R12_changed_files_are_restored_on_request(open_page: PageOpener, server: Scripted):
    page = open_page(at=f"#/threads/{server.create_thread('Change my files')}")
    page.wait("text=Change my files")
    page.run("""
      await page.route('**/rollback', async (route) => {
        const response = await route.fetch();
        const changedFiles = [{path: 'src/app.py', change: 'changed', kept: true}];
        await route.fulfill({response, json: {...(await response.json()), changedFiles}});
      });
      await page.route('**/files/restore', (route) =>
        route.fulfill({json: {restored: ['src/app.py'], left: [], undo: 'x'}}));
    """)
    page.press(WRITE, "ArrowUp")
    page.wait("role=dialog[name='Restore files too?'] >> text=src/app.py")
    assert page.axe("dialog") == []
    page.click("role=button[name='Restore files']")
    page.wait("text=1 file restored")
    page.wait_until("document.activeElement.id === 'write'")
    assert page.value(WRITE) == "Change my files"


@pytest.mark.parametrize(
    ("locale", "label", "state"), [("en-US", "Summarize", "Summarizing"), ("zh-CN", "总结", "正在总结")]
)
def test_R13_a_summary_on_demand_shows_its_progress(
    open_page: PageOpener, server: Scripted, locale: str, label: str, state: str
):
    thread = server.create_thread(*(f"Number {number} " + "of many words " * 200 for number in range(4)))
    page = open_page(at=f"#/threads/{thread}", locale=locale)
    page.wait("text=Number 3")
    server.answers[:] = [Answer(text="They counted.", hold=server.go)]
    page.click(f"role=button[name=/^{label}/]")
    page.wait(f".run-state >> text={state}")
    server.go.set()
    page.wait(f".run-state >> text={state}", state="hidden")
    wait_for_end(page)
    assert len(user_messages(page)) == 4


def test_P17_a_fork_is_a_separate_thread(open_page: PageOpener, server: Scripted):
    thread = server.create_thread("Fork me", "And leave this")
    page = open_page(at=f"#/threads/{thread}")
    page.wait("text=And leave this")
    page.run("await page.locator('.turn').first().hover()")
    page.click(FORK)
    page.wait("text=Fork created.")
    page.wait_until("!location.hash.includes(args.thread)", thread=thread)
    page.wait_until("document.querySelectorAll('section.turn').length === 1")
    assert user_messages(page) == ["Fork me"]
    assert len(server.rows(f"/threads/{thread}/messages", "messages")) == 4


def test_P17_a_reload_during_an_answer_loses_nothing(open_page: PageOpener, server: Scripted):
    page = open_page()
    page.send("hold while I reload")
    page.wait("text=one two")
    page.wait_until("location.hash.startsWith('#/threads/')")
    page.reload()
    page.wait("text=one two")
    page.wait(STOP)
    server.go.set()
    page.wait(f"text={PLAIN}")
    wait_for_end(page)
    assert (user_messages(page), answers(page)) == (["hold while I reload"], [PLAIN])


@pytest.mark.parametrize(("locale", "state"), [("en-US", "Reconnecting…"), ("zh-CN", "正在重新连接")])
def test_P17_a_lost_connection_is_shown_and_loses_nothing(
    open_page: PageOpener, server: Scripted, locale: str, state: str
):
    page = open_page(locale=locale)
    cut_streams(page)
    page.send("hold while it breaks")
    page.wait("text=one two")
    page.offline()
    page.evaluate("window.cut()")
    page.wait(f".connection >> text={state}")
    server.go.set()
    page.offline(is_offline=False)
    page.wait(f"text={PLAIN}")
    wait_for_end(page)
    page.wait(f".connection >> text={state}", state="hidden")
    assert (user_messages(page), answers(page)) == (["hold while it breaks"], [PLAIN])


def cut_streams(page: WebPage) -> None:
    """Define `cut()`, which ends all open streams. Playwright keeps streams open while it is offline."""
    page.evaluate("""(() => {
      const send = window.fetch, open = [];
      window.cut = () => open.splice(0).forEach((controller) => controller.abort());
      window.fetch = (url, init) => {
        if (!String(url).includes('/events')) return send(url, init);
        const controller = new AbortController();
        open.push(controller);
        return send(url, {...init, signal: AbortSignal.any([init.signal, controller.signal])});
      };
    })()""")


def test_P17_a_message_sent_during_a_run_is_queued(open_page: PageOpener, server: Scripted):
    page = open_page()
    page.send("hold the first")
    page.wait("text=one two")
    page.send("Then the second")
    page.wait("text=Queued")
    server.go.set()
    page.wait("text=Queued", state="hidden")
    page.wait_until("document.querySelectorAll('.answer .markdown').length === 2")
    wait_for_end(page)
    assert (user_messages(page), answers(page)) == (["hold the first", "Then the second"], [PLAIN, PLAIN])


def test_P17_two_tabs_of_one_thread_show_the_same(open_page: PageOpener, server: Scripted):
    thread = server.create_thread("Both see this")
    one = open_page(at=f"#/threads/{thread}")
    two = open_page(at=f"#/threads/{thread}", beside=one)
    two.wait("text=Both see this")
    one.wait("text=Both see this")
    one.send("hold in one tab")
    two.wait("text=hold in one tab")
    two.wait("text=one two")
    server.go.set()
    for page in (one, two):
        page.wait_until("document.querySelectorAll('.answer .markdown').length === 2")
        wait_for_end(page)
        assert (user_messages(page), answers(page)) == (["Both see this", "hold in one tab"], [PLAIN, PLAIN])
    one.press(WRITE, "ArrowUp")
    two.wait("text=hold in one tab", state="hidden")


@pytest.mark.parametrize(
    ("locale", "problem", "retry"),
    [("en-US", "The model is unreachable", "Try again"), ("zh-CN", "模型无法连接", "重试")],
)
def test_P17_a_failed_run_says_what_to_do_and_can_be_retried(
    open_page: PageOpener, server: Scripted, locale: str, problem: str, retry: str
):
    server.answers[:] = [failure(400, "no such thing")]
    page = open_page(locale=locale)
    page.send("Fail please")
    page.wait(f"role=alert >> text={problem}")
    page.click(f"role=alert >> role=button[name='{retry}']")
    page.wait(f"text={PLAIN}")
    page.wait("role=alert", state="hidden")
    assert user_messages(page) == ["Fail please"]


def test_P17_an_unsent_message_says_why_and_can_be_resent(open_page: PageOpener, server: Scripted):
    page = open_page()
    page.wait(WRITE)
    error = json.dumps({"detail": "The queue is full."})
    page.run(
        """await page.route('**/api/v1/agent/runs', (route) =>
        route.fulfill({status: 422, contentType: 'application/json', body: args.error}))""",
        error=error,
    )
    page.send("Take this")
    page.wait("text=Not sent: The queue is full.")
    page.run("await page.unroute('**/api/v1/agent/runs')")
    page.click("role=button[name='Resend']")
    page.wait(f"text={PLAIN}")
    assert user_messages(page) == ["Take this"]
    page.wait("text=Not sent", state="hidden")


@pytest.mark.parametrize(("locale", "legend", "agent"), [("en-US", "Agent", "vibe-en"), ("zh-CN", "智能体", "vibe")])
def test_an_empty_thread_offers_agents_and_suggestions(
    open_page: PageOpener, demo: str, locale: str, legend: str, agent: str
):
    page = open_page(demo, locale=locale)
    page.wait(f"role=group[name='{legend}']")
    page.run("await page.locator('input[name=agent][value=' + args.agent + ']').check()", agent=agent)
    starters = page.texts(".starters button")
    assert len(starters) == 3
    page.click(".starters button")
    page.wait(".answer")
    assert user_messages(page) == [starters[0]]
    wait_for(lambda: page.texts(".agent-name") == [agent], "the name of the agent")


def test_P17_the_log_sticks_to_its_end_unless_the_user_scrolled_up(open_page: PageOpener, server: Scripted):
    thread = server.create_thread(*(f"Fill {number}" for number in range(12)))
    page = open_page(at=f"#/threads/{thread}", size=(900, 500))
    page.wait("text=Fill 11")
    wait_for_end(page)
    assert from_end(page) < 50
    lines = "\n\n".join(f"Line {number} of many." for number in range(60))
    server.answers[:] = [Answer(text=lines, delay=0.01, fragment=200)]
    page.send("Many lines")
    page.wait("text=Line 59 of many.")
    wait_for_end(page)
    assert from_end(page) < 50
    page.run("await page.locator('.log-scroll').evaluate((one) => { one.scrollTop = one.scrollHeight / 2; })")
    page.wait("role=button[name='Jump to latest']")
    before = top(page)
    server.answers[:] = [Answer(text=lines)]
    # A message from another device does not scroll this page.
    assert b"RUN_FINISHED" in server.post(ask("More", thread=thread), accept="text/event-stream").body
    page.evaluate("document.dispatchEvent(new Event('visibilitychange', {bubbles: true}))")
    page.wait_until("[...document.querySelectorAll('.plain-text')].at(-1).innerText === 'More'")
    assert abs(top(page) - before) < 2
    page.click("role=button[name='Jump to latest']")
    page.wait("role=button[name='Jump to latest']", state="hidden")
    assert from_end(page) < 50


def from_end(page: WebPage) -> float:
    script = "(({scrollHeight, scrollTop, clientHeight}) => scrollHeight - scrollTop - clientHeight)"
    return number(page.evaluate(f"{script}(document.querySelector('.log-scroll'))"))


def top(page: WebPage) -> float:
    return number(page.evaluate("document.querySelector('.log-scroll').scrollTop"))


def number(value: Json) -> float:
    return float(cast("float", value))


def test_P17_a_screen_reader_announces_the_complete_answer(open_page: PageOpener, server: Scripted):
    page = open_page()
    page.send("hold your breath")
    page.wait("text=one two")
    assert page.texts("[data-announcer]") == ["Working on a response…"]
    assert page.evaluate("document.querySelector('[role=log]').getAttribute('aria-live')") == "off"
    server.go.set()
    page.wait_until("document.querySelector('[data-announcer]').innerText === args.answer", answer=PLAIN)


def test_P17_a_conversation_fits_a_phone(open_page: PageOpener, server: Scripted):
    wide = "| " + " | ".join("column" for _ in range(20)) + " |\n|" + "---|" * 20 + "\n\n```\n" + "x" * 400 + "\n```\n"
    server.answers[:] = [Answer(text=wide + "\n" + "w" * 300)]
    page = open_page(at=f"#/threads/{server.create_thread('y' * 200)}", size=(375, 700), touch=True)
    page.wait(".code-block")
    assert page.evaluate("document.documentElement.scrollWidth") == 375
    assert page.evaluate("document.querySelector('.log-scroll').scrollWidth <= 375") is True
    page.wait(COPY)
