"""R8, R15: what a model is told of a command's output: cleaned, both streams apart, cut in the middle."""

import json

import pytest

from recto.conversation.messages import Text, ToolMessage
from recto.page.fold.rules import is_failed_command
from recto.tools.commands.output import Output, PrintedText, clean_text, format_answer
from recto.tools.commands.whole_output import WholeOutput
from tests.tools.runs import NOON

CLEANED = [
    ("plain\nlines\n", "plain\nlines\n"),
    ("\x1b[1;31mred\x1b[0m and \x1b[38;5;12mblue\x1b[m\n", "red and blue\n"),
    ("\x1b]0;a title\x07text\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", "textlink\n"),
    ("\x1b(B\x1b=\x1b[?25lhidden cursor\x1b[?25h\n", "hidden cursor\n"),
    ("  1%\r 50%\r100%\ndone\n", "100%\ndone\n"),
    ("  1%\r 50%\r", " 50%"),
    ("windows\r\nlines\r\n", "windows\nlines\n"),
    ("a\tb\x00\x07\x08\x7f\n", "a\tb\n"),
    ("half an escape \x1b[31", "half an escape 31"),
]
REPORT = '{"stdout":"","stderr":"","exitCode":2}'


@pytest.mark.parametrize(("printed", "read"), CLEANED)
def test_R15_what_only_a_terminal_understands_is_taken_out(printed: str, read: str):
    assert clean_text(printed) == read


def text(printed: str, ends: int = 1_000) -> PrintedText:
    if len(printed) <= 2 * ends:
        return PrintedText(head=printed, length=len(printed))
    return PrintedText(head=printed[:ends], tail=printed[-ends:], length=len(printed))


def render(out: str, err: str, characters: int) -> dict[str, str]:
    answer = format_answer(text(out), text(err), {"exitCode": 0}, characters, ".recto/output/1.txt")
    assert len(answer) <= characters
    return json.loads(answer)


def test_R15_what_fits_is_told_whole_and_a_long_text_loses_its_middle():
    assert render("out\n", 'err "quoted"\n', 200) == {"stdout": "out\n", "stderr": 'err "quoted"\n', "exitCode": 0}
    answer = render("".join(f"line {n}\n" for n in range(5_000)), "a warning\n", 600)
    assert (answer["stderr"], answer["cut"], answer["output"]) == ("a warning\n", True, ".recto/output/1.txt")
    assert answer["stdout"].startswith("line 0\nline 1\n")
    assert answer["stdout"].endswith("line 4998\nline 4999\n")


def test_R15_two_long_texts_share_the_room_and_a_part_left_out_is_counted():
    answer = render("o" * 10_000, "e" * 10_000, 1_000)
    assert abs(len(answer["stdout"]) - len(answer["stderr"])) < 5
    assert len(answer["stdout"]) + len(answer["stderr"]) > 850
    left_out = 10_000 - answer["stdout"].replace("left out", "").count("o")
    assert f"[... {left_out:,} characters left out ...]" in answer["stdout"]


@pytest.mark.parametrize("characters", [200, 333, 5_000])
@pytest.mark.parametrize("piece", ['"', "\\\n", "\t", "漢"])
def test_R15_an_answer_is_never_longer_than_it_may_be_whatever_json_makes_of_it(piece: str, characters: int):
    answer = render(piece * 3_000, piece * 2_500, characters)
    assert set(answer) == {"stdout", "stderr", "exitCode", "cut", "output"}


def test_R15_bytes_that_come_in_pieces_are_read_as_one():
    def nowhere() -> WholeOutput:
        raise AssertionError("no file is needed")

    output = Output(100, nowhere)
    for byte in "日本\x1b[31m語\x1b[0m 1%\r2%\n".encode() + b"\xff\xfe bad":
        output.add("stdout", bytes([byte]))
    output.finish()
    assert output.printed("stdout").head == "2%\n\ufffd\ufffd bad"
    assert output.lines == 1


@pytest.mark.parametrize(
    ("after", "failed"),
    [(REPORT, True), (REPORT + "\n\n(The person who agreed said: {yes})", True), ("{not json\n\n(said)", False)],
)
def test_R8_the_code_of_a_command_is_read_whatever_was_said_after_it(after: str, failed: bool):
    message = ToolMessage(id="m", time=NOON, tool_call_id="c", parts=(Text(text=after),))
    assert is_failed_command(message) is failed
