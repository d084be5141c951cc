"""What the terminal asks of a server: the public API, through the client of Python programs. It shows nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from recto.cli.chat.local_server import FindServer, ServerFound
from recto.client.exchange import API, JSON, NO_RECTO, Exchange, Patience, RunFollowed
from recto.client.sent_files import FileToSend, send_files
from recto.client.transports import ClientRequest, LoopTransport
from recto.conversation.json import Json, Object, dump, objects
from recto.errors import RequestRefused, ServerUnreachable, SettingsError, WireError
from recto.ids import new_id

NOT_FOUND, CONFLICT, UNKNOWN = 404, 409, 422
# Of a server of this machine that is gone, the next is looked for soon.
LOCAL_TRIES = 2
# So many calls back there is one that is an answer.
NEWEST = 5


@dataclass(frozen=True, kw_only=True)
class ApiRequest:
    """What is asked for, behind the address of the API."""

    path: str
    method: str = "GET"
    body: Mapping[str, Json] | None = None


def _tell_nobody() -> None:
    """For where nobody looks."""


class AgainTransport(LoopTransport):
    """Tells when a request is about to be sent again: that is what it waits for."""

    def __init__(self, url: str, silence: float, again: Callable[[], None]) -> None:
        super().__init__(url, silence)
        self._again = again

    async def sleep(self, seconds: float) -> None:
        """As `Transport` has it."""
        self._again()
        await super().sleep(seconds)


class ThreadApi:
    """A server, as one conversation needs it. One that is gone is looked for again, and what was asked asked anew."""

    def __init__(self, find: FindServer, tries: int = Patience.tries) -> None:
        self._find = find
        self._tries = tries
        self._exchange: Exchange | None = None
        self._connecting = asyncio.Lock()
        self.found: ServerFound | None = None
        # Set where another server took the place of one that was gone.
        self.is_new = False
        # Set while a server is asked again, since it does not answer; and who is told so.
        self.is_lost = False
        self.on_lost: Callable[[], None] = _tell_nobody

    async def exchange(self) -> Exchange:
        """The server that answers."""
        async with self._connecting:
            if self._exchange is None:
                before, self.found = self.found, await asyncio.to_thread(self._find)
                self.is_new = before is not None
                server, is_local = self.found.address, self.found.how != "named"
                patience = Patience(tries=LOCAL_TRIES if is_local else self._tries)
                transport = AgainTransport(server.url, patience.silence, self._again)
                self._exchange = Exchange(transport, server, patience)
        return self._exchange

    def _again(self) -> None:
        self.is_lost = True
        self.on_lost()

    def _lose(self, lost: Exchange, error: ServerUnreachable) -> None:
        """Look for the server anew with the next request. One that was named is not where another is."""
        if self.found is None or self.found.how == "named":
            raise error
        if self._exchange is lost:
            self._exchange = None

    async def ask(self, request: ApiRequest) -> Object:
        """An answer."""
        headers = {"content-type": JSON} if request.body is not None else {}
        body = dump(request.body) if request.body is not None else None
        sent = ClientRequest(method=request.method, path=API + request.path, body=body, headers=headers)
        while True:
            exchange = await self.exchange()
            try:
                answer = await exchange.ask(sent)
                self.is_lost = False
                return answer
            except ServerUnreachable as error:
                self._lose(exchange, error)

    async def events(self, run: str) -> AsyncGenerator[Object]:
        """The events of a run from its first, over as many servers as it takes."""
        following = RunFollowed(id=run, asking=ClientRequest(path=""))
        following.is_known()
        while not following.is_over:
            exchange = await self.exchange()
            try:
                async for event in exchange.follow(following):
                    self.is_lost = False
                    yield event
            except ServerUnreachable as error:
                self._lose(exchange, error)

    async def send(self, files: Sequence[FileToSend], agent: str | None) -> Sequence[Object]:
        """Send files; the parts of a message that name them."""
        return await send_files(await self.exchange(), files, agent)

    async def say(self, thread: str, content: Json, props: Mapping[str, Json]) -> str:
        """Say something; the task id of the run that answers, which may have to wait for its turn."""
        message = {"id": new_id(), "role": "user", "content": content}
        return await self._start(thread, props, messages=[message])

    async def decide(self, thread: str, answers: Sequence[Object], props: Mapping[str, Json]) -> str:
        """Answer what waits for a person; the run that goes on with it."""
        return await self._start(thread, props, messages=[], resume=answers)

    async def _start(self, thread: str, props: Mapping[str, Json], **brought: Json) -> str:
        body = {"threadId": thread, "runId": new_id(), "protocolVersion": "1.0", "forwardedProps": props, **brought}
        answer = await self.ask(ApiRequest(path="/runs", method="POST", body=body))
        if not isinstance(run := answer.get("taskId"), str):
            raise WireError(where="POST /runs", problem=NO_RECTO)
        return run

    async def cancel(self, run: str) -> None:
        """End a run. One that is over already is."""
        await self.ask(ApiRequest(path=f"/runs/{run}/cancel", method="POST", body={}))

    async def thread(self, thread: str) -> Object | None:
        """A thread, and what it waits for; None where nothing was said in it."""
        try:
            return await self.ask(ApiRequest(path=f"/threads/{quote(thread, safe='')}"))
        except RequestRefused as error:
            if error.status != NOT_FOUND:
                raise
            return None

    async def check(self, agent: str | None, thread: str | None) -> None:
        """Raises SettingsError for an agent or a thread that was named and is not there."""
        names = [str(one.get("name")) for one in await self.agents()] if agent else []
        if agent and agent not in names:
            raise SettingsError(name="--agent", value=agent, allowed=f"there are {', '.join(names)}")
        if thread and await self.thread(thread) is None:
            allowed = "there is no such thread; leave it out for a list"
            raise SettingsError(name="--resume", value=thread, allowed=allowed)

    async def threads(self, search: str, limit: int) -> Sequence[Object]:
        """Threads, newest activity first."""
        query = urlencode({"limit": limit, **({"search": search} if search else {})})
        return rows(await self.ask(ApiRequest(path=f"/threads?{query}")), "threads")

    async def messages(self, thread: str, since: str | None) -> Sequence[Object] | None:
        """What was said behind a message; None where that is not in view any more, or nothing was said at all."""
        found: list[Object] = []
        while True:
            query = urlencode({"details": 1, **({"since": since} if since else {})})
            try:
                page = await self.ask(ApiRequest(path=f"/threads/{thread}/messages?{query}"))
            except RequestRefused as error:
                if error.status in (NOT_FOUND, UNKNOWN):
                    return None
                raise
            found += rows(page, "messages")
            if not page["next"]:
                return found
            since = str(page["next"])

    async def of_thread(self, thread: str, what: str, body: Mapping[str, Json] | None = None) -> Object:
        """Something else of a thread; with a body, something that is done to it."""
        return await self.ask(
            ApiRequest(path=f"/threads/{thread}/{what}", method="GET" if body is None else "POST", body=body)
        )

    async def agree(self, thread: str, tools: Sequence[str]) -> Object:
        """Have these tools ask no more in a thread."""
        return await self.ask(ApiRequest(path=f"/threads/{thread}", method="PATCH", body={"agreed": tools}))

    async def changed_files(self, thread: str, since: str) -> Sequence[Object]:
        """Files of the workspace that changed since before a message; none where nothing was kept of them."""
        try:
            return rows(await self.of_thread(thread, f"files/changes?since={quote(since)}"), "changes")
        except RequestRefused as error:
            if error.status != NOT_FOUND:
                raise
            return ()

    async def calls(self, thread: str, limit: int) -> Sequence[Object]:
        """Model calls of a thread, newest first."""
        return rows(await self.of_thread(thread, f"calls?limit={limit}"), "calls")

    async def newest_call(self, thread: str) -> Object | None:
        """The newest call for an answer: titles and summaries have pages of their own."""
        found = await self.calls(thread, NEWEST)
        return next((call for call in found if call.get("purpose") == "reply"), None)

    async def window(self, call: Object) -> int:
        """The tokens that the model of a call can take; 0 where nobody says so."""
        window = (await self.ask(ApiRequest(path=f"/runs/{call['run']}/calls/{call['n']}"))).get("window")
        return window if isinstance(window, int) else 0

    async def currency(self, call: Object) -> str:
        """What the price of a call is in; empty where nobody says so any more."""
        match await self.ask(ApiRequest(path=f"/runs/{call['run']}/calls/{call['n']}")):
            case {"prices": {"currency": str(currency)}}:
                return currency
            case _:
                return ""

    async def agents(self) -> Sequence[Object]:
        """The agents there are."""
        return rows(await self.ask(ApiRequest(path="/agents")), "agents")


def rows(answer: Object, name: str) -> list[Object]:
    """A list of objects in an answer."""
    return [row for _, row in objects(answer.get(name, ()), name)]
