"""What the house rules know of the source: modules, imports, purity, sizes. A finding is a line that says what to do.

The source is parsed, never imported: a module that would fail on import is judged all the same.
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

# Low to high. A room imports lower layers and itself; rooms of one layer meet only through `ports.py`.
# `errors`, `ids`, `telemetry` and `__main__` are single files. The package's own __init__.py names what programs use.
SHIPPED = "shipped"
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "ids"),
    ("conversation",),
    ("page",),
    ("telemetry", "config"),
    ("tracing", "sandbox"),
    ("skills",),
    ("agents",),
    ("tools", "files", "models", "store", "engine"),
    ("worker", SHIPPED, "client"),
    ("api", "cli"),
    ("app",),
    ("__main__",),
)
# May import anything; nobody in src imports them.
FAKES, LIBRARY = "testing", "recto"
# The corners of a room, low to high: one imports those before it. What stands in the room itself may meet all.
CORNERS: dict[str, tuple[str, ...]] = {
    "conversation": ("state", "input", "ui", "snapshots"),
    "page": ("text", "wire", "fold", "prompt", "steps", "request"),
    "tools": ("documents", "text", "workspace", "commands", "builtin", "external"),
    "files": ("encoding", "types", "urls", "storage", "fetch", "parsing", "documents"),
    "files.parsing": ("formats", "pool"),
    "files.parsing.formats": ("text", "opendocument", "pdf", "slides", "sheets"),
    "store": ("database", "log", "files", "runs", "threads", "users", "migrations"),
    "worker": ("context", "tools", "model", "gateway"),
    "api": ("access", "runs", "threads", "files", "users", "ops", "gateway", "copilotkit"),
    "cli": ("sessions", "fold", "replay", "calls", "chat"),
    "cli.chat": ("seen",),
    "agents.shipped.vibe": ("almanac",),
    "models": ("demo",),
    "agents.shipped.vibe.almanac": ("birth", "bazi", "sky", "tarot"),
}
PURE = ("conversation", "page")
# Where a wire format is written, and the table of those who have models.
WIRES, PROVIDERS = "recto.page.wire", "recto.models.choose"

PAGE_STDLIB = frozenset(
    {
        *("__future__", "array", "bisect", "collections", "collections.abc", "dataclasses", "datetime", "enum"),
        *("functools", "hashlib", "itertools", "json", "math", "operator", "re", "string", "typing", "urllib.parse"),
    }
)
# Third-party packages the pure rooms may import, and the one file that may do so (None: any).
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
    """One Python file: its dotted name, where it is, and its text."""

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
    def room(self) -> str:
        return room_of(self.name)


@dataclass(frozen=True, kw_only=True)
class Import:
    """One imported module, by its full dotted name, and the line that imports it."""

    target: str
    where: str


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A size of one file or function, with the limit it should keep."""

    key: str
    value: int
    limit: int


def modules_under(folder: Path, base: Path, root: Path = ROOT) -> list[Module]:
    """Every Python file under a folder, named from `base` (src for the package, the root for tests)."""
    paths = (path for path in sorted(folder.rglob("*.py")) if "node_modules" not in path.parts)
    return [read_module(path, base, root) for path in paths]


def read_module(path: Path, base: Path, root: Path) -> Module:
    parts = path.relative_to(base).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return Module(name=name, path=path, where=path.relative_to(root).as_posix(), text=path.read_text(encoding="utf-8"))


def room_of(name: str) -> str:
    """`recto.page.wire.openai` lives in `page`; the package itself is the room `recto`.

    What shipped agents bring along is a room of its own: nobody imports it, it is loaded as any agent's tools are.
    """
    parts = name.split(".")
    if parts[1:3] == ["agents", SHIPPED]:
        return SHIPPED
    return parts[1] if len(parts) > 1 else parts[0]


# Imports


