"""CopilotKit's chat in a browser, unchanged, with no Node runtime: what people do with it, and see of it."""

import pytest

from recto.testing.model_server import Answer
from tests.api.scripted_server import PLAIN, Scripted
from tests.clients.browser import Page, PageMaker
from tests.clients.scripts import call, model_page, script

pytestmark = pytest.mark.full
INPUT, SEND = "[data-testid=copilot-chat-textarea]", "[data-testid=copilot-send-button]"
USER, ASSISTANT = "[data-testid=copilot-user-message]", "[data-testid=copilot-assistant-message]"
QUESTION = "[data-testid=question]"


def say(page: Page, words: str) -> None:
    page.fill(INPUT, words)
    page.click(SEND)


def shown(page: Page) -> list[str]:
    return [text for text in page.texts(f"{USER}, {ASSISTANT}") if text]


def test_P15_turns_are_answered_and_there_after_a_reload(show: PageMaker, server: Scripted):
    script(server, Answer(text="first answer"), Answer(text="second answer"), Answer(text="third answer"))
    page = show("copilotkit")
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


def test_P15_tools_of_the_page_and_of_the_server_work_together(show: PageMaker, server: Scripted):
    # The ids that a model without ids gives, and the same again in the next turn.
    script(server, Answer(calls=(call("weather", '{"city": "Bonn"}'),)))
    script(server, Answer(calls=(call("paint", '{"colour": "gold"}'),)), Answer(text="Gold for the sun."))
    script(server, Answer(calls=(call("paint", '{"colour": "grey"}'),)), Answer(text="Grey for the rain."))
    page = show("copilotkit")
    say(page, "paint the weather")
    page.wait("text=Gold for the sun.")
    say(page, "and now the rain")
    page.wait("text=Grey for the rain.")
    assert page.evaluate("window.painted") == ["gold", "grey"]
    assert "weather" in page.texts("[data-testid=copilot-tool-render-name]")
    assert model_page(server)[-1] == "tool: painted grey"
    assert "tool: Sunny in Bonn." in model_page(server)


@pytest.mark.parametrize("reloads", [False, True], ids=["at once", "after a reload"])
def test_P15_a_person_is_asked_and_answers(show: PageMaker, server: Scripted, reloads: bool):
    script(server, Answer(calls=(call("ask", '{"question": "Really?"}'),)), Answer(text="As you wish."))
    page = show("copilotkit")
    say(page, "delete it")
    page.wait(QUESTION)
    if reloads:
        page.reload()
        page.wait(QUESTION)
    page.click(f"{QUESTION} >> text=Yes")
    page.wait("text=As you wish.")
    assert model_page(server)[-1] == "tool: yes"


@pytest.mark.parametrize(("button", "told"), [("Yes", "Sent: hello"), ("No", "The user said no.")])
def test_P15_a_person_decides_on_a_call_of_the_agents_own(show: PageMaker, server: Scripted, button: str, told: str):
    script(server, Answer(calls=(call("send", '{"text": "hello"}'),)), Answer(text="Very well."))
    page = show("copilotkit")
    say(page, "say hello to all")
    page.wait(QUESTION)
    page.reload()
    page.click(f"{QUESTION} >> text={button}")
    page.wait("text=Very well.")
    assert told in model_page(server)[-1]


def test_P15_an_answer_is_given_again_and_takes_the_place_of_the_first(show: PageMaker, server: Scripted):
    script(server, Answer(text="not this one"), Answer(text="but this"), Answer(text="onward"))
    page = show("copilotkit")
    say(page, "hello")
    page.wait("text=not this one")
    page.hover(ASSISTANT)
    page.click("[data-testid=copilot-regenerate-button]")
    page.wait("text=but this")
    assert shown(page) == ["hello", "but this"]
    say(page, "go on")
    page.wait("text=onward")
    assert model_page(server) == ["user: hello", "assistant: but this", "user: go on"]


def test_P15_an_edited_message_takes_the_place_of_what_followed(show: PageMaker, server: Scripted):
    script(server, Answer(text="to the first"), Answer(text="to the second"), Answer(text="to the edited"))
    page = show("copilotkit")
    say(page, "first")
    page.wait("text=to the first")
    say(page, "second")
    page.wait("text=to the second")
    page.hover(f"{USER}:has-text('first')")
    page.click(f"{USER}:has-text('first') >> [data-testid=copilot-edit-button]")
    page.wait("text=to the edited")
    assert shown(page) == ["first, edited", "to the edited"]
    page.reload()
    page.wait("text=to the edited")
    assert shown(page) == ["first, edited", "to the edited"]


def test_P15_a_reload_in_the_middle_of_a_run_goes_on_with_it(show: PageMaker, server: Scripted):
    page = show("copilotkit")
    say(page, "hold this")
    page.wait("text=one two")
    page.reload()
    page.wait("text=one two")
    assert shown(page)[0] == "hold this"
    server.go.set()
    page.wait("text=five six")
    assert shown(page) == ["hold this", PLAIN.text]
