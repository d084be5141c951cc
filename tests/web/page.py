"""Browser driver for the web page.

Selectors are those of Playwright: `role=button[name="Send"]`, `text=hello`, or CSS. `run` takes the body of an async
function with the parameters `page`, `context`, `args` and `axe(page, where)`, for everything without its own method.
"""

from pathlib import Path
from typing import Protocol, TypedDict, Unpack, cast

from recto.conversation.json import Json
from recto.ids import new_id
from tests.api.scripted_server import ALICE
from tests.clients.node import NodeProcess

WRITE = "#write"


class PageOptions(TypedDict, total=False):
    """Options of a page: the token to sign in with (None for none), the URL hash `at`, and settings of the browser."""

    token: str | None
    at: str
    locale: str
    theme: str
    size: tuple[int, int]
    touch: bool
    beside: "WebPage"


class WebPage:
    """The page of a server in a tab. A tab `beside` another shares its browser storage, but not its credential."""

    def __init__(self, node: NodeProcess, url: str, **options: Unpack[PageOptions]) -> None:
        self._node = node
        self._name = new_id()
        self.url = url
        token, at = options.get("token", ALICE), options.get("at", "")
        beside = options.get("beside")
        browser: dict[str, Json] = {"beside": beside._name} if beside else {"options": browser_options(options)}
        node.ask(
            "open", name=self._name, url=f"{url}/#token={token}" if token else f"{url}/{at}" if at else url, **browser
        )
        if token and at:
            self.go(at)

    def run(self, script: str, **args: Json) -> Json:
        return self._node.ask("run", name=self._name, script=script, args=args).get("value")

    def go(self, at: str) -> None:
        """Go to another URL hash, such as `#/threads/ID`."""
        self.run("await page.evaluate((at) => { location.hash = at; }, args.at)", at=at)

    def send(self, text: str) -> None:
        self.fill(WRITE, text)
        self.press(WRITE, "Enter")

    def fill(self, where: str, text: str) -> None:
        self.run("await page.locator(args.where).fill(args.text)", where=where, text=text)

    def press(self, where: str, key: str) -> None:
        self.run("await page.locator(args.where).press(args.key)", where=where, key=key)

    def key(self, key: str) -> None:
        self.run("await page.keyboard.press(args.key)", key=key)

    def click(self, where: str) -> None:
        self.run("await page.locator(args.where).first().click()", where=where)

    def hover(self, where: str) -> None:
        self.run("await page.locator(args.where).hover()", where=where)

    def wait(self, where: str, state: str = "visible") -> None:
        """Wait until an element is visible, or `hidden`."""
        self.run("await page.locator(args.where).first().waitFor({state: args.state})", where=where, state=state)

    def expect(self, where: str, state: str = "visible") -> None:
        """Assert that an element becomes visible, or `hidden`."""
        self.wait(where, state)

    def wait_until(self, expression: str, **args: Json) -> None:
        """Wait until a JavaScript expression is true. It can use `args`."""
        self.run(f"await page.waitForFunction((args) => ({expression}), args)", **args)

    def draw(self) -> None:
        """Wait for two animation frames, so that all changes are rendered."""
        self.run(
            "await page.evaluate(() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go))))"
        )

    def texts(self, where: str) -> list[str]:
        texts = self.run("return await page.locator(args.where).allInnerTexts()", where=where)
        return [text.strip() for text in cast("list[str]", texts)]

    def count(self, where: str) -> int:
        return cast("int", self.run("return await page.locator(args.where).count()", where=where))

    def value(self, where: str) -> str:
        return str(self.run("return await page.locator(args.where).inputValue()", where=where))

    def evaluate(self, expression: str) -> Json:
        return self.run("return await page.evaluate(args.expression)", expression=expression)

    def choose_files(self, where: str, *paths: Path) -> None:
        names: list[Json] = [str(path) for path in paths]
        self.run("await page.locator(args.where).setInputFiles(args.paths)", where=where, paths=names)

    def offline(self, *, is_offline: bool = True) -> None:
        """Take the browser offline, or online again."""
        self.run("await context.setOffline(args.offline)", offline=is_offline)

    def reload(self) -> None:
        self.run("await page.reload()")

    def axe(self, where: str = "html") -> list[str]:
        return list(cast("list[str]", self.run("return await axe(page, args.where)", where=where)))

    def screenshot(self, path: Path) -> None:
        self.run("await page.screenshot({path: args.path})", path=str(path))

    def console_lines(self) -> list[str]:
        return list(cast("list[str]", self._node.ask("said", name=self._name)["said"]))

    def requested_urls(self) -> list[str]:
        return list(cast("list[str]", self._node.ask("said", name=self._name)["asked"]))

    def close(self) -> None:
        self._node.ask("shut", name=self._name)


def browser_options(options: PageOptions) -> dict[str, Json]:
    width, height = options.get("size", (1280, 860))
    return {
        "locale": options.get("locale", "en-US"),
        "colorScheme": options.get("theme", "light"),
        "viewport": {"width": width, "height": height},
        "hasTouch": options.get("touch", False),
        "reducedMotion": "reduce",
    }


class PageOpener(Protocol):
    """Function that opens the page of the scripted server, or of another `url`."""

    def __call__(self, url: str = ..., **options: Unpack[PageOptions]) -> WebPage: ...
