"""Signing in to the page (C3): a token in the address, a form without one, a refusal, signing out."""

import pytest

from tests.api.scripted_server import ALICE, BOB, Scripted
from tests.support.client import request
from tests.web.page import WRITE, PageOpener

pytestmark = pytest.mark.full
TOKEN, SIGN_IN = "#token", "role=button[name='Sign in']"


def test_C3_a_token_in_the_address_is_taken_and_gone_from_it_at_once(open_page: PageOpener):
    page = open_page()
    page.wait(WRITE)
    assert page.evaluate("location.href") == f"{page.url}/"
    assert page.evaluate("sessionStorage.getItem('recto.token')") == ALICE
    assert page.evaluate("JSON.stringify(localStorage)") == "{}"
    page.reload()
    page.wait(WRITE)


def test_C3_without_a_token_the_page_asks_for_one_and_says_where_it_is(open_page: PageOpener):
    page = open_page(token=None)
    page.wait(TOKEN)
    assert "printed where the server was started" in page.texts("main")[0]
    page.fill(TOKEN, ALICE)
    page.click(SIGN_IN)
    page.wait(WRITE)


@pytest.mark.parametrize(
    ("locale", "refused"), [("en-US", "does not take that token"), ("zh-CN", "服务器不接受这个令牌")]
)
def test_C3_a_token_that_is_refused_is_told_as_such(open_page: PageOpener, locale: str, refused: str):
    page = open_page(token="not-the-right-one-at-all", locale=locale)
    page.wait("role=alert")
    assert refused in page.texts("role=alert")[0]
    assert page.evaluate("sessionStorage.getItem('recto.token')") is None


def test_C3_signing_out_forgets_the_token(open_page: PageOpener):
    page = open_page()
    page.click("role=button[name='Sign out']")
    page.wait(TOKEN)
    assert page.evaluate("sessionStorage.getItem('recto.token')") is None
    page.reload()
    page.wait(TOKEN)


def test_C3_whoever_signs_in_next_sees_nothing_of_the_one_before(open_page: PageOpener, server: Scripted):
    page = open_page()
    page.say("Words of Alice alone")
    page.wait("text=one two three four five six")
    page.fill(WRITE, "half a thought of hers")
    page.click("role=button[name='Sign out']")
    page.wait(TOKEN)
    assert page.evaluate("JSON.stringify(sessionStorage)") == "{}"
    page.fill(TOKEN, BOB)
    page.click(SIGN_IN)
    page.wait(WRITE)
    assert (page.value(WRITE), page.evaluate("location.hash")) == ("", "")
    assert "Words of Alice alone" not in page.texts("body")[0]


def test_C3_a_token_of_somebody_else_in_the_address_begins_anew(open_page: PageOpener):
    page = open_page()
    page.wait(WRITE)
    page.fill(WRITE, "half a thought of hers")
    page.run("await page.goto(args.url)", url=f"{page.url}/#token={BOB}")
    page.wait_until("document.querySelector('#write')?.value === ''")
    assert page.evaluate("sessionStorage.getItem('recto.token')") == BOB


def test_C3_where_nobody_is_reached_the_token_stays_in_the_form_and_the_page_says_so(open_page: PageOpener):
    page = open_page(token=None, locale="zh-CN")
    page.fill(TOKEN, ALICE)
    page.offline()
    page.click("role=button[name='登录']")
    page.wait("role=alert")
    assert page.texts("role=alert") == ["无法连接服务器。"]
    assert page.value(TOKEN) == ALICE
    page.offline(away=False)
    page.click("role=button[name='登录']")
    page.expect(WRITE)


def test_P17_a_thread_that_was_deleted_is_gone_though_one_signs_out_at_once(open_page: PageOpener, server: Scripted):
    page = open_page()
    page.say("Away with this one")
    page.wait("text=one two three four five six")
    thread = str(page.evaluate("location.hash")).rpartition("/")[2]
    page.run("await page.locator('li', {hasText: 'Away with this one'}).hover()")
    page.click("role=button[name='Delete: Away with this one']")
    page.click("role=button[name='Sign out']")
    page.wait(TOKEN)
    assert request(server.url, "GET", f"/api/v1/agent/threads/{thread}", token=ALICE).status == 404


def test_C3_the_page_loads_nothing_from_anywhere_else_and_keeps_to_its_policy(open_page: PageOpener, server: Scripted):
    page = open_page()
    page.wait(WRITE)
    assert [address for address in page.asked() if not address.startswith((server.url, "blob:", "data:"))] == []
    assert [line for line in page.said() if "Content Security Policy" in line] == []
