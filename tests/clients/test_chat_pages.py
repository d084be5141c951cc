"""Chats of CopilotKit and assistant-ui in a browser that calls the server directly."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import urlencode

import pytest

from recto.ids import new_id
from recto.testing.model_server import Answer
from tests.api.scripted_server import ALICE, PLAIN, Scripted
from tests.clients.node import NodeProcess
from tests.clients.scripts import call, model_page, script
from tests.web.page import WebPage

pytestmark = pytest.mark.full
PageMaker: TypeAlias = Callable[[str], WebPage]
COPILOT_USER, COPILOT_ANSWER = "[data-testid=copilot-user-message]", "[data-testid=copilot-assistant-message]"
USER, CALL, QUESTION = "[data-testid=user]", "[data-testid=call]", "[data-testid=question]"


@pytest.fixture(scope="module")
def browser(origin: str) -> Generator[NodeProcess]:
    with NodeProcess("chat_pages.mjs") as pages, NodeProcess("web_page.mjs") as browser:
        pages.ask("start", port=int(origin.rpartition(":")[2]))
        browser.ask("start")
        yield browser


@pytest.fixture
def show(browser: NodeProcess, server: Scripted, origin: str) -> Generator[PageMaker]:
    """Return a function that opens a chat in a new thread. Failed tests show the browser console."""
    pages: list[WebPage] = []

    def open_chat(name: str) -> WebPage:
        query = urlencode({"url": server.url, "token": ALICE, "thread": new_id()})
        pages.append(WebPage(browser, f"{origin}/{name}?{query}", token=None, size=(900, 900)))
        return pages[-1]

    yield open_chat
    for page in pages:
        print("\n".join(page.console_lines()))
        page.close()


@dataclass(frozen=True, kw_only=True)
class Chat:
    """The selectors of a chat page."""

    page: str
    input: str
    send: str
    messages: str
    again: Callable[[WebPage], None]
    stop: str

    def say(self, page: WebPage, words: str) -> None:
        page.fill(self.input, words)
        page.click(self.send)

    def visible_texts(self, page: WebPage) -> list[str]:
        """Return the texts on the page, without buttons."""
        texts = [text.removesuffix("Edit").removesuffix("Again").strip() for text in page.texts(self.messages)]
        return [text for text in texts if text]


def answer_again(page: WebPage) -> None:
    page.hover(COPILOT_ANSWER)
    page.click("[data-testid=copilot-regenerate-button]")


COPILOT = Chat(
    page="copilotkit",
    input="[data-testid=copilot-chat-textarea]",
    send="[data-testid=copilot-send-button]",
    messages=f"{COPILOT_USER}, {COPILOT_ANSWER}",
    again=answer_again,
    # While a run is at work the button to send is the button to stop.
    stop="[data-testid=copilot-send-button]",
)
ASSISTANT = Chat(
    page="assistant_ui",
    input="[data-testid=input]",
    send="button:text-is('Send')",
    messages=f"{USER}, [data-testid=assistant]",
    again=lambda page: page.click("text=Again"),
    stop="text=Stop",
)
EACH_CHAT = pytest.mark.parametrize("chat", [COPILOT, ASSISTANT], ids=lambda chat: chat.page)


@EACH_CHAT
def test_P15_turns_are_answered_and_there_after_a_reload(show: PageMaker, server: Scripted, chat: Chat):
    script(server, Answer(text="first answer"), Answer(text="second answer"), Answer(text="third answer"))
    page = show(chat.page)
    chat.say(page, "one")
    page.wait("text=first answer")
    chat.say(page, "two")
    page.wait("text=second answer")
    assert chat.visible_texts(page) == ["one", "first answer", "two", "second answer"]
    page.reload()
    page.wait("text=second answer")
    assert chat.visible_texts(page) == ["one", "first answer", "two", "second answer"]
    chat.say(page, "three")
    page.wait("text=third answer")
    assert model_page(server) == [
        *("user: one", "assistant: first answer", "user: two", "assistant: second answer", "user: three")
    ]


@EACH_CHAT
def test_P15_an_answer_is_given_again_and_takes_the_place_of_the_first(show: PageMaker, server: Scripted, chat: Chat):
    script(server, Answer(text="not this one"), Answer(text="but this"), Answer(text="onward"))
    page = show(chat.page)
    chat.say(page, "hello")
    page.wait("text=not this one")
    chat.again(page)
    page.wait("text=but this")
    chat.say(page, "go on")
    page.wait("text=onward")
    assert model_page(server) == ["user: hello", "assistant: but this", "user: go on"]
    page.reload()
    page.wait("text=onward")
    assert chat.visible_texts(page) == ["hello", "but this", "go on", "onward"]


@EACH_CHAT
def test_P15_stop_ends_the_run_and_the_next_message_is_answered(show: PageMaker, server: Scripted, chat: Chat):
    page = show(chat.page)
    chat.say(page, "hold this")
    page.wait("text=one two")
    held_request = server.model.requests[-1]
    page.click(chat.stop)
    if chat is COPILOT:
        assert held_request.wait_disconnected()
    chat.say(page, "never mind")
    page.wait("text=five six")
    assert held_request.wait_disconnected()
    assert chat.visible_texts(page)[-2:] == ["never mind", PLAIN.text]


@pytest.mark.parametrize("reloads", [False, True], ids=["at once", "after a reload"])
def test_P15_a_person_is_asked_and_answers(show: PageMaker, server: Scripted, reloads: bool):
    script(server, Answer(calls=(call("ask", '{"question": "Really?"}'),)), Answer(text="As you wish."))
    page = show(COPILOT.page)
    COPILOT.say(page, "delete it")
    page.wait(QUESTION)
    if reloads:
        page.reload()
        page.wait(QUESTION)
    page.click(f"{QUESTION} >> text=Yes")
    page.wait("text=As you wish.")
    assert model_page(server)[-1] == "tool: yes"


@pytest.mark.parametrize(("button", "expected"), [("Yes", "Sent: hello"), ("No", "The user said no.")])
def test_P15_a_person_decides_on_a_call_of_the_agents_own(
    show: PageMaker, server: Scripted, button: str, expected: str
):
    script(server, Answer(calls=(call("send", '{"text": "hello"}'),)), Answer(text="Very well."))
    page = show(COPILOT.page)
    COPILOT.say(page, "say hello to all")
    page.wait(QUESTION)
    page.reload()
    page.click(f"{QUESTION} >> text={button}")
    page.wait("text=Very well.")
    assert expected in model_page(server)[-1]


def test_P15_a_tool_of_the_page_is_carried_out_once_and_its_result_goes_on(show: PageMaker, server: Scripted):
    # The ids that a model without ids gives, and the same again in the next turn.
    script(server, Answer(calls=(call("paint", '{"colour": "red"}'),)), Answer(text="It is red."))
    script(server, Answer(calls=(call("paint", '{"colour": "blue"}'),)), Answer(text="It is blue."))
    page = show(ASSISTANT.page)
    ASSISTANT.say(page, "paint it red")
    page.wait("text=It is red.")
    ASSISTANT.say(page, "now blue")
    page.wait("text=It is blue.")
    assert page.evaluate("window.painted") == ["red", "blue"]
    assert page.texts(CALL) == ['paint: "painted red"', 'paint: "painted blue"']
    assert model_page(server)[-1] == "tool: painted blue"
