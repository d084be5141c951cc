"""P2, P4, P5: of all that is wrong with a request to have a run made, what is told, for any thread it may name.

`FAULTS` stand in the order in which they are asked; whose the thread is, and whether the run was there before, is asked
in the places that `expected_fault` gives them.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Literal, TypeAlias, cast

import pytest

from recto.agents.agent import CHAT, Agent
from recto.agents.file_input import FileInput
from recto.agents.folders import load_folder
from recto.api.runs.routes import ROUTES, RUNS
from recto.config.settings import Limits
from recto.conversation.json import Json
from recto.conversation.log import SkillChanged
from recto.ids import new_id
from recto.store.ports import Bounds, RunChange
from recto.tools.registry import Registry
from tests.api.local_api import NOW, Answer, LocalApi, local_api, named_tool
from tests.api.test_admit_files import inline
from tests.api.wrong_inputs import FOREIGN, SPEAKER, Body, binary, good, with_block, with_messages
from tests.end_to_end.skilled import write_guide
from tests.stored_runs import WHO

# Whose the thread is; `again`: the run was admitted before, in a thread of one's own, with another input.
Situation: TypeAlias = Literal["new", "own", "other", "again"]
SITUATIONS: tuple[Situation, ...] = ("new", "own", "other", "again")
OWN = frozenset({"own", "again"})
BUSY = "Another run of this thread is active. Wait for its end, or send multitask enqueue or interrupt."
# Who answers in a new thread has no skills, who answers in one's own has these.
PLAIN, GUIDES = "core", "chart, mend, notes, core"


@dataclass(frozen=True)
class Fault:
    """Something wrong with a request, and what is told of it: in threads of one's own `own`, where that differs."""

    name: str
    break_it: Callable[[Body], Body]
    detail: str
    _: KW_ONLY
    own: str | None = None
    status: int = 422
    # Where it is wrong at all.
    among: frozenset[str] = frozenset(SITUATIONS)

    def words(self, situation: Situation) -> str:
        return self.own if self.own is not None and situation in OWN else self.detail


def with_prop(name: str, value: Json) -> Callable[[Body], Body]:
    return lambda body: {**body, "forwardedProps": {**cast("Body", body.get("forwardedProps", {})), name: value}}


def with_dataset(id: Json) -> Callable[[Body], Body]:
    def add(body: Body) -> Body:
        datasets = cast("Mapping[str, Sequence[Json]]", body.get("forwardedProps", {})).get("datasets", ())
        return with_prop("datasets", [*datasets, id])(body)

    return add


def with_tools(*names: str) -> Callable[[Body], Body]:
    added = [{"name": name} for name in names]
    return lambda body: {**body, "tools": [*added, *cast("list[Json]", body.get("tools", []))]}


FAULTS: tuple[Fault, ...] = (
    Fault("role", lambda body: with_messages(body, before=[SPEAKER]), "RunAgentInput.messages[0].role must be user"),
    Fault(
        "multitask",
        with_prop("multitask", "sometimes"),
        "forwardedProps.multitask: is 'sometimes'; it is one of enqueue, reject, interrupt",
    ),
    Fault("agent of no type", with_prop("agent", 5), "forwardedProps.agent: must be a string, is a number"),
    Fault(
        "timezone",
        with_prop("timezone", "Mars/Olympus"),
        "forwardedProps.timezone: 'Mars/Olympus' is no time zone; name one such as Asia/Shanghai",
    ),
    Fault(
        "agent", with_prop("agent", "nobody"), "forwardedProps.agent: there is no agent 'nobody'; known: plain, guide"
    ),
    Fault(
        "dataset", with_dataset("nowhere"), "forwardedProps.datasets[0]: there is no dataset 'nowhere' that you may use"
    ),
    Fault(
        "skill",
        with_prop("skill", "dance"),
        f"forwardedProps.skill: there is no skill 'dance'; known: {PLAIN}",
        own=f"forwardedProps.skill: there is no skill 'dance'; known: {GUIDES}",
    ),
    Fault(
        "scenario",
        with_prop("scenario", "moon"),
        "",
        own="forwardedProps.scenario: there is no scenario 'moon'; known: basic, love",
        among=OWN,
    ),
    Fault(
        "voice",
        with_prop("voice_mode", "shrill"),
        "",
        own="forwardedProps.voice_mode: there is no voice_mode 'shrill'; known: warm, direct",
        among=OWN,
    ),
    Fault(
        "file",
        lambda body: with_block(body, binary(mimeType="image/png", url=FOREIGN)),
        "binary content url is not a valid signed URL",
    ),
    Fault(
        "tool of the agent",
        with_tools("ours", "mine"),
        "tools[0].name: 'ours' is a tool of the agent. Give yours another name",
        # Who answers in one's own has other tools.
        among=frozenset(SITUATIONS) - OWN,
    ),
    Fault("two tools", with_tools("twin", "twin"), "tools[1].name: 'twin' occurs twice. Give each tool its own name"),
    Fault(
        "tool",
        with_tools("a b"),
        "tools[0].name: 'a b' is no name of a tool; write 1 to 64 letters, digits, `_` and `-`",
    ),
    Fault(
        "empty file",
        lambda body: with_block(body, cast("Body", inline("a.txt", b""))),
        "a.txt: it is empty; send a file with something in it",
    ),
    Fault("busy", with_prop("multitask", "reject"), BUSY, status=409, among=OWN),
)
# Asked before the request is known for one that was sent before.
OF_FORM = 3
BRINGS_FILES = frozenset({"file", "empty file"})


