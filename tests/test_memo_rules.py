"""Rules for functions whose results `recto.conversation.memo` keeps, and for other caches.

All callers get the same result. So the function is at the top of a pure module, returns a value, takes hashable keys
and changes no argument.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeGuard

import pytest

from tests import layers
from tests.layers import ROOT, Function, Module

SOURCES = layers.modules_under(ROOT / "src", base=ROOT / "src")
MEMO = "recto.conversation.memo"
# For each function of the memo module, the number of the first parameter that is a key.
FIRST_KEYS = {"memoise": 1, "memoise_last": 1, "memoise_prefix": 2, "cache_results": 0, "cache_by_identity": 0}
CACHES = frozenset({"cache", "lru_cache"})
NOT_HASHABLE = frozenset(
    {
        *("list", "dict", "set", "bytearray", "deque", "Mapping", "MutableMapping", "Sequence", "MutableSequence"),
        *("Set", "MutableSet", "Iterable", "Iterator", "Generator", "Collection"),
    }
)
CHANGING = frozenset(
    {
        *("append", "extend", "insert", "remove", "pop", "popitem", "clear", "sort", "reverse", "update"),
        *("setdefault", "add", "discard", "appendleft", "popleft"),
    }
)
DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp, ast.Lambda)
# Functions with a cache of functools: none gets a user's text. `cache_results`, which a deletion empties, is for those.
OF_NOBODY = frozenset(
    {
        # Settings, files and tools of whoever runs the server.
        "src/recto/agents/profile_schema.py:_validator",
        "src/recto/app/agents.py:load_agents_and_models.of_folder",
        "src/recto/app/file_services.py:make_outbound.outbound",
        "src/recto/cli/agents.py:load_toolbox.of_folder",
        "src/recto/config/yaml_values.py:read_yaml",
        "src/recto/models/prices.py:_is_named",
        "src/recto/page/fold/fold_settings.py:fold_key",
        "src/recto/skills/directory.py:_pattern",
        # Names, types and numbers that stand in our code.
        "src/recto/conversation/input/agui.py:_snake",
        "src/recto/files/parsing/formats/xberg_document.py:_config",
        "src/recto/page/body.py:encode_tail",
        "src/recto/page/body.py:punctuate",
        "src/recto/page/prompt/reminder.py:_openings",
        "src/recto/page/text/tokens.py:_tokenizer",
        "src/recto/store/log/entry_codec.py:_stored_fields",
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
        # Programs and threads of this machine.
        "src/recto/client/transports.py:_start_loop",
        "src/recto/sandbox/bubblewrap.py:binds_descriptors",
        "src/recto/sandbox/bubblewrap.py:command_program",
        "src/recto/tools/text/symbol_process.py:_process",
        "src/recto/tools/text/symbols.py:_parser",
        "src/recto/tools/workspace/ripgrep.py:find_ripgrep",
        # Answers of the scripted model.
        "src/recto/testing/answer_bytes.py:whole",
        "src/recto/testing/answer_bytes.py:message_events",
        "src/recto/testing/answer_bytes.py:content_events",
        "src/recto/testing/answer_bytes.py:chat_events",
        "src/recto/testing/answer_bytes.py:response_events",
    }
)


def test_memoised_functions_follow_the_rules():
    assert list(wrong_memos(SOURCES)) == []


def test_no_cache_of_functools_keeps_text_of_users():
    assert frozenset(other_caches(SOURCES)) == OF_NOBODY


GOOD = """
def say(value: Value, words: tuple[str, ...]) -> str:
    parts = list(words)
    parts.append("x")
    return "".join(parts)

def more(known: State | None, messages: Sequence[Message], key: str) -> State:
    return State()

def ask(value: Value, key: str) -> object:
    return memoise(value, say, ("a",)), memoise_prefix((), more, key), memoise_last(value, say, ())
