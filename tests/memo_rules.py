"""What `recto.conversation.memo` demands of the functions it is given, read from their source.

Whatever is kept is found again by the function and its arguments, and given out to all who ask: so a function stands
at the top of a pure module, is the same object each time, answers with a value and changes nothing it is given.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.layers import Function, Module, functions

MEMO = "recto.conversation.memo"
PURE = ("conversation", "page")
# Who keeps what a function says: its place among the arguments, and the function's first parameter that is a key.
KEEPERS: Mapping[str, tuple[int, int]] = {"memoise": (1, 1), "memoise_last": (1, 1), "memoise_prefix": (1, 2)}
RECENT = ("cache_results", "cache_by_identity")
CACHES = ("cache", "lru_cache")
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


@dataclass(frozen=True, kw_only=True)
class Use:
    """A call that keeps what a function says: where, what the function is called there, and who calls."""

    module: Module
    call: ast.Call
    keeper: str
    function: ast.expr
    within: Function | None

    @property
    def where(self) -> str:
        return f"{self.module.where}:{self.call.lineno}"


def wrong_memos(modules: Sequence[Module]) -> Iterator[str]:
    """Functions that are kept by and must not be."""
    functions = {module.name: dict(_top_functions(module)) for module in modules}
    uses = list(_uses(modules))
    for use in uses:
        for argument in use.call.args[2:]:
            if isinstance(argument, DISPLAYS):
                yield f"{use.where}: {ast.unparse(argument)} is no key. Give {use.keeper} what is hashable and stays."
    for use in (*uses, *_handed_on(modules, uses)):
        definition = _find_definition(use.function, use.module, functions)
        if definition:
            yield from (f"{use.where}: {problem}" for problem in _problems(*definition, KEEPERS[use.keeper][1]))
            yield from (
                f"{use.where}: {problem}" for problem in _grows(definition[1]) if use.keeper == "memoise_prefix"
            )
        elif _parameter_of(use) is None:
            name = ast.unparse(use.function)
            yield f"{use.where}: {name} is no function at the top of a module of ours. {use.keeper} would not know it."
    for module, function in _recent(modules, functions):
        yield from (f"{module.where}:{function.lineno}: {problem}" for problem in _problems(module, function, 0))


def _handed_on(modules: Sequence[Module], uses: Sequence[Use]) -> Iterator[Use]:
    """Calls that give a function to one that has it kept by in turn."""
    waiting, done = list(uses), set[tuple[str, int]]()
    while waiting:
        use = waiting.pop()
        place = _parameter_of(use)
        if use.within is None or place is None or (use.within.name, place) in done:
            continue
        done.add((use.within.name, place))
        new_uses = [
            Use(module=module, call=call, keeper="memoise", function=argument, within=within)
            for module, call, within in _calls(modules)
            if (argument := _find_argument(call, use.within.name, place)) is not None
        ]
        yield from new_uses
        waiting += new_uses


def _find_argument(call: ast.Call, name: str, place: int) -> ast.expr | None:
    """What a call gives for a parameter of this function, called itself or by who keeps what it says."""
    match call:
        case ast.Call(func=ast.Name(id=called), args=args) if called == name and len(args) > place:
            return args[place]
        case ast.Call(func=ast.Name(id=keeper), args=[_, ast.Name(id=kept), *rest]) if keeper in KEEPERS:
            at = place - KEEPERS[keeper][1]
            return rest[at] if kept == name and 0 <= at < len(rest) else None
        case _:
            return None


def other_caches(modules: Sequence[Module]) -> Iterator[str]:
    """Functions that a cache of Python's own keeps the answers of, whoever is deleted."""
    for module in modules:
        if module.name == MEMO:
            continue
        for name, function in functions(module.tree):
            decorators = [node for node in function.decorator_list if set(_names(node)) & set(CACHES)]
            yield from [f"{module.where}:{name}"] if decorators else []
        for node in ast.walk(module.tree):
            match node:
                case ast.Call(func=ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name))) if name in CACHES:
                    yield f"{module.where}:{ast.unparse(node)}"
                case _:
                    pass


def _uses(modules: Sequence[Module]) -> Iterator[Use]:
    for module, call, within in _calls(modules):
        match call:
            case ast.Call(func=ast.Name(id=keeper) | ast.Attribute(attr=keeper)) if keeper in KEEPERS:
                yield Use(module=module, call=call, keeper=keeper, function=call.args[1], within=within)
            case _:
                pass


