"""What a person reads of a call before they agree to it: all that it is made with."""

from collections.abc import Mapping

import pytest

from recto.cli.chat.rendering.block_views import TerminalRenderer, arguments_view
from recto.conversation.json import Json

LONG = "\n".join(f"line {number}" for number in range(203))
CASES: list[tuple[Mapping[str, Json], list[str]]] = [
    ({"filePath": "a.py", "content": "x = 1", "run": "rm"}, ["filePath: a.py", "run: rm", "+x = 1"]),
    (
        {"filePath": "a.py", "searchContent": "x", "replaceContent": "y", "content": "z"},
        ["filePath: a.py", "content: z", "-x", "+y"],
    ),
    (
        {"mode": 7, "edits": [{"filePath": "b.py", "content": "n"}, {"delete": "c.py"}]},
        ["mode: 7", '@ {"filePath":"b.py"}', "+n", '@ {"delete":"c.py"}'],
    ),
    ({"edits": ["odd"]}, ['@ "odd"']),
    ({"command": "ls", "timeout": 5}, ["ls", "timeout: 5"]),
    ({"to": "Anna"}, ["to: Anna"]),
]


def argument_lines(arguments: Mapping[str, Json]) -> list[str]:
    card = TerminalRenderer({"NO_COLOR": "1"}).render(arguments_view(arguments), 80)
    return [line.strip() for line in card.splitlines() if line.strip()]


@pytest.mark.parametrize(("arguments", "lines"), CASES)
def test_every_argument_is_shown(arguments: Mapping[str, Json], lines: list[str]) -> None:
    assert argument_lines(arguments) == lines


def test_a_long_diff_is_truncated_with_a_count() -> None:
    assert "… 3 more lines" in argument_lines({"filePath": "a.py", "content": LONG})[-1]
