"""The blocking and asyncio clients: one conversation with an agent."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import ClassVar, Generic, TypeAlias, TypeVar

from recto.client.exchange import RETRY_STATUSES, RUNS, THREADS, Exchange, FileToSend, Patience, RunCursor
from recto.client.local_tools import LocalFunction, LocalTool, build_local_tools
from recto.client.server_address import find_server
from recto.client.transports import BlockingTransport, ClientRequest, LoopTransport, iterate_blocking, run_blocking
from recto.conversation.json import Json, Object, load_object, objects
from recto.errors import RequestRefused, TurnFailed, WireError
from recto.ids import new_id

# Separates two messages of one turn, such as the text before and after a tool call.
SEPARATOR = "\n\n"


@dataclass(frozen=True, kw_only=True)
class CallToApprove:
    """A tool call that needs approval."""

    id: str
    tool: str
    arguments: Mapping[str, Json]
    message: str


@dataclass(frozen=True, kw_only=True)
class Approval:
    """A decision on a tool call. `message` goes to the model; `arguments` replace those of the call."""

    approved: bool = True
    message: str | None = None
    arguments: Mapping[str, Json] | None = None

    def payload(self) -> Mapping[str, Json]:
        """Return the payload of a `resume` entry."""
        return {name: value for name, value in vars(self).items() if value is not None}


# Decides on a call; may be a coroutine function. None leaves the call pending.
Approve: TypeAlias = Callable[[CallToApprove], object]


@dataclass(frozen=True, kw_only=True)
class TurnRequest:
    """Input of a turn. Without `text`, the turn continues the thread."""

    thread: str
    text: str | None = None
    files: Sequence[FileToSend] = ()
    props: Mapping[str, Json] = field(default_factory=dict[str, Json])
    context: Mapping[str, str] = field(default_factory=dict[str, str])
    tools: Mapping[str, LocalTool] = field(default_factory=dict[str, LocalTool])
    approve: Approve | None = None


class TurnState:
    """State of a turn. The request is sent when the caller starts to read."""

    def __init__(self, exchange: Exchange, request: TurnRequest) -> None:
        self._exchange, self._request = exchange, request
        self._texts: dict[str, str] = {}
        # Message of the last yielded text, discarded or not.
        self._last_message = ""
        self._user_message: Object | None = None
        self._end: Object = {}
        self._is_cancelled = False
        # True once the server has accepted or rejected the run.
        self._is_settled = False
        self._events = self._stream_turn()
        self.thread = request.thread
        self.run = ""

    @property
    def text(self) -> str:
        """Text of the newest message: the answer, once the turn is over. Excludes discarded text."""
        return next(reversed(self._texts.values()), "")

    @property
    def outcome(self) -> str:
        """Outcome: `success`, `cancelled` or `interrupt` (needs approval). Empty while the turn runs."""
        match self._end:
            case {"outcome": {"type": str(outcome)}}:
                return outcome
            case _:
                return ""

    @property
    def usage(self) -> Mapping[str, Json]:
        """Usage of the newest run, as the provider counted it."""
        match self._end:
            case {"usage": [Mapping() as usage, *_]}:
                return usage
            case _:
                return {}

    async def _stream_turn(self) -> AsyncGenerator[Object]:
        """Yield the events of the turn's runs. Each run submits the results and decisions for the previous one."""
        stream = await self._begin()
        while stream is not None and not self._is_cancelled:
            async with aclosing(self._stream_run(stream)) as events:
                async for event in events:
                    match event:
                        case {"type": "TEXT_MESSAGE_CONTENT", "messageId": str(id), "delta": str(words)}:
                            self._texts[id] = self._texts.get(id, "") + words
                        case {"type": "CUSTOM", "name": "recto.discarded", "value": {"messageId": str(id)}}:
                            self._texts.pop(id, None)
                        case {"type": "RUN_FINISHED" | "RUN_ERROR"}:
                            self._end = event
                        case _:
                            pass
                    yield event
            stream = await self._continue() if self._end.get("type") == "RUN_FINISHED" else None
        match self._end:
            case {"type": "RUN_ERROR", "message": message, **rest}:
                raise TurnFailed(str(message), code=str(rest.get("code", "")))
            case _:
                pass

    async def _stream_run(self, stream: AsyncGenerator[Object]) -> AsyncGenerator[Object]:
        """Yield the events of a run. A cancel before the server accepted the run takes effect at the first event."""
        try:
            async with aclosing(stream) as events:
                async for event in events:
                    was_settled, self._is_settled = self._is_settled, True
                    if self._is_cancelled and not was_settled:
                        await self._cancel_run()
                    yield event
        except RequestRefused:
            self._is_settled = True
            raise

    async def _stream_text(self) -> AsyncGenerator[str]:
        async for event in self._events:
            match event:
                case {"type": "TEXT_MESSAGE_CONTENT", "messageId": str(id), "delta": str(words)}:
                    before, self._last_message = self._last_message, id
                    # Yield the separator together with the text, so that a caller who stops here has received the text.
                    yield words if before in ("", id) else SEPARATOR + words
                case _:
                    pass

    async def _begin(self) -> AsyncGenerator[Object] | None:
        request = self._request
        if request.text is None:
            active = (await self._fetch_thread()).get("activeRun")
            if not isinstance(active, str):
                return await self._continue()
            self._is_settled, self.run = True, active
            cursor = RunCursor(id=active, request=ClientRequest(path=""))
            cursor.request_rest()
            return self._exchange.follow(cursor)
        agent = str(request.props.get("agent") or "") or None
        attachments = await self._exchange.upload(request.files, agent) if request.files else []
        content = [{"type": "text", "text": request.text}, *attachments] if attachments else request.text
        self._user_message = {"id": new_id(), "role": "user", "content": content}
        return self._start(messages=[self._user_message])

    async def _continue(self) -> AsyncGenerator[Object] | None:
        """Start a run with the pending results and decisions; return None if this client has none."""
        thread, transport = await self._fetch_thread(), self._exchange.transport
        results, answers = list[Object](), list[Object]()
        for row in _rows(thread, "pendingCalls"):
            if tool := self._request.tools.get(str(row["name"])):
                fields = await tool.call(transport, str(row["arguments"]))
                results.append({"id": new_id(), "role": "tool", "toolCallId": row["id"], **fields})
        approve = self._request.approve
        for row in _rows(thread, "interrupts") if approve else ():
            id, tool_name, arguments = str(row["id"]), str(row["tool"]), load_object(str(row["arguments"])) or {}
            call = CallToApprove(id=id, tool=tool_name, arguments=arguments, message=str(row["message"]))
            answer = await transport.call(approve, call) if approve else None
            if answer is not None:
                approval = answer if isinstance(answer, Approval) else Approval(approved=bool(answer))
                answers.append({"interruptId": id, "status": "resolved", "payload": approval.payload()})
        if self._is_cancelled or not (results or answers):
            return None
        messages = [await self._find_user_message(), *results] if results else []
        return self._start(messages=messages, resume=answers) if answers else self._start(messages=messages)

    async def _find_user_message(self) -> Object:
        """Return the turn's user message, which tool results must follow; fetch it if another client sent it."""
        path, since = f"{THREADS}/{self.thread}/messages", ""
        newest: Object | None = None
        while self._user_message is None:
            page = await self._exchange.ask(ClientRequest(path=path + since))
            newest = next((one for one in reversed(_rows(page, "messages")) if one["role"] == "user"), newest)
            if not page["next"]:
                if newest is None:
                    problem = "there is no user message in view that results could follow"
                    raise WireError(where=f"GET {path}", problem=problem)
                self._user_message = newest
            since = f"?since={page['next']}"
        return self._user_message

    def _start(self, **fields: Json) -> AsyncGenerator[Object]:
        request = self._request
        self._is_settled, self.run = False, new_id()
        run_input = {
            "threadId": self.thread,
            "runId": self.run,
            "protocolVersion": "1.0",
            "tools": [tool.definition for tool in request.tools.values()],
            "context": [{"description": name, "value": value} for name, value in request.context.items()],
            "forwardedProps": request.props,
            **fields,
        }
        return self._exchange.start(run_input)

    async def _fetch_thread(self) -> Object:
        return await self._exchange.ask(ClientRequest(path=f"{THREADS}/{self.thread}"))

    async def _cancel(self) -> None:
        self._is_cancelled = True
        if self.run:
            await self._cancel_run()

    async def _cancel_run(self) -> None:
        # The server may not have received the run yet.
        retry_statuses = RETRY_STATUSES if self._is_settled else (*RETRY_STATUSES, HTTPStatus.NOT_FOUND)
        await self._exchange.ask(ClientRequest(method="POST", path=f"{RUNS}/{self.run}/cancel"), retry_statuses)


