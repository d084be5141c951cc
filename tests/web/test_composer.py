"""Message composer: keys, drafts, attachments, limits, and the active skill."""

import base64
from pathlib import Path

import pytest

from recto.testing.model_server import Answer
from tests.api.scripted_server import Scripted
from tests.web.page import WRITE, PageOpener, WebPage

pytestmark = pytest.mark.full
PLAIN = "one two three four five six"
PICKER, SEND = "input[type=file]", "button[type=submit]"
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
UPLOADS = "**/api/v1/agent/attachments"


def write(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def user_messages(page: WebPage) -> list[str]:
    return page.texts(".bubble .plain-text")


def chips(page: WebPage) -> list[str]:
    """Return the attachments of the next message, each in one line."""
    return [" ".join(text.split()) for text in page.texts(".upload")]


def test_P17_enter_sends_and_shift_enter_adds_a_line(open_page: PageOpener, server: Scripted):
    page = open_page()
    page.wait_until("document.activeElement.id === 'write'")
    assert page.evaluate(f"document.querySelector('{SEND}').disabled") is True
    page.run("await page.keyboard.type('One line')")
    page.key("Shift+Enter")
    page.run("await page.keyboard.type('and another')")
    page.key("Enter")
    page.wait(f"text={PLAIN}")
    assert user_messages(page) == ["One line\nand another"]
    assert page.value(WRITE) == ""
    page.wait_until("document.activeElement.id === 'write'")


def test_P17_enter_of_an_input_method_sends_nothing(open_page: PageOpener, server: Scripted):
    page = open_page(locale="zh-CN")
    page.fill(WRITE, "你好")
    for composing in ("isComposing: true", "keyCode: 229"):
        event = f"new KeyboardEvent('keydown', {{key: 'Enter', {composing}, bubbles: true, cancelable: true}})"
        page.evaluate(f"document.querySelector('#write').dispatchEvent({event})")
    page.fill(WRITE, "你好吗")
    page.press(WRITE, "Enter")
    page.wait(f"text={PLAIN}")
    assert user_messages(page) == ["你好吗"]


def test_P17_each_thread_has_a_draft_that_survives_a_reload(open_page: PageOpener, server: Scripted):
    page = open_page()
    page.send("First thread")
    page.wait(f"text={PLAIN}")
    page.wait_until("location.hash.startsWith('#/threads/')")
    first = str(page.evaluate("location.hash"))
    page.fill(WRITE, "half of a thought")
    page.go("#/")
    page.wait(".starters")
    assert page.value(WRITE) == ""
    page.fill(WRITE, "something new")
    page.reload()
    page.wait_until("document.querySelector('#write')?.value === 'something new'")
    page.go(first)
    page.wait_until("document.querySelector('#write')?.value === 'half of a thought'")
    page.press(WRITE, "Enter")
    page.wait("text=half of a thought")
    page.reload()
    page.wait("text=half of a thought")
    assert page.value(WRITE) == ""


@pytest.mark.parametrize(("locale", "warning"), [("en-US", "Too long to send."), ("zh-CN", "内容过长，无法发送")])
def test_P17_a_too_long_message_cannot_be_sent(open_page: PageOpener, locale: str, warning: str):
    page = open_page(locale=locale)
    page.fill(WRITE, "字" * 9_500)
    page.wait("text=9,500")
    assert page.evaluate(f"document.querySelector('{SEND}').disabled") is False
    page.fill(WRITE, "字" * 10_001)
    page.wait(f"text={warning}")
    assert page.evaluate(f"document.querySelector('{SEND}').disabled") is True
    page.press(WRITE, "Enter")
    assert user_messages(page) == []


def test_P9_attached_files_show_the_ids_that_the_model_uses(open_page: PageOpener, server: Scripted, tmp_path: Path):
    page = open_page()
    page.wait("role=button[name='Attach files']")
    page.choose_files(PICKER, write(tmp_path, "notes.txt", b"milk and bread\n"), write(tmp_path, "dot.png", PNG))
    page.wait("role=button[name='Remove dot.png']")
    page.wait("role=button[name='Remove notes.txt']")
    assert chips(page)[0] == "notes.txt 15 B"
    assert page.count(".upload img") == 1
    page.send("Read these")
    page.wait(f"text={PLAIN}")
    assert page.count(".upload") == 0
    page.wait(".file-about >> text=Image · ")
    page.reload()
    page.wait(".file-chip img")
    names = page.texts(".file-chip .file-name")
    assert names == ["notes.txt", "dot.png"]
    labels = page.texts(".file-chip .file-about")
    page_of_model = str(server.model.requests[-1].page["messages"])
    assert [about.partition(" · ")[0] for about in labels] == ["Document", "Image"]
    assert all(about.partition(" · ")[2] in page_of_model for about in labels)
    page.wait_until("document.querySelector('.file-chip img').naturalWidth === 1")


DROP = """
const data = await page.evaluateHandle(({names}) => {
  const transfer = new DataTransfer();
  for (const name of names) transfer.items.add(new File(['dropped text'], name, {type: 'text/plain'}));
  return transfer;
}, args);
await page.dispatchEvent(args.where, args.event, {dataTransfer: data});
"""


def test_P9_files_can_be_dropped_anywhere_on_the_conversation(open_page: PageOpener, server: Scripted):
    page = open_page()
    page.wait("role=button[name='Attach files']")
    page.run(DROP, where=".page-bar", event="dragenter", names=["a.txt"])
    page.wait("text=Drop files to attach them")
    page.run(DROP, where=".page-bar", event="drop", names=["a.txt", "b.txt"])
    page.wait("text=Drop files to attach them", state="hidden")
    page.wait("role=button[name='Remove b.txt']")
    page.wait("role=button[name='Remove a.txt']")
    page.press(WRITE, "Enter")
    page.wait(f"text={PLAIN}")
    assert page.texts(".file-chip .file-name") == ["a.txt", "b.txt"]


def test_P9_an_upload_shows_progress_and_can_be_canceled(open_page: PageOpener, server: Scripted, tmp_path: Path):
    page = open_page()
    page.wait("role=button[name='Attach files']")
    page.run(
        "globalThis.routes = []; await page.route(args.where, (route) => { globalThis.routes.push(route); })",
        where=UPLOADS,
    )
    page.choose_files(PICKER, write(tmp_path, "slow.txt", b"slow"), write(tmp_path, "gone.txt", b"gone"))
    page.wait("role=progressbar[name='Uploading slow.txt']")
    page.fill(WRITE, "Read it")
    assert page.evaluate(f"document.querySelector('{SEND}').disabled") is True
    page.click("role=button[name='Cancel upload of gone.txt']")
    page.wait("text=gone.txt", state="hidden")
    page.run(
        "for (const route of globalThis.routes) await route.continue().catch(() => {}); await page.unroute(args.where)",
        where=UPLOADS,
    )
    page.wait("role=button[name='Remove slow.txt']")
    page.press(WRITE, "Enter")
    page.wait(f"text={PLAIN}")
    assert page.texts(".file-chip .file-name") == ["slow.txt"]


def test_P9_a_rejected_file_says_why_and_the_others_upload(open_page: PageOpener, server: Scripted, tmp_path: Path):
    page = open_page()
    page.wait("role=button[name='Attach files']")
    # The limit of a message. A rejected file does not count.
    names = [f"fine{number}.txt" for number in range(10)]
    page.choose_files(PICKER, write(tmp_path, "empty.txt", b""), *[write(tmp_path, name, b"words") for name in names])
    page.wait(".upload.failed >> text=empty")
    page.wait_until("document.querySelectorAll('.upload.ready').length === 10")
    assert page.texts(".upload-problem")[0] not in ("", "Upload failed: can't reach the server. Try again.")
    page.send("Read what you can")
    page.wait(f"text={PLAIN}")
    assert page.texts(".file-chip .file-name") == names


def test_R12_an_edited_message_restores_its_files(open_page: PageOpener, server: Scripted, tmp_path: Path):
    page = open_page()
    page.wait("role=button[name='Attach files']")
    page.choose_files(PICKER, write(tmp_path, "notes.txt", b"milk"))
    page.wait("role=button[name='Remove notes.txt']")
    page.send("Read this")
    page.wait(f"text={PLAIN}")
    page.wait(".round.stop", state="hidden")
    page.press(WRITE, "ArrowUp")
    page.wait(".upload.ready >> text=notes.txt")
    assert page.value(WRITE) == "Read this"
    server.answers[:] = [Answer(text="Read again.")]
    page.press(WRITE, "Enter")
    page.wait("text=Read again.")
    assert page.texts(".file-chip .file-name") == ["notes.txt"]


SKILLS = {
    "en-US": ("vibe-en", "Do my Bazi chart", "Skill: ", "Leave skill", "Your next message leaves", "Keep skill"),
    "zh-CN": ("vibe", "帮我算八字", "技能：", "退出技能", "发送下一条消息时退出", "继续使用"),
}


@pytest.mark.parametrize("locale", SKILLS)
def test_S3_the_active_skill_is_visible_and_can_be_left(open_page: PageOpener, demo: str, locale: str):
    agent, request, skill, leave, leaving, stay = SKILLS[locale]
    page = open_page(demo, locale=locale)
    page.run("await page.locator('input[name=agent][value=' + args.agent + ']').check()", agent=agent)
    page.send(request)
    page.wait(f".skill >> text={skill}")
    page.click(f".skill >> role=button[name=/{leave}/]")
    page.wait(f"text={leaving}")
    page.click(f"role=button[name='{stay}']")
    page.wait(f".skill >> text={skill}")
    page.click(f".skill >> role=button[name=/{leave}/]")
    page.wait(".round.stop", state="hidden")
    page.send("Thanks!")
    page.wait(".skill", state="hidden")
    page.wait(".round.stop", state="hidden")
    page.expect(".skill", state="hidden")
