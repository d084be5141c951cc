"""`recto fold` as people run it: a real process, real files, real exit codes."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import orjson
import pytest

from tests.long_session import EACH_SESSION, Known

pytestmark = pytest.mark.full

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
READ = "[该文件的历史读取内容已压缩,请参看最新读取结果]"
COMMAND = "此命令返回内容已过时"
SEARCH = "本次搜索结果已过时,故精简为占位符"
MINUTE = 60_000


def run(*args: str, stdin: bytes = b"", code: int = 0) -> subprocess.CompletedProcess[bytes]:
    command = [str(Path(sys.executable).with_name("recto")), "fold", *args]
    wide = os.environ | {"COLUMNS": "120"}
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=60, check=False, env=wide)
    assert done.returncode == code, done.stderr.decode()
    return done


def folded_json(*args: str, stdin: bytes = b"") -> dict[str, list[dict[str, object]]]:
    return orjson.loads(run(*args, "--json", stdin=stdin).stdout)


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
    folded, rule = output["manifest"][3], {"ruleName": "newer reads", "ruleLink": "docs/rules.md#r2"}
    assert folded == {
        "kind": "message",
        "source": "messages[2]",
        "role": "tool",
        "decision": "folded",
        "rule": "R2",
        **rule,
        "words": READ,
        "reason": "a.ts: read 7 counted from the newest, 5 stay",
        "tokens": {"before": 7, "after": 22},
        "span": folded["span"],
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


def test_C1_the_lines_that_stand_for_what_is_folded_are_in_the_language_that_is_asked_for():
    talk = seven("filesystem-read", {"filePath": "a.ts"})
    english = "[An older read of this file, folded: see the newest one]"
    assert results(folded_json("-", "--locale", "en", stdin=talk)) == [english, english, *NEWEST_FIVE]
    assert folded_json("-", "--locale", "zh", stdin=talk) == folded_json("-", stdin=talk)
    assert "'fr' is not one of 'zh', 'en'" in run("-", "--locale", "fr", stdin=talk, code=2).stderr.decode()


def test_an_object_with_messages_and_an_array_are_read_alike():
    array = seven("filesystem-read", {"filePath": "a.ts"})
    assert folded_json("-", stdin=array) == folded_json("-", stdin=b'{"messages": ' + array + b"}")


def test_a_folded_conversation_folded_again_stays_as_it_is():
    once = folded_json("-", stdin=seven("filesystem-read", {"filePath": "a.ts"}))
    assert folded_json("-", stdin=orjson.dumps(once["messages"]))["messages"] == once["messages"]


def test_R2_R10_people_get_a_table_by_tool_and_file_and_what_folding_saves_apart_from_repair():
    said = run(str(EXAMPLES / "session.json"), "--root", "/home/ada/shop").stdout.decode()
    assert said.startswith(
        "A conversation, 36 messages: 2,008 tokens before, 1,640 after\n"
        "Folding saves 356 (18 %), other steps leave out 12.\n"
    )
    row = next(line for line in said.splitlines() if "R2: newer reads" in line)
    assert [cell.strip() for cell in row.strip("│").split("│")] == [
        "filesystem-read",
        "src/components/Button.tsx",
        "R2: newer reads",
        "2",
        "324",
        "44",
    ]
    assert "repaired (R10): 1 x repair: 1 of 1 calls never got a result, 12 tokens less" in said
    assert "Tokens are estimates, counted with o200k_base." in said


def test_all_lists_each_fold():
    said = run(str(EXAMPLES / "session.json"), "--all", "--root", "/home/ada/shop").stdout.decode()
    assert said.count(" call_0 ") == 1
    assert said.count("terminal-execute") == 2


def test_nothing_to_fold_is_said_in_words():
    said = run("-", stdin=b'[{"role": "user", "content": "hi"}]').stdout.decode()
    assert said == (
        "A conversation, 1 messages: 5 tokens before, 5 after\n"
        "Folding saves 0 (0 %), other steps leave out 0.\n"
        "Nothing to fold: no result is old enough to be stood for by a newer one.\n"
        "Tokens are estimates, counted with o200k_base.\n"
    )


def test_R4_root_makes_absolute_and_relative_paths_one_file():
    calls = [("filesystem-read", {"filePath": f"{'/p/' if n % 2 else './'}a.ts"}, f"result {n}", n) for n in range(7)]
    talk = conversation(*calls)
    assert results(folded_json("-", stdin=talk)) == [f"result {n}" for n in range(7)]
    assert results(folded_json("-", "--root", "/p", stdin=talk)) == [READ, READ, *NEWEST_FIVE]


def test_R11_keep_says_how_many_reads_stay():
    output = folded_json("-", "--keep", "6", stdin=seven("filesystem-read", {"filePath": "a.ts"}))
    assert results(output) == [READ, *[f"result {n}" for n in range(1, 7)]]


def test_R11_another_read_tool_and_path_argument_can_be_named():
    talk = seven("open_file", {"target": "a.ts"})
    assert READ not in results(folded_json("-", "--read-tool", "open_file", stdin=talk))
    options = ("--read-tool", "cat", "--read-tool", "open_file", "--path-arg", "target")
    assert results(folded_json("-", *options, stdin=talk)) == [READ, READ, *NEWEST_FIVE]


def test_R8_now_decides_what_is_old():
    talk = seven("terminal-execute", {"command": "ls"})
    assert COMMAND not in results(folded_json("-", stdin=talk))
    later = folded_json("-", "--now", "1970-01-01T00:15:01Z", stdin=talk)
    assert results(later) == [COMMAND, "result 1", *NEWEST_FIVE]
    assert results(folded_json("-", "--now", "1970-01-01T05:00:00", stdin=talk)) == [COMMAND, COMMAND, *NEWEST_FIVE]


def test_R8_another_terminal_tool_can_be_named():
    options = ("--terminal-tool", "bash", "--now", "1970-01-02T00:00:00Z")
    assert results(folded_json("-", *options, stdin=seven("bash", {}))) == [COMMAND, COMMAND, *NEWEST_FIVE]


def test_R9_searches_are_folded_only_when_asked_for():
    talk = seven("ace-text_search", {"pattern": "x"})
    late = ("--now", "1970-01-02T00:00:00Z")
    assert SEARCH not in results(folded_json("-", *late, stdin=talk))
    assert results(folded_json("-", *late, "--search", stdin=talk)) == [SEARCH, SEARCH, *NEWEST_FIVE]
    other = seven("grep", {"pattern": "x"})
    assert results(folded_json("-", *late, "--search-tool", "grep", stdin=other)) == [SEARCH, SEARCH, *NEWEST_FIVE]


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


def test_C2_the_command_line_stands_over_the_config_file(tmp_path: Path):
    config = tmp_path / "recto.toml"
    config.write_text("[fold.reads]\nkeep = 1\n", encoding="utf-8")
    talk = seven("filesystem-read", {"filePath": "a.ts"})
    assert results(folded_json("-", "--config", str(config), stdin=talk)) == [*[READ] * 6, "result 6"]
    assert results(folded_json("-", "--config", str(config), "--keep", "5", stdin=talk)) == [READ, READ, *NEWEST_FIVE]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[fold.reads]\nkeep = 0\n", "Setting fold.reads.keep is 0; input should be greater than or equal to 1."),
        ("[fold.reads]\nkeeps = 5\n", "Setting fold.reads.keeps is 5; extra inputs are not permitted."),
        ("[fold]\nroot = 5\n", "Setting fold.root is 5; input should be a valid string."),
        ("fold = 3\n", "Setting fold is 3; input should be a valid dictionary or instance of fold."),
    ],
)
def test_C2_a_wrong_setting_is_named_in_one_line(tmp_path: Path, text: str, said: str):
    config = tmp_path / "recto.toml"
    config.write_text(text, encoding="utf-8")
    done = run("-", "--config", str(config), stdin=b'[{"role": "user", "content": "hi"}]', code=2)
    assert done.stderr.decode() == f"recto fold: {said}\n"
    assert done.stdout == b""


@pytest.mark.parametrize(
    ("args", "stdin", "said"),
    [
        (("-",), b"", "standard input: it is empty"),
        (("-",), b"hello", "standard input: it cannot be read as JSON: it breaks at column 1"),
        (("-",), b"\x00\x01", "standard input: it is a binary file; a conversation is JSON text"),
        (("no-such-file.json",), b"", "no-such-file.json: it cannot be read (No such file or directory)"),
        ((".",), b"", ".: it cannot be read (Is a directory)"),
        (("-", "--keep", "0"), b'[{"role": "user"}]', "Setting reads.keep is 0; at least 1 read of a file must stay."),
        (
            ("-", "--now", "soon"),
            b'[{"role": "user"}]',
            "Setting --now is 'soon'; it is an ISO 8601 time such as 2026-01-31T02:50:00Z.",
        ),
        (
            ("-", "--config", "none.toml"),
            b'[{"role": "user"}]',
            "Setting --config is 'none.toml'; it cannot be read (No such file or directory).",
        ),
    ],
)
def test_C1_wrong_use_gets_one_clear_line_and_exit_code_2(args: tuple[str, ...], stdin: bytes, said: str):
    done = run(*args, stdin=stdin, code=2)
    assert done.stderr.decode() == f"recto fold: {said}\n"
    assert done.stdout == b""


def test_C1_no_file_is_wrong_use():
    assert b"Missing argument 'FILE'" in run(code=2).stderr


def test_C1_help_names_every_option():
    said = run("--help").stdout.decode()
    for option in ("--json", "--all", "--root", "--now", "--keep", "--read-tool", "--path-arg", "--terminal-tool"):
        assert option in said
    for option in ("--search-tool", "--search", "--config", "--verbose"):
        assert option in said


def test_R1_the_file_is_not_written_to(tmp_path: Path):
    file = tmp_path / "talk.json"
    file.write_bytes(seven("filesystem-read", {"filePath": "a.ts"}))
    before = file.read_bytes(), file.stat().st_mtime_ns
    run(str(file))
    assert (file.read_bytes(), file.stat().st_mtime_ns) == before


def test_R11_verbose_logs_a_line_per_call_and_twice_a_line_per_file():
    talk = conversation(*[("filesystem-read", {"filePath": "a.ts"}, "word " * 100, n) for n in range(7)])
    said = run("-", "-v", stdin=talk).stderr.decode()
    assert re.fullmatch(r"INFO page of \d+ tokens, 2 results folded, 16\d tokens saved\n", said)
    lines = run("-", "-vv", stdin=talk).stderr.decode().splitlines()
    assert lines[0] == "DEBUG folded filesystem-read a.ts: 2"


def test_R6_what_was_left_alone_is_logged_at_debug_level():
    talk = conversation(("filesystem-read", {"filePath": ""}, "x", 1))
    lines = run("-", "-vv", stdin=talk).stderr.decode().splitlines()
    assert lines[0] == "DEBUG left alone c0: the arguments of its call name no file"


@EACH_SESSION
def test_a_long_session_is_told_by_its_own_tools_and_folder(known: Known, tmp_path: Path):
    file = tmp_path / "session.jsonl"
    file.write_bytes(known.data)
    said = run(str(file)).stdout.decode()
    assert re.match(rf"A [\w -]+ session, {sum(known.roles.values())} messages: ", said, re.IGNORECASE)
    assert known.root not in said
    assert known.note in said
    folds = Counter(row["rule"] for row in folded_json(str(file))["manifest"] if row["decision"] == "folded")
    assert folds == known.folds


@pytest.mark.parametrize("minutes", ["1e300", "inf", "nan", "-1"])
def test_C2_minutes_that_mean_nothing_are_named_in_one_line(tmp_path: Path, minutes: str):
    config = tmp_path / "recto.toml"
    config.write_text(f"[fold.terminal]\nminutes = {minutes}\n", encoding="utf-8")
    done = run("-", "--config", str(config), stdin=b'[{"role": "user", "content": "hi"}]', code=2)
    assert done.stderr.decode().startswith("recto fold: Setting fold.terminal.minutes is ")
    assert done.stderr.count(b"\n") == 1


def test_what_openai_form_no_longer_has_is_refused_by_name():
    old = b'[{"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}}]'
    said = run("-", stdin=old, code=2).stderr.decode()
    assert "messages[0].function_call: is not supported; write it as tool_calls" in said
    picture = b'[{"role": "system", "content": [{"type": "image_url", "image_url": {"url": "https://x.example/p"}}]}]'
    said = run("-", stdin=picture, code=2).stderr.decode()
    assert "messages[0].content: instructions are text; other blocks have no place in them" in said
