"""Measures of the code's form and language, printed as a table. `--sample N` prints random docstrings and comments."""

from __future__ import annotations

import argparse
import ast
import io
import random
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Past participles that say nothing about a value: a noun or verb + noun names it. Conventional states
# (done, closed, failed, cancelled, cached, enabled, required, expected) are not listed.
PARTICIPLES = frozenset(
    {
        *("admitted", "agreed", "answered", "asked", "attached", "begun", "bound", "brought", "built", "called"),
        *("caught", "checked", "chosen", "counted", "declared", "drawn", "edited", "ended", "filled", "fitted"),
        *("folded", "forgotten", "found", "freed", "given", "gone", "grown", "heard", "held", "joined", "kept"),
        *("known", "laid", "left", "led", "lent", "listed", "loaded", "lost", "made", "meant", "merged", "met"),
        *("moved", "named", "noted", "numbered", "offered", "opened", "ordered", "paid", "parsed", "placed"),
        *("quoted", "reached", "refused", "relayed", "reported", "said", "saved", "seen", "sent", "settled"),
        *("shortened", "shown", "signed", "sought", "spelled", "spent", "spoken", "stood", "stored", "struck"),
        *("taken", "taught", "thought", "told", "touched", "tried", "turned", "typed", "unasked", "unheard"),
        *("unseen", "unshown", "untold", "used", "wanted", "won", "written"),
    }
)
RIDDLE_STARTS = frozenset(
    ["What", "Whatever", "Whether", "Where", "Wherever", "Who", "Whoever", "Whom", "Whose", "Those", "Of"]
)
BAG = 15

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = ast.ClassDef | Function


@dataclass(frozen=True, kw_only=True)
class Source:
    """One Python file."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def module(self) -> str:
        parts = self.path.with_suffix("").parts
        parts = parts[parts.index("recto") :] if "recto" in parts else parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def read_sources(folder: Path) -> list[Source]:
    """Parse every Python file of a folder."""
    paths = [
        path
        for path in sorted(folder.rglob("*.py"))
        if not any(part == "node_modules" or part.startswith(".") for part in path.relative_to(folder).parts)
    ]
    texts = [(path, path.read_text(encoding="utf-8")) for path in paths]
    return [Source(path=path, text=text, tree=ast.parse(text)) for path, text in texts]


# Language


def is_participle(name: str) -> bool:
    """Return True if an identifier is nothing but a participle."""
    return name.strip("_").lower() in PARTICIPLES


def identifiers(tree: ast.AST) -> Iterator[str]:
    """Yield every identifier occurrence: names, attributes, parameters, keywords, functions, classes."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
                yield name
            case _:
                pass


