"""A conversation on the page: words as they come, stopping, trying again, going back, copies, and lost connections."""

import json
from typing import cast

import pytest

from recto.conversation.json import Json
from recto.ids import new_id
from recto.testing.model_server import Answer, failure
from tests.api.scripted_server import Scripted
from tests.end_to_end.world import wait_until
from tests.web.page import WRITE, PageOpener, WebPage

pytestmark = pytest.mark.full
PLAIN = "one two three four five six"
LAST = "section.turn:last-of-type"
STOP, UNDO = "role=button[name='Stop the answer']", "role=button[name='Bring back what was taken out of view']"
AGAIN, FORK, COPY = (
    f"role=button[name='{name}']" for name in ("Try again", "Go on from here in a copy", "Copy the answer")
)


def talk(server: Scripted, *said: str) -> str:
    """A thread in which these were said and answered."""
    thread = new_id()
    for words in said:
        body = {"threadId": thread, "runId": new_id(), "messages": [{"id": new_id(), "role": "user", "content": words}]}
        assert b"RUN_FINISHED" in server.post(body, accept="text/event-stream").body
    return thread


def answers(page: WebPage) -> list[str]:
    """The words of the answers, from the top."""
    return page.texts(".answer .markdown")


def ended(page: WebPage) -> None:
    """Wait until no run is at work."""
    page.wait(".round.stop", state="hidden")


def said(page: WebPage) -> list[str]:
    return page.texts(".bubble .plain-text")


@pytest.mark.parametrize("key", ["Enter", "Escape"])
def test_P17_an_answer_comes_as_it_is_written_and_can_be_stopped(open_page: PageOpener, server: Scripted, key: str):
    page = open_page()
    page.say("hold this")
    page.wait("text=one two")
    page.wait_until("location.hash.startsWith('#/threads/')")
    assert answers(page)[-1] != PLAIN
    page.press(STOP, key)
    ended(page)
    page.wait("role=button[name='Send']")
    page.wait("text=Stopped before it was done.")
    page.reload()
    page.wait("text=Stopped before it was done.")
    assert PLAIN not in answers(page)


def test_R12_trying_again_puts_another_answer_in_the_place_of_the_first(open_page: PageOpener, server: Scripted):
    page = open_page(at=f"#/threads/{talk(server, 'Tell me')}")
    page.wait(f"text={PLAIN}")
    server.answers[:] = [Answer(text="Something else.")]
    page.click(f"{LAST} >> {AGAIN}")
    page.wait("text=Something else.")
    assert (said(page), answers(page)) == (["Tell me"], ["Something else."])
    ended(page)
    page.click(UNDO)
    page.wait(f"text={PLAIN}")
    assert (said(page), answers(page)) == (["Tell me"], [PLAIN])


def test_R12_an_edited_message_comes_back_into_the_box_and_undo_brings_all_back(
    open_page: PageOpener, server: Scripted
):
    page = open_page(at=f"#/threads/{talk(server, 'First words', 'Second words')}")
    page.wait("text=Second words")
    page.fill(WRITE, "half a thought")
    page.run("await page.locator('.turn').first().hover()")
    page.click("role=button[name='Edit the message']")
    page.wait_until("document.querySelector('#write').value === 'First words'")
    page.wait("section.turn", state="hidden")
    page.wait_until("document.activeElement.id === 'write'")
    page.click(UNDO)
    page.wait("text=Second words")
    assert said(page) == ["First words", "Second words"]
    assert page.value(WRITE) == "half a thought"
    page.fill(WRITE, "")
    page.press(WRITE, "ArrowUp")
    page.wait_until("document.querySelector('#write').value === 'Second words'")
    page.fill(WRITE, "Other words")
    page.press(WRITE, "Enter")
    page.wait("text=Other words")
    ended(page)
    assert said(page) == ["First words", "Other words"]


def test_R12_files_that_changed_since_are_put_back_if_one_says_so(open_page: PageOpener, server: Scripted):
    page = open_page(at=f"#/threads/{talk(server, 'Change my files')}")
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
    page.wait("role=dialog[name='Put the files back as well?'] >> text=src/app.py")
    assert page.axe("dialog") == []
    page.click("role=button[name='Put them back']")
    page.wait("text=1 file was put back.")
    page.wait_until("document.activeElement.id === 'write'")
    assert page.value(WRITE) == "Change my files"


@pytest.mark.parametrize(
    ("locale", "label", "words"), [("en-US", "Summarise", "Summarising"), ("zh-CN", "总结", "正在总结")]
)
def test_R13_a_summary_is_written_on_demand_and_the_page_says_so(
    open_page: PageOpener, server: Scripted, locale: str, label: str, words: str
):
    thread = talk(server, *(f"Number {number} " + "of many words " * 200 for number in range(4)))
    page = open_page(at=f"#/threads/{thread}", locale=locale)
    page.wait("text=Number 3")
    server.answers[:] = [Answer(text="They counted.", hold=server.go)]
    page.click(f"role=button[name=/^{label}/]")
    page.wait(f".run-state >> text={words}")
    server.go.set()
    page.wait(f".run-state >> text={words}", state="hidden")
    ended(page)
    assert len(said(page)) == 4


