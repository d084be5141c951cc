"""What waits for a person on the page: calls to agree to (P11), and the form of a birth that a skill needs (S3)."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import Json
from recto.testing.model_server import Answer, Call
from tests.api.scripted_server import ALICE, Scripted, page_messages
from tests.support.client import request
from tests.web.page import WRITE, PageOpener, WebPage

pytestmark = pytest.mark.full
CARD = ".approval"
APPROVE, DENY, CHANGE = (f"{CARD} >> role=button[name='{name}']" for name in ("Approve", "Deny", "Change arguments"))
WORDS = "role=textbox[name=/Words for the model/]"


def asked(page: WebPage, server: Scripted, *texts: str, after: str = "All done.") -> None:
    """Calls of `send` that wait for a person."""
    calls = [
        Call(name="send", arguments=json.dumps({"text": text, "loud": False}), id=f"call_{n}")
        for n, text in enumerate(texts)
    ]
    server.answers.extend([Answer(calls=tuple(calls)), Answer(text=after)])
    page.say("Send it")
    page.wait(CARD)


def told(server: Scripted) -> str:
    """What the model was sent last."""
    return str(page_messages(server.model.requests[-1]))


def is_focused(page: WebPage, where: str) -> None:
    page.wait_until("document.activeElement?.matches(args.where)", where=where)


def settled(page: WebPage) -> None:
    """The focus was brought to a card, and the moment is over in which keys do not count."""
    is_focused(page, CARD)
    page.run("await page.clock.fastForward(600)")


def test_P11_a_call_waits_for_approval_and_is_made_once_it_is_given(
    open_page: PageOpener, server: Scripted, tmp_path: Path
):
    page = open_page()
    asked(page, server, "hello all")
    assert "May send be called?" in page.texts(CARD)[0]
    assert '"text": "hello all"' in page.texts(CARD)[0]
    assert "Waits until" in page.texts(CARD)[0]
    assert page.count("role=region[name='Waits for you']") == 1
    assert "One call waits for your approval." in page.texts("role=status")
    assert page.count("details.call.waiting") == 1
    page.screenshot(tmp_path / "approval.png")
    assert page.axe("main") == []
    page.click(APPROVE)
    page.wait("text=All done.")
    page.wait(CARD, state="hidden")
    assert "Sent: hello all" in told(server)


def test_P11_a_call_is_denied_with_words_that_the_model_reads(open_page: PageOpener, server: Scripted):
    page = open_page()
    asked(page, server, "hello all", after="Then not.")
    page.fill(WORDS, "Not before Friday.")
    page.click(DENY)
    page.wait("text=Then not.")
    assert "Not before Friday." in told(server)
    assert "Sent:" not in told(server)


def test_P11_arguments_are_changed_before_a_call_is_made(open_page: PageOpener, server: Scripted):
    page = open_page()
    asked(page, server, "hello all")
    page.click(CHANGE)
    page.fill(f"{CARD} >> role=textbox[name='Text']", "hello some")
    page.click(f"{CARD} >> role=checkbox[name='Loud']")
    page.click(f"{CARD} >> role=button[name='Approve the changed call']")
    page.wait("text=All done.")
    assert "Sent: hello some!" in told(server)


def test_P11_a_call_is_approved_with_the_keyboard_alone(open_page: PageOpener, server: Scripted):
    page = open_page()
    page.run("await page.clock.install()")
    page.reload()
    asked(page, server, "hello all")
    settled(page)
    page.key("e")
    page.wait(f"{CARD} >> role=textbox[name='Text']")
    page.key("e")
    page.wait(f"{CARD} >> role=textbox[name='Text']", state="hidden")
    page.key("a")
    page.wait("text=All done.")
    is_focused(page, WRITE)
    asked(page, server, "once more", after="Then not.")
    settled(page)
    page.key("d")
    page.expect("text=Then not.")


def test_P11_who_writes_keeps_the_focus_when_a_call_begins_to_wait(open_page: PageOpener, server: Scripted):
    page = open_page()
    page.wait(WRITE)
    calls = (Call(name="send", arguments=json.dumps({"text": "hi"})),)
    server.answers.append(Answer(calls=calls, hold=server.go))
    page.say("Send it")
    page.fill(WRITE, "a d")
    server.go.set()
    page.wait(CARD)
    page.key("a")
    assert page.value(WRITE) == "a da"
    assert page.count(CARD) == 1


def test_P11_several_calls_are_approved_at_once_or_each_by_itself(open_page: PageOpener, server: Scripted):
    page = open_page()
    asked(page, server, "one", "two", after="Both sent.")
    assert page.count(CARD) == 2
    page.click("role=button[name='Approve all 2']")
    page.wait("text=Both sent.")
    asked(page, server, "three", "four", after="One of them.")
    page.click(APPROVE)
    page.wait_until("document.querySelectorAll('.approval').length === 1")
    page.click(DENY)
    page.wait("text=One of them.")
    assert "Sent: three" in told(server)
    assert "Sent: four" not in told(server)


def test_P11_who_decides_after_somebody_else_is_told_so_and_sees_what_became_of_it(
    open_page: PageOpener, server: Scripted
):
    page = open_page()
    server.answers.extend([Answer(calls=(Call(name="send", arguments='{"text": "hi"}'),)), Answer(text="All done.")])
    page.say("Send it")
    page.wait(CARD)
    # Somebody else has decided meanwhile, from another device.
    thread = str(page.evaluate("location.hash.split('/')[2]"))
    waiting = cast("list[Mapping[str, Json]]", server.get(f"/threads/{thread}")["interrupts"])[0]
    decision = {"interruptId": waiting["id"], "status": "resolved", "payload": {"approved": False}}
    path = f"/api/v1/agent/runs/{waiting['runId']}/resume"
    server.answers.clear()
    server.answers.append(Answer(text="Somebody said no."))
    assert request(server.url, "POST", path, {"resume": [decision]}, token=ALICE).status == 202
    page.click(APPROVE)
    page.wait(".notice")
    page.wait("text=Somebody said no.")
    page.wait(CARD, state="hidden")


def test_P11_arguments_that_the_tool_does_not_take_are_refused_and_nothing_is_lost(
    open_page: PageOpener, server: Scripted
):
    page = open_page()
    server.answers.extend([Answer(calls=(Call(name="send", arguments='{"text": "hi", "loud": true}'),))])
    page.say("Send it")
    page.fill(WORDS, "Go on.")
    page.click(CHANGE)
    page.fill(f"{CARD} >> role=textbox[name='Text']", "")
    page.run("await page.route('**/resume', (route) => route.fulfill({status: 422, json: {detail: 'No such words.'}}))")
    page.click(f"{CARD} >> role=button[name='Approve the changed call']")
    page.wait("role=alert >> text=No such words.")
    assert page.value(WORDS) == "Go on."
    assert page.value(f"{CARD} >> role=textbox[name='Text']") == ""


def test_S3_a_birth_is_asked_for_with_a_form_and_the_reading_goes_on(open_page: PageOpener, demo: str, tmp_path: Path):
    page = open_page(demo)
    page.wait(WRITE)
    page.click("input[name=agent][value=vibe-en]")
    page.say("Read my bazi, please.")
    form = "form.waiting-card"
    page.wait(form)
    assert "Tell me about your birth" in page.texts(form)[0]
    page.screenshot(tmp_path / "birth.png")
    assert page.axe("main") == []
    page.click(f"{form} button[type=submit]")
    page.wait("text=This is needed.")
    is_focused(page, f"{form} input[type=date]")
    page.fill(f"{form} input[type=date]", "1990-05-15")
    page.click(f"{form} >> text=I do not know the time")
    assert page.run("return await page.locator('form input[type=time]').isDisabled()")
    page.click(f"{form} >> text=I do not know the time")
    page.fill(f"{form} input[type=time]", "14:30")
    page.fill(f"{form} >> role=textbox[name=/Place of birth/]", "Beijing")
    page.click(f"{form} >> role=radio[name='Male']")
    page.click(f"{form} button[type=submit]")
    page.wait("text=Birth information saved")
    page.wait("text=Four Pillars")
    kept = request(demo, "GET", "/api/v1/profile", token=ALICE).json["profile"]
    birth = cast("Mapping[str, Mapping[str, Json]]", kept)["birth_info"]
    assert (birth["date"], birth["time"], birth["gender"]) == ("1990-05-15", "14:30", "male")


def test_S3_the_form_is_in_the_agents_language_and_who_would_rather_not_say_is_not_asked_again(
    open_page: PageOpener, demo: str
):
    page = open_page(demo, locale="zh-CN", size=(390, 844), theme="dark", token="bob-key-of-our-tests-too")
    page.wait(WRITE)
    page.click("input[name=agent][value=vibe]")
    page.say("帮我看看八字")
    page.wait("form.waiting-card")
    assert "请告诉我你的出生信息" in page.texts("form.waiting-card")[0]
    assert page.count("role=group[name=/性别/]") == 1
    page.click("text=农历")
    page.wait("text=这个月是闰月")
    assert page.axe("main") == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.click("role=button[name='不想说']")
    page.wait("form.waiting-card", state="hidden")
    page.wait("details.call.done")
    page.click("details.call.done summary")
    assert "declined" in page.texts(".call-details")[-1]
    assert page.count("form.waiting-card") == 0
