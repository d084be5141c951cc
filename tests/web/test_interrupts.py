"""Interrupts on the page: approvals of calls (P11), and the form of a tool (S3)."""

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
APPROVE, DENY, EDIT = (f"{CARD} >> role=button[name='{name}']" for name in ("Approve", "Deny", "Edit arguments"))
NOTE = "role=textbox[name=/Note to the model/]"


def request_approval(page: WebPage, server: Scripted, *texts: str, after: str = "All done.") -> None:
    """Make the model call `send`, which needs approval, and wait for the card."""
    calls = [
        Call(name="send", arguments=json.dumps({"text": text, "loud": False}), id=f"call_{n}")
        for n, text in enumerate(texts)
    ]
    server.answers.extend([Answer(calls=tuple(calls)), Answer(text=after)])
    page.send("Send it")
    page.wait(CARD)


def last_request(server: Scripted) -> str:
    return str(page_messages(server.model.requests[-1]))


def wait_for_focus(page: WebPage, where: str) -> None:
    page.wait_until("document.activeElement?.matches(args.where)", where=where)


def settle(page: WebPage) -> None:
    """Wait until a card has the focus, and skip the time in which it ignores keys."""
    wait_for_focus(page, CARD)
    page.run("await page.clock.fastForward(600)")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_P11_an_approved_call_runs(open_page: PageOpener, server: Scripted, tmp_path: Path, theme: str):
    page = open_page(theme=theme)
    request_approval(page, server, "hello all")
    assert "Allow call to send?" in page.texts(CARD)[0]
    assert '"text": "hello all"' in page.texts(CARD)[0]
    assert "Expires " in page.texts(CARD)[0]
    assert page.count("role=region[name='Action required']") == 1
    assert "1 call needs your approval." in page.texts("role=status")
    assert page.count("details.call.waiting") == 1
    page.screenshot(tmp_path / "approval.png")
    assert page.axe("main") == []
    page.click(APPROVE)
    page.wait("text=All done.")
    page.wait(CARD, state="hidden")
    assert "Sent: hello all" in last_request(server)


def test_P11_a_denied_call_gives_the_model_the_note(open_page: PageOpener, server: Scripted):
    page = open_page()
    request_approval(page, server, "hello all", after="Then not.")
    page.fill(NOTE, "Not before Friday.")
    page.click(DENY)
    page.wait("text=Then not.")
    assert "Not before Friday." in last_request(server)
    assert "Sent:" not in last_request(server)


def test_P11_edited_arguments_are_used_for_the_call(open_page: PageOpener, server: Scripted):
    page = open_page()
    request_approval(page, server, "hello all")
    page.click(EDIT)
    page.fill(f"{CARD} >> role=textbox[name='Text']", "hello some")
    page.click(f"{CARD} >> role=checkbox[name='Loud']")
    page.click(f"{CARD} >> role=button[name='Approve edited call']")
    page.wait("text=All done.")
    assert "Sent: hello some!" in last_request(server)


def test_P11_approvals_work_with_the_keyboard(open_page: PageOpener, server: Scripted):
    page = open_page()
    page.run("await page.clock.install()")
    page.reload()
    request_approval(page, server, "hello all")
    settle(page)
    page.key("e")
    page.wait(f"{CARD} >> role=textbox[name='Text']")
    page.key("e")
    page.wait(f"{CARD} >> role=textbox[name='Text']", state="hidden")
    page.key("a")
    page.wait("text=All done.")
    wait_for_focus(page, WRITE)
    request_approval(page, server, "once more", after="Then not.")
    settle(page)
    page.key("d")
    page.expect("text=Then not.")


def test_P11_a_new_approval_does_not_take_the_focus_from_a_user_who_types(open_page: PageOpener, server: Scripted):
    page = open_page()
    page.wait(WRITE)
    calls = (Call(name="send", arguments=json.dumps({"text": "hi"})),)
    server.answers.append(Answer(calls=calls, hold=server.go))
    page.send("Send it")
    page.fill(WRITE, "a d")
    server.go.set()
    page.wait(CARD)
    page.key("a")
    assert page.value(WRITE) == "a da"
    assert page.count(CARD) == 1


