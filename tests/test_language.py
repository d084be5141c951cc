"""Language rules for docstrings, identifiers and docs. Allowances may only shrink. See CONTRIBUTING.md."""

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from scripts.code_map import PAGE, code_map, layer_order
from scripts.code_metrics import Source, definitions, docstrings, has_riddle_start, is_participle, read_sources
from tests.layers import ROOT

FOLDERS = ("src", "tests", "scripts", "bench", "examples")
SOURCES = [source for folder in FOLDERS for source in read_sources(ROOT / folder)]
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "web" / "README.md"]
ALLOWED: dict[str, dict[str, int]] = tomllib.loads((ROOT / "tests" / "language.toml").read_text(encoding="utf-8"))
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
SENTENCE = re.compile(r"(?:^|(?<=[.:!?] ))(?:#+ |[-*] |\d+\. |\| )?\**([A-Z]\w+)[^|\n.?!]*[.?!|\n]", re.MULTILINE)


def test_docstrings_start_with_a_verb_or_a_noun():
    check_allowance(
        "docstrings", lambda source: [line for line, text in docstrings(source.tree) if has_riddle_start(text)]
    )


def test_identifiers_are_no_bare_participles():
    check_allowance(
        "identifiers", lambda source: [line for line, name, _ in definitions(source.tree) if is_participle(name)]
    )


def test_functions_classes_and_modules_are_not_named_by_a_participle():
    modules = [source.path for source in SOURCES if is_participle(source.path.stem)]
    names = [
        f"{source.path.relative_to(ROOT)}:{line}: {name}"
        for source in SOURCES
        if source.path.is_relative_to(ROOT / "src")
        for line, name, is_callable in definitions(source.tree)
        if is_callable and is_participle(name)
    ]
    assert not modules
    assert not names, "Name each with a noun or with verb + noun:\n" + "\n".join(names)


def test_sentences_of_docs_do_not_start_with_a_relative_clause():
    starts = {path.relative_to(ROOT).as_posix(): relative_clauses(path) for path in DOCUMENTS}
    check_counts("documents", {name: count for name, count in starts.items() if count})


def test_the_code_map_is_current():
    assert PAGE.read_text(encoding="utf-8") == code_map(layer_order()), "Run: make code-map"


@pytest.mark.parametrize("start", ["What is kept.", "Whether it is.", "Those that are.", "`x` is what.\n\nOf which."])
def test_only_the_first_word_of_a_docstring_counts(start: str):
    assert has_riddle_start(start) == (not start.startswith("`"))


def test_a_participle_in_a_longer_name_is_fine():
    tree = ast.parse("taken = 1\ntaken_seats = 2\ndef _known(): ...\ndef is_known(): ...")
    assert sorted(name for _, name, _ in definitions(tree) if is_participle(name)) == ["_known", "taken"]


def relative_clauses(path: Path) -> list[str]:
    """Return the sentences and titles of a document that start with What, Who, Whether, Those or Of."""
    text = FENCED.sub("", path.read_text(encoding="utf-8"))
    sentences = [(match[1], match[0].strip()) for match in SENTENCE.finditer(text)]
    return [text for first, text in sentences if first not in ("Where", "Wherever") and has_riddle_start(first)]


def check_allowance(rule: str, find: Callable[[Source], list[int]]) -> None:
    """Compare the number of violations of each folder with its allowance."""
    places = defaultdict[str, list[str]](list)
    for source in SOURCES:
        places[folder_of(source)] += [f"{source.path.relative_to(ROOT)}:{line}" for line in find(source)]
    check_counts(rule, {folder: lines for folder, lines in places.items() if lines})


def check_counts(rule: str, violations: Mapping[str, Sequence[str]]) -> None:
    __tracebackhide__ = True
    allowed = ALLOWED[rule]
    over = {name: lines for name, lines in violations.items() if len(lines) > allowed.get(name, 0)}
    assert not over, "\n".join(f"{name}: {len(lines)} {rule}\n" + "\n".join(lines[:40]) for name, lines in over.items())
    exact = {name: len(lines) for name, lines in violations.items()}
    assert exact == allowed, f"Lower the allowances of {rule} in tests/language.toml to {exact}."


def folder_of(source: Source) -> str:
    """Return the folder that an allowance covers: a package of src, a folder of tests, or a top-level folder."""
    parts = source.path.relative_to(ROOT).parts
    depth = {"src": 3, "tests": 2}.get(parts[0], 1)
    return "/".join(parts[: min(depth, len(parts) - 1)])
