"""What is kept of functions: the rules for them, held against our source, and against functions that break them."""

from pathlib import Path

import pytest

from tests import layers
from tests.layers import ROOT, Module
from tests.memo_rules import other_caches, wrong_memos

SOURCES = layers.modules_under(ROOT / "src", base=ROOT / "src")
# Caches of Python's own: none is asked with anybody's words. All others are `keep_recent`, which a deletion empties.
OF_NOBODY = frozenset(
    {
        # Settings, files and tools of whoever runs the server.
        "src/recto/agents/profile_schema.py:_validator",
        "src/recto/app/agents.py:load_agents_and_models.of_folder",
        "src/recto/app/files.py:make_outbound.outbound",
        "src/recto/cli/agents.py:load_toolbox.of_folder",
        "src/recto/config/yaml_values.py:read_yaml",
        "src/recto/models/prices.py:_is_named",
        "src/recto/page/fold/fold_settings.py:fold_key",
        "src/recto/skills/triggers.py:_pattern",
        # Names, types and numbers that stand in our code.
        "src/recto/conversation/input/agui.py:_snake",
        "src/recto/files/parsing/formats/xberg_document.py:_config",
        "src/recto/page/body.py:closing_brackets",
        "src/recto/page/body.py:punctuation",
        "src/recto/page/prompt/reminder.py:_openings",
        "src/recto/page/text/tokens.py:_tokenizer",
        "src/recto/store/log/entries.py:_stored_fields",
        "src/recto/worker/tools/calls_in_text.py:_closing",
        # A character, or the letters of a column.
        "src/recto/files/decode.py:_character",
        "src/recto/files/decode.py:_everyday",
        "src/recto/files/parsing/formats/office/spreadsheet.py:_column",
        # A table that is shipped.
        "src/recto/cli/translation.py:_chinese",
        "src/recto/models/demo/demo_model.py:_sessions",
        "src/recto/agents/shipped/vibe/almanac/birth/places.py:_cities_with_parts",
        "src/recto/agents/shipped/vibe/almanac/birth/places.py:_provinces",
        "src/recto/agents/shipped/vibe/almanac/birth/places.py:_rows",
        # What this machine can do.
        "src/recto/sandbox/bubblewrap.py:binds_descriptors",
        "src/recto/sandbox/bubblewrap.py:command_program",
        "src/recto/tools/text/symbol_process.py:_process",
        "src/recto/tools/text/symbols.py:_parser",
        "src/recto/tools/workspace/ripgrep.py:ripgrep",
        # Answers of the scripted model.
        "src/recto/testing/answer_bytes.py:whole",
        "src/recto/testing/answer_bytes.py:message_events",
        "src/recto/testing/answer_bytes.py:content_events",
        "src/recto/testing/answer_bytes.py:chat_events",
        "src/recto/testing/answer_bytes.py:response_events",
    }
)


def test_whatever_is_kept_is_said_by_a_function_that_may_be():
    assert list(wrong_memos(SOURCES)) == []


def test_no_cache_but_ours_is_asked_with_words_of_users():
    assert frozenset(other_caches(SOURCES)) == OF_NOBODY


GOOD = """
def say(value: Value, words: tuple[str, ...]) -> str:
    parts = list(words)
    parts.append("x")
    return "".join(parts)

def more(known: State | None, messages: Sequence[Message], key: str) -> State:
    return State()

def ask(value: Value, key: str) -> object:
    return remember(value, say, ("a",)), grow((), more, key), remember_last(value, say, ())

def apply(value: Value, function: Callable[[Value], str]) -> str:
    return remember(value, function)

def applied(value: Value) -> str:
    return apply(value, say)
"""


def test_a_function_that_may_be_is_not_refused():
    assert list(wrong_memos([module_of(GOOD)])) == []


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("def ask(value): return remember(value, lambda one: 1)", "is no function at the top"),
        (
            "def ask(value):\n    def inner(one): return 1\n    return remember(value, inner)",
            "is no function at the top",
        ),
        ("def ask(value): return remember(value, partial(int))", "is no function at the top"),
        ("def ask(value): return remember(value, value.method)", "is no function at the top"),
        ("def say(one, key): return 1\ndef ask(value): return remember(value, say, [1])", "is no key"),
        ("def more(known: S | None, new, key): return 1\ndef ask(v): return grow(v, more, {1: 2})", "is no key"),
        ("async def say(one): return 1\ndef ask(value): return remember(value, say)", "is async"),
        ("def say(one): yield 1\ndef ask(value): return remember(value, say)", "yields"),
        ("def say(one):\n    global COUNT\n    COUNT = 1\ndef ask(value): return remember(value, say)", "not its own"),
        ("def say(one, *keys): return 1\ndef ask(value): return remember(value, say)", "takes any arguments"),
        ("def say(one, key: list[str]): return 1\ndef ask(v, k): return remember(v, say, k)", "cannot be hashed"),
        ("def say(one, key: Mapping[str, str] | None): return 1\ndef ask(v, k): return remember(v, say, k)", "hashed"),
        ("def say(one):\n    one.parts.append(1)\ndef ask(v): return remember(v, say)", "changes one.parts"),
        ("def say(one):\n    one.memo['a'] = 1\ndef ask(v): return remember(v, say)", "changes one.memo['a']"),
        (
            "def more(known: S | None, new):\n    known.count += 1\ndef ask(v): return grow(v, more)",
            "changes known.count",
        ),
        ("def more(known: S, new): return 1\ndef ask(v): return grow(v, more)", "does not begin with None"),
        ("def apply(v, f): return remember(v, f)\ndef ask(v): return apply(v, lambda one: 1)", "at the top"),
        ("def say(one): yield 1\ndef apply(v, f): return remember(v, f)\ndef ask(v): return apply(v, say)", "yields"),
        ("@keep_recent(9)\ndef say(words: list[str]): return 1", "cannot be hashed"),
        ("@keep_newest(9)\ndef say(words: Sequence[str]): return 1", "cannot be hashed"),
        ("def say(words):\n    words.sort()\nsaid = keep_recent(9)(say)", "changes words"),
    ],
)
def test_what_would_be_wrong_when_asked_again_is_refused(source: str, problem: str):
    (memo_problem,) = wrong_memos([module_of(source)])
    assert problem in memo_problem


def test_a_function_of_a_room_that_is_not_pure_is_refused():
    source = "def say(one): return 1\ndef ask(value): return remember(value, say)"
    (problem,) = wrong_memos([module_of(source, name="recto.worker.some")])
    assert "only conversation and page are pure" in problem


@pytest.mark.parametrize(
    "source",
    [
        "@cache\ndef say(words): return 1",
        "@lru_cache(maxsize=9)\ndef say(words): return 1",
        "@functools.cache\ndef say(words): return 1",
        "def say(words): return 1\nsaid = lru_cache(maxsize=9)(say)",
    ],
)
def test_a_cache_of_python_s_own_is_found(source: str):
    assert len(list(other_caches([module_of(source)]))) == 1


def module_of(source: str, name: str = "recto.page.some") -> Module:
    return Module(name=name, path=Path("some.py"), where="some.py", text=source)
