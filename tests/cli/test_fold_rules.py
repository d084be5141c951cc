"""A rule of folding is one value: what settings, options, folds, reports and docs say of it is made of that value."""

import json
import re
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from recto.agents.fold_table import fold_table, with_table
from recto.cli.fold.fold_command import fold_command
from recto.errors import SettingsError
from recto.page.fold.fold_settings import FoldSettings
from recto.page.fold.rules import RULES, SEARCH, TERMINAL, FoldRule, RuleOption

DOCS = (Path(__file__).resolve().parents[2] / "docs" / "fold.md").read_text(encoding="utf-8")
# What no rule of ours has: by file and by age at once, no number for batches.
LISTINGS = FoldRule(
    name="listings",
    number="R99",
    why="old listing",
    on=False,
    tools=("ls",),
    path_args=("folder",),
    keep=1,
    max_age=timedelta(minutes=2),
    placeholder="(listed before)",
    options=(
        RuleOption(flag="--listing-tool", sets="tools", help="Name of a tool that lists folders."),
        RuleOption(flag="--listings", sets="on", help="Fold old listings too."),
        RuleOption(flag="--keep-listings", sets="keep", help="Newest listings of a folder that stay."),
    ),
)
WITH_LISTINGS = (*RULES, LISTINGS)


def run(*args: str, talk: str, rules: Sequence[FoldRule] = WITH_LISTINGS, code: int = 0) -> str:
    app = typer.Typer(rich_markup_mode=None)
    app.command()(fold_command(rules))
    done = CliRunner(env={"COLUMNS": "160"}).invoke(app, ["-", *args], input=talk)
    assert done.exit_code == code, done.output
    return done.output


def listings(tool: str, *minutes: int, folder: object = "src") -> str:
    rows: list[object] = [{"role": "user", "content": "Look.", "timestamp": 0}]
    for number, minute in enumerate(minutes):
        function = {"name": tool, "arguments": json.dumps({"folder": folder})}
        call = {"id": f"c{number}", "type": "function", "function": function}
        time = minute * 60_000
        rows.append({"role": "assistant", "content": None, "tool_calls": [call], "timestamp": time})
        rows.append({"role": "tool", "tool_call_id": f"c{number}", "content": f"listing {number}", "timestamp": time})
    return json.dumps(rows)


def results(output: str) -> list[object]:
    return [message["content"] for message in json.loads(output)["messages"] if message["role"] == "tool"]


def test_R11_a_new_rule_is_folded_by_with_nothing_changed_but_its_value():
    talk = listings("ls", 0, 4, 5)
    assert results(run("--json", talk=talk)) == ["listing 0", "listing 1", "listing 2"]
    assert results(run("--json", "--listings", talk=talk)) == ["(listed before)", "listing 1", "listing 2"]
    late = ("--now", "1970-01-01T01:00:00Z")
    assert results(run("--json", "--listings", *late, talk=talk)) == [*["(listed before)"] * 2, "listing 2"]
    assert results(run("--json", "--listings", "--keep-listings", "2", *late, talk=talk))[1:] == talk_from(1, 3)


def test_R11_its_table_is_read_and_checked_as_those_of_the_others(tmp_path: Path):
    config = tmp_path / "recto.toml"
    config.write_text("[fold.listings]\ntools = ['dir']\nkeep = 2\nminutes = 0\nplaceholder = 'gone'\n")
    talk = listings("dir", 0, 4, 5)
    assert results(run("--json", "--config", str(config), talk=talk)) == ["gone", *talk_from(1, 3)]
    config.write_text("[fold.listings]\nkeep = 0\n")
    words = run("--config", str(config), talk=talk, code=2)
    assert "Setting fold.listings.keep is 0; input should be greater than or equal to 1." in words
    config.write_text("[fold]\nlistings = false\n")
    assert results(run("--json", "--config", str(config), talk=talk)) == talk_from(0, 3)


def test_R11_its_receipts_and_the_report_have_its_number_and_why():
    talk = listings("ls", 0, 4, 5)
    assert "R99: old listing" in run("--listings", talk=talk)
    each = "R99: src: read 3 counted from the newest, 1 stay, and older than 2 minutes"
    assert each in run("--listings", "--all", talk=talk)
    batch = listings("ls", 0, 4, 5, folder=["src", "docs"])
    assert "R99: a batch read, stale for each of its files: src, docs" in run("--listings", "--all", talk=batch)


def test_R11_a_renamed_rule_and_an_unknown_rule_are_rejected():
    with pytest.raises(SettingsError, match=r"^Setting fold\.search is 'terminal'; a rule is given under its own name"):
        FoldSettings(search=TERMINAL)
    rule_names = ", ".join(sorted(rule.name for rule in RULES))
    with pytest.raises(SettingsError, match=rf"^Setting fold is 'read'; the rules are {rule_names}\.$"):
        FoldSettings(read=None)


def test_R11_no_two_rules_have_a_name_a_number_or_a_flag_in_common():
    names = [rule.name for rule in RULES]
    numbers = [number for rule in RULES for number in rule.numbers]
    flags = [option.flag for rule in RULES for option in rule.options]
    for table in (names, numbers, flags):
        assert sorted(set(table)) == sorted(table)


def test_R11_the_page_about_folding_shows_every_rule_as_it_is():
    example = re.search(r"```toml\n(.*?)```", DOCS, re.S)
    assert example is not None
    settings_table = tomllib.loads(example[1])["fold"]
    assert {
        name: table["on"] for name, table in settings_table.items() if name not in ("case_sensitive", "recall_hint")
    } == {rule.name: rule.on for rule in RULES}
    for rule in RULES:
        blank = replace(rule, tools=("x",), keep=99, placeholder="x", max_age=rule.max_age and timedelta(99))
        table = fold_table(RULES).model_validate({rule.name: {**settings_table[rule.name], "on": True}})
        assert with_table(FoldSettings(rules=(blank,)), table).rule(rule.name) == rule
        for number in rule.numbers:
            assert re.search(rf"^\| {number} \|.*{re.escape(rule.placeholder)}|^\| {number} \|.*the same", DOCS, re.M)
        for option in rule.options:
            assert option.flag in DOCS
    assert re.search(rf"^\| {SEARCH.number} \|.*only with `--search`", DOCS, re.M)


def talk_from(first: int, end: int) -> list[str]:
    return [f"listing {number}" for number in range(first, end)]
