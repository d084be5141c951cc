"""Every error that Recto raises on purpose. Each text says what happened, to what, and what to do.

RectoError
├── WireError        outside text is not in the expected format
├── WrongParameters  parameters of a request are invalid
├── InvalidRequest   a request breaks a rule of the protocol
├── TooLarge         a body is larger than its limit
├── LimitReached     a caller exceeds a limit for now
├── ServerFull       a resource of the server is in use up to its limit
├── FileRefused      a file cannot be accepted or read
├── StorageDown      the file storage is unavailable
├── CannotCarry      a wire format cannot express a part of the conversation
├── SettingsError    a setting is invalid
├── NotAConversation a file contains no conversation that Recto can read
├── NoPrice          the price list has no price for a model or prompt
├── ToolError        a tool cannot do its task; the model reads the reason
├── ModelError       a model call returned no complete reply
│   ├── ModelBusy        the provider asks to wait
│   ├── ModelUnreachable no connection, a failing server, or no data in time
│   ├── ModelCutOff      the stream ended before the reply was complete
│   ├── PageTooLong      the page does not fit into the model's window
│   ├── ModelRefused     the provider rejects this request, and a retry will not help
│   └── ReplyUnusable    the reply has unreadable calls or an invented result
├── ClientError      a server did not do what a client requested
│   ├── ServerUnreachable no server answers at a URL, or the connection was lost
│   ├── RequestRefused   the server rejected a request
│   └── TurnFailed       a run ended before its answer was complete
├── RunGivenUp       no worker can continue a run; its user reads the reason
└── StoreError       the store could not execute an operation
    ├── NotFound         an object does not exist, or belongs to another user
    ├── Conflict         the operation conflicts with the stored state
    ├── LeaseLost        another worker has this run now
    ├── StoreBusy        too many writes are waiting in the store's queue
    └── StoreDown        the database is unavailable
"""

from __future__ import annotations

from collections.abc import Sequence


class RectoError(Exception):
    """The base class of all errors that Recto raises on purpose."""


class WireError(RectoError):
    """Outside text is not in the expected format. `where` names the field."""

    def __init__(self, *, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}")
        self.where = where
        self.problem = problem


