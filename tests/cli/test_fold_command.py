"""`recto fold`: what it prints, its options, its settings and what it refuses."""

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import orjson
import pytest

from tests.cli.in_process import Done, recto
from tests.layers import ROOT
from tests.long_session import EACH_SESSION, TracedSession

SESSION = ROOT / "examples" / "session.json"
READ = "[该文件的历史读取内容已压缩,请参看最新读取结果]"
ENGLISH = "[An older read of this file, folded: see the newest one]"
COMMAND = "此命令返回内容已过时"
SEARCH = "本次搜索结果已过时,故精简为占位符"
MINUTE = 60_000
HELLO = b'[{"role": "user", "content": "hi"}]'


def run(*args: str, stdin: bytes = b"", code: int = 0) -> Done:
    done = recto(ROOT, "fold", *args, stdin=stdin)
    assert done.code == code, done.err
    return done


def folded_json(*args: str, stdin: bytes = b"") -> dict[str, list[dict[str, object]]]:
    return orjson.loads(run(*args, "--json", stdin=stdin).out)


def conversation(*calls: tuple[str, Mapping[str, object], str, int]) -> bytes:
    """A call and its result for each (tool, arguments, result, minute)."""
    messages: list[dict[str, object]] = [{"role": "user", "content": "Go on.", "timestamp": 0}]
    for number, (tool, arguments, result, minute) in enumerate(calls):
        function = {"name": tool, "arguments": json.dumps(arguments)}
        call = {"id": f"c{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call], "timestamp": minute * MINUTE})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": result, "timestamp": minute * MINUTE})
    return orjson.dumps(messages)


def results(output: dict[str, list[dict[str, object]]]) -> list[object]:
    return [message["content"] for message in output["messages"] if message["role"] == "tool"]


def seven(tool: str, arguments: dict[str, object]) -> bytes:
    return conversation(*[(tool, arguments, f"result {n}", n) for n in range(7)])


NEWEST_FIVE = [f"result {n}" for n in range(2, 7)]


def test_R2_json_has_the_messages_in_openai_form_the_manifest_and_the_tokens():
    output = folded_json("-", stdin=seven("filesystem-read", {"filePath": "a.ts"}))
    assert list(output) == ["messages", "manifest", "tokens"]
    assert results(output) == [READ, READ, *NEWEST_FIVE]
    function = {"name": "filesystem-read", "arguments": '{"filePath": "a.ts"}'}
    calls = [{"id": "c0", "type": "function", "function": function}]
    assert output["messages"][1] == {"role": "assistant", "content": None, "tool_calls": calls}
    folded_row, rule = output["manifest"][3], {"ruleName": "newer reads", "ruleLink": "docs/rules.md#r2"}
    assert folded_row == {
        "kind": "message",
        "source": "messages[2]",
        "role": "tool",
        "decision": "folded",
        "rule": "R2",
        **rule,
        "words": READ,
        "reason": "a.ts: read 7 counted from the newest, 5 stay",
        "tokens": {"before": 7, "after": 22},
        "span": folded_row["span"],
        "receipts": [
            {
                "rule": "R2",
                **rule,
                "part": None,
                "tool": "filesystem-read",
                "paths": ["a.ts"],
                "tokens": {"before": 7, "after": 22},
                "newer": ["c6"],
                "recall": {"tool": "filesystem-read", "path": "a.ts", "n": 7},
                "reason": "a.ts: read 7 counted from the newest, 5 stay",
            }
        ],
    }
    assert output["tokens"] == {"before": 154, "after": 184, "folded": -30, "left_out": 0}


def test_R1_the_command_prints_savings_and_writes_no_file(tmp_path: Path):
    file = tmp_path / "talk.json"
    file.write_bytes(seven("filesystem-read", {"filePath": "a.ts"}))
    before = file.read_bytes(), file.stat().st_mtime_ns
    command = [str(Path(sys.executable).with_name("recto")), "fold", str(file)]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"A conversation, 15 messages: ")
    assert (file.read_bytes(), file.stat().st_mtime_ns) == before


