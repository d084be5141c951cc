"""`recto replay`: what it prints of one session and of several, its options, and what it refuses."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.in_process import Done, recto, recto_process
from tests.long_session import TracedSession, sessions

pytestmark = pytest.mark.full

BY_NAME = {traced.name: traced for traced in sessions()}
MODEL = "anthropic:claude-opus-4-5"
TINY = f'{{"model": "{MODEL.partition(":")[2]}", "system": "", "messages": [{{"role": "assistant", "content": "hi"}}]}}'


def run(folder: Path, *args: str, code: int = 0) -> Done:
    done = recto(folder, "replay", *args, COLUMNS="80")
    assert done.code == code, done.err
    return done


def write(folder: Path, traced: TracedSession) -> str:
    (folder / f"{traced.name}.jsonl").write_bytes(traced.data)
    return f"{traced.name}.jsonl"


def test_C1_a_session_is_shown_under_every_policy_in_80_columns(tmp_path: Path):
    file = write(tmp_path, BY_NAME["pi"])
    before = (tmp_path / file).read_bytes()
    done = recto_process(tmp_path, "replay", file, COLUMNS="80", NO_COLOR="1")
    output = done.out
    rows = [line.split() for line in output.splitlines()]
    assert output.startswith("A pi session, 527 messages, 221 calls of anthropic:claude-opus-4-5\n")
    assert [row[0] for row in rows[2:6]] == ["none", "eager", "clear", "cost"]
    assert "With --cut, the replay restarts at compactions." in " ".join(output.split())
    assert max(map(len, output.splitlines())) <= 80
    assert "\x1b" not in done.out
    assert (done.code, done.err) == (0, "")
    assert (tmp_path / file).read_bytes() == before


def test_C1_several_sessions_have_rows_and_a_sum_despite_a_bad_file(tmp_path: Path):
    files = [write(tmp_path, BY_NAME[name]) for name in ("pi", "claude-code", "codex")]
    (tmp_path / "notes.json").write_text("# Notes")
    done = run(tmp_path, ".", "--json", "--model", MODEL, code=1)
    assert done.err == "recto replay: notes.json: it cannot be read as JSON: it breaks at column 1\n"
    output_row = json.loads(done.out)
    assert [session["name"] for session in output_row["sessions"]] == sorted(files)
    assert output_row["problems"] == ["notes.json: it cannot be read as JSON: it breaks at column 1"]
    for name, policy in output_row["sum"].items():
        parts = [session["policies"][name] for session in output_row["sessions"]]
        assert policy["price"] == pytest.approx(sum(part["price"] for part in parts))
        assert policy["input"] == sum(part["input"] for part in parts)
        assert policy["worst"] == max(part["worst"] for part in parts)
    output = run(tmp_path, *files, "--model", MODEL, "--policy", "cost").out.splitlines()
    assert [line.split()[0] for line in output[1:4]] == files
    assert output[4].startswith("3 sessions, ")
    assert [line.split()[0] for line in output[6:8]] == ["none", "cost"]
    assert max(map(len, output)) <= 80


def test_prices_the_window_and_a_picture_are_taken_from_the_command_line(tmp_path: Path):
    file = write(tmp_path, BY_NAME["pi"])
    prices = 'currency = "EUR"\nas_of = 2026-01-31\n[[prices]]\nmodels = ["*"]\ninput = 1\noutput = 0\n'
    (tmp_path / "prices.toml").write_text(prices)
    flags = ("--plot", "replay.svg", "--prices", "prices.toml", "--policy", "none", "--window", "30000", "--json")
    output_row = json.loads(run(tmp_path, file, *flags).out)
    none = output_row["sessions"][0]["policies"]["none"]
    assert (output_row["currency"], output_row["window"]) == ("EUR", 30_000)
    assert none["price"] == pytest.approx(none["input"] / 1_000_000)
    assert 0 < none["full_at"] < output_row["sessions"][0]["calls"]
    svg = ElementTree.fromstring((tmp_path / "replay.svg").read_text(encoding="utf-8"))
    assert svg.tag == "{http://www.w3.org/2000/svg}svg"


@pytest.mark.parametrize(
    ("args", "code", "problem"),
    [
        (("s.jsonl", "--policy", "best"), 2, "Setting --policy is 'best'; choose from none, eager, clear, cost."),
        (("s.jsonl", "--prices", "none.toml"), 2, "Setting prices is 'none.toml'; the file cannot be read"),
        (("empty",), 2, "Setting FILE is 'empty'; the folder contains no .json or .jsonl file."),
        (("s.jsonl", "--plot", "no/such/folder.svg"), 1, "No such file or directory: 'no/such/folder.svg'"),
        (("gone.jsonl",), 1, "gone.jsonl: it cannot be read (No such file or directory)"),
        (("s.jsonl", "--window", "0"), 2, "Invalid value for '--window'"),
        ((), 2, "Missing argument 'FILE'"),
    ],
)
def test_C1_a_usage_error_is_one_line_with_advice(args: tuple[str, ...], code: int, problem: str, tmp_path: Path):
    (tmp_path / "s.jsonl").write_text(TINY)
    (tmp_path / "empty").mkdir()
    assert problem in run(tmp_path, *args, code=code).err
