"""The server's own page in a browser: what a person does with it, and what they see of it.

Places are Playwright's selectors: `role=button[name="Send"]`, `text=hello`, or CSS. `run` is the body of an async
function of Playwright's `page` and `context`, the given `args` and `axe(page, where)`, for all that has no name here.
"""

from pathlib import Path
from typing import Protocol, TypedDict, Unpack, cast

from recto.conversation.json import Json
from recto.ids import new_id
from tests.api.scripted_server import ALICE
from tests.clients.node import NodeProcess

WRITE = "#write"


class PageOptions(TypedDict, total=False):
    """How a page is opened: signed in with `token` (None: not), `at` a place of it, in a browser that is so."""

    token: str | None
    at: str
    locale: str
    theme: str
    size: tuple[int, int]
    touch: bool
    beside: "WebPage"


class WebPage:
    """The page of a server, open in a tab. A tab `beside` another shares what the browser keeps, but no credential."""

    def __init__(self, node: NodeProcess, url: str, **options: Unpack[PageOptions]) -> None:
        self._node = node
        self._name = new_id()
        self.url = url
        token, at = options.get("token", ALICE), options.get("at", "")
        beside = options.get("beside")
        known: dict[str, Json] = {"beside": beside._name} if beside else {"options": browser_options(options)}
        node.ask("open", name=self._name, url=f"{url}/#token={token}" if token else f"{url}/{at}", **known)
        if token and at:
            self.go(at)

    def run(self, script: str, **args: Json) -> Json:
        return self._node.ask("run", name=self._name, script=script, args=args).get("value")

    def go(self, at: str) -> None:
        """To another place of the page: `#/threads/ID`."""
        self.run("await page.evaluate((at) => { location.hash = at; }, args.at)", at=at)

    def say(self, words: str) -> None:
        self.fill(WRITE, words)
        self.press(WRITE, "Enter")

    def fill(self, where: str, text: str) -> None:
        self.run("await page.locator(args.where).fill(args.text)", where=where, text=text)

    def press(self, where: str, key: str) -> None:
        self.run("await page.locator(args.where).press(args.key)", where=where, key=key)

    def key(self, key: str) -> None:
        self.run("await page.keyboard.press(args.key)", key=key)

    def click(self, where: str) -> None:
        self.run("await page.locator(args.where).first().click()", where=where)

    def wait(self, where: str, state: str = "visible") -> None:
        """Wait until something is there, or is `hidden`."""
        self.run("await page.locator(args.where).first().waitFor({state: args.state})", where=where, state=state)

    def expect(self, where: str, state: str = "visible") -> None:
        """What a test is about: that something comes to be there, or to be `hidden`."""
        self.wait(where, state)

    def wait_until(self, expression: str, **args: Json) -> None:
        """Wait until an expression of the page's own JavaScript is true; `args` is known to it."""
        self.run(f"await page.waitForFunction((args) => ({expression}), args)", **args)

    def draw(self) -> None:
        """Wait until the page has drawn what it knows: two frames."""
        self.run(
            "await page.evaluate(() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go))))"
        )

    def texts(self, where: str) -> list[str]:
        found = self.run("return await page.locator(args.where).allInnerTexts()", where=where)
        return [text.strip() for text in cast("list[str]", found)]

    def count(self, where: str) -> int:
        return cast("int", self.run("return await page.locator(args.where).count()", where=where))

    def value(self, where: str) -> str:
        return str(self.run("return await page.locator(args.where).inputValue()", where=where))

    def evaluate(self, expression: str) -> Json:
        return self.run("return await page.evaluate(args.expression)", expression=expression)

    def choose_files(self, where: str, *paths: Path) -> None:
        names: list[Json] = [str(path) for path in paths]
        self.run("await page.locator(args.where).setInputFiles(args.paths)", where=where, paths=names)

    def offline(self, *, away: bool = True) -> None:
        """Whether the network is away."""
        self.run("await context.setOffline(args.away)", away=away)

    def reload(self) -> None:
        self.run("await page.reload()")

    def axe(self, where: str = "html") -> list[str]:
        """What axe finds fault with."""
        return list(cast("list[str]", self.run("return await axe(page, args.where)", where=where)))

    def screenshot(self, path: Path) -> None:
        self.run("await page.screenshot({path: args.path})", path=str(path))

    def said(self) -> list[str]:
        """What it wrote to its console."""
        return list(cast("list[str]", self._node.ask("said", name=self._name)["said"]))

    def asked(self) -> list[str]:
        """The addresses it asked for."""
        return list(cast("list[str]", self._node.ask("said", name=self._name)["asked"]))

    def shut(self) -> None:
        self._node.ask("shut", name=self._name)


def browser_options(options: PageOptions) -> dict[str, Json]:
    """A browser as Playwright makes one."""
    width, height = options.get("size", (1280, 860))
    return {
        "locale": options.get("locale", "en-US"),
        "colorScheme": options.get("theme", "light"),
        "viewport": {"width": width, "height": height},
        "hasTouch": options.get("touch", False),
        "reducedMotion": "reduce",
    }


class PageOpener(Protocol):
    """Opens the page of the scripted server, or of another `url`."""

    def __call__(self, url: str = ..., **options: Unpack[PageOptions]) -> WebPage: ...