def test_R2_R10_the_table_lists_tools_and_files_and_separates_folding_from_repair():
    output = run(str(SESSION), "--root", "/home/ada/shop").out
    assert output.startswith(
        "A conversation, 36 messages: 2,008 tokens before, 1,640 after\n"
        "Folding saves 356 (18 %), other steps leave out 12.\n"
    )
    row = next(line for line in output.splitlines() if "R2: newer reads" in line)
    assert [cell.strip() for cell in row.strip("│").split("│")] == [
        "filesystem-read",
        "src/components/Button.tsx",
        "R2: newer reads",
        "2",
        "324",
        "44",
    ]
    assert "repaired (R10): 1 x repair: 1 of 1 calls never got a result, 12 tokens less" in output
    assert "Tokens are estimates, counted with o200k_base." in output
    each = run(str(SESSION), "--all", "--root", "/home/ada/shop").out
    assert (each.count(" call_0 "), each.count("terminal-execute")) == (1, 2)


LATE = ("--now", "1970-01-02T00:00:00Z")


@pytest.mark.parametrize(
    ("args", "tool", "expected"),
    [
        pytest.param((), "filesystem-read", [READ, READ], id="R2"),
        pytest.param(("--locale", "en"), "filesystem-read", [ENGLISH, ENGLISH], id="in another language"),
        pytest.param(("--keep", "6"), "filesystem-read", [READ], id="R11 how many reads stay"),
        pytest.param(("--read-tool", "open_file"), "open_file", [], id="R11 an argument that is no path"),
        pytest.param(
            ("--read-tool", "cat", "--read-tool", "open_file", "--path-arg", "target"),
            "open_file",
            [READ, READ],
            id="R11 another tool and argument",
        ),
        pytest.param((), "terminal-execute", [], id="R8 young commands"),
        pytest.param(("--now", "1970-01-01T00:15:01Z"), "terminal-execute", [COMMAND], id="R8 an old command"),
        pytest.param(("--now", "1970-01-01T05:00:00"), "terminal-execute", [COMMAND, COMMAND], id="R8 a local time"),
        pytest.param(("--terminal-tool", "bash", *LATE), "bash", [COMMAND, COMMAND], id="R8 another tool"),
        pytest.param(LATE, "ace-text_search", [], id="R9 not asked for"),
        pytest.param((*LATE, "--search"), "ace-text_search", [SEARCH, SEARCH], id="R9 asked for"),
        pytest.param((*LATE, "--search-tool", "grep"), "grep", [SEARCH, SEARCH], id="R9 another tool"),
    ],
)
def test_R8_R9_R11_options_select_what_is_folded(args: tuple[str, ...], tool: str, expected: list[str]):
    arguments: dict[str, object] = {"target" if tool == "open_file" else "filePath": "a.ts"}
    rest = [f"result {n}" for n in range(len(expected), 7)]
    assert results(folded_json("-", *args, stdin=seven(tool, arguments))) == [*expected, *rest]


def test_R11_every_constant_is_a_setting_of_the_config_file(tmp_path: Path):
    config = tmp_path / "recto.toml"
    config.write_text(
        "[server]\nport = 1\n[fold]\nroot = '/P'\ncase_sensitive = false\n"
        "[fold.reads]\ntools = ['cat']\npath_args = ['name']\nkeep = 3\nplaceholder = 'gone'\n"
        "keep_by_size = [[1000, 1]]\n[fold.terminal]\non = false\n"
        "[fold.search]\ntools = ['find']\nkeep = 0\nminutes = 1\n",
        encoding="utf-8",
    )
    none: dict[str, object] = {}
    reads = [("cat", {"name": name}, f"read {n}", n) for n, name in enumerate(["a", "/p/A", "./a", "/P/a"])]
    talk = conversation(
        *reads, *[("terminal-execute", none, "x", 0)] * 9, ("find", none, "y", 0), ("find", none, "z", 9)
    )
    output = folded_json("-", "--config", str(config), stdin=talk)
    assert results(output) == ["gone", "read 1", "read 2", "read 3", *["x"] * 9, SEARCH, "z"]


