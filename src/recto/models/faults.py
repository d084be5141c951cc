"""Errors of providers: a status and an error body become a ModelError that says what to do. Pure.

Also computes the delay before a retry; the random part of the delay is an argument.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from recto.config.run_settings import BackoffSettings
from recto.conversation.json import Json, load, scrub
from recto.errors import ModelBusy, ModelCutOff, ModelError, ModelRefused, ModelUnreachable, PageTooLong

MESSAGE_LENGTH = 500
# Maximum doublings of a delay: more than any cap needs, and few enough to avoid an overflow.
DOUBLINGS = 60
USUAL_BACKOFF = BackoffSettings()
BUSY = 429
OVERLOADED = 529
UNAVAILABLE = 503
TOO_LARGE = 413
BAD_REQUEST = 400
# Statuses of temporary errors (a timeout, a conflict with another request), and the first status of server errors.
PASSING = (408, 409, 425)
SERVER_FAULT = 500
# Statuses that may mean that a page is too long. Some servers use a server error, or report the error inside the
# stream.
LONG_STATUSES = (400, 422, 500)
TOO_LONG = re.compile(
    r"context[_ -]length|context window|context size|maximum context|max_context|exceed\w* (?:the )?context"
    r"|prompt (?:is )?too long|input (?:is )?too long|too many (?:input )?tokens|request_too_large"
    r"|longer than the maximum model length|must have less than \d+ tokens|max_new_tokens` must be"
    r"|(?:input|prompt)[^.]{0,40}exceeds[^.]{0,40}tokens"
    r"|reduce the length of the (?:messages|prompt|input)|token limit exceeded|string_above_max_length",
    re.IGNORECASE,
)
# The text "you exceeded your current quota" does not match, because some providers use it for a limit that ends within
# a minute.
NO_QUOTA = re.compile(r"insufficient_quota|billing_|insufficient (?:balance|credits)", re.IGNORECASE)
# Names of errors inside a stream, and the equivalent status.
PATTERNS: tuple[tuple[re.Pattern[str], int], ...] = (
    (re.compile(r"rate.?limit|too.?many.?requests", re.IGNORECASE), BUSY),
    (re.compile(r"overloaded_error", re.IGNORECASE), OVERLOADED),
    (re.compile(r"server|overload|unavailable|timeout|api_error|internal", re.IGNORECASE), UNAVAILABLE),
    (re.compile(r"invalid|authentication|permission|not_found|unsupported", re.IGNORECASE), BAD_REQUEST),
)
# Statuses of an invalid request. For a page that is too long, PageTooLong is raised instead.
OF_THE_PAGE = (400, 422)
STATUS = re.compile("[45][0-9]{2}")
ADVICE = {401: "Check {key}.", 403: "Check {key} and its permissions.", 404: "Check the model's name and {url}."}
REDIRECTED = "it redirects to another address (status {status}). Set {url} to that address."


@dataclass(frozen=True, kw_only=True)
class Blame:
    """The model of a failed call and the settings that it depends on, for errors. Errors never show `secret`."""

    model: str
    key_setting: str = "the key"
    url_setting: str = "the base url"
    secret: str = ""

    def cut_off(self, problem: str) -> ModelCutOff:
        """Return the error of an incomplete reply."""
        return ModelCutOff(model=self.model, problem=problem)


def fault(status: int, body: bytes, blame: Blame, retry_after: float | None = None) -> ModelError:
    """Return the error for an answer with this status and body, in any format."""
    text = scrub(body.decode("utf-8", "replace"))
    try:
        whole = load(text)
    except ValueError:
        whole = text
    # Some servers wrap the object in a list.
    error = whole[0] if isinstance(whole, list) and whole else whole
    if isinstance(error, Mapping) and error.get("error"):
        error = error["error"]
    return _fault(status, error, blame, f"status {status}", retry_after)


def stream_fault(error: Json, blame: Blame) -> ModelError:
    """Return the error for an error object inside a stream. Its code or type replaces the status."""
    code = _field(error, "code") or _field(error, "status")
    names = f"{code} {_field(error, 'type')}"
    if STATUS.fullmatch(code):
        status = int(code)
    elif TOO_LONG.search(f"{names} {_message(error)}"):
        status = BAD_REQUEST
    elif NO_QUOTA.search(names):
        status = BUSY
    else:
        status = next((status for pattern, status in PATTERNS if pattern.search(names)), UNAVAILABLE)
    return _fault(status, error, blame, "inside its stream", None)


def error_type(status: int, types: Mapping[int, str]) -> str:
    """Return the error type of a status in a provider's format."""
    return types.get(status, "api_error" if status >= SERVER_FAULT else "invalid_request_error")