class ChatTurn(TurnState):
    """Blocking turn: iterate over its text or its events."""

    def __iter__(self) -> Iterator[str]:
        """Yield the text as it arrives, with a blank line between messages."""
        return iterate_blocking(self._stream_text())

    def events(self) -> Iterator[Object]:
        """Yield the AG-UI events."""
        return iterate_blocking(self._events)

    def answer(self) -> str:
        """Return the complete answer."""
        for _ in self.events():
            pass
        return self.text

    def cancel(self) -> None:
        """Cancel the turn. Text received so far stays, and readers receive the end event."""
        run_blocking(self._cancel())


class AsyncChatTurn(TurnState):
    """asyncio turn."""

    def __aiter__(self) -> AsyncIterator[str]:
        """Yield the text as it arrives, with a blank line between messages."""
        return self._stream_text()

    def events(self) -> AsyncIterator[Object]:
        """Yield the AG-UI events."""
        return self._events

    async def answer(self) -> str:
        """Return the complete answer."""
        async for _ in self._events:
            pass
        return self.text

    async def cancel(self) -> None:
        """Cancel the turn. Text received so far stays, and readers receive the end event."""
        await self._cancel()


def _rows(answer: Object, name: str) -> list[Object]:
    return [row for _, row in objects(answer.get(name, ()), name)]


