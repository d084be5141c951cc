"""YAML is read by a parser in C where that is the same; what is wrong is told by the one in Python."""

from collections.abc import Iterator
from typing import cast

import yaml
from hypothesis import given
from hypothesis import strategies as st

from recto.config.yaml_values import parse

BITS = (
    *("a", "b: ", "- ", "\n", "  ", "\n  ", "'", '"', "{", "}", "[", "]", ", ", ":", "#", " #x", "|\n", "|-\n", ">+\n"),
    *(" ", "é", "中", "😀", "---", "...", "&x", "*x", "%", "@", "`", "1", "0.5", "~", "\\n", "\\x41", "\u2028", "\x85"),
    *("\r\n", "k: v\n", "- - ", "a: |2\n", "?", "!", "\t", "\ufeff", "|#", "? a\n: b\n"),
)


def strict_events(text: str) -> list[tuple[object, ...]]:
    found = cast(
        "Iterator[yaml.Event]",
        yaml.parse(text, yaml.SafeLoader),  # pyright: ignore[reportUnknownMemberType] - yaml types little
    )
    return [(*described(event), event.start_mark.index) for event in found]


def described(event: yaml.Event) -> tuple[object, ...]:
    """All that is asked of an event. A plain text has no style in one parser and an empty one in the other."""
    named = [getattr(event, name, None) for name in ("value", "anchor", "tag")]
    return type(event), *named, getattr(event, "style", None) or None


def events(text: str) -> list[tuple[object, ...]] | str:
    try:
        return [(*described(event), place) for event, place in parse(text)]
    except (yaml.YAMLError, ValueError) as error:
        return str(error)


@given(st.lists(st.sampled_from(BITS), max_size=12).map("".join))
def test_S11_whatever_is_written_is_read_as_the_strict_parser_reads_it(text: str):
    try:
        strict = strict_events(text)
    except (yaml.YAMLError, ValueError) as error:
        strict = str(error)
    found = events(text)
    assert found == strict or "second document" in str(found)
