"""P15: suggestions at once, in one process: who is given up for a newer one is told that it is over."""

import asyncio
from collections.abc import Callable

from recto.agents.agent import CHAT, Agent
from recto.api.copilotkit.suggestions import Suggestions
from recto.config.run_settings import SuggestionSettings
from recto.conversation.events import Event, TextStarted
from recto.conversation.input.suggestion_input import SuggestionInput, read_suggestion
from tests.api.copilotkit_client import wish


async def suggest(_owner: str, _agent: Agent, _asked: SuggestionInput, /, *, say: Callable[[Event], None]) -> None:
    say(TextStarted(message="m"))


async def test_P15_of_many_that_are_asked_for_at_once_all_come_to_an_end():
    suggestions = Suggestions(SuggestionSettings(at_once=2, pause=0.01), suggest)
    asked = read_suggestion(wish())

    async def heard() -> list[Event]:
        return [event async for event in suggestions.events("ann", CHAT, asked)]

    found = await asyncio.wait_for(asyncio.gather(*[heard() for _ in range(12)]), 10)
    assert sorted(map(len, found)) == [0] * 10 + [1] * 2