TurnT = TypeVar("TurnT", bound=TurnState)


@dataclass(kw_only=True)
class Conversation(Generic[TurnT]):
    """A conversation with an agent. Every turn continues `thread`; without one, a new thread starts.

    Without `url` or `token`, the client looks for a server (see `server_address`). The model may call the typed
    functions in `tools`. `approve` decides on calls that need approval. `context` adds named facts to every turn.
    `props` adds `forwardedProps`, such as `timezone` or `voice_mode`.
    """

    url: str | None = None
    token: str | None = None
    agent: str | None = None
    thread: str = field(default_factory=new_id)
    tools: Sequence[LocalFunction] = ()
    approve: Approve | None = None
    context: Mapping[str, str] = field(default_factory=dict[str, str])
    props: Mapping[str, Json] = field(default_factory=dict[str, Json])
    patience: Patience = Patience()
    _transport: ClassVar[type[BlockingTransport | LoopTransport]]

    def __post_init__(self) -> None:
        server = find_server(self.url, self.token, os.environ)
        self.url = server.url
        self._exchange = Exchange(self._transport(server.url, self.patience.silence), server, self.patience)

    def chat(self, text: str, *, files: Sequence[FileToSend] = (), skill: str | None = None) -> TurnT:
        """Send a message, uploading `files` first. `skill` selects the skill to use; `core` selects none."""
        return self._turn(self._build_request(text, files, {"skill": skill} if skill else {}))

    def resume(self) -> TurnT:
        """Continue the thread: follow its active run, or answer pending calls of `tools` and approvals."""
        return self._turn(self._build_request(None, (), {}))

    def _build_request(self, text: str | None, files: Sequence[FileToSend], props: Mapping[str, Json]) -> TurnRequest:
        agent = {"agent": self.agent} if self.agent else {}
        return TurnRequest(
            thread=self.thread,
            text=text,
            files=files,
            props={**self.props, **agent, **props},
            context=self.context,
            tools=build_local_tools(self.tools),
            approve=self.approve,
        )

    def _turn(self, request: TurnRequest) -> TurnT:
        raise NotImplementedError


class Client(Conversation[ChatTurn]):
    """Blocking client."""

    _transport = BlockingTransport

    def _turn(self, request: TurnRequest) -> ChatTurn:
        return ChatTurn(self._exchange, request)


class AsyncClient(Conversation[AsyncChatTurn]):
    """asyncio client."""

    _transport = LoopTransport

    def _turn(self, request: TurnRequest) -> AsyncChatTurn:
        return AsyncChatTurn(self._exchange, request)
