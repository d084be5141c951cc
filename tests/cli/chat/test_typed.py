"""What was typed: commands, files, chips, two presses of Esc; and the limits of the terminal."""

from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from recto.cli.chat.chat_settings import ChatSettings, load_chat_settings
from recto.cli.chat.prompt_input import (
    ChatCompleter,
    Pastes,
    TypedCommand,
    TypedMessage,
    find_path_prefix,
    is_double,
    match_paths,
    parse_input,
)
from recto.cli.chat.slash_commands import MOST_CALLS, cost_line, read_file_at
from recto.conversation.json import Object
from recto.errors import FileRefused, SettingsError


@pytest.mark.parametrize(
    ("line", "means"),
    [
        ("  \n", None),
        ("/help", TypedCommand(name="/help")),
        (" /explain 3 \n", TypedCommand(name="/explain", argument="3")),
        ("/usr/bin is a path", TypedMessage(text="/usr/bin is a path")),
        ("Read @a.txt and @src/b.py.", TypedMessage(text="Read @a.txt and @src/b.py.", paths=("a.txt", "src/b.py"))),
        ('@"my file.txt" @a @a', TypedMessage(text='@"my file.txt" @a @a', paths=("my file.txt", "a"))),
        ("mail me@home.org", TypedMessage(text="mail me@home.org")),
        ("看@a.txt，然后（@b.py）", TypedMessage(text="看@a.txt，然后（@b.py）", paths=("a.txt", "b.py"))),
    ],
)
def test_input_is_a_command_or_a_message_with_files(line: str, means: object) -> None:
    assert parse_input(line) == means


@pytest.mark.parametrize(
    ("before", "start"),
    [
        ("@", ""),
        ("see @src/a", "src/a"),
        ('see @"my f', "my f"),
        ("a@b", None),
        ("看@a", "a"),
        ("看@a，", None),
        ('@"a" b', None),
        ("@a done ", None),
        ("see", None),
    ],
)
def test_a_path_is_completed_behind_an_at_sign(before: str, start: str | None) -> None:
    assert find_path_prefix(before) == start


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("@my", '@"my file.txt"'),
        ('see @"my f', 'see @"my file.txt"'),
        ('@"pl', '@"plain.txt"'),
        ("@pl", "@plain.txt"),
        ("看@表", '看@"表，新.txt"'),
    ],
)
def test_a_completed_path_is_read_as_that_path(tmp_path: Path, line: str, completed: str) -> None:
    for name in ("my file.txt", "plain.txt", "表，新.txt"):
        (tmp_path / name).touch()
    [completion] = ChatCompleter(tmp_path, 10).get_completions(Document(line), CompleteEvent())
    assert line[: len(line) + completion.start_position] + completion.text == completed


def test_paths_that_begin_so_come_first() -> None:
    assert match_paths(["lib/shop.py", "README.md", "shop.py"], "SH") == ["shop.py", "lib/shop.py"]


@pytest.mark.parametrize(
    ("first", "second", "is_one"), [(None, 5.0, False), (5.0, 5.4, True), (5.0, 5.5, True), (5.0, 5.6, False)]
)
def test_R12_two_presses_within_the_interval_count_as_double(first: float | None, second: float, is_one: bool) -> None:
    assert is_double(first, second, ChatSettings().escape_ms) is is_one


def test_long_pastes_are_chips_in_the_input_and_themselves_when_they_are_sent() -> None:
    label = "[#{number}, {lines}]"
    pastes, short = Pastes().add("a\r\nb", 2, label)
    assert short == "a\nb"
    pastes, first = pastes.add("1\n2\n3", 2, label)
    pastes, second = pastes.add("x\r\ny\rz\n", 2, label)
    assert (first, second) == ("[#1, 3]", "[#2, 4]")
    assert pastes.expand(f"see {first}, {second} and {first}") == "see 1\n2\n3, x\ny\nz\n and 1\n2\n3"


@pytest.mark.parametrize(
    ("most", "sent_parts"),
    [
        (100, ("see 1\n2\n3 and x\ny\nz\nzz", list[object]())),
        (15, ("see 1\n2\n3 and B", [("pasted-2.txt", b"x\ny\nz\nzz")])),
        (3, ("see A and B", [("pasted-2.txt", b"x\ny\nz\nzz"), ("pasted-1.txt", b"1\n2\n3")])),
    ],
)
def test_pastes_that_make_a_message_too_long_go_along_as_files(most: int, sent_parts: tuple[str, object]) -> None:
    pastes = Pastes(texts={"A": "1\n2\n3", "B": "x\ny\nz\nzz", "C": "not in it"})
    assert pastes.send("see A and B", most) == sent_parts


def test_a_named_file_is_read_missing_or_rejected(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("A", encoding="utf-8")
    assert read_file_at(str(tmp_path / "a.txt")) == ("a.txt", b"A")
    assert [read_file_at(path) for path in ("~nobody-of-that-name/a", str(tmp_path), "no\0name")] == [None] * 3
    with pytest.raises(FileRefused, match="/proc/self/mem cannot be read"):
        read_file_at("/proc/self/mem")


def test_limits_are_read_from_the_file_and_unknown_ones_are_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "recto.toml"
    with pytest.raises(SettingsError, match="cannot be read"):
        load_chat_settings(file)
    monkeypatch.chdir(tmp_path)
    assert load_chat_settings(None) == ChatSettings()
    file.write_text("[server]\nport = 1\n[chat]\nescape_ms = 700\nwatch_seconds = 0.5\n", encoding="utf-8")
    assert load_chat_settings(file) == ChatSettings(escape_ms=700, watch_seconds=0.5)
    for wrong in ("escape = 5", "frames = 0", 'listed = "many"', "frames = true", "listed = 1.5"):
        file.write_text(f"[chat]\n{wrong}\n", encoding="utf-8")
        with pytest.raises(SettingsError, match=f"chat.{wrong.split()[0]}"):
            load_chat_settings(file)
    file.write_text("no toml", encoding="utf-8")
    with pytest.raises(SettingsError, match="cannot be read"):
        load_chat_settings(file)


@pytest.mark.parametrize(
    ("calls", "currency", "end"),
    [
        ([{"price": None}], "", "0 saved by folding"),
        ([{"price": 1_500_000_000}, {"price": 500_000_000}], "CNY", "folding, 2.0000 CNY"),
        ([{"price": 1_500_000_000}], "", "folding, 1.5000"),
        ([{"price": None}] * MOST_CALLS, "", "folding (newest 500 calls only)"),
    ],
)
def test_the_cost_line_names_currency_and_counts(calls: list[Object], currency: str, end: str) -> None:
    assert cost_line(calls, currency).endswith(end)
