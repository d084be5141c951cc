"""The list of conversations on the page (P17), and what stands at its foot: language, colours, the keyboard."""

import pytest

from recto.ids import new_id
from tests.api.scripted_server import ALICE, BOB, Scripted
from tests.end_to_end.world import wait_until
from tests.support.client import request
from tests.web.page import WRITE, PageOpener, WebPage

pytestmark = pytest.mark.full
TITLES = ".thread-title"


def talk(server: Scripted, words: str, token: str = ALICE) -> str:
    """A thread in which something was said and answered."""
    thread = new_id()
    body = {"threadId": thread, "runId": new_id(), "messages": [{"id": new_id(), "role": "user", "content": words}]}
    reply = server.post(body, token=token, accept="text/event-stream")
    assert b"RUN_FINISHED" in reply.body
    return thread


def named(page: WebPage, title: str) -> str:
    return f"{TITLES} >> text='{title}'"


def test_P17_threads_are_listed_by_day_and_opened(open_page: PageOpener, server: Scripted):
    thread = talk(server, "Plan the garden party")
    talk(server, "Nobody else sees this", token=BOB)
    page = open_page()
    page.wait(named(page, "Plan the garden party"))
    assert "Today" in page.texts(".threads h2")
    assert "Nobody else sees this" not in page.texts(TITLES)
    page.click(named(page, "Plan the garden party"))
    page.wait("text=one two three four five six")
    assert page.evaluate("location.hash") == f"#/threads/{thread}"
    assert page.count("[aria-current=page]") == 1


def test_P17_the_list_is_searched_and_says_when_nothing_is_found(open_page: PageOpener, server: Scripted):
    talk(server, "A needle in the hay")
    talk(server, "Only straw")
    page = open_page()
    page.wait(named(page, "Only straw"))
    page.fill("#search", "NEEDLE")
    page.wait(named(page, "Only straw"), state="hidden")
    assert page.texts(TITLES) == ["A needle in the hay"]
    page.fill("#search", "no such words")
    page.wait("text=No title has these words.")


def test_P17_a_thread_is_renamed_where_it_stands(open_page: PageOpener, server: Scripted):
    thread = talk(server, "An old name")
    page = open_page()
    page.run("await page.locator('li', {hasText: args.title}).hover()", title="An old name")
    page.click("role=button[name='Rename: An old name']")
    page.fill("[aria-label=Title]", "A better name")
    page.press("[aria-label=Title]", "Enter")
    page.wait(named(page, "A better name"))
    page.reload()
    page.wait(named(page, "A better name"))
    assert server.get(f"/threads/{thread}")["title"] == "A better name"


def test_P17_a_deleted_thread_can_be_taken_back_for_a_few_seconds(open_page: PageOpener, server: Scripted):
    kept, gone = talk(server, "Keep me after all"), talk(server, "Away with me")
    page = open_page()
    for title in ("Keep me after all", "Away with me"):
        page.wait(named(page, title))
        page.run("await page.locator('li', {hasText: args.title}).hover()", title=title)
        page.click(f"role=button[name='Delete: {title}']")
        page.wait(named(page, title), state="hidden")
    page.run(
        "await page.locator('.notice', {hasText: 'Keep me after all'}).getByRole('button', {name: 'Undo'}).click()"
    )
    page.wait(named(page, "Keep me after all"))
    # Whoever leaves the page meant what they said.
    page.reload()
    page.wait(named(page, "Keep me after all"))
    page.wait_until("![...document.querySelectorAll('.thread-title')].some((one) => one.innerText === 'Away with me')")
    assert server.get(f"/threads/{kept}")["title"] == "Keep me after all"
    wait_until(
        lambda: request(server.url, "GET", f"/api/v1/agent/threads/{gone}", token=ALICE).status == 404,
        "the thread is deleted",
    )


def test_P17_older_threads_come_as_one_scrolls(open_page: PageOpener, server: Scripted):
    for number in range(60):
        talk(server, f"Old thread {number}")
    page = open_page()
    page.wait(named(page, "Old thread 59"))
    page.run("await page.locator('.thread-end').scrollIntoViewIfNeeded()")
    page.wait(named(page, "Old thread 3"))
    # The list is asked for fifty at a time.
    assert page.count(TITLES) > 50


def test_the_language_is_the_browsers_until_another_is_chosen(open_page: PageOpener):
    page = open_page(locale="zh-CN")
    page.wait("role=button[name='新对话']")
    assert page.evaluate("document.documentElement.lang") == "zh-CN"
    page.run("await page.getByLabel('语言').selectOption('en')")
    page.wait("role=button[name='New conversation']")
    page.reload()
    page.wait("role=button[name='New conversation']")


def test_colours_are_the_systems_until_others_are_chosen(open_page: PageOpener):
    page = open_page(theme="dark")
    page.wait(WRITE)
    dark = background(page)
    page.run("await page.getByLabel('Colours').selectOption('light')")
    light = background(page)
    assert light != dark
    page.reload()
    page.wait(WRITE)
    assert background(page) == light


def background(page: WebPage) -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


def test_keys_lead_everywhere_and_are_listed_under_the_question_mark(open_page: PageOpener):
    page = open_page()
    page.wait(WRITE)
    page.run("await page.locator('main').focus()")
    page.key("?")
    page.wait("role=dialog[name='Keyboard shortcuts']")
    page.key("Escape")
    page.wait("role=dialog", state="hidden")
    for key, where in (("/", "search"), ("w", "write")):
        page.run("await page.locator('main').focus()")
        page.key(key)
        assert page.evaluate("document.activeElement.id") == where


def test_on_a_phone_the_list_lies_over_the_conversation_and_goes_away(open_page: PageOpener, server: Scripted):
    talk(server, "On the way")
    page = open_page(size=(375, 700), touch=True)
    page.wait(WRITE)
    assert page.evaluate("document.documentElement.scrollWidth <= 375") is True
    page.wait("aside", state="hidden")
    page.click("main .only-narrow")
    page.click(named(page, "On the way"))
    page.wait("text=one two three four five six")
    page.wait("aside", state="hidden")
