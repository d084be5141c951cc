"""Take screenshots of the web page in a real browser.

Usage: python -m scripts.screenshots [FOLDER]. Without FOLDER, it retakes the two pictures of the README in
docs/pictures: a question about a document, and the inspector's page of it. With FOLDER, it takes the main views in
both languages and themes, and on a phone.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from recto.testing.model_server import Answer, Call, ModelServer, Request  # noqa: E402
from recto.testing.process import ServerProcess  # noqa: E402
from tests.clients.node import NodeProcess  # noqa: E402
from tests.support.client import TOKEN  # noqa: E402 - the tests' browser is beside this folder
from tests.web.page import WRITE, WebPage  # noqa: E402

PICTURES = ROOT / "docs/pictures"
DESKTOP, PHONE, README = (1280, 860), (390, 780), (1120, 800)
LOCALES, THEMES = ("en-US", "zh-CN"), ("light", "dark")
INPUT = f"{WRITE}:enabled"
TEXTS: Mapping[str, Mapping[str, str]] = {
    "en-US": {"sum": "What is 12*7, and what time is it?", "skill": "Read my bazi, please.", "vibe": "vibe-en"},
    "zh-CN": {"sum": "12*7 是多少？现在几点？", "skill": "帮我看看八字。", "vibe": "vibe"},
}
FILE_ID = re.compile(r"<id>(.*?)</id>")
LEASE = """\
# Office lease, Canal Street 12

## 1. Rent
The rent is 4,200 euros a month, payable on the first working day.

## 2. Term
The lease runs from 1 April 2024 to 31 March 2029.

## 3. Early end
The tenant may end the lease on 31 March 2028, with six months' notice in writing.

## 4. Compensation
A tenant who ends the lease early pays two months' rent.
"""
QUESTIONS = (
    "When can we leave the office, and what does it cost?",
    "What do we save compared with staying to the end?",
)
ANSWERS = (
    "You can leave on **31 March 2028**, with six months' notice in writing (section 3). "
    "Leaving early costs two months' rent, 8,400 euros (section 4).\n\nSource: office-lease.md",
    "You save twelve months' rent less the compensation: **42,000 euros**.\n\nSource: office-lease.md",
)


@dataclass(frozen=True, kw_only=True)
class Shot:
    """One screenshot: the browser's settings, and the steps before the picture is taken."""

    name: str
    locale: str
    theme: str
    size: tuple[int, int]
    prepare: Callable[[WebPage, str], None]


def main() -> None:
    """Take all screenshots, or those of the README."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    (folder or PICTURES).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="recto-screenshots-") as data, NodeProcess("web_page.mjs") as browser:
        browser.ask("start")
        if folder:
            with ServerProcess.serve(Path(data), {"RECTO_MODEL": "demo"}) as server:
                take_all(browser, server.url, all_shots(), folder)
            return
        with ModelServer(answer) as model:
            settings = {"RECTO_MODEL": "compatible:scripted", "RECTO_MODEL_URL": model.url}
            with ServerProcess.serve(Path(data), settings) as server:
                take_all(browser, server.url, readme_shots(Path(data)), PICTURES)


def take_all(browser: NodeProcess, url: str, shots: Iterable[Shot], folder: Path) -> None:
    """Take screenshots, each in a browser context of its own."""
    for shot in shots:
        page = WebPage(browser, url, token=TOKEN, locale=shot.locale, theme=shot.theme, size=shot.size)
        page.wait(INPUT)
        shot.prepare(page, shot.locale)
        page.run("await page.waitForTimeout(300)")
        page.screenshot(folder / f"{shot.name}.png")
        page.close()
        sys.stdout.write(f"{shot.name}.png\n")


def readme_shots(data: Path) -> Iterator[Shot]:
    """Yield the two screenshots of the README."""
    lease = data / "office-lease.md"
    lease.write_text(LEASE, encoding="utf-8")
    views = {"page-chat": partial(ask_about, lease), "page-inspector": partial(inspect_question, lease)}
    for name, prepare in views.items():
        yield Shot(name=name, locale="en-US", theme="light", size=README, prepare=prepare)


def answer(request: Request) -> Answer:
    """Answer as a model would: read the file, calculate, and cite the source."""
    second = QUESTIONS[1] in request.body.decode()
    match request.page["messages"]:
        case [*_, {"role": "tool"}]:
            return Answer(text=ANSWERS[second], usage=None)
        case _ if second:
            return use("calculator", {"expression": "12 * 4200 - 2 * 4200"})
        case messages:
            return use("read_files", {"ids": FILE_ID.findall(json.dumps(messages))[:1]})


def use(tool: str, arguments: Mapping[str, object]) -> Answer:
    return Answer(calls=(Call(name=tool, arguments=json.dumps(arguments), id=f"call_{tool}"),), usage=None)


def all_shots() -> Iterator[Shot]:
    """Yield each view in both languages and themes, then on a phone."""
    views = {
        "empty": leave_empty,
        "chat": ask_sum,
        "skill": activate_skill,
        "inspector": open_inspector,
        "profile": open_profile,
    }
    for (name, prepare), locale, theme in product(views.items(), LOCALES, THEMES):
        yield Shot(name=f"{name}-{locale[:2]}-{theme}", locale=locale, theme=theme, size=DESKTOP, prepare=prepare)
    for (name, prepare), locale in product(views.items(), LOCALES):
        yield Shot(name=f"{name}-{locale[:2]}-phone", locale=locale, theme="light", size=PHONE, prepare=prepare)


def leave_empty(_page: WebPage, _locale: str) -> None:
    """Leave the new conversation as it is."""


def ask_sum(page: WebPage, locale: str) -> None:
    """Ask a question that takes two tools."""
    page.send(TEXTS[locale]["sum"])
    page.wait(".markdown >> text=84")


def activate_skill(page: WebPage, locale: str) -> None:
    """Activate a skill that asks with a form."""
    choose(page, TEXTS[locale]["vibe"])
    page.send(TEXTS[locale]["skill"])
    page.wait("form >> input")


def choose(page: WebPage, agent: str) -> None:
    """Choose the agent of a new conversation."""
    page.run("await page.locator(args.where).check()", where=f"input[type=radio][value='{agent}']")


def open_inspector(page: WebPage, locale: str) -> None:
    """Open the inspector."""
    ask_sum(page, locale)
    page.run("await page.locator('main').focus()")
    page.key("i")
    page.wait(".beside li")


def ask_about(file: Path, page: WebPage, _locale: str) -> None:
    """Ask two questions about a document."""
    choose(page, "docs")
    page.choose_files("input[type=file]", file)
    page.wait(f".upload >> text={file.name}")
    page.wait(".upload-bar", state="hidden")
    for question, text in zip(QUESTIONS, ANSWERS, strict=True):
        page.send(question)
        page.wait(f".markdown >> text={text.split('**')[1]}")
        page.wait(INPUT)
    page.wait("text=42,000 euros")


def inspect_question(file: Path, page: WebPage, locale: str) -> None:
    """Open the inspector for the last answer, at the list of parts."""
    ask_about(file, page, locale)
    page.run("await page.locator('main').focus()")
    page.key("i")
    page.wait(".beside .decisions")
    page.evaluate("[...document.querySelectorAll('.beside li')].at(-1).scrollIntoView({block: 'end'})")
    page.run("await page.mouse.move(0, 0)")


def open_profile(page: WebPage, _locale: str) -> None:
    """Open the profile."""
    page.go("#/profile")
    page.wait("main h1")


if __name__ == "__main__":
    main()