def test_P17_a_fork_is_a_thread_of_its_own(open_page: PageOpener, server: Scripted):
    thread = talk(server, "Fork me", "And leave this")
    page = open_page(at=f"#/threads/{thread}")
    page.wait("text=And leave this")
    page.run("await page.locator('.turn').first().hover()")
    page.click(FORK)
    page.wait("text=This is a copy of the conversation.")
    page.wait_until("!location.hash.includes(args.thread)", thread=thread)
    page.wait_until("document.querySelectorAll('section.turn').length === 1")
    assert said(page) == ["Fork me"]
    assert len(server.rows(f"/threads/{thread}/messages", "messages")) == 4


def test_P17_a_reload_in_the_middle_of_an_answer_goes_on_without_loss(open_page: PageOpener, server: Scripted):
    page = open_page()
    page.say("hold while I reload")
    page.wait("text=one two")
    page.wait_until("location.hash.startsWith('#/threads/')")
    page.reload()
    page.wait("text=one two")
    page.wait(STOP)
    server.go.set()
    page.wait(f"text={PLAIN}")
    ended(page)
    assert (said(page), answers(page)) == (["hold while I reload"], [PLAIN])


@pytest.mark.parametrize(("locale", "words"), [("en-US", "Reconnecting…"), ("zh-CN", "正在重新连接")])
def test_P17_a_lost_network_is_told_and_the_answer_goes_on(
    open_page: PageOpener, server: Scripted, locale: str, words: str
):
    page = open_page(locale=locale)
    cut_streams(page)
    page.say("hold while it breaks")
    page.wait("text=one two")
    page.offline()
    page.evaluate("window.cut()")
    page.wait(f".connection >> text={words}")
    server.go.set()
    page.offline(away=False)
    page.wait(f"text={PLAIN}")
    ended(page)
    page.wait(f".connection >> text={words}", state="hidden")
    assert (said(page), answers(page)) == (["hold while it breaks"], [PLAIN])


def cut_streams(page: WebPage) -> None:
    """`cut()` ends the streams that are open, as a network that goes away does: Playwright leaves these as they are."""
    page.evaluate("""(() => {
      const fetched = window.fetch, open = [];
      window.cut = () => open.splice(0).forEach((controller) => controller.abort());
      window.fetch = (url, init) => {
        if (!String(url).includes('/events')) return fetched(url, init);
        const controller = new AbortController();
        open.push(controller);
        return fetched(url, {...init, signal: AbortSignal.any([init.signal, controller.signal])});
      };
    })()""")


def test_P17_a_message_that_is_said_meanwhile_waits_for_its_turn(open_page: PageOpener, server: Scripted):
    page = open_page()
    page.say("hold the first")
    page.wait("text=one two")
    page.say("Then the second")
    page.wait("text=Waits for its turn")
    server.go.set()
    page.wait("text=Waits for its turn", state="hidden")
    page.wait_until("document.querySelectorAll('.answer .markdown').length === 2")
    ended(page)
    assert (said(page), answers(page)) == (["hold the first", "Then the second"], [PLAIN, PLAIN])


def test_P17_two_tabs_on_one_thread_agree(open_page: PageOpener, server: Scripted):
    thread = talk(server, "Both see this")
    one = open_page(at=f"#/threads/{thread}")
    two = open_page(at=f"#/threads/{thread}", beside=one)
    two.wait("text=Both see this")
    one.wait("text=Both see this")
    one.say("hold in one tab")
    two.wait("text=hold in one tab")
    two.wait("text=one two")
    server.go.set()
    for page in (one, two):
        page.wait_until("document.querySelectorAll('.answer .markdown').length === 2")
        ended(page)
        assert (said(page), answers(page)) == (["Both see this", "hold in one tab"], [PLAIN, PLAIN])
    one.press(WRITE, "ArrowUp")
    two.wait("text=hold in one tab", state="hidden")


@pytest.mark.parametrize(
    ("locale", "words", "again"),
    [("en-US", "could not be reached, was too busy", "Try again"), ("zh-CN", "模型太忙、连接不上", "重试")],
)
def test_P17_a_run_that_failed_says_what_to_do_and_is_tried_again(
    open_page: PageOpener, server: Scripted, locale: str, words: str, again: str
):
    server.answers[:] = [failure(400, "no such thing")]
    page = open_page(locale=locale)
    page.say("Fail please")
    page.wait(f"role=alert >> text={words}")
    page.click(f"role=alert >> role=button[name='{again}']")
    page.wait(f"text={PLAIN}")
    page.wait("role=alert", state="hidden")
    assert said(page) == ["Fail please"]


