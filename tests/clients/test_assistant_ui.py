"""assistant-ui in a browser, straight to the server: turns, tools, answering again, editing, stopping, reloading."""

import pytest

from recto.testing.model_server import Answer
from tests.api.scripted_server import Scripted
from tests.clients.browser import Page, PageMaker
from tests.clients.scripts import LOST, call, model_page, script

pytestmark = pytest.mark.full
USER, ASSISTANT, CALL = "[data-testid=user]", "[data-testid=assistant]", "[data-testid=call]"


def say(page: Page, words: str) -> None:
    page.fill("[data-testid=input]", words)
    page.click("button:text-is('Send')")


def shown(page: Page) -> list[str]:
    """What is on the page, without buttons."""
    texts = page.texts(f"{USER}, {ASSISTANT}")
    return [text.removesuffix("Edit").removesuffix("Again").strip() for text in texts]


def test_P15_turns_are_answered_and_there_after_a_reload(show: PageMaker, server: Scripted):
    script(server, Answer(text="first answer"), Answer(text="second answer"), Answer(text="third answer"))
    page = show("assistant_ui")
    say(page, "one")
    page.wait("text=first answer")
    say(page, "two")
    page.wait("text=second answer")
    assert shown(page) == ["one", "first answer", "two", "second answer"]
    page.reload()
    page.wait("text=second answer")
    assert shown(page) == ["one", "first answer", "two", "second answer"]
    say(page, "three")
    page.wait("text=third answer")
    assert model_page(server) == [
        *("user: one", "assistant: first answer", "user: two", "assistant: second answer", "user: three"),
    ]


def test_P15_a_tool_of_the_page_is_carried_out_once_and_its_result_goes_on(show: PageMaker, server: Scripted):
    # The ids that a model without ids gives, and the same again in the next turn.
    script(server, Answer(calls=(call("paint", '{"colour": "red"}'),)), Answer(text="It is red."))
    script(server, Answer(calls=(call("paint", '{"colour": "blue"}'),)), Answer(text="It is blue."))
    page = show("assistant_ui")
    say(page, "paint it red")
    page.wait("text=It is red.")
    say(page, "now blue")
    page.wait("text=It is blue.")
    assert page.evaluate("window.painted") == ["red", "blue"]
    assert page.texts(CALL) == ['paint: "painted red"', 'paint: "painted blue"']
    assert model_page(server)[-1] == "tool: painted blue"


def test_P15_a_call_of_a_reply_that_was_lost_is_not_carried_out(show: PageMaker, server: Scripted):
    script(server, LOST, Answer(text="Whole."))
    page = show("assistant_ui")
    say(page, "go")
    page.wait("text=Whole.")
    assert page.evaluate("window.painted") is None
    # It goes on showing the message that it was at, whatever a snapshot says: until the page is loaded again.
    page.reload()
    page.wait("text=Whole.")
    assert shown(page) == ["go", "Whole."]


def test_P15_an_answer_is_given_again_and_takes_the_place_of_the_first(show: PageMaker, server: Scripted):
    script(server, Answer(text="not this one"), Answer(text="but this"), Answer(text="onward"))
    page = show("assistant_ui")
    say(page, "hello")
    page.wait("text=not this one")
    page.click("text=Again")
    page.wait("text=but this")
    say(page, "go on")
    page.wait("text=onward")
    assert model_page(server) == ["user: hello", "assistant: but this", "user: go on"]
    page.reload()
    page.wait("text=onward")
    assert shown(page) == ["hello", "but this", "go on", "onward"]


def test_P15_an_edited_message_takes_the_place_of_what_followed(show: PageMaker, server: Scripted):
    script(server, Answer(text="to the first"), Answer(text="to the second"), Answer(text="to the edited"))
    page = show("assistant_ui")
    say(page, "first")
    page.wait("text=to the first")
    say(page, "second")
    page.wait("text=to the second")
    page.click(f"{USER}:has-text('second') >> text=Edit")
    page.fill("[data-testid=edit]", "changed")
    page.click("button:text-is('Change')")
    page.wait("text=to the edited")
    assert shown(page) == ["first", "to the first", "changed", "to the edited"]
    assert model_page(server) == ["user: first", "assistant: to the first", "user: changed"]