def test_C2_the_command_line_overrides_the_config_file(tmp_path: Path):
    config = tmp_path / "recto.toml"
    config.write_text("[fold.reads]\nkeep = 1\n", encoding="utf-8")
    talk = seven("filesystem-read", {"filePath": "a.ts"})
    assert results(folded_json("-", "--config", str(config), stdin=talk)) == [*[READ] * 6, "result 6"]
    assert results(folded_json("-", "--config", str(config), "--keep", "5", stdin=talk)) == [READ, READ, *NEWEST_FIVE]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[fold.reads]\nkeep = 0\n", "fold.reads.keep is 0; input should be greater than or equal to 1."),
        ("[fold.reads]\nkeeps = 5\n", "fold.reads.keeps is 5; extra inputs are not permitted."),
        ("[fold]\nroot = 5\n", "fold.root is 5; input should be a valid string."),
        ("fold = 3\n", "fold is 3; input should be a valid dictionary or instance of fold."),
        *[
            (f"[fold.terminal]\nminutes = {minutes}\n", "fold.terminal.minutes is ")
            for minutes in ("1e300", "nan", "-1")
        ],
    ],
)
def test_C2_a_wrong_setting_is_named_in_one_line(tmp_path: Path, text: str, expected: str):
    config = tmp_path / "recto.toml"
    config.write_text(text, encoding="utf-8")
    done = run("-", "--config", str(config), stdin=HELLO, code=2)
    assert done.err.startswith(f"recto fold: Setting {expected}")
    assert (done.err.count("\n"), done.out) == (1, "")


OLD_FORM = b'[{"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}}]'
PICTURE = b'[{"role": "system", "content": [{"type": "image_url", "image_url": {"url": "https://x.example/p"}}]}]'


@pytest.mark.parametrize(
    ("args", "stdin", "expected"),
    [
        (("-",), b"", "standard input: it is empty"),
        (("-",), b"\x00\x01", "standard input: it is a binary file; a conversation is JSON text"),
        (("-",), OLD_FORM, "messages[0].function_call: is not supported; write it as tool_calls"),
        (("-",), PICTURE, "messages[0].content: instructions are text; other blocks have no place in them"),
        (("no-such-file.json",), b"", "no-such-file.json: it cannot be read (No such file or directory)"),
        ((".",), b"", ".: it cannot be read (Is a directory)"),
        (("-", "--keep", "0"), HELLO, "Setting reads.keep is 0; at least 1 read of a file must stay."),
        (("-", "--now", "soon"), HELLO, "Setting --now is 'soon'; use an ISO 8601 time, such as 2026-"),
        (("-", "--config", "none.toml"), HELLO, "Setting --config is 'none.toml'; it cannot be read (No such file"),
        (("-", "--locale", "fr"), HELLO, "'fr' is not one of 'zh', 'en'"),
        ((), b"", "Missing argument 'FILE'"),
    ],
)
def test_C1_wrong_use_gets_a_clear_line_and_exit_code_2(args: tuple[str, ...], stdin: bytes, expected: str):
    done = run(*args, stdin=stdin, code=2)
    assert expected in done.err
    assert done.out == ""


def test_R6_R11_verbose_logs_calls_and_twice_verbose_logs_files_and_skipped_results():
    talk = conversation(*[("filesystem-read", {"filePath": "a.ts"}, "word " * 100, n) for n in range(7)])
    output = run("-", "-v", stdin=talk).err
    assert re.fullmatch(r"INFO page of \d+ tokens, 2 results folded, 16\d tokens saved\n", output)
    assert run("-", "-vv", stdin=talk).err.startswith("DEBUG folded filesystem-read a.ts: 2\n")
    unnamed = conversation(("filesystem-read", {"filePath": ""}, "x", 1))
    output = run("-", "-vv", stdin=unnamed).err
    assert output.startswith("DEBUG left alone c0: the arguments of its call name no file\n")


@EACH_SESSION
def test_a_long_session_uses_its_own_tools_and_folder(traced: TracedSession, tmp_path: Path):
    file = tmp_path / "session.jsonl"
    file.write_bytes(traced.data)
    output = run(str(file)).out
    assert re.match(rf"A [\w -]+ session, {sum(traced.roles.values())} messages: ", output, re.IGNORECASE)
    assert traced.root not in output
    assert traced.note in output
    folds = Counter(row["rule"] for row in folded_json(str(file))["manifest"] if row["decision"] == "folded")
    assert folds == traced.folds