def test_P17_a_message_that_was_not_sent_says_why_and_is_sent_again(open_page: PageOpener, server: Scripted):
    page = open_page()
    page.wait(WRITE)
    refusal = json.dumps({"detail": "There is no room for that today."})
    page.run(
        """await page.route('**/api/v1/agent/runs', (route) =>
        route.fulfill({status: 422, contentType: 'application/json', body: args.refusal}))""",
        refusal=refusal,
    )
    page.say("Take this")
    page.wait("text=Not sent: There is no room for that today.")
    page.run("await page.unroute('**/api/v1/agent/runs')")
    page.click("role=button[name='Send again']")
    page.wait(f"text={PLAIN}")
    assert said(page) == ["Take this"]
    page.wait("text=Not sent", state="hidden")


@pytest.mark.parametrize(
    ("locale", "pick", "agent"), [("en-US", "Who answers", "vibe-en"), ("zh-CN", "由谁来回答", "vibe")]
)
def test_an_empty_thread_has_agents_and_things_to_begin_with(
    open_page: PageOpener, demo: str, locale: str, pick: str, agent: str
):
    page = open_page(demo, locale=locale)
    page.wait(f"role=group[name='{pick}']")
    page.run("await page.locator('input[name=agent][value=' + args.agent + ']').check()", agent=agent)
    starters = page.texts(".starters button")
    assert len(starters) == 3
    page.click(".starters button")
    page.wait(".answer")
    assert said(page) == [starters[0]]
    wait_until(lambda: page.texts(".agent-name") == [agent], "the agent's name is told")


def test_P17_the_end_stays_in_sight_only_for_who_was_there(open_page: PageOpener, server: Scripted):
    thread = talk(server, *(f"Fill {number}" for number in range(12)))
    page = open_page(at=f"#/threads/{thread}", size=(900, 500))
    page.wait("text=Fill 11")
    assert from_end(page) < 50
    lines = "\n\n".join(f"Line {number} of many." for number in range(60))
    server.answers[:] = [Answer(text=lines, delay=0.01, fragment=200)]
    page.say("Many lines")
    page.wait("text=Line 59 of many.")
    ended(page)
    assert from_end(page) < 50
    page.run("await page.locator('.log-scroll').evaluate((one) => { one.scrollTop = one.scrollHeight / 2; })")
    page.wait("role=button[name='To the end']")
    before = top(page)
    server.answers[:] = [Answer(text=lines)]
    # Said by somebody else: this reader stays where they are.
    body = {"threadId": thread, "runId": new_id(), "messages": [{"id": new_id(), "role": "user", "content": "More"}]}
    assert b"RUN_FINISHED" in server.post(body, accept="text/event-stream").body
    page.evaluate("document.dispatchEvent(new Event('visibilitychange', {bubbles: true}))")
    page.wait_until("[...document.querySelectorAll('.plain-text')].at(-1).innerText === 'More'")
    assert abs(top(page) - before) < 2
    page.click("role=button[name='To the end']")
    page.wait("role=button[name='To the end']", state="hidden")
    assert from_end(page) < 50


def from_end(page: WebPage) -> float:
    script = "(({scrollHeight, scrollTop, clientHeight}) => scrollHeight - scrollTop - clientHeight)"
    return number(page.evaluate(f"{script}(document.querySelector('.log-scroll'))"))


def top(page: WebPage) -> float:
    return number(page.evaluate("document.querySelector('.log-scroll').scrollTop"))


def number(value: Json) -> float:
    return float(cast("float", value))


def test_P17_an_answer_is_read_aloud_once_it_is_whole(open_page: PageOpener, server: Scripted):
    page = open_page()
    page.say("hold your breath")
    page.wait("text=one two")
    assert page.texts("[data-announcer]") == ["Working on the answer…"]
    assert page.evaluate("document.querySelector('[role=log]').getAttribute('aria-live')") == "off"
    server.go.set()
    page.wait_until("document.querySelector('[data-announcer]').innerText === args.words", words=PLAIN)


def test_P17_a_conversation_fits_a_phone(open_page: PageOpener, server: Scripted):
    wide = "| " + " | ".join("column" for _ in range(20)) + " |\n|" + "---|" * 20 + "\n\n```\n" + "x" * 400 + "\n```\n"
    server.answers[:] = [Answer(text=wide + "\n" + "w" * 300)]
    page = open_page(at=f"#/threads/{talk(server, 'y' * 200)}", size=(375, 700), touch=True)
    page.wait(".code-block")
    assert page.evaluate("document.documentElement.scrollWidth") == 375
    assert page.evaluate("document.querySelector('.log-scroll').scrollWidth <= 375") is True
    page.wait(COPY)
