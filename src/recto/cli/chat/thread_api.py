"""Terminal client of the public API, built on the Python client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from recto.cli.chat.local_server import FindServer, ServerLocation
from recto.client.exchange import API, JSON, NOT_RECTO, Exchange, FileToSend, Patience, RunCursor
from recto.client.transports import ClientRequest, LoopTransport
from recto.conversation.json import Json, Object, dump, objects
from recto.errors import RequestRefused, ServerUnreachable, SettingsError, WireError
from recto.ids import new_id

NOT_FOUND, CONFLICT, UNKNOWN = 404, 409, 422
# Attempts on a lost local server before looking for its successor.
LOCAL_TRIES = 2
# Number of newest calls to search for a reply. Other calls create titles and summaries.
NEWEST = 5


@dataclass(frozen=True, kw_only=True)
class ApiRequest:
    """A request, relative to the API root."""

    path: str
    method: str = "GET"
    body: Mapping[str, Json] | None = None


class RetryTransport(LoopTransport):
    """Transport that reports each retry. The client sleeps only before a retry."""

    def __init__(self, url: str, silence: float, on_retry: Callable[[], None]) -> None:
        super().__init__(url, silence)
        self._on_retry = on_retry

    async def sleep(self, seconds: float) -> None:
        self._on_retry()
        await super().sleep(seconds)


class ThreadApi:
    """API of one server. If a local server is lost, look for its successor and repeat the request."""

    def __init__(self, find: FindServer, tries: int = Patience.tries) -> None:
        self._find = find
        self._tries = tries
        self._exchange: Exchange | None = None
        self._connecting = asyncio.Lock()
        self.location: ServerLocation | None = None
        # True after another server replaced a lost one.
        self.is_new = False
        # True during retries of a server that does not answer; `on_lost` is called then.
        self.is_lost = False
        self.on_lost: Callable[[], None] = lambda: None

    async def exchange(self) -> Exchange:
        """Return the connection, looking for a server first if there is none."""
        async with self._connecting:
            if self._exchange is None:
                before, self.location = self.location, await asyncio.to_thread(self._find)
                self.is_new = before is not None
                server, is_local = self.location.address, self.location.how != "named"
                patience = Patience(tries=LOCAL_TRIES if is_local else self._tries)

                def on_retry() -> None:
                    self.is_lost = True
                    self.on_lost()

                self._exchange = Exchange(RetryTransport(server.url, patience.silence, on_retry), server, patience)
        return self._exchange

    def _lose(self, exchange: Exchange, error: ServerUnreachable) -> None:
        """Look for the server again with the next request, unless the user gave its URL."""
        if self.location is None or self.location.how == "named":
            raise error
        if self._exchange is exchange:
            self._exchange = None

    async def ask(self, request: ApiRequest) -> Object:
        """Send a request and return the answer."""
        headers = {"content-type": JSON} if request.body is not None else {}
        body = dump(request.body) if request.body is not None else None
        client_request = ClientRequest(method=request.method, path=API + request.path, body=body, headers=headers)
        while True:
            exchange = await self.exchange()
            try:
                answer = await exchange.ask(client_request)
                self.is_lost = False
                return answer
            except ServerUnreachable as error:
                self._lose(exchange, error)

    async def events(self, run: str) -> AsyncGenerator[Object]:
        """Yield the events of a run from the first one, across server changes."""
        following = RunCursor(id=run, request=ClientRequest(path=""))
        following.request_rest()
        while not following.is_over:
            exchange = await self.exchange()
            try:
                async for event in exchange.follow(following):
                    self.is_lost = False
                    yield event
            except ServerUnreachable as error:
                self._lose(exchange, error)

    async def upload(self, files: Sequence[FileToSend], agent: str | None) -> Sequence[Object]:
        """Upload files and return their message parts."""
        return await (await self.exchange()).upload(files, agent)

    async def send_message(self, thread: str, content: Json, props: Mapping[str, Json]) -> str:
        """Send a message; return the id of the run, which may be queued."""
        return await self.start_run(thread, props, messages=[{"id": new_id(), "role": "user", "content": content}])

    async def start_run(self, thread: str, props: Mapping[str, Json], **fields: Json) -> str:
        """Start a run with messages or decisions on pending calls; return its id."""
        body = {"threadId": thread, "runId": new_id(), "protocolVersion": "1.0", "forwardedProps": props, **fields}
        answer = await self.ask(ApiRequest(path="/runs", method="POST", body=body))
        if not isinstance(run := answer.get("taskId"), str):
            raise WireError(where="POST /runs", problem=NOT_RECTO)
        return run

    async def cancel(self, run: str) -> None:
        """Cancel a run; no error if it is over."""
        await self.ask(ApiRequest(path=f"/runs/{run}/cancel", method="POST", body={}))

    async def thread(self, thread: str) -> Object | None:
        """Return a thread; None if it does not exist yet."""
        try:
            return await self.ask(ApiRequest(path=f"/threads/{quote(thread, safe='')}"))
        except RequestRefused as error:
            if error.status != NOT_FOUND:
                raise
            return None

    async def check(self, agent: str | None, thread: str | None) -> None:
        """Raise SettingsError if the given agent or thread does not exist."""
        names = [str(one.get("name")) for one in await self.agents()] if agent else []
        if agent and agent not in names:
            raise SettingsError(name="--agent", value=agent, allowed=f"there are {', '.join(names)}")
        if thread and await self.thread(thread) is None:
            allowed = "there is no such thread; leave it out for a list"
            raise SettingsError(name="--resume", value=thread, allowed=allowed)

    async def messages(self, thread: str, since: str | None) -> Sequence[Object] | None:
        """Return the messages after `since`; None if that message or the thread does not exist."""
        messages: list[Object] = []
        while True:
            query = urlencode({"details": 1, **({"since": since} if since else {})})
            try:
                page = await self.ask(ApiRequest(path=f"/threads/{thread}/messages?{query}"))
            except RequestRefused as error:
                if error.status in (NOT_FOUND, UNKNOWN):
                    return None
                raise
            messages += rows(page, "messages")
            if not page["next"]:
                return messages
            since = str(page["next"])

    async def thread_resource(self, thread: str, resource: str, body: Mapping[str, Json] | None = None) -> Object:
        """Request a sub-resource of a thread: GET, or POST with a body."""
        return await self.ask(
            ApiRequest(path=f"/threads/{thread}/{resource}", method="GET" if body is None else "POST", body=body)
        )

    async def calls(self, thread: str, limit: int) -> Sequence[Object]:
        """Return model calls of a thread, newest first."""
        return rows(await self.thread_resource(thread, f"calls?limit={limit}"), "calls")

    async def newest_call(self, thread: str) -> Object | None:
        """Return the newest call for a reply."""
        calls = await self.calls(thread, NEWEST)
        return next((call for call in calls if call.get("purpose") == "reply"), None)

    async def read_call(self, call: Object) -> Object:
        """Return all fields of a listed call."""
        return await self.ask(ApiRequest(path=f"/runs/{call['run']}/calls/{call['n']}"))

    async def agents(self) -> Sequence[Object]:
        """Return the agents of the server."""
        return rows(await self.ask(ApiRequest(path="/agents")), "agents")


def rows(answer: Object, name: str) -> list[Object]:
    """Return a list of objects from an answer."""
    return [row for _, row in objects(answer.get(name, ()), name)]