def definitions(tree: ast.AST) -> Iterator[tuple[int, str, bool]]:
    """Yield line and name of everything a file names itself, and True for functions and classes."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name, True
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                yield node.lineno, name, False
            case _:
                pass


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and text of every docstring."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | Definition) and (text := ast.get_docstring(node)):
            yield node.body[0].lineno, text


def has_riddle_start(text: str) -> bool:
    """Return True if a text starts with a relative clause where a verb or a noun belongs."""
    first = re.match(r"\W*(\w+)", text)
    return bool(first) and first[1] in RIDDLE_STARTS


def comments(source: Source) -> Iterator[tuple[int, str]]:
    """Yield line and text of every comment; consecutive lines are one comment."""
    block: list[tokenize.TokenInfo] = []
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type != tokenize.COMMENT:
            continue
        if block and token.start != (block[-1].start[0] + 1, block[-1].start[1]):
            yield _join(block)
            block = []
        block.append(token)
    if block:
        yield _join(block)


def _join(block: list[tokenize.TokenInfo]) -> tuple[int, str]:
    return block[0].start[0], " ".join(token.string.lstrip("# ") for token in block)


# Form


def single_use_share(sources: Iterable[Source]) -> float:
    """Return the share of functions and methods that are private and used exactly once in their file."""
    once = total = 0
    for source in sources:
        functions = [node.name for node in ast.walk(source.tree) if isinstance(node, Function)]
        private = {name for name in functions if name.startswith("_") and not name.startswith("__")}
        uses = Counter(
            node.id if isinstance(node, ast.Name) else node.attr
            for node in ast.walk(source.tree)
            if isinstance(node, ast.Name | ast.Attribute)
        )
        total += len(functions)
        once += sum(uses[name] == 1 for name in private)
    return once / max(1, total)


def import_share(sources: Iterable[Source]) -> float:
    """Return the share of code lines (no blanks, comments, docstrings) that belong to imports."""
    imports = code = 0
    for source in sources:
        skipped = {
            line for line, text in docstrings(source.tree) for line in range(line, line + len(text.splitlines()))
        }
        lines = {
            token.start[0] + offset
            for token in tokenize.generate_tokens(io.StringIO(source.text).readline)
            if token.type in (tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING)
            for offset in range(token.end[0] - token.start[0] + 1)
        }
        code += len(lines - skipped)
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                imports += (node.end_lineno or node.lineno) - node.lineno + 1
    return imports / max(1, code)


def single_importers(sources: Iterable[Source]) -> list[str]:
    """Return modules that exactly one other module imports."""
    sources = list(sources)
    names = {source.module for source in sources}
    importers: defaultdict[str, set[str]] = defaultdict(set)
    for source in sources:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                targets = {f"{node.module}.{alias.name}" for alias in node.names} & names or {node.module} & names
            elif isinstance(node, ast.Import):
                targets = {alias.name for alias in node.names} & names
            else:
                continue
            for target in targets - {source.module}:
                importers[target].add(source.module)
    packages = {source.module for source in sources if source.path.name == "__init__.py"}
    return sorted(name for name, users in importers.items() if len(users) == 1 and name not in packages)


def bags(sources: Iterable[Source]) -> list[str]:
    """Return classes with more than fifteen fields or public methods."""
    rows = list[str]()
    for source in sources:
        for node in (node for node in ast.walk(source.tree) if isinstance(node, ast.ClassDef)):
            fields = sum(isinstance(one, ast.AnnAssign) for one in node.body)
            methods = sum(isinstance(one, Function) and not one.name.startswith("_") for one in node.body)
            if max(fields, methods) > BAG:
                rows.append(f"{source.module}.{node.name}: {fields} fields, {methods} methods")
    return rows


def measure(root: Path) -> list[tuple[str, str, str]]:
    """Return the rows of the table: measure, value, goal."""
    sources = read_sources(root / "src")
    occurrences = [name for source in sources for name in identifiers(source.tree)]
    participles = sum(map(is_participle, occurrences))
    callables = [name for source in sources for _, name, is_callable in definitions(source.tree) if is_callable]
    documents = [text for source in sources for _, text in docstrings(source.tree)]
    lines = {name: sum(len(one.text.splitlines()) for one in read_sources(root / name)) for name in ("src", "tests")}
    return [
        ("participle identifiers per 1,000", f"{1_000 * participles / len(occurrences):.1f}", "<= 3"),
        ("functions and classes named by a participle", str(sum(map(is_participle, callables))), "0"),
        ("docstrings with a riddle start", f"{sum(map(has_riddle_start, documents)) / len(documents):.1%}", "<= 2 %"),
        ("private functions used once", f"{single_use_share(sources):.1%}", "<= 20 %"),
        ("import lines of code lines", f"{import_share(sources):.1%}", "<= 9 %"),
        ("modules with one importer", str(len(single_importers(sources))), "<= 80"),
        ("classes with over 15 fields or methods", str(len(bags(sources))), "Agent only"),
        ("lines of src", f"{lines['src']:,}", "<= 79,000"),
        ("lines of tests", f"{lines['tests']:,}", ""),
    ]


def sample(root: Path, number: int, seed: int) -> Iterator[str]:
    """Yield random docstrings and comments, out of their context."""
    texts = [
        f"{source.path.relative_to(root)}:{line}: {' '.join(text.split())}"
        for source in read_sources(root / "src")
        for line, text in (*docstrings(source.tree), *comments(source))
        if "noqa" not in text and "pyright:" not in text
    ]
    yield from random.Random(seed).sample(texts, number)


def main() -> None:
    """Print the table, or a sample."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=ROOT, help="checkout to measure (default: this one)")
    parser.add_argument("--sample", type=int, metavar="N", help="print N random docstrings and comments instead")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--list", action="store_true", help="also print one-importer modules and large classes")
    arguments = parser.parse_args()
    if arguments.sample:
        print("\n".join(sample(arguments.root, arguments.sample, arguments.seed)))
        return
    for name, value, goal in measure(arguments.root):
        print(f"{name:<46}{value:>10}   {goal}")
    if arguments.list:
        sources = read_sources(arguments.root / "src")
        print("", *single_importers(sources), "", *bags(sources), sep="\n")


if __name__ == "__main__":
    main()
