"""Layer and style rules of the source: imports, purity, names, sizes. Each rule yields one line per violation.

The source is parsed, never imported, so a module that fails on import is checked too.
"""

import ast
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Lowest layer first. A package imports lower layers and itself. Packages of one layer use each other only through
# `ports.py`. `errors`, `ids`, `telemetry` and `__main__` are single modules.
SHIPPED = "shipped"
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "ids"),
    ("conversation",),
    ("page",),
    ("telemetry", "config"),
    ("tracing", "sandbox", "http"),
    ("skills",),
    ("agents",),
    ("tools", "files", "models", "store", "engine"),
    ("worker", SHIPPED, "client"),
    ("api", "cli"),
    ("app",),
    ("__main__",),
)
# May import anything; nothing in src imports them.
FAKES, LIBRARY = "testing", "recto"
# Order of the subpackages of a package: each imports only those before it. Modules of the package itself may import
# all.
SUBPACKAGES: dict[str, tuple[str, ...]] = {
    "conversation": ("input", "ui"),
    "page": ("text", "wire", "fold", "prompt", "steps"),
    "tools": ("documents", "text", "workspace", "commands", "builtin", "external"),
    "files": ("storage", "fetch", "parsing", "documents"),
    "files.parsing": ("formats",),
    "files.parsing.formats": ("pdf", "office"),
    "store": ("database", "log", "files", "runs", "threads", "users", "migrations"),
    "worker": ("context", "tools", "model", "gateway"),
    "api": ("access", "runs", "threads", "files", "copilotkit"),
    "cli": ("sessions", "fold", "replay", "calls", "chat"),
    "cli.chat": ("rendering",),
    "agents.shipped.vibe": ("almanac",),
    "models": ("demo",),
    "agents.shipped.vibe.almanac": ("birth", "bazi", "sky", "tarot"),
}
PURE = ("conversation", "page")
# The package of the wire formats, and the table of model providers.
WIRES, PROVIDERS = "recto.page.wire", "recto.models.choose"

PAGE_STDLIB = frozenset(
    {
        *("__future__", "array", "bisect", "collections", "collections.abc", "contextlib", "dataclasses", "datetime"),
        *(
            "enum",
            "functools",
            "hashlib",
            "itertools",
            "json",
            "math",
            "operator",
            "re",
            "string",
            "typing",
            "urllib.parse",
        ),
    }
)
# Third-party packages that pure packages may import, and the only module that may do so (None: any).
PAGE_PACKAGES: dict[str, str | None] = {"orjson": None, "splintr": "page/text/tokens.py"}
IMPURE_CALLS = frozenset({"open", "print", "input", "eval", "exec", "compile", "breakpoint", "__import__"})
CLOCK_CALLS = frozenset({"now", "utcnow", "today"})

FILE_LINES = {"src": 500, "tests": 500}
FOLDER_MODULES = 15
FUNCTION_LINES = 60
PARAMETERS = 6
NESTING = 4

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
Function = ast.FunctionDef | ast.AsyncFunctionDef
Block = ast.If | ast.For | ast.AsyncFor | ast.While | ast.Try | ast.TryStar | ast.With | ast.AsyncWith | ast.Match


@dataclass(frozen=True, kw_only=True)
class Module:
    name: str
    path: Path
    where: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, filename=self.where)

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def package(self) -> str:
        return package_of(self.name)


@dataclass(frozen=True, kw_only=True)
class Import:
    target: str
    where: str


@dataclass(frozen=True, kw_only=True)
class Measure:
    key: str
    value: int
    limit: int


def modules_under(folder: Path, base: Path, root: Path = ROOT) -> list[Module]:
    """Read every Python file of a folder. Names are relative to `base`: src for the package, the root for tests."""
    paths = (path for path in sorted(folder.rglob("*.py")) if "node_modules" not in path.parts)
    return [read_module(path, base, root) for path in paths]


def read_module(path: Path, base: Path, root: Path) -> Module:
    parts = path.relative_to(base).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return Module(name=name, path=path, where=path.relative_to(root).as_posix(), text=path.read_text(encoding="utf-8"))


def package_of(name: str) -> str:
    """Return the package of a module: `page` for `recto.page.wire.openai`. Shipped agents are one package."""
    parts = name.split(".")
    if parts[1:3] == ["agents", SHIPPED]:
        return SHIPPED
    return parts[1] if len(parts) > 1 else parts[0]


# Imports


