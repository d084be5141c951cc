"""Log lines: JSON or for people, one a record, without secrets, and nobody can forge one."""

import io
import logging
from collections.abc import Iterator
from typing import Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recto.cli.log_output import HIDDEN, Secrets, set_up_logs
from recto.conversation.json import Json, load_object

LONG = 400_000
SECRET = 'a "secret" with\na second line'
FORM: list[Literal["text", "json"]] = ["text", "json"]


@pytest.fixture(autouse=True)
def logs_as_they_were() -> Iterator[None]:
    root, recto = logging.getLogger(), logging.getLogger("recto")
    handlers, levels = root.handlers, (root.level, recto.level)
    yield
    root.handlers = handlers
    root.setLevel(levels[0])
    recto.setLevel(levels[1])


class LogFile:
    """A logger of Recto's, and all that was written."""

    def __init__(self, form: Literal["text", "json"], level: str = "info", secrets: Secrets | None = None) -> None:
        self._stream = io.StringIO()
        set_up_logs(level, form, secrets or Secrets(), self._stream)
        self.log = logging.getLogger("recto.engine")

    @property
    def text(self) -> str:
        return self._stream.getvalue()

    @property
    def row(self) -> dict[str, Json]:
        """The one line, as JSON."""
        (line,) = self.text.splitlines()
        return dict(load_object(line) or {})


def test_C2_as_json_a_line_is_an_object_with_time_level_logger_and_message():
    log_output = LogFile("json")
    log_output.log.warning("run %s stopped", "r1")
    row = log_output.row
    assert list(row) == ["time", "level", "logger", "message"]
    assert str(row["time"]).endswith("+00:00")
    assert (row["level"], row["logger"], row["message"]) == ("warning", "recto.engine", "run r1 stopped")


def test_C2_json_logs_add_extra_fields_but_no_standard_ones():
    log_output = LogFile("json")
    extra: dict[str, object] = {"run": "r1", "count": 3, "large": 2**70, "level": "forged", "of": ("a", 1)}
    log_output.log.info("hello", extra=extra)
    row = log_output.row
    assert (row["run"], row["count"], row["large"], row["of"]) == ("r1", 3, str(2**70), "('a', 1)")
    assert row["level"] == "info"


@example("a\x85b\u2028c", "json")
@given(st.text(st.characters(codec=None), max_size=30), st.sampled_from(FORM))
def test_C2_every_message_is_one_line(words: str, form: Literal["text", "json"]):
    log_output = LogFile(form)
    log_output.log.info("got %s", words)
    assert len(log_output.text.splitlines()) == 1
    assert log_output.text.endswith("\n")


@given(st.text(max_size=30))
def test_C2_a_traceback_follows_its_line_indented(words: str):
    log_output = LogFile("text")
    try:
        raise ValueError(f"first\n2026-01-01T00:00:00 INFO recto.engine forged {words}")
    except ValueError:
        log_output.log.exception("it failed")
    first, *below = log_output.text.splitlines()
    assert first.endswith("ERROR recto.engine it failed")
    assert below
    assert all(line.startswith("    ") for line in below)


@pytest.mark.parametrize("form", FORM)
def test_C2_lines_below_the_level_are_not_written_nor_chatter_of_libraries(form: Literal["text", "json"]):
    log_output = LogFile(form, "warning")
    log_output.log.info("quiet")
    logging.getLogger("asyncio").info("chatter")
    assert log_output.text == ""
    logging.getLogger("uvicorn.error").warning("loud")
    assert "loud" in log_output.text


@pytest.mark.parametrize("form", FORM)
def test_C2_a_secret_is_hidden_in_every_part_of_a_record(form: Literal["text", "json"]):
    secrets = Secrets([SECRET, "sesame-open", "sesame-open-twice"])
    log_output = LogFile(form, secrets=secrets)
    try:
        raise ValueError(f"wrong key {SECRET}, not sesame-open")
    except ValueError:
        log_output.log.exception("refused %s and sesame-open-twice", SECRET, extra={"key": SECRET, "of": [SECRET]})
    secrets.add("learned-later")
    log_output.log.info("and learned-later")
    assert log_output.text.count(HIDDEN) >= 4
    for part in ("a second", "second line", "sesame", "twice", "learned"):
        assert part not in log_output.text


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("authorization: Bearer abc.def-123", "authorization: Bearer (hidden)"),
        ("{'authorization': 'bearer abcdef'}", "{'authorization': 'bearer (hidden)'}"),
        ("Basic dXNlcjpwYXNz", "Basic (hidden)"),
        ("my-eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl", "my-(hidden)"),
        (f"{'x' * 40}+proto://bob:s3cret@host", f"{'x' * 40}+proto://bob:(hidden)@host"),
        ("eyJ is how they begin. Or eyJust so.", "eyJ is how they begin. Or eyJust so."),
        ("token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl", "token (hidden)"),
        ("GET /f/1?expires=9&signature=ab12&x=1", "GET /f/1?expires=9&signature=(hidden)&x=1"),
        (
            "http://a/b?X-Amz-Signature=ab12&X-Amz-Credential=cd",
            "http://a/b?X-Amz-Signature=(hidden)&X-Amz-Credential=(hidden)",
        ),
        ("http://127.0.0.1:1/#token=abc", "http://127.0.0.1:1/#token=(hidden)"),
        ("cannot reach postgresql://bob:s3cret@host/db", "cannot reach postgresql://bob:(hidden)@host/db"),
        (
            "the bearer of bad news, 3 tokens, http://a:80/b?page=2",
            "the bearer of bad news, 3 tokens, http://a:80/b?page=2",
        ),
    ],
)
def test_C2_texts_that_look_like_credentials_are_hidden(words: str, problem: str):
    log_output = LogFile("json")
    log_output.log.info("%s", words)
    assert log_output.row["message"] == problem


@pytest.mark.parametrize(
    "piece", ["a.", "a", "eyJ-", "eyJabcdefgh.", "://", "://a:", "a://b", "?a", "?key", "&sig=", "bearer ", " ", "x:y@"]
)
def test_C2_hiding_takes_linear_time(piece: str):
    text = piece * (LONG // len(piece))
    # An implementation that scans the rest again from each place takes minutes, and the tier's CPU limit fails it.
    assert Secrets(["sesame-open"]).hide(text)


@pytest.mark.parametrize("form", FORM)
def test_C2_a_long_text_is_truncated_with_a_count(form: Literal["text", "json"]):
    log_output = LogFile(form)
    try:
        raise ValueError("no such " + "thing " * LONG)
    except ValueError:
        log_output.log.exception("it %s failed", "word " * LONG, extra={"given": "more " * LONG})
    assert len(log_output.text) < 60_000
    assert "it word word" in log_output.text
    assert "ValueError: no such thing" in log_output.text
    assert "more characters)" in log_output.text


@given(st.integers(0, 200))
def test_C2_a_truncated_text_contains_no_part_of_a_secret(before: int):
    log_output = LogFile("json", secrets=Secrets(["sesame-open"]))
    log_output.log.info("%s", "x" * (16_284 + before) + " sesame-open" * 3)
    assert "ses" not in log_output.text