class WrongParameters(RectoError):
    """Parameters of a request are invalid. `wrong` has the name and the problem of each."""

    def __init__(self, *, wrong: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{name}: {problem}" for name, problem in wrong))
        self.wrong = wrong


class InvalidRequest(RectoError):
    """A request breaks a rule of the protocol. `words` is the text that the protocol prescribes; `where` names the
    field.

    If the field has too many items, `keep` is the number of allowed items.
    """

    def __init__(self, words: str, *, where: str, keep: int | None = None) -> None:
        super().__init__(words)
        self.where = where
        self.keep = keep


class TooLarge(RectoError):
    """A body is larger than its limit."""


class LimitReached(RectoError):
    """A caller exceeds a limit for now. `retry` is the number of seconds after which a retry may succeed."""

    def __init__(self, words: str, *, retry: float) -> None:
        super().__init__(words)
        self.retry = retry


class ServerFull(RectoError):
    """A resource of the server is in use up to its limit, for all callers. A later retry may succeed."""


class FileRefused(RectoError):
    """A file cannot be accepted or read. `code` names the kind of reason: `empty`, `too_large`, `mismatch` ..."""

    def __init__(self, reason: str, *, code: str) -> None:
        super().__init__(reason)
        self.code = code


class StorageDown(RectoError):
    """The file storage is unavailable."""

    def __init__(self, *, problem: str) -> None:
        super().__init__(f"The storage of files cannot be used: {problem}. Put that right; nothing stored is lost.")
        self.problem = problem


class CannotCarry(RectoError):
    """A wire format cannot express a part of the conversation. Fit the conversation to the format first."""

    def __init__(self, *, wire: str, what: str) -> None:
        super().__init__(f"The {wire} format cannot carry {what}.")
        self.wire = wire
        self.what = what


class SettingsError(RectoError):
    """A setting is invalid. `others` are further invalid settings; the text has a line for each."""

    def __init__(self, *, name: str, value: object, allowed: str, others: Sequence[SettingsError] = ()) -> None:
        super().__init__("\n".join((f"Setting {name} is {value!r}; {allowed}.", *map(str, others))))
        self.name = name
        self.value = value
        self.allowed = allowed


def raise_all(errors: Sequence[SettingsError]) -> None:
    """Raise all settings errors as one, so that an operator can fix all at once. Do nothing if there are none."""
    if errors:
        # Drop duplicates, because two checks may find the same problem.
        first, *others = {str(error): error for error in errors}.values()
        raise SettingsError(name=first.name, value=first.value, allowed=first.allowed, others=others) from first


class NotAConversation(RectoError):
    """A file contains no conversation that Recto can read."""

    def __init__(self, *, source: str, problem: str) -> None:
        super().__init__(f"{source}: {problem}")
        self.source = source
        self.problem = problem


class NoPrice(RectoError):
    """The price list has no price for a model, or for a prompt of this length."""

    def __init__(self, *, model: str, tokens: int) -> None:
        subject = (
            f"{model} with a prompt of {tokens:,} tokens has no price in the list" if model else "it names no model"
        )
        super().__init__(f"{subject}; name a model with --model, such as openai:gpt-5, or a list with --prices")
        self.model = model
        self.tokens = tokens


class ToolError(RectoError):
    """A tool cannot do its task. The text is the result that the model reads; `status` names the kind of failure."""

    def __init__(self, problem: str, *, status: str = "error") -> None:
        super().__init__(problem)
        self.status = status


class ModelError(RectoError):
    """A model call returned no complete reply. If `may_retry`, the same page may succeed later, after `retry_after`
    seconds if given.
    """

    may_retry = True

    def __init__(self, *, model: str, problem: str, retry_after: float | None = None) -> None:
        super().__init__(f"Model {model}: {problem}")
        self.model = model
        self.problem = problem
        self.retry_after = retry_after


class ModelBusy(ModelError):
    """The provider asks to wait (429)."""


class ModelUnreachable(ModelError):
    """No connection, a failing server (5xx), or no data in time."""


class ModelCutOff(ModelError):
    """The stream ended before the reply was complete, or did not follow the protocol."""


class PageTooLong(ModelError):
    """The page does not fit into the model's window."""

    may_retry = False


class ModelRefused(ModelError):
    """The provider rejects this request, and a retry will not help: a wrong key, model or field.

    If `may_be_the_page`, the content of the page may be the reason, so another page may succeed.
    """

    may_retry = False

    def __init__(self, *, model: str, problem: str, may_be_the_page: bool = False) -> None:
        super().__init__(model=model, problem=problem)
        self.may_be_the_page = may_be_the_page


class ReplyUnusable(ModelError):
    """A reply with unreadable calls or an invented result. `correction` is the text for the model."""

    def __init__(self, *, model: str, correction: str) -> None:
        # Keep the model's text out of the server's log.
        super().__init__(model=model, problem="its reply could not be used.")
        self.correction = correction


class ClientError(RectoError):
    """A server did not do what a client requested."""


class ServerUnreachable(ClientError):
    """No server answers at a URL, or the connection was lost."""

    def __init__(self, *, url: str, problem: str) -> None:
        super().__init__(
            f"No server answers at {url} ({problem}). Start one with `recto serve`, or name another in RECTO_URL."
        )
        self.url = url
        self.problem = problem


class RequestRefused(ClientError):
    """A server rejected a request. `detail` is the reason; a retry may succeed after `retry_after` seconds."""

    def __init__(self, *, status: int, detail: str, retry_after: float | None = None) -> None:
        super().__init__(f"{status}: {detail}")
        self.status = status
        self.detail = detail
        self.retry_after = retry_after


class TurnFailed(ClientError):
    """A run ended before its answer was complete. `code` names the kind of reason: `model_failed`, `deadline` ..."""

    def __init__(self, words: str, *, code: str) -> None:
        super().__init__(words)
        self.code = code


class RunGivenUp(RectoError):
    """No worker can continue a run. The text is for the run's user and contains nothing that only operators may see."""


class StoreError(RectoError):
    """The store could not execute an operation."""


class NotFound(StoreError):
    """An object does not exist, or belongs to another user."""

    def __init__(self, *, what: str, id: str) -> None:
        super().__init__(f"There is no {what} {id!r}.")
        self.what = what
        self.id = id


class Conflict(StoreError):
    """The operation conflicts with the stored state, such as a name that is in use."""


class LeaseLost(StoreError):
    """Another worker has this run now, so this worker may write nothing for it."""

    def __init__(self, *, run: str, fence: int) -> None:
        super().__init__(f"Run {run} is no longer ours (fence {fence}). Whoever has it now goes on.")
        self.run = run
        self.fence = fence


class StoreBusy(StoreError):
    """Too many writes are waiting in the store's queue."""

    def __init__(self, *, waiting: int) -> None:
        super().__init__(f"{waiting} writes are waiting already. Try again in a moment.")


class StoreDown(StoreError):
    """The database is unavailable."""

    def __init__(self, *, problem: str) -> None:
        super().__init__(f"The database cannot be used: {problem}. Put that right; nothing that was stored is lost.")
        self.problem = problem


NOT_SHOWN = "(not shown)"
