"""Every error Recto raises on purpose. Each says what happened, to what, and what to do.

RectoError
├── WireError        text from outside is not the format it claims to be
├── WrongParameters  parameters of a request are not what they may be
├── Refused          a request breaks a rule of the protocol, which has its own words for it
├── TooLarge         a body is larger than its limit
├── LimitReached     somebody asks for more than they may have at present
├── ServerFull       all that there may be of something is in use
├── FileRefused      a file cannot be taken, or read
├── StorageDown      the storage of files cannot be used
├── CannotCarry      a wire format has no place for what it was asked to carry
├── SettingsError    a setting has a value that means nothing
├── NotAConversation a file holds no conversation Recto can read
├── ToolError        a tool cannot do what it was asked; the model is told why
├── ModelError       a model call gave no whole reply
│   ├── ModelBusy        the provider asks to wait
│   ├── ModelUnreachable no connection, a failing server, or no data in time
│   ├── ModelCutOff      the stream ended before the reply did
│   ├── PageTooLong      the page does not fit into the model's window
│   ├── ModelRefused     the provider will not take this request, however often it is sent
│   └── ReplyUnusable    the reply is whole, but its calls cannot be read or it makes up a result
├── ClientError      a server did not do what a client asked of it
│   ├── ServerUnreachable nobody answers at its address, or not any more
│   ├── RequestRefused   it refused a request, and said why
│   └── TurnFailed       a run ended before its answer was whole
├── RunGivenUp       nobody can go on with a run; its user is told why
└── StoreError       the store could not do what it was asked
    ├── NotFound         there is no such thing, or it is somebody else's
    ├── Conflict         the same name already stands for something else
    ├── LeaseLost        another worker has this run now: nothing may be written for it
    ├── StoreBusy        more writes are waiting than the store will hold
    └── StoreDown        the database cannot be used
"""

from __future__ import annotations

from collections.abc import Sequence


class RectoError(Exception):
    """The root: catch it to catch everything Recto raises on purpose."""


class WireError(RectoError):
    """Text from outside is not the format it claims to be. `where` names the field."""

    def __init__(self, *, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}")
        self.where = where
        self.problem = problem


