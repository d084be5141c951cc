"""Fake document that reads one more element whenever somebody waits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from recto.conversation.document import Element, Excerpt, Extent, Selection, Unit, text_of
from recto.errors import FileRefused
from tests.waiting import settle


@dataclass(kw_only=True)
class Growing:
    """Elements of which the first `read` are available. With `count_known` it knows its number of pages.

    `claims` is how many pages it says it has, where more than are read. `fails_after` is how many questions are
    answered before it cannot be read any more. Text before the first page is the page's own, and so is the blank line
    before a page. `characters_handed` and `elements_handed` are how many were handed out, to whoever asked.
    """

    all_elements: Sequence[Element]
    unit: Unit | None = None
    count_known: bool = True
    claims: int = 0
    read: int = 0
    fails_after: int | None = None
    requests: list[str] = field(default_factory=list[str])
    characters_handed: int = 0
    elements_handed: int = 0

    @property
    def extent(self) -> Extent:
        there = self.all_elements[: self.read]
        is_whole = self.read == len(self.all_elements)
        last_page = max([one.page or 0 for one in there], default=0)
        is_known = self.unit is not None and self.count_known
        return Extent(
            characters=len(text_of(there)),
            elements=len(there),
            unit=self.unit,
            pages=last_page if is_whole else max(last_page - 1, 0),
            page_count=max([self.claims, *[one.page or 0 for one in self.all_elements]]) if is_known else None,
            is_whole=is_whole,
        )

    async def characters(self, start: int, count: int) -> Excerpt:
        await self._read("characters", lambda: self.extent.characters >= start + count)
        return self._excerpt(start, min(start + count, self.extent.characters))

    async def pages(self, first: int, last: int, start: int = 0, count: int | None = None) -> Excerpt:
        most = None if count is None else start + count
        await self._read(
            "pages", lambda: self._has_page(last) or (most is not None and self._length(first, last) >= most)
        )
        begin, end = [len(text_of(self.all_elements[:place])) for place in self._on(first, last)]
        length = end - begin if self._has_page(last) or self.extent.is_whole else None
        return replace(self._excerpt(begin + start, end if most is None else min(begin + most, end)), length=length)

    async def elements(self, start: int, count: int) -> Sequence[Element]:
        await self._read("elements", lambda: self.read >= start + count)
        return self._handed(start, min(start + count, self.read))

    async def page_elements(self, first: int, last: int, start: int, count: int) -> Selection:
        most = start + count
        await self._read("page_elements", lambda: self._has_page(last) or len(range(*self._on(first, last))) >= most)
        begin, end = self._on(first, last)
        length = end - begin if self._has_page(last) or self.extent.is_whole else None
        elements = self._handed(begin + start, min(begin + start + count, end))
        return Selection(elements=elements, extent=self.extent, length=length)

    async def whole(self) -> Extent:
        await self._read("whole", lambda: False)
        return self.extent

    async def _read(self, what: str, has_enough: Callable[[], bool]) -> None:
        """Read on until there is enough, or the end."""
        if self.fails_after is not None and len(self.requests) >= self.fails_after:
            raise FileRefused("it is gone. Ask the user for it.", code="gone")
        self.requests.append(what)
        while not has_enough() and self.read < len(self.all_elements):
            await settle(1)
            self.read += 1

    @property
    def _starts(self) -> dict[int, int]:
        """Return the first element of each page read so far."""
        there = enumerate(self.all_elements[: self.read])
        return {one.page: place for place, one in there if one.kind == "page" and one.page is not None}

    def _has_page(self, page: int) -> bool:
        return self.unit is None or self.extent.pages >= page or max(self._starts, default=0) > page

    def _on(self, first: int, last: int) -> tuple[int, int]:
        """Return the first element of these pages and the one after them, as far as they are read."""
        starts = self._starts
        begins = [place for page, place in starts.items() if page >= first]
        end = min([place for page, place in starts.items() if page > last], default=self.read)
        begin = 0 if begins and min(begins) == min(starts.values()) else min(begins, default=end)
        return (min(begin, end), end) if self.unit else (end, end)

    def _length(self, first: int, last: int) -> int:
        begin, end = self._on(first, last)
        return len(text_of(self.all_elements[:end])) - len(text_of(self.all_elements[:begin]))

    def _handed(self, start: int, end: int) -> Sequence[Element]:
        elements = self.all_elements[start : max(start, end)]
        self.elements_handed += len(elements)
        return elements

    def _excerpt(self, start: int, end: int) -> Excerpt:
        text = text_of(self.all_elements[: self.read])[start : max(start, end)]
        self.characters_handed += len(text)
        return Excerpt(
            text=text,
            start=start,
            extent=self.extent,
            first_page=self._page_at(start) if text else None,
            last_page=self._page_at(start + len(text) - 1) if text else None,
        )

    def _page_at(self, character: int) -> int | None:
        first_pages = [
            page for page, place in self._starts.items() if len(text_of(self.all_elements[:place])) <= character
        ]
        return max(first_pages, default=None)


def a_text(text: str) -> Growing:
    """Return a text document, in two elements if it has two characters."""
    middle = len(text) // 2
    return Growing(all_elements=[Element(kind="text", text=half) for half in (text[:middle], text[middle:]) if half])


def in_pages(*texts: str, unit: Unit = "page", count_known: bool = True) -> Growing:
    """Return a document with a text on each page."""
    elements: list[Element] = []
    for page, text in enumerate(texts, start=1):
        elements.append(Element(kind="page", text=f"--- {unit} {page} ---", page=page))
        elements.append(Element(kind="paragraph", text=text, page=page))
    return Growing(all_elements=elements, unit=unit, count_known=count_known)