def imports_of(module: Module, known: frozenset[str]) -> Iterator[Import]:
    """Every import, inside functions and under TYPE_CHECKING too. `from a import b` is a.b where that is a module."""
    for node in ast.walk(module.tree):
        where = f"{module.where}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Import):
            yield from (Import(target=alias.name, where=where) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = absolute(module, node)
            full = (f"{base}.{alias.name}" for alias in node.names)
            targets = {name if name in known else base for name in full}
            yield from (Import(target=target, where=where) for target in sorted(targets))


def absolute(module: Module, node: ast.ImportFrom) -> str:
    if node.level == 0:
        return node.module or ""
    package = module.name.split(".") if module.is_package else module.name.split(".")[:-1]
    base = package[: len(package) - node.level + 1]
    return ".".join([*base, node.module] if node.module else base)


def inner_imports(modules: Sequence[Module]) -> Iterator[tuple[Module, Import]]:
    """The imports that stay inside the package."""
    known = frozenset(module.name for module in modules)
    for module in modules:
        for found in imports_of(module, known):
            if found.target.split(".")[0] == "recto":
                yield module, found


def wrong_directions(modules: Sequence[Module]) -> Iterator[str]:
    level = {room: height for height, rooms in enumerate(LAYERS) for room in rooms}
    for room in sorted({module.room for module in modules} - level.keys() - {FAKES, LIBRARY}):
        yield f"src/recto/{room}: no layer has this room. Add it to LAYERS in tests/house.py."
    for module, imported in inner_imports(modules):
        if reason := refusal(module.room, imported.target, level):
            yield f"{imported.where}: {module.room} imports {imported.target}: {reason}"


def refusal(room: str, target: str, level: dict[str, int]) -> str | None:
    """Why `room` may not import `target`, or None if it may."""
    other = room_of(target)
    if room in {other, FAKES, LIBRARY}:
        return None
    if other == LIBRARY:
        return "the library's names are for programs. Import the module that has it."
    if other == FAKES:
        return "the product never imports recto.testing. Move what is needed into a room."
    if room not in level or other not in level:
        return f"'{room if room not in level else other}' is not in LAYERS of tests/house.py. Add it there."
    if level[other] > level[room]:
        return "imports go down only. Move the line up, or pass the value in as an argument."
    if level[other] == level[room] and target.split(".")[2:3] != ["ports"]:
        return f"rooms of one layer meet only through ports. Import recto.{other}.ports, or wire them in a higher room."
    return None


def cycles(modules: Sequence[Module]) -> list[str]:
    """One line per group of modules that import each other, with one way round."""
    graph: dict[str, list[str]] = {module.name: [] for module in modules}
    for module, imported in inner_imports(modules):
        if imported.target in graph:
            graph[module.name].append(imported.target)
    found: dict[frozenset[str], list[str]] = {}
    for start in sorted(graph):
        path = way_back(graph, start)
        if path:
            found.setdefault(frozenset(path), path)
    return [f"{' -> '.join(path)}: a cycle. Move what they share into a lower module." for path in found.values()]


def way_back(graph: dict[str, list[str]], start: str) -> list[str] | None:
    """The shortest path from a module back to itself."""
    queue = [[start]]
    seen: set[str] = set()
    while queue:
        path = queue.pop(0)
        for following in graph[path[-1]]:
            if following == start:
                return [*path, start]
            if following not in seen:
                seen.add(following)
                queue.append([*path, following])
    return None


# Corners


def wrong_corners(modules: Sequence[Module]) -> Iterator[str]:
    """Imports between corners of a room against their order, and corners that have none."""
    folders = {module.name.removeprefix("recto.") for module in modules if module.is_package}
    for room in sorted(folders):
        inside = {name.removeprefix(f"{room}.") for name in folders if name.startswith(f"{room}.")}
        for corner in sorted({name for name in inside if "." not in name} - set(CORNERS.get(room, ()))):
            yield f"src/recto/{room.replace('.', '/')}/{corner}: no order. Add it to CORNERS in tests/house.py."
    for module, imported in inner_imports(modules):
        for room, corners in CORNERS.items():
            here, there = corner_of(module.name, room), corner_of(imported.target, room)
            if {here, there} <= set(corners) and corners.index(there) > corners.index(here):
                yield f"{imported.where}: {room}.{here} imports {room}.{there}, a later one. Move what is shared down."


def corner_of(name: str, room: str) -> str:
    """The corner of a room that a module is in; the module itself where it is in none."""
    inside = name.removeprefix(f"recto.{room}.")
    return inside.split(".")[0] if inside != name else ""


def crowded(modules: Sequence[Module]) -> Iterator[str]:
    """Folders of more modules than one can look over. Revisions of the database only ever grow in number."""
    found = Counter(module.path.parent for module in modules if not module.is_package)
    for folder, number in found.items():
        if number > FOLDER_MODULES and folder.name != "versions":
            yield f"{folder}: {number} modules, the limit is {FOLDER_MODULES}. Give it corners, or join slices."


def defined_twice(modules: Sequence[Module]) -> dict[str, list[str]]:
    """Public types that several modules define under one name, and where."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for module in modules:
        for name in {name for node in module.tree.body if (name := type_name(node))}:
            found[name].append(module.where)
    return {name: sorted(places) for name, places in found.items() if len(places) > 1}


def type_name(node: ast.stmt) -> str | None:
    """The public type a statement defines: a class, or another name for a type."""
    match node:
        case ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id="TypeAlias")):
            pass
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Subscript()) if not name.isupper():
            pass
        case _:
            return None
    return name if name[0].isupper() else None


def same_names(modules: Sequence[Module]) -> dict[str, list[str]]:
    """Modules of one name in several places. A folder may have the name of what is in it."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for module in (module for module in modules if not module.is_package):
        found[module.name.rpartition(".")[2]].append(module.where)
    return {name: sorted(places) for name, places in found.items() if len(places) > 1}


# Wires


def known_by_name(modules: Sequence[Module], speakers: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Where a provider's name stands as a value: the file, and what to do. `speakers` are providers and their wires.

    Whoever asks for a name ("is it anthropic?") knows a provider; what is particular to one is a value of its own.
    Its wire may name it, and the table of providers.
    """
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
    """What the pure rooms do that a pure function may not."""
    known = frozenset(module.name for module in modules)
    for module in (module for module in modules if module.room in PURE):
        for imported in imports_of(module, known):
            if reason := impure_import(module, imported):
                yield f"{imported.where}: {reason}"
        for node in ast.walk(module.tree):
            if reason := impure_node(node):
                yield f"{module.where}:{getattr(node, 'lineno', 0)}: {reason}"


def impure_import(module: Module, imported: Import) -> str | None:
    target = imported.target
    package = target.split(".")[0]
    if package == "recto":
        if room_of(target) in {*PURE, "errors"}:
            return None
        return f"{module.room} imports {target}. It is pure: it may import {', '.join(PURE)} and errors only."
    if package in PAGE_PACKAGES:
        only = PAGE_PACKAGES[package]
        if only is None or module.where.endswith(only):
            return None
        return f"{package} is imported only by {only}. Go through its port."
    if target in PAGE_STDLIB:
        return None
    return f"{module.room} is pure and may not import {target}. Do that in another room and pass the value in."


def impure_node(node: ast.AST) -> str | None:
    match node:
        case ast.AsyncFunctionDef() | ast.Await() | ast.AsyncFor() | ast.AsyncWith() | ast.comprehension(is_async=1):
            return "no async in a pure room. Await outside and pass the value in."
        case ast.Global():
            return f"global {', '.join(node.names)}: a pure room keeps no state. Return a new value."
        case ast.Call(func=ast.Name(id=name)) if name in IMPURE_CALLS:
            return f"{name}() is not pure. Do it in another room and pass the value in."
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
    """Every function with its dotted name: `Class.method`, `outer.inner`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition):
            name = f"{prefix}{child.name}"
            if not isinstance(child, ast.ClassDef):
                yield name, child
            yield from functions(child, f"{name}.")
        else:
            yield from functions(child, prefix)


def parameters(function: Function) -> int:
    """How many, `self` and `cls` not counted."""
    spec = function.args
    positional = [*spec.posonlyargs, *spec.args]
    rest = [one for one in (spec.vararg, spec.kwarg) if one]
    bound = bool(positional) and positional[0].arg in {"self", "cls"}
    return len(positional) + len(spec.kwonlyargs) + len(rest) - bound


def depth(body: Sequence[ast.stmt]) -> int:
    """How deep blocks stand in one another. An elif is no deeper than its if; an inner function starts anew."""
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


def oversized(found: Iterable[Measure], exceptions: dict[str, int]) -> Iterator[str]:
    """Sizes over their limit, and exceptions that are no longer exact: they may only fall."""
    sizes = {one.key: one for one in found}
    for key, one in sizes.items():
        allowed = exceptions.get(key)
        if one.value > (allowed or one.limit):
            yield f"{key}: {one.value}, the limit is {allowed or one.limit}. Split it."
        elif allowed and one.value <= one.limit:
            yield f"{key}: {one.value} is within the limit. Remove the exception."
        elif allowed and one.value < allowed:
            yield f"{key}: {one.value}, the exception says {allowed}. Lower it."
    for key in sorted(exceptions.keys() - sizes.keys()):
        yield f"{key}: no such file or function. Remove the exception."


# Words


def undocumented(modules: Sequence[Module]) -> Iterator[str]:
    """Modules, and public functions and classes at module level, that say nothing. Overloads need not."""
    for module in modules:
        if not says(module.tree):
            yield f"{module.where}: no docstring. Say what it is for and what it refuses to do."
        for node in module.tree.body:
            if isinstance(node, Definition) and is_public(node) and not says(node):
                yield f"{module.where}:{node.lineno}: {node.name} is public. Give it a docstring, or a leading _."


def says(node: Definition | ast.Module) -> bool:
    return bool(ast.get_docstring(node))


def is_public(node: Definition) -> bool:
    overload = any(ast.unparse(decorator).endswith("overload") for decorator in node.decorator_list)
    return not overload and not node.name.startswith("_")


def refused_names(modules: Sequence[Module]) -> Iterator[str]:
    """File and class names that say nothing."""
    vague = re.compile(r"(utils?|helpers?|common|misc|managers?)\.py")
    for module in modules:
        if vague.fullmatch(module.path.name):
            yield f"{module.where}: name the file for what is in it."
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef) and node.name.endswith("Manager"):
                yield f"{module.where}:{node.lineno}: class {node.name}: name it for what it is."


