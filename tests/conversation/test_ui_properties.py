"""uiSchema (P14) for any hints at all: no error, valid by its JSON Schema, and nothing in it runs.

Two oracles that are not ours: a JSON Schema validator, and a Markdown renderer told to let everything through.
"""

import re
from collections.abc import Iterator
from typing import Protocol, cast

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from markdown_it import MarkdownIt
from markdown_it.token import Token

from recto.conversation.json import Json, dump, load
from recto.conversation.ui.compile_ui import compile_ui
from recto.conversation.ui.ui_schema import NODES, UI_SCHEMA

SCHEMA = cast("dict[str, object]", load(dump(UI_SCHEMA)))


class Validator(Protocol):
    """What is used of theirs, with types."""

    def validate(self, instance: object) -> None: ...
    def is_valid(self, instance: object) -> bool: ...


VALIDATOR = cast("Validator", Draft202012Validator(SCHEMA))

HOSTILE = (
    *("javascript:alert(1)", "JAVASCRIPT:x", " java\nscript:x", "\x00javascript:x", "java\tscript:x", "vbscript:x"),
    *("data:text/html,<b>x</b>", "data:image/svg+xml;base64,AAAA", "data:image/png;base64,AAAA", "//evil.test"),
    *("<script>alert(1)</script>", "<img src=x onerror=x>", "<!--", "<?x", "</div>", "<\x00b>", "<svg/onload=x>"),
    *("[a](javascript:x)", "![a](data:text/html,x)", "[a]: javascript:x", "[a](java&#115;cript:x)", "<javascript:x>"),
    *("[a](<javascript:x>)", "[a]\n: x", "> [a]:\n> javascript:x", "\ud800", "\udfff\ud83d", "\u202e", "\u2028", "\r"),
    *("https://x.test/a", "/api/x", "mailto:a@x.test", "success", "dark", "title", "card", "python", "bar", "\x1b"),
)
FIELDS = (
    *("status", "title", "body", "badge", "fields", "items", "table", "image", "actions", "theme", "root", "type"),
    *("children", "content", "label", "url", "role", "rows", "columns", "message", "series", "values", "labels"),
    *("appearance", "direction", "ordered", "language", "kind", "name", "value", "max", "alt", "style", "__class__"),
)
GOOD = ("https://x.test/a", "/api/x", "python")
SAYABLE = [text for text in HOSTILE if not re.search(r"[\ud800-\udfff]", text)]
texts = st.sampled_from(SAYABLE) | st.text(max_size=10)
strings = st.sampled_from(HOSTILE) | st.text(max_size=10) | st.text(st.characters(), max_size=5)
numbers = st.integers() | st.floats() | st.sampled_from((10**400, -(2**53), 2**64, 1e308, -0.0))
leaves = st.none() | st.booleans() | numbers | strings | st.binary(max_size=4) | st.sampled_from(list(NODES))
oddities = st.builds(object) | st.builds(set[int]) | st.complex_numbers() | st.dates()
keys = st.sampled_from(FIELDS) | strings | st.integers() | st.none() | st.tuples(st.integers())
anything = st.recursive(
    leaves | oddities,
    lambda inner: st.lists(inner, max_size=5) | st.tuples(inner, inner) | st.dictionaries(keys, inner, max_size=6),
    max_leaves=40,
)