def test_P11_several_calls_are_approved_together_or_separately(open_page: PageOpener, server: Scripted):
    page = open_page()
    request_approval(page, server, "one", "two", after="Both sent.")
    assert page.count(CARD) == 2
    page.click("role=button[name='Approve all (2)']")
    page.wait("text=Both sent.")
    request_approval(page, server, "three", "four", after="One of them.")
    page.click(APPROVE)
    page.wait_until("document.querySelectorAll('.approval').length === 1")
    page.click(DENY)
    page.wait("text=One of them.")
    assert "Sent: three" in last_request(server)
    assert "Sent: four" not in last_request(server)


def test_P11_a_late_decision_shows_an_error_and_the_decision_of_the_other_user(open_page: PageOpener, server: Scripted):
    page = open_page()
    server.answers.extend([Answer(calls=(Call(name="send", arguments='{"text": "hi"}'),)), Answer(text="All done.")])
    page.send("Send it")
    page.wait(CARD)
    # Another device decides first.
    thread = str(page.evaluate("location.hash.split('/')[2]"))
    interrupt = cast("list[Mapping[str, Json]]", server.get(f"/threads/{thread}")["interrupts"])[0]
    decision = {"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": False}}
    path = f"/api/v1/agent/runs/{interrupt['runId']}/resume"
    server.answers.clear()
    server.answers.append(Answer(text="Somebody said no."))
    assert request(server.url, "POST", path, {"resume": [decision]}, token=ALICE).status == 202
    page.click(APPROVE)
    page.wait(".toast")
    page.wait("text=Somebody said no.")
    page.wait(CARD, state="hidden")


def test_P11_rejected_arguments_show_an_error_and_lose_no_edits(open_page: PageOpener, server: Scripted):
    page = open_page()
    server.answers.extend([Answer(calls=(Call(name="send", arguments='{"text": "hi", "loud": true}'),))])
    page.send("Send it")
    page.fill(NOTE, "Go on.")
    page.click(EDIT)
    page.fill(f"{CARD} >> role=textbox[name='Text']", "")
    page.run("await page.route('**/resume', (route) => route.fulfill({status: 422, json: {detail: 'Text is empty.'}}))")
    page.click(f"{CARD} >> role=button[name='Approve edited call']")
    page.wait("role=alert >> text=Text is empty.")
    assert page.value(NOTE) == "Go on."
    assert page.value(f"{CARD} >> role=textbox[name='Text']") == ""


FORM = "form.interrupt-card"


def test_S3_a_form_collects_the_missing_data_and_the_reading_continues(
    open_page: PageOpener, demo: str, tmp_path: Path
):
    page = open_page(demo)
    page.wait(WRITE)
    page.click("input[name=agent][value=vibe-en]")
    page.send("Read my bazi, please.")
    page.wait(FORM)
    assert "Birth information" in page.texts(FORM)[0]
    page.screenshot(tmp_path / "form.png")
    assert page.axe("main") == []
    page.click(f"{FORM} button[type=submit]")
    page.wait("text=This field is required.")
    wait_for_focus(page, f"{FORM} input[type=text]")
    page.fill(f"{FORM} >> role=textbox[name=/Date of birth/]", "1990-05-15")
    page.fill(f"{FORM} >> role=textbox[name=/Time of birth/]", "14:30")
    page.fill(f"{FORM} >> role=textbox[name=/Place of birth/]", "Beijing")
    page.click(f"{FORM} >> role=radio[name='Male']")
    page.click(f"{FORM} button[type=submit]")
    page.wait("text=Birth information saved")
    page.wait("text=Four Pillars")
    profile = request(demo, "GET", "/api/v1/profile", token=ALICE).json["profile"]
    birth = cast("Mapping[str, Mapping[str, Json]]", profile)["birth_info"]
    assert (birth["date"], birth["time"], birth["gender"]) == ("1990-05-15", "14:30", "male")


def test_S3_a_form_is_in_the_language_of_the_agent_and_can_be_skipped(open_page: PageOpener, demo: str):
    page = open_page(demo, locale="zh-CN", size=(390, 844), theme="dark", token="bob-key-of-our-tests-too")
    page.wait(WRITE)
    page.click("input[name=agent][value=vibe]")
    page.send("帮我看看八字")
    page.wait(FORM)
    assert "出生信息" in page.texts(FORM)[0]
    assert page.count("role=group[name=/性别/]") == 1
    page.click("text=更多选项")
    page.wait("text=该月是闰月")
    assert page.axe("main") == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.click("role=button[name='跳过']")
    page.wait(FORM, state="hidden")
    page.wait("details.call.done")
    page.click("details.call.done summary")
    assert "declined" in page.texts(".call-details")[-1]
    assert page.count(FORM) == 0
