"""Conversation list (P17) and its footer: language, theme, keyboard shortcuts."""

import pytest

from tests.api.scripted_server import ALICE, BOB, Scripted
from tests.support.client import request
from tests.waiting import wait_for
from tests.web.page import WRITE, PageOpener

pytestmark = pytest.mark.full
TITLES = ".thread-title"


def item(title: str) -> str:
    return f"{TITLES} >> text='{title}'"


def test_P17_the_list_groups_threads_by_day_and_opens_them(open_page: PageOpener, server: Scripted):
    thread = server.create_thread("Plan the garden party")
    server.create_thread("Nobody else sees this", token=BOB)
    page = open_page()
    page.wait(item("Plan the garden party"))
    assert "Today" in page.texts(".threads h2")
    assert "Nobody else sees this" not in page.texts(TITLES)
    page.click(item("Plan the garden party"))
    page.wait("text=one two three four five six")
    assert page.evaluate("location.hash") == f"#/threads/{thread}"
    assert page.count("[aria-current=page]") == 1


def test_P17_the_list_can_be_searched_and_says_if_nothing_matches(open_page: PageOpener, server: Scripted):
    server.create_thread("A needle in the hay")
    server.create_thread("Only straw")
    page = open_page()
    page.wait(item("Only straw"))
    page.fill("#search", "NEEDLE")
    page.wait(item("Only straw"), state="hidden")
    assert page.texts(TITLES) == ["A needle in the hay"]
    page.fill("#search", "no such words")
    page.wait("text=No conversations match your search.")


def test_P17_a_thread_can_be_renamed_in_the_list(open_page: PageOpener, server: Scripted):
    thread = server.create_thread("An old name")
    page = open_page()
    page.run("await page.locator('li', {hasText: args.title}).hover()", title="An old name")
    page.click("role=button[name='Rename: An old name']")
    page.fill("[aria-label=Title]", "A better name")
    page.press("[aria-label=Title]", "Enter")
    page.wait(item("A better name"))
    page.reload()
    page.wait(item("A better name"))
    assert server.get(f"/threads/{thread}")["title"] == "A better name"


def test_P17_a_deleted_thread_can_be_restored_for_a_few_seconds(open_page: PageOpener, server: Scripted):
    restored, deleted = server.create_thread("Keep me after all"), server.create_thread("Away with me")
    page = open_page()
    for title in ("Keep me after all", "Away with me"):
        page.wait(item(title))
        page.run("await page.locator('li', {hasText: args.title}).hover()", title=title)
        page.click(f"role=button[name='Delete: {title}']")
        page.wait(item(title), state="hidden")
    page.run("await page.locator('.toast', {hasText: 'Keep me after all'}).getByRole('button', {name: 'Undo'}).click()")
    page.wait(item("Keep me after all"))
    # Leaving the page confirms the deletion.
    page.reload()
    page.wait(item("Keep me after all"))
    page.wait_until("![...document.querySelectorAll('.thread-title')].some((one) => one.innerText === 'Away with me')")
    assert server.get(f"/threads/{restored}")["title"] == "Keep me after all"
    wait_for(
        lambda: request(server.url, "GET", f"/api/v1/agent/threads/{deleted}", token=ALICE).status == 404,
        "the thread is deleted",
    )


def test_P17_scrolling_loads_older_threads(open_page: PageOpener, server: Scripted):
    for number in range(60):
        server.create_thread(f"Old thread {number}")
    page = open_page()
    page.wait(item("Old thread 59"))
    page.run("await page.locator('.thread-end').scrollIntoViewIfNeeded()")
    page.wait(item("Old thread 3"))
    # A page of the list has 50 threads.
    assert page.count(TITLES) > 50


def test_the_language_follows_the_browser_until_the_user_selects_one(open_page: PageOpener):
    page = open_page(locale="zh-CN")
    page.wait("role=button[name='新对话']")
    assert page.evaluate("document.documentElement.lang") == "zh-CN"
    page.run("await page.getByLabel('语言').selectOption('en')")
    page.wait("role=button[name='New conversation']")
    page.reload()
    page.wait("role=button[name='New conversation']")


def test_shortcuts_work_and_the_question_mark_lists_them(open_page: PageOpener):
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


def test_on_a_phone_the_list_is_an_overlay(open_page: PageOpener, server: Scripted):
    server.create_thread("On the way")
    page = open_page(size=(375, 700), touch=True)
    page.wait(WRITE)
    assert page.evaluate("document.documentElement.scrollWidth <= 375") is True
    page.wait("aside", state="hidden")
    page.click("main .only-narrow")
    page.click(item("On the way"))
    page.wait("text=one two three four five six")
    page.wait("aside", state="hidden")
