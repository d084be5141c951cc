"""A turn: what was asked, what is heard of it, and what this side does for it: tools, decisions, a cancel."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import NoReturn, TypeAlias

from recto.client.exchange import LATER, RUNS, THREADS, Exchange, RunFollowed
from recto.client.local_tools import LocalTool
from recto.client.sent_files import FileToSend, send_files
from recto.client.transports import ClientRequest, drained, finished
from recto.conversation.json import Json, Object, load_object, objects
from recto.errors import RequestRefused, TurnFailed, WireError
from recto.ids import new_id

# Between two messages of one turn, such as words before a call and those after it.
BETWEEN = "\n\n"


@dataclass(frozen=True, kw_only=True)
class CallToApprove:
    """A call that waits for a person to agree."""

    id: str
    tool: str
    arguments: Mapping[str, Json]
    message: str


@dataclass(frozen=True, kw_only=True)
class Approval:
    """What a person says to a call: whether it is made, with which words to the model, with other arguments."""

    approved: bool = True
    message: str | None = None
    arguments: Mapping[str, Json] | None = None

    def payload(self) -> Mapping[str, Json]:
        """As the server takes it."""
        return {name: value for name, value in vars(self).items() if value is not None}


# Answers whether a call may be made; it may be a coroutine function. None: not now, the call goes on waiting.
Approve: TypeAlias = Callable[[CallToApprove], object]


@dataclass(frozen=True, kw_only=True)
class TurnRequest:
    """What a turn is asked for. Without words it goes on with what the thread does or waits for."""

    thread: str
    words: str | None = None
    files: Sequence[FileToSend] = ()
    props: Mapping[str, Json] = field(default_factory=dict[str, Json])
    context: Mapping[str, str] = field(default_factory=dict[str, str])
    tools: Mapping[str, LocalTool] = field(default_factory=dict[str, LocalTool])
    approve: Approve | None = None


class TurnSoFar:
    """What is known of a turn by now. It is asked for when somebody begins to read it."""

    def __init__(self, exchange: Exchange, asked: TurnRequest) -> None:
        self._exchange, self._asked = exchange, asked
        self._said: dict[str, str] = {}
        # The message whose words were given out last, taken back or not.
        self._shown = ""
        self._user_message: Object | None = None
        self._end: Object = {}
        self._is_cancelled = False
        # Whether it was heard that the server has the run, or refused it.
        self._is_settled = False
        self._events = self._story()
        self.thread = asked.thread
        self.run = ""

    @property
    def text(self) -> str:
        """The words of the newest message: the answer, once the turn is over. What was taken back is not in it."""
        return next(reversed(self._said.values()), "")

    @property
    def outcome(self) -> str:
        """How it ended: `success`, `cancelled`, or `interrupt`, which waits for a person. Nothing while it goes on."""
        match self._end:
            case {"outcome": {"type": str(outcome)}}:
                return outcome
            case _:
                return ""

    @property
    def usage(self) -> Mapping[str, Json]:
        """What the newest run used, as its model's provider counted."""
        match self._end:
            case {"usage": [Mapping() as usage, *_]}:
                return usage
            case _:
                return {}

    async def _story(self) -> AsyncGenerator[Object]:
        """Runs of a turn, one after the other: the next brings what the last one waits for."""
        following = await self._begin()
        while following is not None and not self._is_cancelled:
            async with aclosing(self._heard(following)) as events:
                async for event in events:
                    self._note(event)
                    yield event
            following = await self._go_on() if self._end.get("type") == "RUN_FINISHED" else None
        match self._end:
            case {"type": "RUN_ERROR", "message": message, **rest}:
                raise TurnFailed(str(message), code=str(rest.get("code", "")))
            case _:
                pass

    async def _heard(self, following: AsyncGenerator[Object]) -> AsyncGenerator[Object]:
        """The events of a run. One that was cancelled before the server had it is ended with the first of them."""
        try:
            async with aclosing(following) as events:
                async for event in events:
                    await self._settle()
                    yield event
        except RequestRefused:
            self._is_settled = True
            raise

    async def _settle(self) -> None:
        was_settled, self._is_settled = self._is_settled, True
        if self._is_cancelled and not was_settled:
            await self._end_run()

    async def _words(self) -> AsyncGenerator[str]:
        async for event in self._events:
            match event:
                case {"type": "TEXT_MESSAGE_CONTENT", "messageId": str(id), "delta": str(words)}:
                    before, self._shown = self._shown, id
                    # In one piece: whoever stops at it has not lost the words.
                    yield words if before in ("", id) else BETWEEN + words
                case _:
                    pass

    async def _begin(self) -> AsyncGenerator[Object] | None:
        asked = self._asked
        if asked.words is None:
            active = (await self._look()).get("activeRun")
            return self._follow(active) if isinstance(active, str) else await self._go_on()
        agent = asked.props.get("agent")
        shown = await send_files(self._exchange, asked.files, str(agent) if agent else None) if asked.files else []
        content = [{"type": "text", "text": asked.words}, *shown] if shown else asked.words
        self._user_message = {"id": new_id(), "role": "user", "content": content}
        return self._start(messages=[self._user_message])

    async def _go_on(self) -> AsyncGenerator[Object] | None:
        """The run that brings what the thread waits for; None where it waits for nothing that this side has."""
        waiting = await self._look()
        calls = [one for one in _rows(waiting, "pendingCalls") if str(one["name"]) in self._asked.tools]
        results = [await self._result(one) for one in calls]
        decided = [await self._decision(one) for one in _rows(waiting, "interrupts")]
        answers = [one for one in decided if one is not None]
        if self._is_cancelled or not (results or answers):
            return None
        said = [await self._last_words(), *results] if results else []
        return self._start(messages=said, resume=answers) if answers else self._start(messages=said)

    async def _result(self, call: Object) -> Object:
        tool = self._asked.tools[str(call["name"])]
        fields = await tool.answer(self._exchange.transport, str(call["arguments"]))
        return {"id": new_id(), "role": "tool", "toolCallId": call["id"], **fields}

    async def _decision(self, row: Object) -> Object | None:
        if self._asked.approve is None:
            return None
        arguments = load_object(str(row["arguments"])) or {}
        call = CallToApprove(id=str(row["id"]), tool=str(row["tool"]), arguments=arguments, message=str(row["message"]))
        said = await self._exchange.transport.call(self._asked.approve, call)
        if said is None:
            return None
        approval = said if isinstance(said, Approval) else Approval(approved=bool(said))
        return {"interruptId": call.id, "status": "resolved", "payload": approval.payload()}

    async def _last_words(self) -> Object:
        """The user message of the turn, which its results follow. Of one that another program began, the server's."""
        path, since = f"{THREADS}/{self.thread}/messages", ""
        newest: Object | None = None
        while self._user_message is None:
            page = await self._exchange.ask(ClientRequest(path=path + since))
            newest = next((one for one in reversed(_rows(page, "messages")) if one["role"] == "user"), newest)
            if not page["next"]:
                self._user_message = newest or _no_words(path)
            since = f"?since={page['next']}"
        return self._user_message

    def _start(self, **brought: Json) -> AsyncGenerator[Object]:
        asked = self._asked
        self._is_settled, self.run = False, new_id()
        run_input = {
            "threadId": self.thread,
            "runId": self.run,
            "protocolVersion": "1.0",
            "tools": [tool.offer for tool in asked.tools.values()],
            "context": [{"description": name, "value": value} for name, value in asked.context.items()],
            "forwardedProps": asked.props,
            **brought,
        }
        return self._exchange.start(run_input)

    def _follow(self, run: str) -> AsyncGenerator[Object]:
        self._is_settled, self.run = True, run
        following = RunFollowed(id=run, asking=ClientRequest(path=""))
        following.is_known()
        return self._exchange.follow(following)

    async def _look(self) -> Object:
        return await self._exchange.ask(ClientRequest(path=f"{THREADS}/{self.thread}"))

    def _note(self, event: Object) -> None:
        match event:
            case {"type": "TEXT_MESSAGE_CONTENT", "messageId": str(id), "delta": str(words)}:
                self._said[id] = self._said.get(id, "") + words
            case {"type": "CUSTOM", "name": "recto.discarded", "value": {"messageId": str(id)}}:
                self._said.pop(id, None)
            case {"type": "RUN_FINISHED" | "RUN_ERROR"}:
                self._end = event
            case _:
                pass

    async def _cancel(self) -> None:
        self._is_cancelled = True
        if self.run:
            await self._end_run()

    async def _end_run(self) -> None:
        # One the server does not have may be on its way.
        later = LATER if self._is_settled else (*LATER, HTTPStatus.NOT_FOUND)
        await self._exchange.ask(ClientRequest(method="POST", path=f"{RUNS}/{self.run}/cancel"), later)


