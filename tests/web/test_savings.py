"""What folding saved, as a page (R11, X2): by rule and agent, what broke prompt caches, over a period one chooses."""

import pytest

from recto.conversation.json import Json
from recto.testing.model_server import Answer, Call
from tests.api.scripted_server import ALICE, Scripted
from tests.support.client import request
from tests.web.page import PageOpener, WebPage

pytestmark = pytest.mark.full
OPENS = "role=button[name='What folding saved']"
CELLS = "Array.from(document.querySelectorAll('.savings-table')).map((one) => one.innerText)"


def read_twice(page: WebPage, server: Scripted) -> None:
    """A turn in which a file is read twice: the older read is folded in the last of its calls."""
    for number in range(2):
        server.answers.append(Answer(calls=(Call(name="lookup", arguments='{"path": "a.md"}', id=f"c{number}"),)))
    server.answers.append(Answer(text="It is all lines."))
    page.say("Read it twice.")
    page.wait("text=It is all lines.")


def savings(server: Scripted, token: str = ALICE) -> dict[str, Json]:
    return dict(request(server.url, "GET", "/api/v1/agent/savings", token=token).json)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_R11_a_person_sees_what_was_saved_by_rule_and_agent_and_what_broke_the_cache(
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
    # Nobody knows what the model of these tests costs.
    assert "unknown" in rules
    assert page.axe() == []
