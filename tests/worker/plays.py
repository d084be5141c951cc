"""Stories of one thread: runs under changing agents with tools of both sides, on a real store and a scripted model."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from prometheus_client import CollectorRegistry

from recto.agents.agent import CHAT, Agent
from recto.conversation.json import Json, dump, load
from recto.conversation.log import Entry
from recto.conversation.message_files import FileRef
from recto.conversation.messages import AssistantMessage, Text, ToolCall, ToolMessage, ToolOffer, texts_of
from recto.engine.hub import Hub
from recto.engine.ports import Signal
from recto.ids import new_id
from recto.models.choose import choose_model
from recto.models.ports import Model
from recto.store.ports import Admission
from recto.store.store import Store
from recto.telemetry import Telemetry
from recto.testing.model_server import Answer, Call, ModelServer, Request
from recto.tools.mark import Mark
from recto.tools.ports import Tool, ToolContext, ToolResult
from recto.tools.registry import Registry
from recto.worker.log_cache import LogCache
from recto.worker.loop import work
from recto.worker.runtime import Checkpoint, ModelServices, Runtime, ToolServices
from tests.stored_runs import OWNER, WHO, a_store, now

# What each agent has: its own tools, and `form`, for which a client may answer.
AGENTS = {"doer": ("act", "form"), "bare": (), "picker": ("pick",), "former": ("pick", "form")}


@dataclass(kw_only=True)
class Play:
    """A thread under changing agents. `acted` are the calls that server tools ran, by tool name."""

    runtime: Runtime
    model: ModelServer
    answers: list[Answer]
    thread: str = field(default_factory=new_id)
    acted: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    call_keys: list[str] = field(default_factory=list[str])
    # Of each call, the agent it was made under and whether the client brought a tool of its name.
    tool_calls: dict[str, tuple[str, bool]] = field(default_factory=dict[str, tuple[str, bool]])

    async def run(
        self, agent: str, brings: Sequence[str] = (), results: Sequence[str] = (), *, stop_at: Checkpoint | None = None
    ) -> list[Json]:
        """Run the agent; an unanswered turn continues. Return the events."""
        tools = [{"name": name, "description": name, "parameters": {"type": "object"}} for name in brings]
        answers = [
            {"id": new_id(), "role": "tool", "toolCallId": id, "content": '{"from": "CLIENT"}'} for id in results
        ]
        messages = [{"id": "m1", "role": "user", "content": "Go."}, *answers]
        body: dict[str, Json] = {"threadId": self.thread, "runId": new_id(), "messages": messages, "tools": tools}
        run, signal = (await self.runtime.store.runs.admit(admission_of(body, agent), WHO)).run, Signal()

        def stop_run(point: Checkpoint) -> None:
            if point == stop_at:
                signal.cancelled.set()

        before = {call.id for call in calls_in(await self.log())}
        assert await work(replace(self.runtime, checkpoint=stop_run), run, signal)
        calls = [call for call in calls_in(await self.log()) if call.id not in before]
        self.tool_calls |= {call.id: (agent, call.name in brings) for call in calls}
        return [load(event.body) for event in await self.runtime.store.events.list_after(run.id, 0, 1_000)]

    async def log(self) -> Sequence[Entry]:
        return await self.runtime.store.log.read_after(self.thread)

    async def results(self) -> dict[str, str]:
        results = [entry for entry in await self.log() if isinstance(entry, ToolMessage)]
        return {entry.tool_call_id: "".join(texts_of(entry)) for entry in results}


def admission_of(body: Mapping[str, Json], agent: str, files: Sequence[FileRef] = ()) -> Admission:
    """Return the admission of a request. The ids of its files begin with the response id."""
    response_id = files[0].id.rpartition("-")[0] if files else new_id()
    return Admission(
        id=new_id(),
        name=str(body["runId"]),
        owner=OWNER,
        thread=str(body["threadId"]),
        agent=agent,
        input=dump(body),
        response_id=response_id,
        created=now(),
        files=tuple(files),
    )


def calls_in(log: Sequence[Entry]) -> list[ToolCall]:
    replies = [entry for entry in log if isinstance(entry, AssistantMessage)]
    return [call for reply in replies for call in reply.tool_calls]


@asynccontextmanager
async def a_play(folder: Path) -> AsyncGenerator[Callable[[], Play]]:
    """Yield a function that makes plays on one store and one model."""
    answers = list[Answer]()

    def script(_request: Request) -> Answer:
        return answers.pop(0) if answers else Answer(text="Done.")

    with ModelServer(script) as server:
        async with a_store(folder) as store:
            model = choose_model("compatible:x", {"RECTO_MODEL_URL": server.url})
            runtime = make_runtime(store, model=model)

            def play() -> Play:
                answers.clear()
                play_run = Play(runtime=runtime, model=server, answers=answers)
                registries = {name: Registry(tools_of(play_run, names)) for name, names in AGENTS.items()}
                play_run.runtime = replace(play_run.runtime, tools=ToolServices(registries=registries))
                return play_run

            try:
                yield play
            finally:
                await model.aclose()


def make_runtime(
    store: Store,
    *,
    model: Model | None = None,
    agents: Mapping[str, Agent] | None = None,
    registries: Mapping[str, Registry] | None = None,
    vision: bool | None = None,
) -> Runtime:
    """Return a runtime on a store. The model is the demo model unless one is passed."""
    return Runtime(
        store=store,
        hub=Hub(store.events),
        models=ModelServices(default=model or choose_model("demo", {}), random=lambda: 0.0, vision=vision),
        agents=agents or {name: replace(CHAT, name=name) for name in AGENTS},
        tools=ToolServices(registries=registries or {}),
        log_cache=LogCache(store),
        telemetry=Telemetry(CollectorRegistry()),
        clock=now,
        new_id=new_id,
    )


def tools_of(play: Play, names: Sequence[str]) -> list[Tool]:
    def make_tool(name: str) -> Tool:
        async def act(_arguments: str, context: ToolContext) -> ToolResult:
            play.acted.append((name, context.call))
            play.call_keys.append(f"{context.message}/{context.call}")
            return ToolResult(parts=(Text(text="SERVER"),))

        offer = ToolOffer(name=name, description=name, parameters='{"type":"object"}')
        return Tool(offer=offer, act=act, mark=Mark(by_client=name == "form"))

    return [make_tool(name) for name in names]


def calling(*calls: tuple[str, str]) -> Answer:
    return Answer(calls=tuple(Call(name=name, arguments="{}", id=id) for name, id in calls))
