"""A browser in the hands of a test: what people do with a page, and what they see of it."""

from typing import Protocol, cast
from urllib.parse import urlencode

from recto.conversation.json import Json
from recto.ids import new_id
from tests.api.scripted_server import ALICE, Scripted
from tests.clients.node import NodeProcess


class Page:
    """A page of the folder `pages`, open in a tab of its own, for a thread of a server."""

    def __init__(self, node: NodeProcess, origin: str, page: str, server: Scripted, **rest: str) -> None:
        self._node = node
        self._name = new_id()
        query = {"url": server.url, "token": ALICE, "thread": new_id()} | rest
        self.thread = query["thread"]
        node.ask("open", name=self._name, url=f"{origin}/{page}?{urlencode(query)}")

    def fill(self, where: str, text: str) -> None:
        self._do("fill", where=where, text=text)

    def press(self, where: str, key: str) -> None:
        self._do("press", where=where, key=key)

    def click(self, where: str) -> None:
        self._do("click", where=where)

    def hover(self, where: str) -> None:
        self._do("hover", where=where)

    def upload(self, where: str, *paths: str) -> None:
        self._do("upload", where=where, paths=list(paths))

    def wait(self, where: str, state: str = "visible") -> None:
        """Wait until something is there, or is `hidden`."""
        self._do("wait", where=where, state=state)

    def texts(self, where: str) -> list[str]:
        return [text.strip() for text in cast("list[str]", self._do("texts", where=where)["texts"])]

    def evaluate(self, script: str) -> Json:
        return self._do("evaluate", script=script).get("value")

    def reload(self) -> None:
        self._do("reload")

    def screenshot(self, path: str) -> None:
        self._do("screenshot", path=path)

    def console_lines(self) -> list[str]:
        """What it wrote to its console."""
        return list(cast("list[str]", self._do("said")["said"]))

    def shut(self) -> None:
        self._do("shut")

    def _do(self, command: str, **rest: Json) -> dict[str, Json]:
        return self._node.ask(command, name=self._name, **rest)


class PageMaker(Protocol):
    """Opens a page for the server at hand."""

    def __call__(self, page: str, **query: str) -> Page: ...
