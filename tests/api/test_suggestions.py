"""P15: suggestions at once, in one process: who is given up for a newer one is told that it is over."""

import asyncio
from collections.abc import Callable

import pytest

from recto.agents.agent import CHAT, Agent
from recto.api.copilotkit.suggestions import Suggestions
from recto.config.run_settings import SuggestionSettings
from recto.conversation.events import Event, TextStarted
from recto.conversation.input.suggestion_input import SuggestionInput, read_suggestion
from recto.errors import LimitReached
from tests.api.copilotkit_client import wish
from tests.waiting import settle


async def suggest(_owner: str, _agent: Agent, _request: SuggestionInput, /, *, emit: Callable[[Event], None]) -> None:
    emit(TextStarted(message="m"))


async def test_P15_of_many_that_are_asked_for_at_once_all_come_to_an_end():
    suggestions = Suggestions(SuggestionSettings(at_once=2, pause=0.01), suggest)
    suggestion = read_suggestion(wish())

    async def collect() -> list[Event]:
        return [event async for event in suggestions.events("ann", CHAT, suggestion)]

    event_lists = await asyncio.gather(*[collect() for _ in range(12)])
    assert sorted(map(len, event_lists)) == [0] * 10 + [1] * 2


async def test_P15_only_those_count_that_the_model_was_asked_for_and_others_have_their_own_count():
    suggestions = Suggestions(SuggestionSettings(per_minute=2, pause=0), suggest, ticks=lambda: 0.0)
    suggestion = read_suggestion(wish())
    for _ in range(4):
        given_up = suggestions.events("ann", CHAT, suggestion)
        waiting = asyncio.create_task(anext(given_up))
        await settle(1)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    for _ in range(2):
        suggestions.check_rate("ann")
        assert len([event async for event in suggestions.events("ann", CHAT, suggestion)]) == 1
    with pytest.raises(LimitReached, match="limit of 2 suggestions per minute") as limited:
        suggestions.check_rate("ann")
    assert limited.value.retry > 0
    suggestions.check_rate("bob")


async def test_P15_where_suggestions_are_off_none_are_made():
    suggestions = Suggestions(SuggestionSettings(is_on=False), suggest)
    assert not suggestions.is_on
    assert [event async for event in suggestions.events("ann", CHAT, read_suggestion(wish()))] == []
