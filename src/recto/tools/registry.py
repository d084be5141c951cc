"""The tools there are, by name. It never changes; two tools of one name are refused."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from recto.config.problem import FileProblem
from recto.config.run_settings import Mode
from recto.conversation.messages import ToolOffer
from recto.errors import SettingsError
from recto.tools.mark import ProfileCheck
from recto.tools.ports import Tool


class Registry(Mapping[str, Tool]):
    """Tools by name, in the order given. `missing` are places elsewhere whose tools cannot be used at present."""

    def __init__(self, tools: Iterable[Tool] = (), *, missing: tuple[str, ...] = ()) -> None:
        self.missing = missing
        known: dict[str, Tool] = {}
        for tool in tools:
            if tool.name in known:
                raise _used_twice(known[tool.name], tool)
            known[tool.name] = tool
        self._tools: Mapping[str, Tool] = known

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def offers(self, names: Iterable[str]) -> tuple[ToolOffer, ...]:
        """What the model is offered of these tools, in that order; of hidden ones it is offered nothing."""
        return tuple([tool.offer for tool in map(self._known, names) if tool.is_offered])

    def own_names(self) -> frozenset[str]:
        """Those no client may answer for, nor call a tool of its own by."""
        return frozenset(name for name, tool in self._tools.items() if not tool.mark.by_client)

    def forms(self) -> tuple[ToolOffer, ...]:
        """Those a client may answer for, as models are offered them: what it answers are arguments of theirs."""
        return self.offers(sorted(name for name, tool in self._tools.items() if tool.mark.by_client))

    def confirming(self, names: Collection[str]) -> Registry:
        """These tools, of which a person has to agree to those of these names, whatever their own marks say."""
        tools = [_confirming(tool) if name in names else tool for name, tool in self._tools.items()]
        return Registry(tools, missing=self.missing)

    def asking(self, mode: Mode, *, is_confined: bool) -> tuple[str, ...]:
        """Those a person has to agree to in a mode. A command that no sandbox confines always asks."""
        asks = {"ask": ("files", "anything"), "edits": ("anything",), "full": ()}[mode]
        changes = asks if is_confined else (*asks, "anything")
        return tuple(name for name, tool in self._tools.items() if tool.mark.changes in changes)

    def confirmed(self) -> Mapping[str, str]:
        """Those a person has to agree to, with the schema of their arguments. A form of the client's asks by itself."""
        asking = [tool for tool in self._tools.values() if tool.mark.confirm and not tool.mark.by_client]
        return {tool.name: tool.offer.parameters for tool in asking}

    def profile_checks(self) -> tuple[ProfileCheck, ...]:
        """What clients' changes of a profile are held to, beside the agent's schema."""
        return tuple([check for tool in self._tools.values() if (check := tool.mark.profile_check)])

    @property
    def warnings(self) -> tuple[FileProblem, ...]:
        """What is hardly meant of any of them."""
        return tuple([warning for tool in self._tools.values() for warning in tool.warnings])

    def _known(self, name: str) -> Tool:
        tool = self._tools.get(name)
        if tool is None:
            known = ", ".join(sorted(name for name, tool in self._tools.items() if tool.is_offered)) or "none"
            raise SettingsError(name="tools", value=name, allowed=f"there is no such tool; known are: {known}")
        return tool


def _confirming(tool: Tool) -> Tool:
    return replace(tool, mark=replace(tool.mark, confirm=True))


def _used_twice(first: Tool, second: Tool) -> SettingsError:
    origins = " and ".join(tool.origin or "an unknown place" for tool in (first, second))
    return SettingsError(name="tools", value=first.name, allowed=f"both {origins} define it; rename one of them")
