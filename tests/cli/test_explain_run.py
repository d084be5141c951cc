"""C1, X1: `recto explain RUN [CALL]`, as people type it, beside a server that runs."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
from rich.cells import cell_len
from rich.console import Console
from typer.testing import CliRunner, Result

from recto.cli.calls.call_report import (
    break_line,
    changes,
    composition,
    composition_table,
    left_out,
    part_lines,
    parts_table,
    rule_lines,
)
from recto.cli.main import make_app
from recto.conversation.json import Json, load_object
from recto.conversation.log import Entry
from recto.conversation.messages import AssistantMessage, Text, ToolCall, ToolMessage, ToolOffer, UserMessage
from recto.ids import new_id
from recto.page.assemble import assemble
from recto.page.difference import difference
from recto.page.facts import Facts
from recto.page.prefix import SentPage
from recto.page.prompt.system_prompt import Prompt
from recto.testing.client import RUNS, ask, request, run
from recto.testing.model_server import Answer, Call, ModelServer
from recto.testing.process import ServerProcess

FAILED, WRONG_USE, WIDTH = 1, 2, 80
ANN, BOB = "ann-key-of-our-tests-here", "bob-key-of-our-tests-here"
CALCULATE = Answer(calls=(Call(name="calculator", arguments='{"expression": "6*7"}'),))


# What is shown of a page


def says(id: str, words: str) -> UserMessage:
    return UserMessage(id=id, parts=(Text(text=words),))


def reads(n: int) -> tuple[Entry, ...]:
    call = ToolCall(id=f"c{n}", name="filesystem-read", arguments='{"filePath": "a.ts"}')
    result = ToolMessage(id=f"t{n}", tool_call_id=f"c{n}", parts=(Text(text="content " * 30),))
    return AssistantMessage(id=f"a{n}", parts=(call,)), result


LOG: tuple[Entry, ...] = (says("u0", "你好"), *[entry for n in range(6) for entry in reads(n)])
TOOL = ToolOffer(name="查询天气", description="d", parameters="{}")


def a_page(log: tuple[Entry, ...] = LOG, history: int | None = None) -> SentPage:
    facts = Facts(log=log, tools=(TOOL,), prompt=Prompt(identity="I am."), history=history)
    return SentPage.of(*assemble(facts))


def printed(what: object, **options: bool) -> list[str]:
    console = Console(width=WIDTH, highlight=False, **options)  # pyright: ignore[reportArgumentType] - flags of a console
    with console.capture() as capture:
        console.print(what)
    return capture.get().splitlines()


def test_C1_the_composition_is_by_kind_and_adds_up_to_the_page():
    manifest = a_page().manifest
    found = composition(manifest)
    assert list(found) == ["envelope", "tool", "system", "user", "assistant", "result"]
    assert sum(found.values()) == manifest.tokens_after
    assert all("█" in line for line in printed(composition_table(manifest)))
    assert all("#" in line for line in printed(composition_table(manifest, is_plain=True)))


def test_C1_parts_tell_tokens_rule_and_reason_and_kept_ones_stand_together():
    page = a_page()
    lines = list(part_lines(page, every=False))
    (folded,) = [line for line in lines if line.decision == "folded R2"]
    assert (folded.what, folded.before > folded.after) == ("result t0", True)
    assert folded.why == "newer reads: a.ts: read 6 counted from the newest, 5 stay"
    assert folded.words == "[该文件的历史读取内容已压缩,请参看最新读取结果]"
    assert [line.words for line in lines if line.what == "user u0"] == ["你好"]
    assert (lines[-2].what, lines[-2].number) == ("10 messages", "6-15")
    assert len(list(part_lines(page, every=True))) == len(page.manifest.parts)


def test_C1_what_a_window_left_out_is_told_with_its_rule():
    log = (*LOG, AssistantMessage(id="z", parts=(Text(text="Done."),)), says("u1", "more"))
    told = " ".join(printed(left_out(a_page(log, history=2).manifest)))
    assert "S2 window of history: outside the newest 2 messages" in " ".join(told.split())
    assert "messages" in told
    assert printed(left_out(a_page().manifest)) == ["Nothing was left out."]


def test_C1_each_rule_that_decided_something_is_told_of_where_every_part_is():
    manifest = a_page().manifest
    assert rule_lines(manifest, every=False) == ["docs/rules.md tells what the rules are."]
    every = rule_lines(manifest, every=True)
    assert "R2 newer reads: docs/rules.md#r2" in every
    assert len(every) == len({part.rule for part in manifest.parts if part.rule})


def test_C1_lines_keep_to_80_columns_and_wide_characters_to_their_column():
    before, after = a_page(LOG[:-2]), a_page()
    lines = printed(parts_table(after, every=True))
    assert max(map(cell_len, lines)) <= WIDTH
    column = lines[0].index("Decision")
    for line in lines[1:]:
        decided = [word for word in ("kept", "injected", "folded") if word in line]
        if decided:
            assert cell_len(line[: line.index(decided[0])]) == column
    found = difference(before, after)
    assert max(map(cell_len, printed(changes(found, "Since call 1")))) <= WIDTH
    assert "fold step" in break_line(found)
    assert f"{found.tokens_again:,} tokens" in break_line(found)


def test_C1_without_colour_nothing_but_text_is_printed():
    found = changes(difference(a_page(LOG[:-2]), a_page()), "Since")
    assert not any("\x1b[3" in line for line in printed(found, no_color=True, force_terminal=True))


# The command


@dataclass(frozen=True, kw_only=True)
class Served:
    folder: Path
    runs: Mapping[str, str]
    model: ModelServer


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    folder, thread = tmp_path_factory.mktemp("explained"), new_id()
    answers = [Answer(text="Hello."), CALCULATE, Answer(text="42."), Answer(text="Hi bob."), Answer(text="Hi ann.")]
    with ModelServer(lambda _: answers.pop(0)) as model:
        settings = {
            "RECTO_MODEL": "compatible:x",
            "RECTO_MODEL_URL": model.url,
            "RECTO_API_KEYS": f"ann:{ANN},bob:{BOB}",
        }
        with ServerProcess.serve(folder / "data", settings) as server:
            runs = dict[str, str]()
            for name, words, of_thread, token in (
                ("one", "hello", thread, ANN),
                ("two", "what is 6*7?", thread, ANN),
                ("twice", "hi", new_id(), BOB),
                ("twice", "hi", new_id(), ANN),
            ):
                run(server.url, ask(words, thread=of_thread, run=name), token=token)
                runs[name] = str(request(server.url, "GET", f"{RUNS}/{name}", token=token).json["taskId"])
            yield Served(folder=folder, runs=runs, model=model)


def explain(served: Served, *words: str, **environment: str) -> Result:
    """The command, in this process: a new one takes seconds to begin."""
    clean = {name: None for name in os.environ if name.startswith("RECTO_")}
    command = ["explain", *words, "--data", str(served.folder / "data")]
    return CliRunner().invoke(make_app("explain"), command, prog_name="recto", env={**clean, **environment})


@pytest.mark.full
def test_C1_explain_shows_a_call_and_what_changed_since_the_one_before(served: Served):
    command = [sys.executable, "-m", "recto", "explain", "two", "--data", str(served.folder / "data")]
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": str(WIDTH)}
    done = subprocess.run(command, env=environment, capture_output=True, timeout=60, check=False)
    text = done.stdout.decode()
    assert (done.returncode, done.stderr) == (0, b"")
    assert text.startswith(f"Call 2 of 2 of run {served.runs['two']}\n")
    assert "\x1b" not in text
    assert max(map(cell_len, text.splitlines())) <= WIDTH
    assert "The prefix holds" in text
    first = explain(served, served.runs["two"], "1").stdout
    assert f"Since call 1 of run {served.runs['one'][-8:]}" in first
    assert "turn closed" in " ".join(first.split())
    assert "nothing to compare it with" in " ".join(explain(served, "one").stdout.split())


@pytest.mark.full
def test_C1_explain_as_json_has_all_of_it(served: Served):
    found = load_object(explain(served, "two", "2", "--json").stdout_bytes) or {}
    sent = served.model.requests[2].body
    assert (found["run"], found["runId"], found["n"], found["bytes"]) == (served.runs["two"], "two", 2, len(sent))
    assert (found["verified"], found["before"]) == (True, {"run": served.runs["two"], "n": 1})
    assert cast("Mapping[str, Json]", found["difference"])["prefixBreak"] is None
    assert cast("list[Json]", found["parts"])


@pytest.mark.full
def test_C1_explain_gives_a_call_away_as_curl_and_har_without_its_address(served: Served):
    sent = served.model.requests[0].body
    curl = explain(served, "one", "--curl").stdout_bytes
    assert sent in curl
    assert b"$RECTO_MODEL_URL" in curl
    har = explain(served, "one", "--har").stdout_bytes
    entries = cast("Mapping[str, list[Json]]", (load_object(har) or {})["log"])["entries"]
    data = cast("Mapping[str, Mapping[str, Json]]", entries[0])["request"]["postData"]
    assert cast("Mapping[str, Json]", data)["text"] == sent.decode()
    assert served.model.url.encode() not in curl + har


@pytest.mark.full
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("nobodys",), FAILED, "There is no run 'nobodys'."),
        (("two", "9"), FAILED, "There is no call"),
        (("two", "0"), WRONG_USE, "greater than or equal to 1"),
        (("twice",), WRONG_USE, "several users have a run of that name: ann, bob. Name one with --user"),
        (("two", "--user", "bob"), FAILED, "There is no run 'two'."),
        (("two", "--json", "--curl"), WRONG_USE, "choose one of --json, --curl and --har"),
    ],
)
def test_C1_explain_says_what_is_wrong(served: Served, words: tuple[str, ...], code: int, said: str):
    done = explain(served, *words)
    assert (done.exit_code, done.stdout) == (code, "")
    assert said in " ".join(done.stderr.split())


@pytest.mark.full
def test_C1_a_name_that_two_users_have_is_told_apart(served: Served):
    hers, his = (
        load_object(explain(served, "twice", "--user", user, "--json").stdout_bytes) or {} for user in ("ann", "bob")
    )
    assert (hers["run"], his["run"] == hers["run"], his["runId"]) == (served.runs["twice"], False, "twice")


@pytest.mark.full
def test_C1_explain_leaves_a_database_of_another_version_as_it_is(served: Served, tmp_path: Path):
    copy = tmp_path / "data"
    copy.mkdir()
    with sqlite3.connect(served.folder / "data" / "recto.db") as source, sqlite3.connect(copy / "recto.db") as target:
        source.backup(target)
        target.execute("UPDATE alembic_version SET version_num = '0001'")
    target.close()
    done = explain(Served(folder=tmp_path, runs={}, model=served.model), "two")
    assert (done.exit_code, "its tables are of version 0001" in done.stderr) == (FAILED, True)
    with sqlite3.connect(copy / "recto.db") as after:
        assert after.execute("SELECT version_num FROM alembic_version").fetchone() == ("0001",)
    after.close()
    nowhere = explain(Served(folder=tmp_path / "nowhere", runs={}, model=served.model), "two")
    assert (nowhere.exit_code, "there is no database" in nowhere.stderr) == (WRONG_USE, True)
