"""Tests of the YAML reader: the C parser and the Python parser agree; faults become warnings if not strict."""

from collections.abc import Iterator
from typing import cast

import yaml
from hypothesis import given
from hypothesis import strategies as st

from recto.config.yaml_values import parse, read_yaml

BITS = (
    *("a", "b: ", "- ", "\n", "  ", "\n  ", "'", '"', "{", "}", "[", "]", ", ", ":", "#", " #x", "|\n", "|-\n", ">+\n"),
    *(" ", "é", "中", "😀", "---", "...", "&x", "*x", "%", "@", "`", "1", "0.5", "~", "\\n", "\\x41", "\u2028", "\x85"),
    *("\r\n", "k: v\n", "- - ", "a: |2\n", "?", "!", "\t", "\ufeff", "|#", "? a\n: b\n"),
)


def strict_events(text: str) -> list[tuple[object, ...]]:
    parsed_events = cast(
        "Iterator[yaml.Event]",
        yaml.parse(text, yaml.SafeLoader),  # pyright: ignore[reportUnknownMemberType] - yaml types little
    )
    return [(*describe(event), event.start_mark.index) for event in parsed_events]


def describe(event: yaml.Event) -> tuple[object, ...]:
    """Return the used fields of an event. Plain text has no style in one parser and an empty one in the other."""
    values = [getattr(event, name, None) for name in ("value", "anchor", "tag")]
    return type(event), *values, getattr(event, "style", None) or None


def events(text: str) -> list[tuple[object, ...]] | str:
    try:
        return [(*describe(event), place) for event, place in parse(text)]
    except (yaml.YAMLError, ValueError) as error:
        return str(error)


@given(st.lists(st.sampled_from(BITS), max_size=12).map("".join))
def test_S11_both_parsers_read_the_same_events(text: str):
    try:
        strict = strict_events(text)
    except (yaml.YAMLError, ValueError) as error:
        strict = str(error)
    result = events(text)
    assert result == strict or "second document" in str(result)


def test_S5_without_strict_faults_are_warnings():
    text = "a: &x [1]\nb: *x\n? [c]\n: d\na: 2"
    strict, other = read_yaml(text, first_line=1), read_yaml(text, first_line=1, strict=False)
    assert (strict.values, other.values) == ({}, {"a": [1], "b": [1]})
    assert (strict.faults, strict.warnings) == (other.warnings, other.faults)
    assert [fault.line for fault in strict.faults] == [1, 2]
