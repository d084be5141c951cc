"""Stock AG-UI clients in the hands of a test: what they send is theirs, what they saw is looked at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, cast

from recto.conversation.json import Json
from recto.ids import new_id
from tests.api.scripted_server import ALICE
from tests.clients.node import NodeProcess
from tests.support.client import bearer

VERSIONS = ("1.0.0", "0.0.59")
AG_UI = "/api/v1/agent/ag-ui"
Row: TypeAlias = Mapping[str, Json]


@dataclass(frozen=True, kw_only=True)
class ClientState:
    """The events of a client's run, and its state after it."""

    events: Sequence[Row]
    messages: Sequence[Row]
    pending: Sequence[str] | None
    outcome: str | None
    interrupts: Sequence[Row] | None
    failed: Row | None
    warned: Sequence[str]
    state: Json
    thread: str

    @property
    def types(self) -> list[str]:
        return [str(event["type"]) for event in self.events]

    @property
    def read_texts(self) -> list[str]:
        """Return the texts of the list, each with its role."""
        return [f"{row['role']}: {row['content']}" for row in self.messages if row.get("content")]

    @property
    def calls(self) -> list[Row]:
        return [call for row in self.messages for call in rows(row.get("toolCalls"))]

    @property
    def unanswered(self) -> list[Row]:
        """Return calls without a result. CopilotKit and assistant-ui run these."""
        answer_ids = [row.get("toolCallId") for row in self.messages if row["role"] == "tool"]
        return [call for call in self.calls if call["id"] not in answer_ids]


class Client:
    """An HttpAgent of one version in one thread."""

    def __init__(self, node: NodeProcess, version: str, url: str, **config: Json) -> None:
        self._node = node
        self._name = new_id()
        headers = cast("dict[str, Json]", bearer(ALICE))
        session = node.ask("open", name=self._name, version=version, url=url, **({"headers": headers} | config))
        self.thread = str(session["threadId"])

    def say(self, words: Json, id: str = "", **parameters: Json) -> ClientState:
        """Add a user message to the list and run."""
        return self.run(add=[user(words, id)], **parameters)

    def answer(self, call: Row, content: str, **parameters: Json) -> ClientState:
        """Run with the result of a call."""
        return self.run(add=[result(call, content)], **parameters)

    def run(self, **parameters: Json) -> ClientState:
        return self.wait(self.begin(**parameters))

    def begin(self, **parameters: Json) -> int:
        return self._node.begin("run", name=self._name, **parameters)

    def wait(self, run: int) -> ClientState:
        return seen_of(self._node.wait(run))

    def saw(self, kind: str) -> None:
        """Wait until the current run has sent an event of a type."""
        self._node.ask("saw", name=self._name, type=kind)

    def stop(self) -> None:
        self._node.ask("stop", name=self._name)


class ClientMaker(Protocol):
    def __call__(self, **config: Json) -> Client: ...


def user(words: Json, id: str = "") -> Row:
    return {"id": id or new_id(), "role": "user", "content": words}


def result(call: Row, content: str) -> Row:
    return {"id": new_id(), "role": "tool", "toolCallId": call["id"], "content": content}


def tool(name: str, **properties: Json) -> Row:
    parameters: Row = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": f"The client's {name}.", "parameters": parameters}


def seen_of(answer: Row) -> ClientState:
    return ClientState(
        events=rows(answer["events"]),
        messages=rows(answer["messages"]),
        pending=cast("Sequence[str] | None", answer["pending"]),
        outcome=cast("str | None", answer["outcome"]),
        interrupts=None if answer["interrupts"] is None else rows(answer["interrupts"]),
        failed=cast("Row | None", answer["failed"]),
        warned=cast("Sequence[str]", answer["warned"]),
        state=answer["state"],
        thread=str(answer["threadId"]),
    )


def rows(value: Json) -> list[Row]:
    return list(cast("list[Row]", value or []))


def function_of(call: Row) -> tuple[str, str]:
    function = cast("Row", call["function"])
    return str(function["name"]), str(function["arguments"])
