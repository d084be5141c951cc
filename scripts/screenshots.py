"""Make pictures of the page: its main views in both languages and colours, and on a phone, by a real browser.

Usage: python scripts/screenshots.py [FOLDER]. Without a folder, the two of the README are made again.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from recto.testing.client import TOKEN  # noqa: E402 - the tests' browser is beside this folder
from recto.testing.process import ServerProcess  # noqa: E402
from tests.clients.node import NodeProcess  # noqa: E402
from tests.web.page import WRITE, WebPage  # noqa: E402

PICTURES = ROOT / "docs/pictures"
DESKTOP, PHONE, SMALL = (1280, 860), (390, 780), (1120, 700)
LOCALES, THEMES = ("en-US", "zh-CN"), ("light", "dark")
BOX = f"{WRITE}:enabled"
WORDS: Mapping[str, Mapping[str, str]] = {
    "en-US": {"sum": "What is 12*7, and what time is it?", "skill": "Read my bazi, please.", "vibe": "vibe-en"},
    "zh-CN": {"sum": "12*7 是多少？现在几点？", "skill": "帮我看看八字。", "vibe": "vibe"},
}


@dataclass(frozen=True, kw_only=True)
class Shot:
    """One picture: how the browser is, and what is done before it is taken."""

    name: str
    locale: str
    theme: str
    size: tuple[int, int]
    prepare: Callable[[WebPage, str], None]


def main() -> None:
    """Take them all, or the two of the README."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    shots = list(all_shots() if folder else readme_shots())
    (folder or PICTURES).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="recto-screenshots-") as data, NodeProcess("web_page.mjs") as browser:
        browser.ask("start")
        with ServerProcess.serve(Path(data), {"RECTO_MODEL": "demo"}) as server:
            for shot in shots:
                take(browser, server.url, shot, (folder or PICTURES) / f"{shot.name}.png")
                sys.stdout.write(f"{shot.name}.png\n")


def take(browser: NodeProcess, url: str, shot: Shot, path: Path) -> None:
    """One of them, in a browser of its own."""
    page = WebPage(browser, url, token=TOKEN, locale=shot.locale, theme=shot.theme, size=shot.size)
    page.wait(BOX)
    shot.prepare(page, shot.locale)
    page.run("await page.waitForTimeout(300)")
    page.screenshot(path)
    page.shut()


def readme_shots() -> Iterator[Shot]:
    """A conversation, and what the model saw in it."""
    yield Shot(name="page-chat", locale="en-US", theme="light", size=SMALL, prepare=told)
    yield Shot(name="page-inspector", locale="en-US", theme="light", size=SMALL, prepare=reasoned)


def all_shots() -> Iterator[Shot]:
    """Each view in both languages and colours, then on a phone."""
    views = {"empty": empty, "chat": asked, "skill": activated, "inspector": inspected, "profile": profile}
    for (name, prepare), locale, theme in product(views.items(), LOCALES, THEMES):
        yield Shot(name=f"{name}-{locale[:2]}-{theme}", locale=locale, theme=theme, size=DESKTOP, prepare=prepare)
    for (name, prepare), locale in product(views.items(), LOCALES):
        yield Shot(name=f"{name}-{locale[:2]}-phone", locale=locale, theme="light", size=PHONE, prepare=prepare)


def empty(_page: WebPage, _locale: str) -> None:
    """Nothing was said yet."""


def asked(page: WebPage, locale: str) -> None:
    """A question that takes two tools."""
    page.say(WORDS[locale]["sum"])
    page.wait(".markdown >> text=84")


def activated(page: WebPage, locale: str) -> None:
    """A skill is taken up and asks with a form."""
    choose(page, WORDS[locale]["vibe"])
    page.say(WORDS[locale]["skill"])
    page.wait("form >> input")


def choose(page: WebPage, agent: str) -> None:
    """Whom a new conversation is had with."""
    page.run("await page.locator(args.where).check()", where=f"input[type=radio][value='{agent}']")


def inspected(page: WebPage, locale: str) -> None:
    """What the model saw."""
    asked(page, locale)
    page.run("await page.locator('main').focus()")
    page.key("i")
    page.wait(".beside li")


def told(page: WebPage, locale: str) -> None:
    """A skill that had all it needs, with its card."""
    choose(page, WORDS[locale]["vibe"])
    page.say("Draw three tarot cards for the month ahead.")
    page.wait(".ui-text.title")
    page.wait("role=button[name='What the model saw']")


def reasoned(page: WebPage, locale: str) -> None:
    """The parts of a page, and why each is there."""
    told(page, locale)
    page.run("await page.locator('main').focus()")
    page.key("i")
    page.wait(".beside li")
    page.evaluate(
        "[...document.querySelectorAll('.beside h2')].find((one) => /part/i.test(one.innerText)).scrollIntoView()"
    )


def profile(page: WebPage, _locale: str) -> None:
    """What is kept of one."""
    page.go("#/profile")
    page.wait("main h1")


if __name__ == "__main__":
    main()
