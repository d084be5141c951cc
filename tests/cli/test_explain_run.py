"""C1, X1: `recto explain RUN [CALL]`, as people type it, beside a server that runs."""

import sqlite3
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
from rich.cells import cell_len

from recto.conversation.json import Json, load_object
from recto.ids import new_id
from recto.testing.model_server import Answer, Call, ModelServer
from recto.testing.process import ServerProcess
from tests.cli.in_process import FAILED, WRONG_USE, Done, recto, recto_process
from tests.support.client import RUNS, ask, request, run

pytestmark = pytest.mark.full
WIDTH = 80
ANN, BOB = "ann-key-of-our-tests-here", "bob-key-of-our-tests-here"
CALCULATE = Answer(calls=(Call(name="calculator", arguments='{"expression": "6*7"}'),))


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


def explain(served: Served, *words: str) -> Done:
    return recto(Path(), "explain", *words, "--data", str(served.folder / "data"))


def test_C1_explain_shows_a_call_and_its_changes(served: Served):
    code, text, err = recto_process(served.folder, "explain", "two", "--data", "data", NO_COLOR="1", COLUMNS=str(WIDTH))
    assert (code, err) == (0, "")
    assert text.startswith(f"Call 2 of 2 of run {served.runs['two']}\n")
    assert "\x1b" not in text
    assert max(map(cell_len, text.splitlines())) <= WIDTH
    assert "The prefix holds" in text
    first = explain(served, served.runs["two"], "1").out
    assert f"Since call 1 of run {served.runs['one'][-8:]}" in first
    assert "turn closed" in " ".join(first.split())
    assert "nothing to compare it with" in " ".join(explain(served, "one").out.split())


def test_C1_explain_as_json_has_all_of_it(served: Served):
    output_row = load_object(explain(served, "two", "2", "--json").out) or {}
    body = served.model.requests[2].body
    assert (output_row["run"], output_row["runId"], output_row["n"], output_row["bytes"]) == (
        served.runs["two"],
        "two",
        2,
        len(body),
    )
    assert (output_row["verified"], output_row["before"]) == (True, {"run": served.runs["two"], "n": 1})
    assert cast("Mapping[str, Json]", output_row["difference"])["prefixBreak"] is None
    assert cast("list[Json]", output_row["parts"])


def test_C1_explain_gives_a_call_away_as_curl_and_har_without_its_address(served: Served):
    body = served.model.requests[0].body.decode()
    curl, har = explain(served, "one", "--curl").out, explain(served, "one", "--har").out
    assert body in curl
    assert "$RECTO_MODEL_URL" in curl
    entries = cast("Mapping[str, list[Json]]", (load_object(har) or {})["log"])["entries"]
    data = cast("Mapping[str, Mapping[str, Json]]", entries[0])["request"]["postData"]
    assert cast("Mapping[str, Json]", data)["text"] == body
    assert served.model.url not in curl + har


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (("nobodys",), FAILED, "There is no run 'nobodys'."),
        (("two", "9"), FAILED, "There is no call"),
        (("two", "0"), WRONG_USE, "greater than or equal to 1"),
        (("twice",), WRONG_USE, "several users have a run with this name: ann, bob. Choose one with --user."),
        (("two", "--user", "bob"), FAILED, "There is no run 'two'."),
        (("two", "--json", "--curl"), WRONG_USE, "choose one of --json, --curl and --har"),
    ],
)
def test_C1_explain_reports_wrong_arguments(served: Served, words: tuple[str, ...], code: int, expected: str):
    done = explain(served, *words)
    assert (done.code, done.out) == (code, "")
    assert expected in " ".join(done.err.split())


def test_C1_a_run_name_of_two_users_needs_the_user_option(served: Served):
    hers, his = (load_object(explain(served, "twice", "--user", user, "--json").out) or {} for user in ("ann", "bob"))
    assert (hers["run"], his["run"] == hers["run"], his["runId"]) == (served.runs["twice"], False, "twice")


def test_C1_explain_leaves_a_database_of_another_version_as_it_is(served: Served, tmp_path: Path):
    copy = tmp_path / "data"
    copy.mkdir()
    with sqlite3.connect(served.folder / "data" / "recto.db") as source, sqlite3.connect(copy / "recto.db") as target:
        source.backup(target)
        target.execute("UPDATE alembic_version SET version_num = '0001'")
    target.close()
    done = explain(Served(folder=tmp_path, runs={}, model=served.model), "two")
    assert (done.code, "its tables are of version 0001" in done.err) == (FAILED, True)
    with sqlite3.connect(copy / "recto.db") as after:
        assert after.execute("SELECT version_num FROM alembic_version").fetchone() == ("0001",)
    after.close()
    nowhere = explain(Served(folder=tmp_path / "nowhere", runs={}, model=served.model), "two")
    assert (nowhere.code, "there is no database" in nowhere.err) == (WRONG_USE, True)
