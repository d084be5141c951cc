"""Signing in to the page (C3): a token in the address, a form without one, a refusal, signing out."""

import pytest

from tests.api.scripted_server import ALICE, Scripted
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


def test_C3_the_page_loads_nothing_from_anywhere_else_and_keeps_to_its_policy(open_page: PageOpener, server: Scripted):
    page = open_page()
    page.wait(WRITE)
    assert [address for address in page.asked() if not address.startswith((server.url, "blob:", "data:"))] == []
    assert [line for line in page.said() if "Content Security Policy" in line] == []
