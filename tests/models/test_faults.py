"""Errors of providers as ModelErrors."""

from datetime import UTC, datetime

import pytest

from recto.conversation.json import dump
from recto.errors import ModelBusy, ModelError, ModelRefused, ModelUnreachable, PageTooLong
from recto.models.faults import Blame, fault, parse_retry_after, stream_fault

NOW = datetime(2026, 11, 6, 8, 49, 37, tzinfo=UTC)
BLAME = Blame(model="m", key_setting="KEY_SETTING", url_setting="URL_SETTING", secret="sk-secret")


def failed(status: int, message: str = "no", code: str | None = None, type: str = "error") -> ModelError:
    return fault(status, dump({"error": {"message": message, "code": code, "type": type}}), BLAME)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((status, ModelUnreachable) for status in (408, 409, 500, 502, 503, 504)),
        *((status, ModelRefused) for status in (301, 307, 400, 401, 402, 403, 404, 405, 422)),
        (413, PageTooLong),
        (429, ModelBusy),
        (529, ModelBusy),
    ],
)
def test_each_status_has_its_error(status: int, kind: type[ModelError]):
    assert type(failed(status)) is kind


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        "the request exceeds the available context size, try increasing it",
        "Input exceeds the context window of this model",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 199000 + 20000 > 200000, decrease input length",
        "request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it",
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
        "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
        "Input validation error: `inputs` must have less than 4095 tokens. Given: 5000",
        "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens",
        "the input length exceeds the context length",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "Too many tokens in the request",
        "Please reduce the length of the messages or completion.",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    ],
)
def test_the_usual_wordings_for_a_page_that_is_too_long_are_known(message: str):
    assert isinstance(failed(400, message), PageTooLong)


@pytest.mark.parametrize(
    ("kind", "message", "expected"),
    [
        ("overloaded_error", "Overloaded", ModelBusy),
        ("rate_limit_error", "Slow down", ModelBusy),
        ("api_error", "Internal server error", ModelUnreachable),
        ("timeout_error", "Timed out", ModelUnreachable),
        ("invalid_request_error", "max_tokens: Field required", ModelRefused),
        ("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", PageTooLong),
        ("request_too_large", "Request exceeds the maximum size", PageTooLong),
        ("authentication_error", "invalid x-api-key", ModelRefused),
        ("permission_error", "no", ModelRefused),
        ("not_found_error", "model: claude", ModelRefused),
        ("billing_error", "Your credit balance is too low", ModelRefused),
        ("a_later_error", "who knows", ModelUnreachable),
    ],
)
def test_an_error_of_anthropic_inside_a_stream_is_known_by_its_type(
    kind: str, message: str, expected: type[ModelError]
):
    assert type(stream_fault({"type": kind, "message": message}, BLAME)) is expected


def test_who_is_overloaded_is_not_said_to_be_asked_too_often():
    assert "overloaded (status 529)" in str(failed(529))
    assert "too often" not in str(failed(529))


QUOTA = "You exceeded your current quota"


@pytest.mark.parametrize(
    ("problem", "kind"),
    [
        (failed(400, "no", "context_length_exceeded"), PageTooLong),
        (failed(413, "too many tokens"), PageTooLong),
        (failed(429, "Rate limit reached: too many tokens per minute"), ModelBusy),
        (failed(429, QUOTA, "insufficient_quota"), ModelRefused),
        (failed(429, QUOTA, type="insufficient_quota"), ModelRefused),
        (failed(429, f"{QUOTA}. Please retry in 7s."), ModelBusy),
    ],
)
def test_a_code_and_the_words_say_more_than_a_status(problem: ModelError, kind: type[ModelError]):
    assert isinstance(problem, kind)


def test_an_error_inside_a_stream_claims_no_status():
    assert "status" not in str(stream_fault({"message": "oops"}, BLAME))


@pytest.mark.parametrize(("status", "setting"), [(401, "KEY_SETTING"), (403, "KEY_SETTING"), (404, "URL_SETTING")])
def test_a_refusal_names_the_setting_to_check(status: int, setting: str):
    assert setting in str(failed(status))


def test_the_providers_words_are_told_but_not_all_of_them():
    problem = failed(400, "x" * 5000).problem
    assert "x" * 400 in problem
    assert len(problem) < 700


def test_the_key_is_never_shown():
    assert "sk-secret" not in str(failed(401, "Incorrect API key provided: sk-secret"))
    assert "sk-secret" not in str(fault(401, b"who is sk-secret?", BLAME))


@pytest.mark.parametrize(
    "body", [b"", b"\xff", b"<html>no</html>", b"null", b"[]", b'[{"error":"x"}]', b'{"detail":"x"}']
)
def test_a_body_of_any_form_makes_an_error(body: bytes):
    assert isinstance(fault(400, body, BLAME), ModelRefused)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0),
        ("0.25", 0.25),
        ("-3", 0.0),
        ("Fri, 06 Nov 2026 08:50:07 GMT", 30.0),
        ("Fri, 06 Nov 2026 08:40:00 GMT", 0.0),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str | None, seconds: float | None):
    assert parse_retry_after(value, NOW) == seconds
