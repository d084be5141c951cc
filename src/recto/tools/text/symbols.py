"""Classes and functions of a source text by tree-sitter grammar; also the program that `symbol_process` runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    from tree_sitter import Node, Parser, Query

NAME_SHOWN = 100
# A function inside one of these is a method.
HOLDERS = frozenset({"class", "struct", "interface", "trait", "impl", "enum", "record", "object", "union"})

_FUNCTIONS = "[(arrow_function) (function_expression)]"
_SCRIPT = {
    "class_declaration": "class",
    "function_declaration": "function",
    "generator_function_declaration": "function",
    "method_definition": "method",
    f"variable_declarator value: {_FUNCTIONS}": "function",
}
_TYPED_SCRIPT = {
    **_SCRIPT,
    "abstract_class_declaration": "class",
    "interface_declaration": "interface",
    "type_alias_declaration": "type",
    "enum_declaration": "enum",
    "internal_module": "namespace",
}
_CLASSES = {
    "class_declaration": "class",
    "interface_declaration": "interface",
    "enum_declaration": "enum",
    "method_declaration": "method",
}
_RECORDS = {**_CLASSES, "record_declaration": "record", "constructor_declaration": "method"}
_C = {
    "function_definition": "function",
    "struct_specifier body: (_)": "struct",
    "union_specifier body: (_)": "union",
    "enum_specifier body: (_)": "enum",
}


@dataclass(frozen=True, kw_only=True)
class SourceLanguage:
    """A language: file extensions, grammar module, and the symbol kind of each node type."""

    endings: tuple[str, ...]
    module: str
    nodes: Mapping[str, str]
    function: str = "language"


LANGUAGES = (
    SourceLanguage(
        endings=("py", "pyi"),
        module="tree_sitter_python",
        nodes={"class_definition": "class", "function_definition": "function"},
    ),
    SourceLanguage(endings=("js", "mjs", "cjs", "jsx"), module="tree_sitter_javascript", nodes=_SCRIPT),
    SourceLanguage(
        endings=("ts", "mts", "cts"),
        module="tree_sitter_typescript",
        nodes=_TYPED_SCRIPT,
        function="language_typescript",
    ),
    SourceLanguage(endings=("tsx",), module="tree_sitter_typescript", nodes=_TYPED_SCRIPT, function="language_tsx"),
    SourceLanguage(
        endings=("go",),
        module="tree_sitter_go",
        nodes={"function_declaration": "function", "method_declaration": "method", "type_spec": "type"},
    ),
    SourceLanguage(
        endings=("rs",),
        module="tree_sitter_rust",
        nodes={
            "function_item": "function",
            "struct_item": "struct",
            "enum_item": "enum",
            "union_item": "union",
            "trait_item": "trait",
            "impl_item": "impl",
            "mod_item body: (_)": "module",
            "macro_definition": "macro",
        },
    ),
    SourceLanguage(endings=("java",), module="tree_sitter_java", nodes=_RECORDS),
    SourceLanguage(endings=("c", "h"), module="tree_sitter_c", nodes=_C),
    SourceLanguage(
        endings=("cpp", "cc", "cxx", "hpp", "hh", "hxx"),
        module="tree_sitter_cpp",
        nodes={**_C, "class_specifier body: (_)": "class", "namespace_definition": "namespace"},
    ),
    SourceLanguage(
        endings=("cs",),
        module="tree_sitter_c_sharp",
        nodes={**_RECORDS, "struct_declaration": "struct", "namespace_declaration": "namespace"},
    ),
    SourceLanguage(
        endings=("rb",),
        module="tree_sitter_ruby",
        nodes={
            "class name: (_)": "class",
            "module name: (_)": "module",
            "method": "method",
            "singleton_method": "method",
        },
    ),
    SourceLanguage(
        endings=("php",),
        module="tree_sitter_php",
        nodes={**_CLASSES, "trait_declaration": "trait", "function_definition": "function"},
        function="language_php",
    ),
    SourceLanguage(endings=("sh", "bash"), module="tree_sitter_bash", nodes={"function_definition": "function"}),
)
BY_ENDING = {ending: language for language in LANGUAGES for ending in language.endings}


@dataclass(frozen=True, kw_only=True)
class Symbol:
    """A class, function or the like: its lines, counted from 1, and its nesting depth."""

    name: str
    kind: str
    first: int
    last: int
    depth: int = 0


def find_symbols_here(source: bytes, name: str) -> tuple[Symbol, ...]:
    """Return the symbols of a UTF-8 source in this process; `name` is its file name or extension."""
    ending = name.rpartition(".")[2].lower()
    parser, query = _parser(ending)
    from tree_sitter import QueryCursor  # here: the parent process does not need it

    nodes = QueryCursor(query).captures(parser.parse(source).root_node).get("symbol", ())
    kinds = {node.partition(" ")[0]: kind for node, kind in BY_ENDING[ending].nodes.items()}
    return _nest(sorted(nodes, key=lambda node: (node.start_byte, -node.end_byte)), kinds)


@cache
def _parser(ending: str) -> tuple[Parser, Query]:
    """Return parser and query by file extension. Building them takes longer than parsing most sources."""
    from tree_sitter import Language, Parser, Query

    language = BY_ENDING[ending]
    grammar = Language(cast("Callable[[], object]", getattr(import_module(language.module), language.function))())
    return Parser(grammar), Query(grammar, "".join(f"({node}) @symbol\n" for node in language.nodes))


def _nest(nodes: Sequence[Node], kinds: Mapping[str, str]) -> tuple[Symbol, ...]:
    """Return symbols in source order. A function inside a class is a method."""
    symbols, around = list[Symbol](), list[tuple[int, str]]()
    for node in nodes:
        while around and around[-1][0] <= node.start_byte:
            around.pop()
        # C nests the name in declarators. A Rust impl block is named after its type.
        node_with_name = node.child_by_field_name("name") or node.child_by_field_name("type")
        inner = node.child_by_field_name("declarator")
        while inner is not None:
            # The grammar has no field for the target of a reference.
            is_reference = inner.type == "reference_declarator" and inner.named_child_count
            node_with_name, inner = (
                inner,
                (inner.named_children[0] if is_reference else inner.child_by_field_name("declarator")),
            )
        text = node_with_name.text if node_with_name is not None else None
        kind, name = kinds[node.type], " ".join((text or b"").decode("utf-8", "replace").split())[:NAME_SHOWN]
        if not name:
            continue
        if kind == "function" and around and around[-1][1] in HOLDERS:
            kind = "method"
        first, last = node.start_point[0] + 1, node.end_point[0] + 1
        symbols.append(Symbol(name=name, kind=kind, first=first, last=last, depth=len(around)))
        around.append((node.end_byte, kind))
    return tuple(symbols)


def main(memory_bytes: int, idle_seconds: int) -> None:
    """Answer requests on stdin until it closes or stays idle. Write one JSON line at the start and one per request.

    A request is a line with file extension, source size and seconds, followed by the source.
    """
    import resource
    import signal

    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    symbols: tuple[Symbol, ...] = ()
    while True:
        sys.stdout.write(json.dumps([astuple(symbol) for symbol in symbols]) + "\n")
        sys.stdout.flush()
        # The alarm ends the process, even inside a parser.
        signal.alarm(idle_seconds)
        request = sys.stdin.buffer.readline().split()
        if not request:
            return
        ending, size, seconds = request
        # The parent kills this process earlier, unless the parent itself is gone.
        signal.alarm(int(seconds) + 2)
        # Grammars of rarer languages may be missing.
        try:
            symbols = find_symbols_here(sys.stdin.buffer.read(int(size)), ending.decode())
        except ImportError:
            symbols = ()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
