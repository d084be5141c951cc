"""Savings page (R11, X2): savings by rule and agent, and causes of prefix breaks."""

import pytest

from recto.conversation.json import Json
from recto.testing.model_server import Answer, Call
from tests.api.scripted_server import ALICE, Scripted
from tests.support.client import request
from tests.web.page import PageOpener, WebPage

pytestmark = pytest.mark.full
OPENS = "role=button[name='Savings']"
CELLS = "Array.from(document.querySelectorAll('.savings-table')).map((one) => one.innerText)"


def read_twice(page: WebPage, server: Scripted) -> None:
    """Run a turn that reads a file twice. Its last call folds the older read."""
    for number in range(2):
        server.answers.append(Answer(calls=(Call(name="lookup", arguments='{"path": "a.md"}', id=f"c{number}"),)))
    server.answers.append(Answer(text="It is all lines."))
    page.send("Read it twice.")
    page.wait("text=It is all lines.")


def savings(server: Scripted, token: str = ALICE) -> dict[str, Json]:
    return dict(request(server.url, "GET", "/api/v1/agent/savings", token=token).json)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_R11_the_page_shows_savings_by_rule_and_agent_and_causes_of_prefix_breaks(
    open_page: PageOpener, server: Scripted, theme: str
):
    page = open_page(theme=theme)
    read_twice(page, server)
    page.run("await page.locator(args.where).focus()", where=OPENS)
    page.key("Enter")
    page.wait(".savings-table")
    rules, agents, breaks = str(page.evaluate(f"{CELLS}.join('#')")).split("#")
    assert "R2 newer reads" in rules
    assert "helper" in agents
    assert "An old result was folded." in breaks
    # The model of these tests has no price.
    assert "unknown" in rules
    assert page.axe() == []
