"""A chart of a presentation as the table it was drawn from. Draws nothing, and opens no workbook inside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from xml.etree import ElementTree

from recto.files.parsing.tables import table_elements, trimmed
from recto.page.document import Element

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_LONGEST = 9


def chart_elements(root: ElementTree.Element) -> Iterator[Element]:
    """What a chart is called, then a column for each of its series."""
    title = root.find(f"{CHART}chart/{CHART}title")
    words = " ".join("".join(one.text or "" for one in title.iter(f"{_A}t")).split()) if title is not None else ""
    yield Element(kind="paragraph", text=f"[chart: {words}]" if words else "[chart]")
    series = list(root.iter(f"{CHART}ser"))
    names = ["".join(_points(one, "tx").values()) for one in series]
    categories: dict[int, str] = {}
    for one in series:
        categories = {**_points(one, "cat"), **_points(one, "xVal"), **categories}
    values = [{**_points(one, "val"), **_points(one, "yVal")} for one in series]
    places = sorted({*categories, *(place for one in values for place in one)})
    rows = [[categories.get(place, ""), *(one.get(place, "") for one in values)] for place in places]
    yield from table_elements(trimmed([["", *names], *rows]) if rows else [])


def _points(series: ElementTree.Element, part: str) -> Mapping[int, str]:
    """The values that were kept when the chart was drawn, by their places; of several levels the innermost."""
    points: dict[int, str] = {}
    found = series.find(f"{CHART}{part}")
    for one in found.iter(f"{CHART}pt") if found is not None else ():
        place, value = one.get("idx", ""), one.find(f"{CHART}v")
        if place.isdecimal() and len(place) < _LONGEST and value is not None:
            points.setdefault(int(place), (value.text or "").strip())
    return points