def any_types(modules: Sequence[Module]) -> Iterator[str]:
    for module in modules:
        for node in ast.walk(module.tree):
            if names_any(node):
                line = getattr(node, "lineno", 0)
                yield f"{module.where}:{line}: Any. Name the type, or use object and narrow it."


def names_any(node: ast.AST) -> bool:
    match node:
        case ast.ImportFrom(names=names):
            return any(alias.name == "Any" for alias in names)
        case ast.Attribute(attr="Any", value=ast.Name(id="typing" | "t" | "typing_extensions")):
            return True
        case _:
            return False


def bare_ignores(modules: Sequence[Module]) -> Iterator[str]:
    """Comments that silence a checker without a code and a reason, or for a whole file."""
    silenced = re.compile(r"#\s*(noqa|type:\s*ignore|pyright:|ruff:\s*noqa|flake8:)")
    reasoned = re.compile(r"#\s*(noqa: [A-Z]+\d+(, ?[A-Z]+\d+)*|(type|pyright): ?ignore\[[\w, -]+\]) - \S")
    for module in modules:
        for token in tokenize.generate_tokens(StringIO(module.text).readline):
            comment = token.string if token.type == tokenize.COMMENT else ""
            if silenced.search(comment) and not reasoned.search(comment):
                yield f"{module.where}:{token.start[0]}: write the code and the reason: `noqa: X123 - reason`."
