"""`Client` and `AsyncClient`: one conversation with an agent, of a program that blocks or of one on an event loop."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from recto.client.chat_turn import Approve, AsyncChatTurn, ChatTurn, TurnRequest, TurnSoFar
from recto.client.exchange import Exchange, Patience
from recto.client.local_tools import LocalFunction, local_tools
from recto.client.sent_files import FileToSend
from recto.client.server_address import find_server
from recto.client.transports import BlockingTransport, LoopTransport, Transport
from recto.conversation.json import Json
from recto.ids import new_id

TurnT = TypeVar("TurnT", bound=TurnSoFar)


@dataclass(kw_only=True)
class Conversation(Generic[TurnT]):
    """A conversation with an agent. Each turn goes on in `thread`, a new one unless named.

    Server and credential are found where none are named (see `server_address`). `tools` are typed functions that the
    model may call here; `approve` is asked before calls that a person has to agree to; `context` is what the model is
    told with each turn, by descriptions; `props` are more `forwardedProps`, such as `timezone` or `voice_mode`.
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

    def __post_init__(self) -> None:
        server = find_server(self.url, self.token, os.environ)
        self.url = server.url
        self._exchange = Exchange(self._transport(server.url), server, self.patience)

    def chat(self, words: str, *, files: Sequence[FileToSend] = (), skill: str | None = None) -> TurnT:
        """Say something. Files are sent first; `skill` names the one to go on in, `core` none."""
        return self._turn(self._asked(words, files, {"skill": skill} if skill else {}))

    def resume(self) -> TurnT:
        """Go on with what the thread does or waits for: its run at work, calls of `tools`, what is to be approved."""
        return self._turn(self._asked(None, (), {}))

    def _asked(self, words: str | None, files: Sequence[FileToSend], props: Mapping[str, Json]) -> TurnRequest:
        agent = {"agent": self.agent} if self.agent else {}
        return TurnRequest(
            thread=self.thread,
            words=words,
            files=files,
            props={**self.props, **agent, **props},
            context=self.context,
            tools=local_tools(self.tools),
            approve=self.approve,
        )

    def _transport(self, url: str) -> Transport:
        raise NotImplementedError

    def _turn(self, asked: TurnRequest) -> TurnT:
        raise NotImplementedError


class Client(Conversation[ChatTurn]):
    """A conversation, for programs that block."""

    def _transport(self, url: str) -> Transport:
        return BlockingTransport(url, self.patience.silence)

    def _turn(self, asked: TurnRequest) -> ChatTurn:
        return ChatTurn(self._exchange, asked)


class AsyncClient(Conversation[AsyncChatTurn]):
    """A conversation, for programs on an event loop."""

    def _transport(self, url: str) -> Transport:
        return LoopTransport(url, self.patience.silence)

    def _turn(self, asked: TurnRequest) -> AsyncChatTurn:
        return AsyncChatTurn(self._exchange, asked)