"""


def test_a_good_function_is_accepted():
    assert list(wrong_memos([module_of(GOOD)])) == []


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("def ask(v): return memoise(v, lambda one: 1)", "is no function at the top"),
        ("def ask(v):\n    def inner(one): return 1\n    return memoise(v, inner)", "is no function at the top"),
        ("def ask(v, f): return memoise(v, f)", "is no function at the top"),
        ("def ask(v): return memoise(v, partial(int))", "is no function at the top"),
        ("def ask(v): return memoise(v, v.method)", "is no function at the top"),
        ("def say(one, key): return 1\ndef ask(v): return memoise(v, say, [1])", "is no key"),
        (
            "def more(known: S | None, new, key): return 1\ndef ask(v): return memoise_prefix(v, more, {1: 2})",
            "is no key",
        ),
        ("async def say(one): return 1\ndef ask(v): return memoise(v, say)", "is async"),
        ("def say(one): yield 1\ndef ask(v): return memoise(v, say)", "yields"),
        ("def say(one):\n    global COUNT\n    COUNT = 1\ndef ask(v): return memoise(v, say)", "changes a variable"),
        ("def say(one, *keys): return 1\ndef ask(v): return memoise(v, say)", "takes any arguments"),
        ("def say(one, key: list[str]): return 1\ndef ask(v, k): return memoise(v, say, k)", "cannot be hashed"),
        ("def say(one, key: Mapping[str, str] | None): return 1\ndef ask(v, k): return memoise(v, say, k)", "hashed"),
        ("def say(one):\n    one.parts.append(1)\ndef ask(v): return memoise(v, say)", "changes one.parts"),
        ("def say(one):\n    one.memo['a'] = 1\ndef ask(v): return memoise(v, say)", "changes one.memo['a']"),
        ("def more(s: S | None, new):\n    s.n += 1\ndef ask(v): return memoise_prefix(v, more)", "changes s.n"),
        ("def more(known: S, new): return 1\ndef ask(v): return memoise_prefix(v, more)", "does not begin with None"),
        ("@cache_results(9)\ndef say(words: list[str]): return 1", "cannot be hashed"),
        ("@cache_by_identity(9)\ndef say(words: Sequence[str]): return 1", "cannot be hashed"),
        ("def say(words):\n    words.sort()\nsaid = cache_results(9)(say)", "changes words"),
    ],
)
def test_a_function_that_breaks_a_rule_is_rejected(source: str, problem: str):
    (memo_problem,) = wrong_memos([module_of(source)])
    assert problem in memo_problem


def test_a_function_of_an_impure_package_is_rejected():
    source = "def say(one): return 1\ndef ask(v): return memoise(v, say)"
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
def test_a_cache_of_functools_is_found(source: str):
    assert len(list(other_caches([module_of(source)]))) == 1


def module_of(source: str, name: str = "recto.page.some") -> Module:
    return Module(name=name, path=Path("some.py"), where="some.py", text=source)


def wrong_memos(modules: Sequence[Module]) -> Iterator[str]:
    """Yield memoised functions that break a rule."""
    modules = [module for module in modules if module.name != MEMO]
    functions = {module.name: {node.name: node for node in module.tree.body if is_function(node)} for module in modules}
    for module in modules:
        for node in ast.walk(module.tree):
            for keeper, function, keys in memo_uses(node):
                where = f"{module.where}:{getattr(node, 'lineno', 0)}"
                yield from (f"{where}: {ast.unparse(key)} is no key." for key in keys if isinstance(key, DISPLAYS))
                definition = find_definition(function, module, functions)
                if definition:
                    yield from (f"{where}: {problem}" for problem in problems_of(*definition, keeper))
                else:
                    yield f"{where}: {ast.unparse(function)} is no function at the top of a module of ours."


def other_caches(modules: Sequence[Module]) -> Iterator[str]:
    """Yield functions with a cache of functools."""
    for module in (module for module in modules if module.name != MEMO):
        for name, function in layers.functions(module.tree):
            if any(names_in(decorator) & CACHES for decorator in function.decorator_list):
                yield f"{module.where}:{name}"
        for node in ast.walk(module.tree):
            match node:
                case ast.Call(func=ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name))) if name in CACHES:
                    yield f"{module.where}:{ast.unparse(node)}"
                case _:
                    pass


def memo_uses(node: ast.AST) -> Iterator[tuple[str, ast.expr, Sequence[ast.expr]]]:
    """Yield the memo function that a node uses, the function it is used for, and the keys."""
    match node:
        case ast.Call(func=ast.Name(id=name), args=[_, function, *keys]) if name in FIRST_KEYS:
            yield name, function, keys
        case ast.Call(func=ast.Call(func=ast.Name(id=name)), args=[function]) if name in FIRST_KEYS:
            yield name, function, ()
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            for name in {name for one in node.decorator_list for name in names_in(one)} & FIRST_KEYS.keys():
                yield name, ast.Name(id=node.name), ()
        case _:
            pass


def is_function(node: ast.AST) -> TypeGuard[Function]:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def find_definition(
    name: ast.expr, module: Module, functions: Mapping[str, Mapping[str, Function]]
) -> tuple[str, Function] | None:
    """Return the module and the definition of a function, which may be imported."""
    if not isinstance(name, ast.Name):
        return None
    if name.id in functions[module.name]:
        return module.name, functions[module.name][name.id]
    imports = [(node.module or "", node.names) for node in module.tree.body if isinstance(node, ast.ImportFrom)]
    for home, alias in [(home, alias) for home, aliases in imports for alias in aliases]:
        if (alias.asname or alias.name) == name.id and alias.name in functions.get(home, {}):
            return home, functions[home][alias.name]
    return None


def problems_of(home: str, function: Function, keeper: str) -> Iterator[str]:
    name, parameters = function.name, [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    if layers.package_of(home) not in layers.PURE:
        yield f"{name} is in {home}, and only {' and '.join(layers.PURE)} are pure."
    if isinstance(function, ast.AsyncFunctionDef):
        yield f"{name} is async: its result can be awaited once."
    if any(isinstance(node, ast.Yield | ast.YieldFrom) for node in own_nodes(function)):
        yield f"{name} yields: the second caller gets nothing. Return a tuple."
    if any(isinstance(node, ast.Global | ast.Nonlocal) for node in own_nodes(function)):
        yield f"{name} changes a variable outside of it."
    if function.args.vararg or function.args.kwarg:
        yield f"{name} takes any arguments. Name them."
    for parameter in parameters[FIRST_KEYS[keeper] :]:
        if outer_types(parameter.annotation) & NOT_HASHABLE:
            yield f"{name}: {parameter.arg} cannot be hashed, or can change. Take a tuple or a frozenset."
    if keeper == "memoise_prefix" and (len(parameters) < 2 or "None" not in outer_types(parameters[0].annotation)):
        yield f"{name} does not begin with None, the empty conversation."
    for target in changes_in(function, {parameter.arg for parameter in parameters}):
        yield f"{name} changes {target}, which others have too. Return a new value."


def changes_in(function: Function, parameters: set[str]) -> Iterator[str]:
    """Yield the arguments, or parts of them, that a function changes. A copy under the same name may change."""
    for node in own_nodes(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id="list" | "dict" | "set"))):
                parameters = parameters - {name}
            case _:
                pass
    for node in own_nodes(function):
        match node:
            case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
                target: ast.expr = node
            case ast.Call(func=ast.Attribute(attr=method, value=value)) if method in CHANGING:
                target = value
            case _:
                continue
        root = target
        while isinstance(root, ast.Attribute | ast.Subscript):
            root = root.value
        if isinstance(root, ast.Name) and root.id in parameters:
            yield ast.unparse(target)


def own_nodes(function: Function) -> Iterator[ast.AST]:
    """Yield the nodes of a function without those of inner functions."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)


def outer_types(annotation: ast.expr | None) -> frozenset[str]:
    """Return the names of a type and of its alternatives, without those of its items."""
    match annotation:
        case ast.BinOp(left=left, right=right):
            return outer_types(left) | outer_types(right)
        case ast.Subscript(value=value):
            return outer_types(value)
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Constant(value=name):
            return frozenset({str(name)})
        case _:
            return frozenset()


def names_in(node: ast.AST) -> set[str]:
    return {
        one.id if isinstance(one, ast.Name) else one.attr
        for one in ast.walk(node)
        if isinstance(one, ast.Name | ast.Attribute)
    }
