"""A naive interpreter of a conversation: it keeps turns, replies and calls in memory and never looks at a log.

It hears what happened, says what should happen next, and refuses what must never happen.
"""

from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field

from recto.conversation.log import Finish
from recto.conversation.messages import ToolCall
from recto.conversation.next_step import CallModel, Compact, Finished, Run, RunTools, Step, WaitForClient

CLIENT, REPEATABLE = "ask", "look"


@dataclass
class Reply:
    """What the model said, and the calls of it that were answered."""

    id: str
    calls: tuple[ToolCall, ...] = ()
    finish: Finish | None = None
    stopped: bool = False
    answers: list[str] = field(default_factory=list[str])

    @property
    def open(self) -> list[ToolCall]:
        return [call for call in self.calls if call.id not in self.answers]


@dataclass
class Turn:
    """A question and its replies; whether the last thing that happened in it was a summary."""

    id: str
    replies: list[Reply] = field(default_factory=list[Reply])
    just_compacted: bool = False


class Naive:
    """The turns in view, those an undo would bring back, and every tool that ever acted."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.hidden: list[list[Turn]] = []
        self.acted: Counter[tuple[str, str]] = Counter()

    # What happened

    def asks(self, id: str) -> None:
        self.turns.append(Turn(id=id))

    def replies(self, reply: Reply) -> None:
        self.turns[-1].replies.append(reply)
        self.turns[-1].just_compacted = False

    def starts(self, call: ToolCall) -> None:
        key = (self.reply.id, call.id)
        self.acted[key] += 1
        assert call in self.reply.open, f"{key} was started though it has its answer"
        assert call.name != CLIENT, f"{key} is the client's"
        assert not (self.is_cut and call == self.reply.calls[-1]), f"{key} may be half a call and was started"
        assert self.acted[key] == 1 or call.name == REPEATABLE, f"{key} was started twice"

    def answers(self, call: ToolCall) -> None:
        assert call.id not in self.reply.answers, f"{call.id} of {self.reply.id} was answered twice"
        self.reply.answers.append(call.id)
        self.turns[-1].just_compacted = False

    def compacts(self) -> None:
        self.turns[-1].just_compacted = True

    def stops(self) -> None:
        self.reply.stopped = True

    def rolls_back(self, to: str) -> None:
        place = next((place for place, turn in enumerate(self.turns) if turn.id == to), None)
        if place is not None:
            self.hidden.append(deepcopy(self.turns))
            self.turns = self.turns[:place]

    def undoes(self) -> None:
        if self.hidden:
            self.turns = self.hidden.pop()

    # What is

    @property
    def reply(self) -> Reply:
        return self.turns[-1].replies[-1]

    @property
    def is_cut(self) -> bool:
        return self.reply.stopped or self.reply.finish == "length"

    @property
    def pending(self) -> list[ToolCall]:
        """The client's calls that wait for an answer."""
        last = self.turns[-1].replies[-1:] if self.turns else []
        return [call for reply in last for call in reply.open if call.name == CLIENT and not reply.stopped]

    # What is next

    def expects(self, run: Run) -> Step:
        turn = self.turns[-1]
        if turn.replies and self.reply.finish in ("refused", "filtered"):
            return Finished(outcome=self.reply.finish)
        if turn.replies and not self.reply.calls and not self.reply.stopped:
            return Finished(outcome=self.reply.finish or "done")
        if run.cancel:
            return Finished(outcome="cancelled")
        return self._tools() if turn.replies and self.reply.open else self._model(turn, run)

    def _tools(self) -> Step:
        start: list[ToolCall] = []
        interrupted: list[ToolCall] = []
        cut_off: list[ToolCall] = []
        for call in self.reply.open:
            if (self.is_cut and call == self.reply.calls[-1]) or (self.reply.stopped and call.name == CLIENT):
                cut_off.append(call)
            elif call.name == CLIENT:
                continue
            elif call.name == REPEATABLE or not self.acted[self.reply.id, call.id]:
                start.append(call)
            else:
                interrupted.append(call)
        if not (start or interrupted or cut_off):
            return WaitForClient(calls=tuple(self.pending))
        return RunTools(start=tuple(start), interrupted=tuple(interrupted), cut_off=tuple(cut_off))

    def _model(self, turn: Turn, run: Run) -> Step:
        if len(turn.replies) >= run.max_steps:
            return Finished(outcome="too_many_steps")
        if run.failures >= run.max_failures:
            return Finished(outcome="model_failed")
        if run.too_long and (turn.just_compacted or not run.can_compact):
            tries = 2 if run.can_compact else 1
            return Finished(outcome="too_long") if run.too_long >= tries else CallModel()
        if (run.too_long or run.full) and run.can_compact and not turn.just_compacted:
            return Compact()
        return CallModel()
