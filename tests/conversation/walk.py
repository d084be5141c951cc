"""A random walk through conversations: a worker in memory that does what `next_step` says, and often dies doing it.

Everything it knows is the log and the run's row, as in a real worker: after a death it just asks again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from recto.conversation.log import Compacted, Entry, Finish, Interrupted, ReplyEnded, RolledBack, ToolStarted, Undone
from recto.conversation.messages import AssistantMessage, Text, ToolCall
from recto.conversation.next_step import CallModel, Compact, Finished, Run, RunTools, Step, WaitForClient, next_step
from tests.conversation.naive_turns import CLIENT, REPEATABLE, Naive, Reply
from tests.page.talk import call, result, user

TOOLS = ("charge", "charge", "pay", REPEATABLE, CLIENT)
# Ids come again in every reply, as some models do it.
CALL_IDS = ("c1", "c2", "c3", "c4")
FINISHES: tuple[Finish, ...] = ("length", "length", "refused", "filtered")
ROW = Run(client_tools=frozenset({CLIENT}), repeatable=frozenset({REPEATABLE}), max_steps=6)
# A reply costs at most two failures, a page found too long, a summary, the reply itself and its tools; then the end.
MOST_STEPS = 6 * ROW.max_steps + 2
DEATHS = 6


class Death(Exception):
    """The worker is gone; what it wrote stays."""


@dataclass(frozen=True, kw_only=True)
class OpenQuestion:
    """A question that was put to `next_step`, and its answer."""

    entries: int
    run: Run
    step: Step


class Walk:
    """One thread, from its first question on."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.log: list[Entry] = []
        self.naive = Naive()
        self.question: list[OpenQuestion] = []
        self.row = ROW
        self.deaths = 0

    # Between runs

    def happen(self) -> None:
        """Words, results of the client, rollbacks and undos come from outside; or nothing, and the turn goes on."""
        things: tuple[Callable[[], None], ...] = (self.ask, self.answer, self.answer, self.back, self.back, self.undo)
        for thing in self.random.choices(things, k=self.random.randint(0, 2)):
            thing()
        if not self.naive.turns:
            self.ask()

    def ask(self) -> None:
        self.naive.asks(self.write(user(self.new_id())))

    def answer(self) -> None:
        for pending in self.some(self.naive.pending):
            self.settle(pending, "from the client")

    def back(self) -> None:
        users = [entry.id for entry in self.log if entry.id and entry.id.startswith("user")]
        to = self.random.choice(["nobody", *users, *(turn.id for turn in self.naive.turns)])
        self.write(RolledBack(id=self.new_id("back"), to=to))
        self.naive.rolls_back(to)

    def undo(self) -> None:
        self.write(Undone(id=self.new_id("undo")))
        self.naive.undoes()

    # A run

    def run(self) -> Step:
        """Do what is next until the run is over. A death only means that the same question is asked again."""
        self.row = ROW
        self.deaths = 0
        for _ in range(MOST_STEPS + DEATHS):
            step = self.next()
            if isinstance(step, (Finished, WaitForClient)):
                return step
            try:
                self.perform(step)
            except Death:
                self.deaths += 1
        raise AssertionError(f"the run did not end in {MOST_STEPS + DEATHS} steps: {self.question[-5:]}")

    def next(self) -> Step:
        self.row = replace(self.row, full=self.chance(0.2), cancel=self.chance(0.03))
        step = next_step(tuple(self.log), self.row)
        self.question.append(OpenQuestion(entries=len(self.log), run=self.row, step=step))
        assert step == self.naive.expects(self.row)
        if isinstance(step, Finished) and step.outcome == "cancelled" and self.chance(0.5):
            self.stop()
        return step

    def perform(self, step: CallModel | RunTools | Compact) -> None:
        match step:
            case CallModel():
                self.call_model()
            case RunTools():
                self.run_tools(step)
            case Compact():
                self.compact()

    def call_model(self) -> None:
        self.may_die()
        if self.chance(0.1):
            self.row = replace(self.row, failures=self.row.failures + 1)
        elif self.chance(0.1):
            self.row = replace(self.row, too_long=self.row.too_long + 1)
        else:
            self.reply()
            self.row = replace(self.row, failures=0, too_long=0)
            self.may_die()

    def reply(self) -> None:
        """A reply, and in the same transaction how it ended where it did not end by itself."""
        calls = self.calls() if self.chance(0.75) else ()
        finish = self.random.choice(FINISHES) if self.chance(0.2) else None
        id = self.new_id("reply")
        self.write(AssistantMessage(id=id, parts=(Text(text="So."), *calls)))
        if finish:
            self.write(ReplyEnded(id=self.new_id("end"), message=id, finish=finish))
        self.naive.replies(Reply(id=id, calls=calls, finish=finish))

    def calls(self) -> tuple[ToolCall, ...]:
        ids = self.random.sample(CALL_IDS, self.random.randint(1, 3))
        return tuple(call(id, self.random.choice(TOOLS)) for id in ids)

    def run_tools(self, step: RunTools) -> None:
        """Settle and start in any order; tools may all begin before the first ends."""
        for late_call in self.shuffled(step.interrupted):
            self.settle(late_call, "interrupted")
            self.may_die()
        for half in self.shuffled(step.cut_off):
            self.settle(half, "cut off")
            self.may_die()
        waves = [step.start] if self.chance(0.5) else [(one,) for one in self.shuffled(step.start)]
        for wave in waves:
            self.start(wave)

    def start(self, wave: Sequence[ToolCall]) -> None:
        for one in wave:
            self.write(ToolStarted(id=self.new_id("start"), message=self.naive.reply.id, call=one.id))
            self.naive.starts(one)
            self.may_die()
        for one in self.shuffled(wave):
            self.settle(one, "done")
            self.may_die()

    def compact(self) -> None:
        self.may_die()
        if self.chance(0.3):
            self.row = replace(self.row, can_compact=False)
            return
        self.write(Compacted(id=self.new_id("summary"), upto=self.naive.turns[-1].id, summary="So far."))
        self.naive.compacts()
        self.may_die()

    def stop(self) -> None:
        """The cancel came while the model wrote its last reply."""
        if self.naive.turns[-1].replies and not self.naive.reply.answers:
            self.write(Interrupted(id=self.new_id("stop"), message=self.naive.reply.id, reason="cancelled"))
            self.naive.stops()

    # Small things

    def settle(self, one: ToolCall, text: str) -> None:
        self.write(result(self.new_id("result"), one.id, text))
        self.naive.answers(one)

    def write(self, entry: Entry) -> str:
        self.log.append(entry)
        return entry.id

    def new_id(self, kind: str = "user") -> str:
        return f"{kind}{len(self.log)}"

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def may_die(self) -> None:
        if self.deaths < DEATHS and self.chance(0.15):
            raise Death

    def shuffled(self, calls: Sequence[ToolCall]) -> list[ToolCall]:
        return self.random.sample(list(calls), len(calls))

    def some(self, calls: Sequence[ToolCall]) -> list[ToolCall]:
        return self.shuffled(calls)[: self.random.randint(0, len(calls))]
