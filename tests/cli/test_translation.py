"""Tests of the Chinese texts: each text of the code has one, and none is unused."""

import ast
from pathlib import Path
from string import Formatter
from typing import get_args

import pytest

import recto.cli
from recto.api.threads.calls import ACTIVE_RUN
from recto.cli.translation import _, code_name, terminal_language, translations
from recto.page.difference import Change
from recto.page.manifest import Decision, PartKind
from recto.page.manifest_rows import RULE_NAMES
from recto.page.prefix import Cause
from recto.worker.load_run import BEFORE, FULL


@pytest.fixture(autouse=True)
def chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")


def texts() -> set[str]:
    """Return the arguments of `_()` in the code."""
    calls = [
        node
        for path in Path(recto.cli.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "_"
    ]
    return {ast.literal_eval(call.args[0]) for call in calls}


def placeholders(text: str) -> set[tuple[str | None, str | None]]:
    return {(name, spec) for _text, name, spec, _conversion in Formatter().parse(text) if name is not None}


def test_every_text_of_the_terminal_has_a_chinese_one_and_none_is_unused():
    assert set(translations("texts")) == texts()


def test_both_languages_have_the_same_placeholders():
    different = [text for text, chinese in translations("texts").items() if placeholders(text) != placeholders(chinese)]
    assert different == []


def test_every_code_of_a_page_has_a_chinese_name():
    codes = {*get_args(PartKind), *get_args(Decision), *get_args(Change)} - {"same", "changed"}
    assert codes <= set(translations("codes"))
    assert set(translations("causes")) == set(get_args(Cause))
    assert set(translations("rules")) == set(RULE_NAMES)
    assert set(translations("notes")) == {ACTIVE_RUN, FULL, BEFORE["run_tools"], BEFORE["wait_for_client"]}


@pytest.mark.parametrize(
    ("environment", "language"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LC_ALL": "en_US.UTF-8", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LC_ALL": "", "LC_MESSAGES": "zh_TW", "LANG": "en_US.UTF-8"}, "zh"),
        ({"LANG": "C.UTF-8"}, "en"),
    ],
)
def test_the_first_locale_variable_chooses_the_language(
    environment: dict[str, str], language: str, monkeypatch: pytest.MonkeyPatch
):
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert terminal_language() == language
    assert code_name("folded") == {"en": "folded", "zh": "折叠"}[language]
    assert _("Part") == {"en": "Part", "zh": "部分"}[language]
