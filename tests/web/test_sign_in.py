"""Signing in (C3): a token in the URL, the form, a rejected token, and signing out."""

import pytest

from tests.api.scripted_server import ALICE, BOB, Scripted
from tests.support.client import request
from tests.web.page import WRITE, PageOpener

pytestmark = pytest.mark.full
TOKEN, SIGN_IN = "#token", "role=button[name='Sign in']"


def test_C3_a_token_in_the_url_signs_in_and_is_removed_from_it(open_page: PageOpener):
    page = open_page()
    page.wait(WRITE)
    assert page.evaluate("location.href") == f"{page.url}/"
    assert page.evaluate("sessionStorage.getItem('recto.token')") == ALICE
    assert page.evaluate("JSON.stringify(localStorage)") == "{}"
    page.reload()
    page.wait(WRITE)


def test_C3_without_a_token_the_page_asks_for_one_and_says_where_to_find_it(open_page: PageOpener):
    page = open_page(token=None)
    page.wait(TOKEN)
    assert "The server prints its token at startup" in page.texts("main")[0]
    page.fill(TOKEN, ALICE)
    page.click(SIGN_IN)
    page.wait(WRITE)


@pytest.mark.parametrize(("locale", "error"), [("en-US", "The server rejected this token."), ("zh-CN", "令牌无效。")])
def test_C3_a_rejected_token_shows_an_error(open_page: PageOpener, locale: str, error: str):
    page = open_page(token="not-the-right-one-at-all", locale=locale)
    page.wait("role=alert")
    assert error in page.texts("role=alert")[0]
    assert page.evaluate("sessionStorage.getItem('recto.token')") is None


def test_C3_signing_out_forgets_the_token(open_page: PageOpener):
    page = open_page()
    page.click("role=button[name='Sign out']")
    page.wait(TOKEN)
    assert page.evaluate("sessionStorage.getItem('recto.token')") is None
    page.reload()
    page.wait(TOKEN)


def test_C3_the_next_user_sees_no_data_of_the_previous_one(open_page: PageOpener, server: Scripted):
    page = open_page()
    page.send("Private text of Alice")
    page.wait("text=one two three four five six")
    page.fill(WRITE, "private draft")
    page.click("role=button[name='Sign out']")
    page.wait(TOKEN)
    assert page.evaluate("JSON.stringify(sessionStorage)") == "{}"
    page.fill(TOKEN, BOB)
    page.click(SIGN_IN)
    page.wait(WRITE)
    assert (page.value(WRITE), page.evaluate("location.hash")) == ("", "")
    assert "Private text of Alice" not in page.texts("body")[0]


def test_C3_a_token_of_another_user_in_the_url_clears_the_page(open_page: PageOpener):
    page = open_page()
    page.wait(WRITE)
    page.fill(WRITE, "private draft")
    page.run("await page.goto(args.url)", url=f"{page.url}/#token={BOB}")
    page.wait_until("document.querySelector('#write')?.value === ''")
    assert page.evaluate("sessionStorage.getItem('recto.token')") == BOB


def test_C3_an_unreachable_server_keeps_the_token_in_the_form(open_page: PageOpener):
    page = open_page(token=None, locale="zh-CN")
    page.fill(TOKEN, ALICE)
    page.offline()
    page.click("role=button[name='登录']")
    page.wait("role=alert")
    assert page.texts("role=alert") == ["无法连接服务器。请检查网络后重试。"]
    assert page.value(TOKEN) == ALICE
    page.offline(is_offline=False)
    page.click("role=button[name='登录']")
    page.expect(WRITE)


def test_P17_signing_out_confirms_a_pending_deletion(open_page: PageOpener, server: Scripted):
    page = open_page()
    page.send("Away with this one")
    page.wait("text=one two three four five six")
    thread = str(page.evaluate("location.hash")).rpartition("/")[2]
    page.run("await page.locator('li', {hasText: 'Away with this one'}).hover()")
    page.click("role=button[name='Delete: Away with this one']")
    page.click("role=button[name='Sign out']")
    page.wait(TOKEN)
    assert request(server.url, "GET", f"/api/v1/agent/threads/{thread}", token=ALICE).status == 404


def test_C3_the_page_loads_nothing_from_other_origins_and_follows_its_policy(open_page: PageOpener, server: Scripted):
    page = open_page()
    page.wait(WRITE)
    assert [url for url in page.requested_urls() if not url.startswith((server.url, "blob:", "data:"))] == []
    assert [line for line in page.console_lines() if "Content Security Policy" in line] == []
