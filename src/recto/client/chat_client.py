"""The blocking and asyncio clients: one conversation with an agent."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar

from recto.client.chat_turn import Approve, AsyncChatTurn, ChatTurn, TurnRequest, TurnState
from recto.client.exchange import Exchange, FileToSend, Patience
from recto.client.local_tools import LocalFunction, build_local_tools
from recto.client.server_address import find_server
from recto.client.transports import BlockingTransport, LoopTransport
from recto.conversation.json import Json
from recto.ids import new_id

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