def imports_of(module: Module, module_names: frozenset[str]) -> Iterator[Import]:
    """Yield every import, also in functions. `from a import b` is `a.b` if that is a module."""
    for node in ast.walk(module.tree):
        where = f"{module.where}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Import):
            yield from (Import(target=alias.name, where=where) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = absolute(module, node)
            full = (f"{base}.{alias.name}" for alias in node.names)
            targets = {name if name in module_names else base for name in full}
            yield from (Import(target=target, where=where) for target in sorted(targets))


def absolute(module: Module, node: ast.ImportFrom) -> str:
    if node.level == 0:
        return node.module or ""
    package = module.name.split(".") if module.is_package else module.name.split(".")[:-1]
    base = package[: len(package) - node.level + 1]
    return ".".join([*base, node.module] if node.module else base)


def internal_imports(modules: Sequence[Module]) -> Iterator[tuple[Module, Import]]:
    """Yield the imports of modules of `recto` itself."""
    module_names = frozenset(module.name for module in modules)
    for module in modules:
        for imported in imports_of(module, module_names):
            if imported.target.split(".")[0] == "recto":
                yield module, imported


def upward_imports(modules: Sequence[Module]) -> Iterator[str]:
    level = {package: height for height, packages in enumerate(LAYERS) for package in packages}
    for package in sorted({module.package for module in modules} - level.keys() - {FAKES, LIBRARY}):
        yield f"src/recto/{package}: no layer has this package. Add it to LAYERS in tests/layers.py."
    for module, imported in internal_imports(modules):
        if reason := import_problem(module.package, imported.target, level):
            yield f"{imported.where}: {module.package} imports {imported.target}: {reason}"


def import_problem(package: str, target: str, level: dict[str, int]) -> str | None:
    """Return why `package` may not import `target`, or None if it may."""
    other = package_of(target)
    if package in {other, FAKES, LIBRARY}:
        return None
    if other == LIBRARY:
        return "the library's names are for programs. Import the module that has it."
    if other == FAKES:
        return "the product never imports recto.testing. Move what is needed into a package."
    if package not in level or other not in level:
        return f"'{package if package not in level else other}' is not in LAYERS of tests/layers.py. Add it there."
    if level[other] > level[package]:
        return "imports go down only. Move the line up, or pass the value in as an argument."
    if level[other] == level[package] and target.split(".")[2:3] != ["ports"]:
        return f"packages of one layer meet only in recto.{other}.ports, or are wired in a higher package."
    return None


def cycles(modules: Sequence[Module]) -> list[str]:
    """Return one line per import cycle, with one path around it."""
    graph: dict[str, list[str]] = {module.name: [] for module in modules}
    for module, imported in internal_imports(modules):
        if imported.target in graph:
            graph[module.name].append(imported.target)
    paths: dict[frozenset[str], list[str]] = {}
    for start in sorted(graph):
        path = cycle_through(graph, start)
        if path:
            paths.setdefault(frozenset(path), path)
    return [f"{' -> '.join(path)}: a cycle. Move what they share into a lower module." for path in paths.values()]


def cycle_through(graph: dict[str, list[str]], start: str) -> list[str] | None:
    """Return the shortest import path from a module back to itself."""
    queue = [[start]]
    ids: set[str] = set()
    while queue:
        path = queue.pop(0)
        for following in graph[path[-1]]:
            if following == start:
                return [*path, start]
            if following not in ids:
                ids.add(following)
                queue.append([*path, following])
    return None


# Subpackages


def wrong_subpackage_imports(modules: Sequence[Module]) -> Iterator[str]:
    """Yield imports against the order of subpackages, and subpackages without an order."""
    folders = {module.name.removeprefix("recto.") for module in modules if module.is_package}
    for package in sorted(folders):
        inside = {name.removeprefix(f"{package}.") for name in folders if name.startswith(f"{package}.")}
        for subpackage in sorted({name for name in inside if "." not in name} - set(SUBPACKAGES.get(package, ()))):
            yield f"src/recto/{package.replace('.', '/')}/{subpackage}: add it to SUBPACKAGES in tests/layers.py."
    for module, imported in internal_imports(modules):
        for package, subpackages in SUBPACKAGES.items():
            here, there = subpackage_of(module.name, package), subpackage_of(imported.target, package)
            if {here, there} <= set(subpackages) and subpackages.index(there) > subpackages.index(here):
                yield f"{imported.where}: {package}.{here} imports {package}.{there}. Move the shared code down."


def subpackage_of(name: str, package: str) -> str:
    """Return the subpackage of a package that a module is in, or the module itself if it is in none."""
    inside = name.removeprefix(f"recto.{package}.")
    return inside.split(".")[0] if inside != name else ""


def overfull_folders(modules: Sequence[Module]) -> Iterator[str]:
    """Yield folders with too many modules. Migrations are exempt: their number only grows."""
    numbers = Counter(module.path.parent for module in modules if not module.is_package)
    for folder, number in numbers.items():
        if number > FOLDER_MODULES and folder.name != "versions":
            yield f"{folder}: {number} modules, the limit is {FOLDER_MODULES}. Give it subpackages, or join slices."


def duplicate_types(modules: Sequence[Module]) -> dict[str, list[str]]:
    """Return public types that several modules define under one name, with the modules."""
    places_of: defaultdict[str, list[str]] = defaultdict(list)
    for module in modules:
        for name in {name for node in module.tree.body if (name := type_name(node))}:
            places_of[name].append(module.where)
    return {name: sorted(places) for name, places in places_of.items() if len(places) > 1}


def type_name(node: ast.stmt) -> str | None:
    """Return the public type that a statement defines: a class or a type alias."""
    match node:
        case ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id="TypeAlias")):
            pass
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Subscript()) if not name.isupper():
            pass
        case _:
            return None
    return name if name[0].isupper() else None


