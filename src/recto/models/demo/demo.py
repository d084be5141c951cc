"""The built-in demo model: deterministic, offline, honest about what it is. It reads the page as a real model would."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncGenerator, Iterator, Mapping

from recto.agents.agent import Sampling
from recto.conversation.json import Json
from recto.models.demo.words import DemoReply, reply_to
from recto.models.ports import CallDelta, CallStarted, Delta, ReplyEnd, TextDelta, Usage
from recto.page.wire.base import Target

NAME = "demo"
WINDOW = 128_000
# Words, and Chinese two characters at a time, with the space that goes before them.
PIECES = re.compile("\\s*(?:[\u4e00-\u9fff]{1,2}|[^\\s\u4e00-\u9fff]+)|\\s+")
CHARACTERS_PER_TOKEN = 4


class DemoModel:
    """Plays its tricks with the tools it is offered, those of skills too. `pause` is slept between words."""

    def __init__(self, *, pause: float = 0.0) -> None:
        self.name = NAME
        self.target = Target(wire="openai", model=NAME, sees_images=False)
        self.options: Mapping[str, Json] = {"stream": True}
        self.window = WINDOW
        self._pause = pause

    def options_for(self, sampling: Sampling, *, has_tools: bool) -> Mapping[str, Json]:  # noqa: ARG002 - a Model has it
        """The same whatever is asked for: a demo has neither temperature nor effort."""
        return self.options

    async def stream(self, body: bytes) -> AsyncGenerator[Delta, None]:
        """The reply to the page, word by word."""
        reply = reply_to(body)
        for delta in _deltas(reply, body):
            yield delta
            await asyncio.sleep(self._pause)
        # A rough count, in characters: the demo model has no tokens of its own.
        written = len(reply.text) + sum(len(call.arguments) for call in reply.calls)
        usage = Usage(
            input=len(body.decode("utf-8", "replace")) // CHARACTERS_PER_TOKEN + 1,
            output=written // CHARACTERS_PER_TOKEN + 1,
        )
        yield ReplyEnd(finish="tool_calls" if reply.calls else "stop", usage=usage)

    async def aclose(self) -> None:
        """Nothing is held open."""


def _deltas(reply: DemoReply, body: bytes) -> Iterator[Delta]:
    yield from (TextDelta(text=piece) for piece in PIECES.findall(reply.text))
    # By the page, so that the calls of one conversation never share an id and the same page gives the same ones.
    page = hashlib.sha256(body).hexdigest()[:12]
    for index, call in enumerate(reply.calls):
        yield CallStarted(index=index, id=f"call_{page}_{index}", name=call.name)
        yield CallDelta(index=index, arguments=call.arguments)