def _calls(modules: Sequence[Module]) -> Iterator[tuple[Module, ast.Call, Function | None]]:
    for module in modules:
        inside = {id(node): function for _, function in functions(module.tree) for node in ast.walk(function)}
        calls = [node for node in ast.walk(module.tree) if isinstance(node, ast.Call)] if module.name != MEMO else []
        yield from ((module, call, inside.get(id(call))) for call in calls)


def _recent(
    modules: Sequence[Module], functions: Mapping[str, Mapping[str, Function]]
) -> Iterator[tuple[Module, Function]]:
    for module in modules:
        for function in functions[module.name].values():
            if any(set(_names(node)) & set(RECENT) for node in function.decorator_list):
                yield module, function
        for node in ast.walk(module.tree):
            match node:
                case ast.Call(func=ast.Call(func=ast.Name(id=name)), args=[ast.Name(id=kept)]) if name in RECENT:
                    yield module, functions[module.name][kept]
                case _:
                    pass


def _top_functions(module: Module) -> Iterator[tuple[str, Function]]:
    for node in module.tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node


def _find_definition(
    name: ast.expr, module: Module, functions: Mapping[str, Mapping[str, Function]]
) -> tuple[Module, Function] | None:
    if not isinstance(name, ast.Name):
        return None
    if name.id in functions[module.name]:
        return module, functions[module.name][name.id]
    imports = [node for node in module.tree.body if isinstance(node, ast.ImportFrom)]
    found_imports = [(node.module or "", alias) for node in imports for alias in node.names]
    for home, alias in found_imports:
        if (alias.asname or alias.name) == name.id and alias.name in functions.get(home, {}):
            return Module(name=home, path=module.path, where=home, text=""), functions[home][alias.name]
    return None


def _parameter_of(use: Use) -> int | None:
    """Which parameter of the one who calls the function is; None where it is none."""
    names = [one.arg for one in _parameters(use.within)] if use.within else []
    return names.index(use.function.id) if isinstance(use.function, ast.Name) and use.function.id in names else None


def _problems(module: Module, function: Function, first: int) -> Iterator[str]:
    name = function.name
    if module.package not in PURE:
        yield f"{name} is in {module.name}, and only {' and '.join(PURE)} are pure."
    if isinstance(function, ast.AsyncFunctionDef):
        yield f"{name} is async: what it gives can be waited for once."
    if any(isinstance(node, ast.Yield | ast.YieldFrom) for node in _own(function)):
        yield f"{name} yields: whoever asks second gets nothing. Return a tuple."
    if any(isinstance(node, ast.Global | ast.Nonlocal) for node in _own(function)):
        yield f"{name} changes what is not its own."
    if function.args.vararg or function.args.kwarg:
        yield f"{name} takes any arguments. Name them."
    for parameter in _parameters(function)[first:]:
        if _outer(parameter.annotation) & NOT_HASHABLE:
            yield f"{name}: {parameter.arg} may be what cannot be hashed, or changes. Take a tuple or a frozenset."
    yield from (f"{name} changes {what}, which others have too. Return a new one." for what in _changed(function))


def _grows(function: Function) -> Iterator[str]:
    parameters = _parameters(function)
    if len(parameters) < 2 or "None" not in _outer(parameters[0].annotation):
        yield f"{function.name} does not begin with None. That is the empty conversation."


def _changed(function: Function) -> Iterator[str]:
    """What it is given, and changes."""
    parameters = {parameter.arg for parameter in _parameters(function)} - set(_made_anew(function))
    for node in _own(function):
        match node:
            case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
                target: ast.expr = node
            case ast.Call(func=ast.Attribute(attr=method, value=value)) if method in CHANGING:
                target = value
            case _:
                continue
        if _root(target) in parameters:
            yield ast.unparse(target)


def _made_anew(function: Function) -> Iterator[str]:
    """Parameters whose name stands for a copy from some line on."""
    for node in _own(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id="list" | "dict" | "set"))):
                yield name
            case _:
                pass


def _own(function: Function) -> Iterator[ast.AST]:
    """Its nodes, without those of functions within it."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)


def _parameters(function: Function) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def _outer(annotation: ast.expr | None) -> frozenset[str]:
    """The names of a type itself, of all that it may be; not of what is in it."""
    match annotation:
        case ast.BinOp(left=left, right=right):
            return _outer(left) | _outer(right)
        case ast.Subscript(value=value):
            return _outer(value)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return frozenset({name})
        case ast.Constant(value=value):
            return frozenset({str(value)})
        case _:
            return frozenset()


def _names(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        match inner:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield name
            case _:
                pass


def _root(node: ast.expr) -> str | None:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