@dataclass(frozen=True, kw_only=True)
class Place:
    """A server with a thread of ann's, at work and in a skill, a thread of bob's, and a run that ann has started."""

    api: LocalApi
    own: str
    other: str
    run: str

    async def send(self, situation: Situation, faults: Sequence[Fault]) -> Answer:
        """A request that has these faults, the last of them made first."""
        threads = {"new": new_id(), "own": self.own, "other": self.other, "again": self.own}
        body = {**good(), "threadId": threads[situation]}
        body = {**body, "runId": self.run} if situation == "again" else body
        for fault in reversed(faults):
            body = fault.break_it(body)
        return await self.api.ask("POST", RUNS, body)

    def expected_fault(self, situation: Situation, faults: Sequence[Fault]) -> tuple[int, str]:
        """What is told of a request with these faults."""
        first = next(fault for fault in FAULTS if fault in faults)
        of_form = FAULTS.index(first) < OF_FORM
        if situation == "again" and not of_form:
            return 409, f"Run '{self.run}' was started before, with another input. Use a new runId."
        if situation == "other" and not of_form:
            # Files are looked at only in a thread of one's own; else the store itself says whose it is.
            has_files = any(fault.name in BRINGS_FILES for fault in faults)
            ask_at = BY_NAME["file" if has_files else "busy"]
            if FAULTS.index(first) >= FAULTS.index(ask_at):
                return 404, f"There is no thread {self.other!r}."
        return first.status, first.words(situation)


BY_NAME = {fault.name: fault for fault in FAULTS}


@pytest.fixture(scope="module")
def guide(tmp_path_factory: pytest.TempPathFactory) -> Agent:
    folder = tmp_path_factory.mktemp("agents")
    write_guide(folder)
    return load_folder(folder, Limits())["guide"]


@pytest.fixture
async def place(tmp_path: Path, guide: Agent) -> AsyncIterator[Place]:
    async with local_api(tmp_path, ROUTES) as api:
        files = FileInput(is_on=True)
        agents = {"plain": replace(CHAT, name="plain", file_input=files), "guide": replace(guide, file_input=files)}
        api.change(
            default="plain",
            by_name=agents,
            tools={"plain": Registry([named_tool("ours")])},
            admit=partial(api.store.runs.admit, who=WHO),
        )
        started, theirs = {**good(), "forwardedProps": {"agent": "guide"}}, good()
        responses = [await api.ask("POST", RUNS, started), await api.ask("POST", RUNS, theirs, user="bob")]
        assert [answer.status for answer in responses] == [202, 202]
        run = await api.store.runs.find("ann", str(started["runId"]))
        skill = SkillChanged(id=new_id(), time=NOW, skill="chart", scenario="basic")
        lease = run.lease
        await api.store.runs.record(lease, RunChange(entries=[skill]), NOW)
        yield Place(api=api, own=run.thread, other=str(theirs["threadId"]), run=run.name)


@pytest.mark.parametrize("situation", SITUATIONS)
async def test_P2_of_everything_that_is_wrong_the_earliest_is_told_whatever_thread_it_is(
    place: Place, situation: Situation
):
    faults = [fault for fault in FAULTS if situation in fault.among]
    alone = [(fault,) for fault in faults]
    # All from each on, without what brings a file too: that moves the question whose the thread is.
    rest = [tuple(faults[at:]) for at in range(len(faults))]
    bare = [tuple(fault for fault in some if fault.name not in BRINGS_FILES) for some in rest]
    for some in (*alone, *combinations(faults, 2), *rest, *filter(None, bare)):
        answer = await place.send(situation, some)
        answer_fault = answer.status, answer.json.get("detail")
        assert answer_fault == place.expected_fault(situation, some), [fault.name for fault in some]


async def test_P5_a_thread_of_somebody_else_is_not_there_for_a_request_with_nothing_wrong(place: Place):
    assert (await place.send("new", ())).status == (await place.send("own", ())).status == 202
    answer = await place.send("other", ())
    assert (answer.status, answer.json["detail"]) == (404, f"There is no thread {place.other!r}.")


async def test_P6_how_many_may_wait_is_asked_last(place: Place):
    place.api.change(bounds=Bounds(user_runs=1))
    many = "You have 1 active or queued runs, which is the limit. Wait for one to end, or cancel one."
    answer = await place.send("own", ())
    assert (answer.status, answer.json["detail"]) == (429, many)
    answer = await place.send("other", ())
    assert answer.status == 404
    for fault in (fault for fault in FAULTS if "own" in fault.among):
        answer = await place.send("own", (fault,))
        assert (answer.status, answer.json["detail"]) == place.expected_fault("own", (fault,))


async def test_P4_the_same_request_finds_its_run_though_what_it_named_is_gone(place: Place):
    props: Json = {"agent": "guide", "skill": "chart", "scenario": "love", "voice_mode": "warm"}
    body = with_block({**good(), "forwardedProps": props, "tools": [{"name": "mine"}]}, cast("Body", inline("a", b"a")))
    plain: Body = {**good(), "forwardedProps": props}
    first = [await place.api.ask("POST", RUNS, one) for one in (body, plain)]
    assert [answer.status for answer in first] == [202, 202]
    agents = {"plain": place.api.backend.agents.by_name["plain"]}
    place.api.change(by_name=agents, tools={"plain": Registry([named_tool("mine")])})
    assert [await place.api.ask("POST", RUNS, one) for one in (body, plain)] == first
    # Under another name it is another request, of which the first thing that is wrong is told.
    answer = await place.api.ask("POST", RUNS, {**plain, "runId": new_id()})
    assert answer.json["detail"] == "forwardedProps.agent: there is no agent 'guide'; known: plain"
    # So is another request under its name, but for what is wrong with its form.
    for fault in FAULTS[OF_FORM:]:
        assert (await place.api.ask("POST", RUNS, fault.break_it(plain))).status == 409, fault.name
