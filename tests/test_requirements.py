"""Requirements and the tests that carry them: a number nobody proves, or one that nobody promised, is found here."""

import re
from collections import defaultdict
from collections.abc import Mapping

import pytest

from tests import house
from tests.house import ROOT

NUMBER = re.compile(r"(?<=_)[PSFDRXC]\d+(?=_)")
PAGE = (ROOT / "docs/requirements.md").read_text(encoding="utf-8")
PROMISED = re.findall(r"^\| ([PSFDRXC]\d+) \|", PAGE, re.MULTILINE)
PLANNED = re.findall(r"[PSFDRXC]\d+", PAGE.rpartition("Planned")[2])


def carriers() -> Mapping[str, list[str]]:
    """Of each number, the tests that name it."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for module in house.modules_under(ROOT / "tests", base=ROOT):
        for name, _ in house.functions(module.tree):
            test = name.rpartition(".")[2]
            for number in NUMBER.findall(test) if test.startswith("test_") else ():
                found[number].append(f"{module.where}::{test}")
    return found


CARRIERS = carriers()


@pytest.mark.parametrize("number", PROMISED)
def test_every_requirement_is_carried_by_a_test(number: str):
    assert CARRIERS.get(number), f"No test names {number}. Write one that fails without it, test_{number}_..."


def test_no_test_carries_what_nobody_promised():
    assert {number: CARRIERS[number][:3] for number in CARRIERS.keys() - set(PROMISED)} == {}


def test_each_number_is_promised_or_planned_once():
    assert len(PROMISED) == len(set(PROMISED))
    assert not set(PROMISED) & set(PLANNED)
