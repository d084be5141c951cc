"""A document for tests that is read as it is asked for: one element more each time somebody waits."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from recto.errors import FileRefused
from recto.page.document import Element, Excerpt, Extent, Unit, text_of


@dataclass(kw_only=True)
class Growing:
    """Elements, of which the first `read` are there. `count_known` says whether it tells how many pages it has.

    `fails_after` is how many questions are answered before it cannot be read any more. Text before the first page is
    the page's own, and so is the blank line before a page.
    """

    given: Sequence[Element]
    unit: Unit | None = None
    count_known: bool = True
    read: int = 0
    fails_after: int | None = None
    asked: list[str] = field(default_factory=list[str])

    @property
    def extent(self) -> Extent:
        there = self.given[: self.read]
        is_whole = self.read == len(self.given)
        begun = max([one.page or 0 for one in there], default=0)
        known = self.unit is not None and self.count_known
        return Extent(
            characters=len(text_of(there)),
            elements=len(there),
            unit=self.unit,
            pages=begun if is_whole else max(begun - 1, 0),
            page_count=max([one.page or 0 for one in self.given], default=0) if known else None,
            is_whole=is_whole,
        )

    async def characters(self, start: int, count: int) -> Excerpt:
        self._ask("characters")
        while self.extent.characters < start + count and await self._more():
            pass
        return self._excerpt(start, min(start + count, self.extent.characters))

    async def pages(self, first: int, last: int) -> Excerpt:
        self._ask("pages")
        while self.extent.pages < last and await self._more():
            pass
        starts = self._starts
        begins = [start for page, start in starts.items() if page >= first]
        ends = [start for page, start in starts.items() if page > last]
        end = min(ends, default=self.extent.characters)
        begin = 0 if begins and min(begins) == min(starts.values()) else min(begins, default=end)
        return self._excerpt(min(begin, end) if self.unit else end, end)

    async def elements(self, start: int, count: int) -> Sequence[Element]:
        self._ask("elements")
        while self.read < start + count and await self._more():
            pass
        return self.given[start : min(start + count, self.read)]

    async def whole(self) -> Extent:
        self._ask("whole")
        while await self._more():
            pass
        return self.extent

    def _ask(self, what: str) -> None:
        if self.fails_after is not None and len(self.asked) >= self.fails_after:
            raise FileRefused("it is gone. Ask the user for it.", code="gone")
        self.asked.append(what)

    async def _more(self) -> bool:
        await asyncio.sleep(0)
        if self.read == len(self.given):
            return False
        self.read += 1
        return True

    @property
    def _starts(self) -> dict[int, int]:
        """Where each page that was begun begins."""
        there = self.given[: self.read]
        starts: dict[int, int] = {}
        for place, element in enumerate(there):
            if element.kind == "page" and element.page is not None:
                starts[element.page] = len(text_of(there[:place]))
        return starts

    def _excerpt(self, start: int, end: int) -> Excerpt:
        text = text_of(self.given[: self.read])[start : max(start, end)]
        return Excerpt(
            text=text,
            start=start,
            extent=self.extent,
            first_page=self._page_at(start) if text else None,
            last_page=self._page_at(start + len(text) - 1) if text else None,
        )

    def _page_at(self, character: int) -> int | None:
        return max([page for page, start in self._starts.items() if start <= character], default=None)


def a_text(text: str) -> Growing:
    """A plain text, in two elements where it has two characters: its end comes after its beginning."""
    middle = len(text) // 2
    return Growing(given=[Element(kind="text", text=half) for half in (text[:middle], text[middle:]) if half])


def in_pages(*texts: str, unit: Unit = "page", count_known: bool = True) -> Growing:
    """A document with a text on each page."""
    given: list[Element] = []
    for page, text in enumerate(texts, start=1):
        given.append(Element(kind="page", text=f"--- {unit} {page} ---", page=page))
        given.append(Element(kind="paragraph", text=text, page=page))
    return Growing(given=given, unit=unit, count_known=count_known)
