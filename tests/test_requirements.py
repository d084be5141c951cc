"""Every requirement is named by a test, and every number that a test names is a requirement."""

import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cache

from tests.layers import ROOT

TEST = re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)
NUMBER = re.compile(r"(?<=_)[PSFDRXC]\d+(?=_)")
PAGE = (ROOT / "docs/requirements.md").read_text(encoding="utf-8")
PROMISED = re.findall(r"^\| ([PSFDRXC]\d+) \|", PAGE, re.MULTILINE)
PLANNED = re.findall(r"[PSFDRXC]\d+", PAGE.rpartition("Planned")[2])


@cache
def named_numbers() -> Mapping[str, list[str]]:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in (ROOT / "tests").rglob("*.py"):
        if "node_modules" in path.parts:
            continue
        for test in TEST.findall(path.read_text(encoding="utf-8")):
            for number in NUMBER.findall(test):
                places[number].append(test)
    return places


def test_every_requirement_is_named_by_a_test():
    missing = [number for number in PROMISED if not named_numbers().get(number)]
    assert not missing, f"No test names {missing}. Write one that fails without it, test_P1_..."


def test_no_test_names_a_number_that_is_no_requirement():
    tests = named_numbers()
    assert {number: tests[number][:3] for number in tests.keys() - set(PROMISED)} == {}


def test_each_number_is_promised_or_planned_once():
    assert len(PROMISED) == len(set(PROMISED))
    assert not set(PROMISED) & set(PLANNED)