class WrongParameters(RectoError):
    """Parameters of a request are not what they may be: the name of each that is wrong, and what is wrong with it."""

    def __init__(self, *, wrong: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{name}: {problem}" for name, problem in wrong))
        self.wrong = wrong


class InvalidRequest(RectoError):
    """A request breaks a rule of the protocol. The words are the protocol's own; `where` names the field.

    `keep` is how many of what stands there may stay, where there is too much of it.
    """

    def __init__(self, words: str, *, where: str, keep: int | None = None) -> None:
        super().__init__(words)
        self.where = where
        self.keep = keep


class TooLarge(RectoError):
    """A body is larger than its limit."""


class LimitReached(RectoError):
    """Somebody asks for more than they may have at present. `retry` is in how many seconds they may ask again."""

    def __init__(self, words: str, *, retry: float) -> None:
        super().__init__(words)
        self.retry = retry


class ServerFull(RectoError):
    """All that there may be of something is in use, whoever asks. Later there may be room."""


class FileRefused(RectoError):
    """A file cannot be taken, or read. `code` names the kind of reason: `empty`, `too_large`, `mismatch` ..."""

    def __init__(self, reason: str, *, code: str) -> None:
        super().__init__(reason)
        self.code = code


class StorageDown(RectoError):
    """The storage of files cannot be used."""

    def __init__(self, *, problem: str) -> None:
        super().__init__(f"The storage of files cannot be used: {problem}. Put that right; nothing stored is lost.")
        self.problem = problem


class CannotCarry(RectoError):
    """A wire format has no place for this. Fit the conversation to the wire first."""

    def __init__(self, *, wire: str, what: str) -> None:
        super().__init__(f"The {wire} format cannot carry {what}.")
        self.wire = wire
        self.what = what


class SettingsError(RectoError):
    """A setting has a value that means nothing; `others` do too, and are told with it, a line each."""

    def __init__(self, *, name: str, value: object, allowed: str, others: Sequence[SettingsError] = ()) -> None:
        super().__init__("\n".join((f"Setting {name} is {value!r}; {allowed}.", *map(str, others))))
        self.name = name
        self.value = value
        self.allowed = allowed


def raise_all(errors: Sequence[SettingsError]) -> None:
    """Raise errors of settings as one, so that all of them can be put right at once; none where there are none."""
    if errors:
        # Two checks may find the same.
        first, *others = {str(error): error for error in errors}.values()
        raise SettingsError(name=first.name, value=first.value, allowed=first.allowed, others=others) from first


class NotAConversation(RectoError):
    """A file holds no conversation Recto can read."""

    def __init__(self, *, source: str, problem: str) -> None:
        super().__init__(f"{source}: {problem}")
        self.source = source
        self.problem = problem


class NoPrice(RectoError):
    """No price is listed of a model, or of a prompt as long as one it was sent."""

    def __init__(self, *, model: str, tokens: int) -> None:
        subject = (
            f"{model} with a prompt of {tokens:,} tokens has no price in the list" if model else "it names no model"
        )
        super().__init__(f"{subject}; name a model with --model, such as openai:gpt-5, or a list with --prices")
        self.model = model
        self.tokens = tokens


class ToolError(RectoError):
    """A tool cannot do what it was asked. Its text is the result the model sees; `status` names the kind of failure."""

    def __init__(self, problem: str, *, status: str = "error") -> None:
        super().__init__(problem)
        self.status = status


class ModelError(RectoError):
    """A model call gave no whole reply. `may_retry`: the same page may do better later, after `retry_after` seconds."""

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
    """The stream ended before the reply did, or was no stream of the protocol."""


class PageTooLong(ModelError):
    """The page does not fit into the model's window."""

    may_retry = False


class ModelRefused(ModelError):
    """The provider will not take this request, however often it is sent: a wrong key, model or field.

    `may_be_the_page`: what the page holds may be the reason, so that another page may do better.
    """

    may_retry = False

    def __init__(self, *, model: str, problem: str, may_be_the_page: bool = False) -> None:
        super().__init__(model=model, problem=problem)
        self.may_be_the_page = may_be_the_page


class ReplyUnusable(ModelError):
    """A reply with unreadable calls or an invented result. `correction` is the text for the model."""

    def __init__(self, *, model: str, correction: str) -> None:
        # What it wrote is no business of a server's log.
        super().__init__(model=model, problem="its reply could not be used.")
        self.correction = correction


class ClientError(RectoError):
    """A server did not do what a client asked of it."""


class ServerUnreachable(ClientError):
    """Nobody answers at a server's address, or not any more."""

    def __init__(self, *, url: str, problem: str) -> None:
        super().__init__(
            f"No server answers at {url} ({problem}). Start one with `recto serve`, or name another in RECTO_URL."
        )
        self.url = url
        self.problem = problem


class RequestRefused(ClientError):
    """A server refused a request. `detail` is why; `retry_after` is in how many seconds it may take the same."""

    def __init__(self, *, status: int, detail: str, retry_after: float | None = None) -> None:
        super().__init__(f"{status}: {detail}")
        self.status = status
        self.detail = detail
        self.retry_after = retry_after


class TurnFailed(ClientError):
    """A run ended before its answer was whole. `code` names the kind of reason: `model_failed`, `deadline` ..."""

    def __init__(self, words: str, *, code: str) -> None:
        super().__init__(words)
        self.code = code


class RunGivenUp(RectoError):
    """Nobody can go on with a run. The words are for its user: nothing in them is for operators alone."""


class StoreError(RectoError):
    """The store could not do what it was asked."""


class NotFound(StoreError):
    """There is no such thing, or it is somebody else's."""

    def __init__(self, *, what: str, id: str) -> None:
        super().__init__(f"There is no {what} {id!r}.")
        self.what = what
        self.id = id


class Conflict(StoreError):
    """The same name already stands for something else."""


class LeaseLost(StoreError):
    """Another worker has this run now: nothing may be written for it."""

    def __init__(self, *, run: str, fence: int) -> None:
        super().__init__(f"Run {run} is no longer ours (fence {fence}). Whoever has it now goes on.")
        self.run = run
        self.fence = fence


class StoreBusy(StoreError):
    """More writes are waiting than the store will hold."""

    def __init__(self, *, waiting: int) -> None:
        super().__init__(f"{waiting} writes are waiting already. Try again in a moment.")


class StoreDown(StoreError):
    """The database cannot be used."""

    def __init__(self, *, problem: str) -> None:
        super().__init__(f"The database cannot be used: {problem}. Put that right; nothing that was stored is lost.")
        self.problem = problem


NOT_SHOWN = "(not shown)"
