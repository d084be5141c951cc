"""Registry of tools."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from recto.config.run_settings import Mode
from recto.errors import SettingsError
from recto.tools.function import make_tool
from recto.tools.mark import Mark, tool
from recto.tools.registry import Registry


def search(words: str) -> None: ...


@tool(name="search")
def another(words: str) -> None: ...


def ping() -> None: ...


def test_tools_are_found_by_name_and_offered_in_the_order_asked_for():
    tools = [make_tool(ping), make_tool(search)]
    registry = Registry(tools)
    assert list(registry) == ["ping", "search"]
    assert (registry["search"], registry.get("serch")) == (tools[1], None)
    assert registry.offers(["search", "ping"]) == (tools[1].offer, tools[0].offer)
    with pytest.raises(SettingsError, match=r"'serch'; there is no such tool; known are: ping, search\."):
        registry.offers(["serch"])


def test_F6_a_hidden_tool_is_found_and_never_offered_or_named():
    hidden = replace(make_tool(ping), is_offered=False)
    registry = Registry([make_tool(search), hidden])
    assert registry["ping"] is hidden
    assert registry.offers(registry) == (registry["search"].offer,)
    assert registry.offers(["ping"]) == ()
    with pytest.raises(SettingsError, match=r"known are: search\."):
        registry.offers(["serch"])


def test_P11_forms_are_the_offers_of_tools_that_a_client_may_answer_for():
    asks = replace(make_tool(ping), mark=Mark(by_client=True))
    assert Registry([make_tool(search), asks]).forms() == (asks.offer,)
    assert Registry([replace(asks, is_offered=False)]).forms() == ()


def test_two_tools_of_one_name_are_refused_with_both_places():
    with pytest.raises(SettingsError) as caught_error:
        Registry([make_tool(search), make_tool(another)])
    assert all(
        one in str(caught_error.value) for one in ("'search'", f"search in {__file__}:", f"another in {__file__}:")
    )


@tool(changes="files")
def edit() -> None: ...


@tool(changes="anything")
def command() -> None: ...


@pytest.mark.parametrize(("mode", "asking"), [("ask", ("edit", "command")), ("edits", ("command",)), ("full", ())])
def test_R15_a_mode_says_which_calls_ask_and_a_command_without_a_sandbox_always_does(mode: Mode, asking: Sequence[str]):
    registry = Registry([make_tool(search), make_tool(edit), make_tool(command)])
    assert registry.approval_names(mode, is_confined=True) == asking
    assert registry.approval_names(mode, is_confined=False) == (asking or ("command",))