def parse_retry_after(value: str | None, now: datetime) -> float | None:
    """Return the seconds of a Retry-After header, which is a number or a date. Return None for anything else."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            then = parsedate_to_datetime(value)
        except ValueError:
            return None
        seconds = ((then if then.tzinfo else then.replace(tzinfo=UTC)) - now).total_seconds()
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _fault(status: int, error: Json, blame: Blame, where: str, retry_after: float | None) -> ModelError:
    message = " ".join(_message(error).split())
    hidden = message.replace(blame.secret, "***") if blame.secret else message
    short = hidden if len(hidden) <= MESSAGE_LENGTH else f"{hidden[: MESSAGE_LENGTH - 3]}..."
    text = f"The provider says: {short}" if short else "The provider gave no reason."
    names = f"{_field(error, 'code')} {_field(error, 'type')} {_message(error)}"
    if status == TOO_LARGE or (status in LONG_STATUSES and TOO_LONG.search(names)):
        return PageTooLong(model=blame.model, problem=f"the page is too long for it. {text}")
    if NO_QUOTA.search(names) and status in (BUSY, 402, 403):
        return ModelRefused(model=blame.model, problem=f"the account has no quota left. {text}")
    if status in (BUSY, OVERLOADED):
        problem = f"{'its rate limit is reached' if status == BUSY else 'it is overloaded'} ({where}). {text}"
        return ModelBusy(model=blame.model, problem=problem, retry_after=retry_after)
    if status in PASSING or status >= SERVER_FAULT:
        problem = f"the server failed ({where}). {text}"
        return ModelUnreachable(model=blame.model, problem=problem, retry_after=retry_after)
    if status < BAD_REQUEST:
        problem = REDIRECTED.format(status=status, url=blame.url_setting)
        return ModelRefused(model=blame.model, problem=problem)
    template = ADVICE.get(status, "Change the request or the model's settings.")
    advice = template.format(key=blame.key_setting, url=blame.url_setting)
    problem = f"it rejected the request ({where}). {text} {advice}"
    return ModelRefused(model=blame.model, problem=problem, may_be_the_page=status in OF_THE_PAGE)


def _message(error: Json) -> str:
    match error:
        case str():
            return error
        case {"message": str(message)} | {"detail": str(message)} | {"error": str(message)}:
            return message
        case Mapping():
            return ", ".join(f"{name}: {value}" for name, value in error.items())
        case _:
            return ""


def _field(error: Json, name: str) -> str:
    value = error.get(name) if isinstance(error, Mapping) else None
    return str(value) if isinstance(value, (str, int)) else ""


def delay(
    failures: int, retry_after: float | None = None, chance: float = 0.0, settings: BackoffSettings = USUAL_BACKOFF
) -> float:
    """Return the seconds to wait after this many failures (1 is the first).

    `chance` in [0, 1) is the random part. Our own delay doubles with each failure, and half of it is random. If the
    provider requests a delay, wait that long, up to the provider's cap, plus a short random time, so that its clients
    do not all retry together.
    """
    if retry_after is not None:
        return min(max(retry_after, 0.0), settings.retry_after_cap) + chance * settings.base
    longest = min(settings.base * 2 ** min(max(failures - 1, 0), DOUBLINGS), settings.cap)
    return longest / 2 + chance * longest / 2