def duplicate_modules(modules: Sequence[Module]) -> dict[str, list[str]]:
    """Return module names that occur in several places. A folder may have the name of a module in it."""
    places_of: defaultdict[str, list[str]] = defaultdict(list)
    for module in (module for module in modules if not module.is_package):
        places_of[module.name.rpartition(".")[2]].append(module.where)
    return {name: sorted(places) for name, places in places_of.items() if len(places) > 1}


# Providers


def provider_names(modules: Sequence[Module], speakers: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield modules that contain a provider's name, except for its wire format and the table of providers."""
    names = {f"{provider}{end}": provider for provider in speakers for end in ("", ":")}
    for module in (module for module in modules if module.name != PROVIDERS):
        for node in ast.walk(module.tree):
            value = node.value if isinstance(node, ast.Constant) else None
            provider = names.get(value) if isinstance(value, str) else None
            if provider and module.name != f"{WIRES}.{speakers[provider].replace('-', '_')}":
                where = f"{module.where}:{getattr(node, 'lineno', 0)}"
                yield module.where, f"{where}: knows {provider} by its name. Ask the Wire or the WireProtocol."


# Purity


def impurities(modules: Sequence[Module]) -> Iterator[str]:
    """Yield statements of the pure packages that a pure function may not contain."""
    module_names = frozenset(module.name for module in modules)
    for module in (module for module in modules if module.package in PURE):
        for imported in imports_of(module, module_names):
            if reason := impure_import(module, imported):
                yield f"{imported.where}: {reason}"
        for node in ast.walk(module.tree):
            if reason := impure_node(node):
                yield f"{module.where}:{getattr(node, 'lineno', 0)}: {reason}"


def impure_import(module: Module, imported: Import) -> str | None:
    target = imported.target
    root = target.split(".")[0]
    if root == "recto":
        if package_of(target) in {*PURE, "errors"}:
            return None
        return f"{module.package} imports {target}. It is pure: it may import {', '.join(PURE)} and errors only."
    if root in PAGE_PACKAGES:
        only = PAGE_PACKAGES[root]
        if only is None or module.where.endswith(only):
            return None
        return f"{root} is imported only by {only}. Go through its port."
    if target in PAGE_STDLIB:
        return None
    return f"{module.package} is pure and may not import {target}. Do that in another package and pass the value in."


def impure_node(node: ast.AST) -> str | None:
    match node:
        case ast.AsyncFunctionDef() | ast.Await() | ast.AsyncFor() | ast.AsyncWith() | ast.comprehension(is_async=1):
            return "no async in a pure package. Await outside and pass the value in."
        case ast.Global():
            return f"global {', '.join(node.names)}: a pure package keeps no state. Return a new value."
        case ast.Call(func=ast.Name(id=name)) if name in IMPURE_CALLS:
            return f"{name}() is not pure. Do it in another package and pass the value in."
        case ast.Call(func=ast.Attribute(attr=name)) if name in CLOCK_CALLS:
            return f".{name}() reads the clock. Take `now` as an argument."
        case ast.Call(func=ast.Attribute(attr="fromtimestamp"), args=[_], keywords=[]):
            return ".fromtimestamp() without a zone uses this machine's. Pass tz=UTC."
        case ast.Call(func=ast.Attribute(attr="astimezone"), args=[], keywords=[]):
            return ".astimezone() without a zone uses this machine's. Pass one."
        case _:
            return None


# Sizes


def measures(modules: Sequence[Module]) -> Iterator[Measure]:
    for module in modules:
        limit = FILE_LINES[module.where.split("/")[0]]
        yield Measure(key=f"lines {module.where}", value=len(module.text.splitlines()), limit=limit)
        for name, function in functions(module.tree):
            where = f"{module.where}:{name}"
            lines = (function.end_lineno or function.lineno) - function.lineno + 1
            yield Measure(key=f"lines {where}", value=lines, limit=FUNCTION_LINES)
            yield Measure(key=f"parameters {where}", value=parameters(function), limit=PARAMETERS)
            yield Measure(key=f"nesting {where}", value=depth(function.body), limit=NESTING)


def functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function]]:
    """Yield every function with its dotted name: `Class.method`, `outer.inner`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition):
            name = f"{prefix}{child.name}"
            if not isinstance(child, ast.ClassDef):
                yield name, child
            yield from functions(child, f"{name}.")
        else:
            yield from functions(child, prefix)


def parameters(function: Function) -> int:
    """Count the parameters without `self` and `cls`."""
    spec = function.args
    positional = [*spec.posonlyargs, *spec.args]
    rest = [one for one in (spec.vararg, spec.kwarg) if one]
    is_bound_method = bool(positional) and positional[0].arg in {"self", "cls"}
    return len(positional) + len(spec.kwonlyargs) + len(rest) - is_bound_method


def depth(body: Sequence[ast.stmt]) -> int:
    """Return the nesting depth of blocks. An elif is no deeper than its if; an inner function starts at zero."""
    return max((1 + max(map(depth, branches(node))) for node in body if isinstance(node, Block)), default=0)


def branches(node: Block) -> list[list[ast.stmt]]:
    match node:
        case ast.If(orelse=[ast.If() as following]):
            return [node.body, *branches(following)]
        case ast.Match():
            return [case.body for case in node.cases]
        case ast.Try() | ast.TryStar():
            return [node.body, *(handler.body for handler in node.handlers), node.orelse, node.finalbody]
        case ast.If() | ast.For() | ast.AsyncFor() | ast.While():
            return [node.body, node.orelse]
        case _:
            return [node.body]


def size_problems(all_sizes: Iterable[Measure], exceptions: dict[str, int]) -> Iterator[str]:
    """Yield sizes over their limit and exceptions that are larger than necessary."""
    sizes_by_key = {one.key: one for one in all_sizes}
    for key, one in sizes_by_key.items():
        allowed = exceptions.get(key)
        if one.value > (allowed or one.limit):
            yield f"{key}: {one.value}, the limit is {allowed or one.limit}. Split it."
        elif allowed and one.value <= one.limit:
            yield f"{key}: {one.value} is within the limit. Remove the exception."
        elif allowed and one.value < allowed:
            yield f"{key}: {one.value}, the exception says {allowed}. Lower it."
    for key in sorted(exceptions.keys() - sizes_by_key.keys()):
        yield f"{key}: no such file or function. Remove the exception."


# Names and docstrings


def missing_docstrings(modules: Sequence[Module]) -> Iterator[str]:
    """Yield modules, public functions and public classes without a docstring. Overloads need none."""
    for module in modules:
        if not has_docstring(module.tree):
            yield f"{module.where}: no docstring. Say what it is for and what it refuses to do."
        for node in module.tree.body:
            if isinstance(node, Definition) and is_public(node) and not has_docstring(node):
                yield f"{module.where}:{node.lineno}: {node.name} is public. Give it a docstring, or a leading _."


def has_docstring(node: Definition | ast.Module) -> bool:
    return bool(ast.get_docstring(node))


def is_public(node: Definition) -> bool:
    overload = any(ast.unparse(decorator).endswith("overload") for decorator in node.decorator_list)
    return not overload and not node.name.startswith("_")


def vague_names(modules: Sequence[Module]) -> Iterator[str]:
    """Yield file and class names that say nothing."""
    vague = re.compile(r"(utils?|helpers?|common|misc|managers?)\.py")
    for module in modules:
        if vague.fullmatch(module.path.name):
            yield f"{module.where}: name the file for what is in it."
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef) and node.name.endswith("Manager"):
                yield f"{module.where}:{node.lineno}: class {node.name}: name it for what it is."


def bare_ignores(modules: Sequence[Module]) -> Iterator[str]:
    """Yield comments that silence a checker without a code and a reason, or for a whole file."""
    silenced = re.compile(r"#\s*(noqa|type:\s*ignore|pyright:|ruff:\s*noqa|flake8:)")
    reasoned = re.compile(r"#\s*(noqa: [A-Z]+\d+(, ?[A-Z]+\d+)*|(type|pyright): ?ignore\[[\w, -]+\]) - \S")
    for module in modules:
        for token in tokenize.generate_tokens(StringIO(module.text).readline):
            comment = token.string if token.type == tokenize.COMMENT else ""
            if silenced.search(comment) and not reasoned.search(comment):
                yield f"{module.where}:{token.start[0]}: write the code and the reason: `noqa: X123 - reason`."
