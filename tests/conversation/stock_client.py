"""What a stock AG-UI client makes of a stream: the messages it shows, and the calls it would run.

It knows nothing of events of ours: `CUSTOM` is passed over.
"""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import TypeAlias, cast

from recto.conversation.json import Json, load

Row: TypeAlias = dict[str, Json]
# What such clients keep of their own where a snapshot has none of that kind.
KEPT_ROLES = ("activity", "reasoning")


class StockClient:
    """Takes events one by one, as `@ag-ui/client` does. One that is out of order fails the test."""

    def __init__(self, messages: Iterable[Row] = ()) -> None:
        self.messages = deepcopy(list(messages))
        self._open: set[tuple[str, str]] = set()
        self._is_running = False

    def read(self, bodies: Iterable[bytes]) -> "StockClient":
        for body in bodies:
            self.take(cast("Row", load(body)))
        return self

    @property
    def to_run(self) -> set[str]:
        """Calls that have no result: a client with such a tool runs them."""
        answer_ids = {str(row["toolCallId"]) for row in self.messages if row["role"] == "tool"}
        return {str(call["id"]) for row in self.messages for call in calls_of(row) if call["id"] not in answer_ids}

    def take(self, event: Row) -> None:
        kind = str(event["type"])
        if kind == "RUN_STARTED":
            assert not self._is_running
            self._is_running = True
            return
        assert self._is_running, event
        if kind in ("RUN_FINISHED", "RUN_ERROR"):
            assert kind == "RUN_ERROR" or not self._open, self._open
            self._is_running = False
        self._check_order(kind, str(event.get("toolCallId") or event.get("messageId")))
        self._apply(kind, event)

    def _check_order(self, kind: str, id: str) -> None:
        thing, _, phase = kind.rpartition("_")
        if phase == "START":
            assert (thing, id) not in self._open, (kind, id)
            self._open.add((thing, id))
        elif phase in ("CONTENT", "ARGS", "END"):
            assert (thing, id) in self._open, (kind, id)
            self._open -= {(thing, id)} if phase == "END" else set()

    def _apply(self, kind: str, event: Row) -> None:
        id = str(event.get("messageId"))
        match kind:
            case "TEXT_MESSAGE_START" | "REASONING_MESSAGE_START":
                self._message(id, str(event["role"])).setdefault("content", "")
            case "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT":
                row = self._message(id, "assistant")
                row["content"] = str(row.get("content", "")) + str(event["delta"])
            case "TOOL_CALL_START":
                self._begin_call(event)
            case "TOOL_CALL_ARGS":
                (call,) = [call for row in self.messages for call in calls_of(row) if call["id"] == event["toolCallId"]]
                function = cast("dict[str, str]", call["function"])
                function["arguments"] += str(event["delta"])
            case "TOOL_CALL_RESULT":
                self._put_result(event)
            case "ACTIVITY_SNAPSHOT":
                row = self._message(id, "activity")
                row |= {"activityType": event["activityType"], "content": event["content"]}
            case "MESSAGES_SNAPSHOT":
                self._merge(cast("list[Row]", event["messages"]))
            case _:
                pass

    def _message(self, id: str, role: str) -> Row:
        for row in self.messages:
            if row["id"] == id:
                return row
        self.messages.append({"id": id, "role": role})
        return self.messages[-1]

    def _begin_call(self, event: Row) -> None:
        if any(call["id"] == event["toolCallId"] for row in self.messages for call in calls_of(row)):
            return
        calls = self._message(str(event["parentMessageId"]), "assistant").setdefault("toolCalls", [])
        function = {"name": event["toolCallName"], "arguments": ""}
        cast("list[Json]", calls).append({"id": event["toolCallId"], "type": "function", "function": function})

    def _put_result(self, event: Row) -> None:
        call = event["toolCallId"]
        row: Row = {"id": event["messageId"], "role": "tool", "toolCallId": call, "content": event["content"]}
        owners = [
            at for at, one in enumerate(self.messages) if any(owner_row["id"] == call for owner_row in calls_of(one))
        ]
        at = owners[0] + 1 if owners else len(self.messages)
        while at < len(self.messages) and self.messages[at]["role"] == "tool":
            at += 1
        self.messages.insert(at, row)

    def _merge(self, rows: Sequence[Row]) -> None:
        """The snapshot in the place of what is here, but for what only this client has."""
        rows_by_id = {str(row["id"]): deepcopy(row) for row in rows}
        kept_kinds = [kind for kind in KEPT_ROLES if all(row["role"] != kind for row in rows)]
        here = [row for row in self.messages if row["role"] in kept_kinds or row["id"] in rows_by_id]
        events = [row if row["role"] in kept_kinds else rows_by_id[str(row["id"])] for row in here]
        ids = {str(row["id"]) for row in events}
        self.messages = [*events, *[row for id, row in rows_by_id.items() if id not in ids]]


def calls_of(row: Row) -> list[Row]:
    return cast("list[Row]", row.get("toolCalls") or [])