class ChatTurn(TurnSoFar):
    """A turn to be read: its words as they come, or all of its events."""

    def __iter__(self) -> Iterator[str]:
        """Its words as they come; a blank line stands between messages."""
        return drained(self._words())

    def events(self) -> Iterator[Object]:
        """Its events, as AG-UI has them."""
        return drained(self._events)

    def answer(self) -> str:
        """The answer, once it is whole."""
        for _ in self.events():
            pass
        return self.text

    def cancel(self) -> None:
        """End it. What was said stays, and its reader hears the end."""
        finished(self._cancel())


class AsyncChatTurn(TurnSoFar):
    """The same on an event loop."""

    def __aiter__(self) -> AsyncIterator[str]:
        """Its words as they come; a blank line stands between messages."""
        return self._words()

    def events(self) -> AsyncIterator[Object]:
        """Its events, as AG-UI has them."""
        return self._events

    async def answer(self) -> str:
        """The answer, once it is whole."""
        async for _ in self._events:
            pass
        return self.text

    async def cancel(self) -> None:
        """End it. What was said stays, and its reader hears the end."""
        await self._cancel()


def _rows(answer: Object, name: str) -> list[Object]:
    return [row for _, row in objects(answer.get(name, ()), name)]


def _no_words(path: str) -> NoReturn:
    raise WireError(where=f"GET {path}", problem="there is no user message in view that results could follow")