def made_of(node: str, children: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    """A node with the fields it knows, some of which hold what they should not."""
    definitions = cast("dict[str, dict[str, object]]", NODES[node]["properties"])
    needed = set(cast("tuple[str, ...]", NODES[node]["required"]))
    fields = {name: values(schema, children) for name, schema in definitions.items()}
    return st.fixed_dictionaries(
        {name: field for name, field in fields.items() if name in needed},
        optional={name: field for name, field in fields.items() if name not in needed},
    )


def values(schema: dict[str, object], children: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    """What a schema asks for, with hostile strings in place of texts and urls."""
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(cast("tuple[str, ...]", schema["enum"]))
    if "pattern" in schema:
        return st.sampled_from(GOOD) | st.sampled_from(GOOD) | strings
    if "$ref" in schema:
        return children
    if schema["type"] == "array":
        items = cast("dict[str, object]", schema["items"])
        # One of each, so that cells have columns and values labels.
        return st.lists(values(items, children), min_size=1, max_size=3 if "$ref" in items else 1)
    if schema["type"] == "object":
        properties = cast("dict[str, dict[str, object]]", schema["properties"])
        return st.fixed_dictionaries({name: values(field, children) for name, field in properties.items()})
    if schema["type"] == "boolean":
        return st.booleans()
    return texts if "string" in cast("str | list[str]", schema["type"]) else st.integers(1, 9)


trees = st.recursive(
    st.one_of([made_of(node, texts) for node in NODES]),
    lambda inner: st.one_of([made_of(node, inner | texts) for node in ("stack", "list")]),
    max_leaves=12,
)
simple = st.fixed_dictionaries(
    {},
    optional={
        "status": st.sampled_from(("info", "error")),
        "title": texts,
        "body": texts | trees,
        "badge": st.booleans() | texts,
        "image": st.sampled_from(GOOD) | strings,
        "fields": st.dictionaries(texts, texts | numbers | strings, max_size=3),
        "items": st.lists(texts | trees, max_size=3),
        "table": st.lists(st.dictionaries(texts, texts, max_size=3), max_size=3),
        "actions": st.lists(st.fixed_dictionaries({"label": texts, "url": st.sampled_from(GOOD)}), max_size=2),
        "root": trees,
        "theme": st.just("dark"),
    },
)
hints_of_all_kinds = anything | trees | simple | st.fixed_dictionaries({"root": trees | anything})
markdown = st.lists(
    st.sampled_from(
        (*SAYABLE, *'[]()<>!:\\"`>- \n&#', "](", "]:", "https://x.test", "&lt;", "&#58;", "![", "javascript:x", "\n\n")
    )
    | st.text(max_size=3),
    max_size=30,
).map("".join)


@given(hints_of_all_kinds)
def test_P14_any_hints_give_valid_json_or_nothing_at_all(hints: object):
    compiled = compile_ui(hints)
    if compiled is None:
        assert hints is None or hints == {}
        return
    decoded = orjson.loads(orjson.dumps(compiled))
    assert decoded == compiled
    VALIDATOR.validate(decoded)
    assert_harmless(compiled)


@given(markdown)
@example("[a\\\n]: javascript:x\n\n[a\\\n]")
@example("[a][b]\n\n1) [b]: javascript:x")
@example("[a](\\javascript:x)")
@example("a\x0b[b](javascript:x)\x0c<b>")
def test_P14_no_markdown_gives_html_or_a_bad_link(content: str):
    compiled = compile_ui({"type": "markdown", "content": content})
    assert compiled is not None
    assert_harmless(compiled)


@given(st.text(st.sampled_from("ab[]()>#*_`~\n\t -1.|\\\"'&;!:/中😀")))
def test_P14_markdown_without_links_and_tags_stays_as_it_is(words: str):
    content = re.sub(r"\](?=[(:])", "] ", f"# {words}")
    assert compile_ui({"type": "markdown", "content": content}) == {
        "version": "2.0",
        "locale": "zh-CN",
        "status": "info",
        "theme": "default",
        "root": {"type": "stack", "appearance": "card", "children": [{"type": "markdown", "content": content}]},
    }


@pytest.mark.parametrize("wide", [[], {}, {"type": "stack", "children": []}])
@pytest.mark.parametrize("depth", [40, 20_000])
def test_P14_hints_of_any_depth_and_width_are_answered_in_a_moment(wide: object, depth: int):
    hints: dict[str, object] = {"items": [wide] * 1000}
    for _ in range(depth):
        hints = {"root": hints, "items": [hints, hints], "children": [hints]}
    assert VALIDATOR.is_valid(load(dump(compile_ui(hints))))


@pytest.mark.parametrize(
    "piece", ["[", "](", "[a](", "[a](b", "![a](b(", "\n[", "[\\]", ">", "<", "java\n", "[a]: ", "a/", "\n"]
)
def test_P14_long_hostile_markdown_is_answered_in_a_moment(piece: str):
    compiled = compile_ui({"type": "markdown", "content": (piece * 20_000)[:20_000]})
    assert compiled is not None


def test_P14_the_json_schema_is_one_and_names_nothing_it_does_not_describe():
    Draft202012Validator.check_schema(SCHEMA)
    open_objects = [
        each for each in objects_in(SCHEMA) if each.get("type") == "object" and each["additionalProperties"]
    ]
    assert not open_objects
    assert not VALIDATOR.is_valid({"version": "2.0", "locale": "en", "status": "info", "theme": "dark", "root": {}})


# What the tests above use, in that order


def assert_harmless(compiled: dict[str, Json]) -> None:
    """As a browser would take it: no url but safe ones, no tag and no script where words are, none in Markdown."""
    for node in objects_in(compiled):
        for name, value in node.items():
            if not isinstance(value, str) or (node.get("type"), name) == ("code", "content"):
                continue
            assert not re.search(r"<[A-Za-z/!?]", value), value
            assert not is_script(value), value
            assert name != "url" or is_safe(value), value
        if node.get("type") == "markdown":
            assert_harmless_markdown(cast("str", node["content"]))


def assert_harmless_markdown(content: str) -> None:
    for token in tokens_in(RENDERER.parse(content)):
        assert token.type not in {"html_inline", "html_block"}, content
        target = token.attrs.get("href", token.attrs.get("src"))
        assert target is None or is_safe(str(target)), content


def objects_in(value: object) -> Iterator[dict[str, object]]:
    if isinstance(value, dict):
        yield cast("dict[str, object]", value)
    if isinstance(value, dict | list | tuple):
        inner = cast("dict[str, object]", value).values() if isinstance(value, dict) else cast("list[object]", value)
        for each in inner:
            yield from objects_in(each)


def tokens_in(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from tokens_in(token.children or [])


def as_a_browser_reads(url: str) -> str:
    """Blanks and controls around a url and line breaks inside it do not count."""
    return re.sub(r"[\t\n\r]", "", url.strip("".join(map(chr, range(0x21))))).lower()


def is_script(text: str) -> bool:
    """Whether a browser given this as a url would run it, or show a page it holds."""
    url = as_a_browser_reads(text)
    if url.startswith(("data:image/png;base64,", "data:image/jpeg;base64,", "data:image/gif;base64,")):
        return False
    return url.startswith(("javascript:", "vbscript:")) or re.match(r"data:[^,]*/[^,]*,", url) is not None


def is_safe(url: str) -> bool:
    read = as_a_browser_reads(url)
    pictures = re.compile(r"data:image/(png|jpeg|gif|webp);base64,")
    return read.startswith(("https://", "http://", "mailto:", "/api/")) or pictures.match(read) is not None


def everything_goes(url: str) -> bool:
    return True


RENDERER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
RENDERER.validateLink = everything_goes
