"""Immutable registry of tools by name. Duplicate names are rejected."""

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
    """Tools by name, in the given order. `missing` are external sources whose tools are unavailable."""

    def __init__(self, tools: Iterable[Tool] = (), *, missing: tuple[str, ...] = ()) -> None:
        self.missing = missing
        tools_by_name: dict[str, Tool] = {}
        for tool in tools:
            if tool.name in tools_by_name:
                origins = " and ".join(one.origin or "an unknown place" for one in (tools_by_name[tool.name], tool))
                problem = f"both {origins} define it; rename one of them"
                raise SettingsError(name="tools", value=tool.name, allowed=problem)
            tools_by_name[tool.name] = tool
        self._tools: Mapping[str, Tool] = tools_by_name

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def offers(self, names: Iterable[str]) -> tuple[ToolOffer, ...]:
        """Return the offers of these tools in the given order, without hidden ones."""
        offers = list[ToolOffer]()
        for name in names:
            tool = self._tools.get(name)
            if tool is None:
                names_offered = (
                    ", ".join(sorted(name for name, tool in self._tools.items() if tool.is_offered)) or "none"
                )
                problem = f"there is no such tool; known are: {names_offered}"
                raise SettingsError(name="tools", value=name, allowed=problem)
            offers += [tool.offer] if tool.is_offered else []
        return tuple(offers)

    def own_names(self) -> frozenset[str]:
        """Return the names that clients may neither give to their tools nor answer for."""
        return frozenset(name for name, tool in self._tools.items() if not tool.mark.by_client)

    def forms(self) -> tuple[ToolOffer, ...]:
        """Return the offers of tools that a client may answer for, such as forms."""
        return self.offers(sorted(name for name, tool in self._tools.items() if tool.mark.by_client))

    def with_confirmation(self, names: Collection[str]) -> Registry:
        """Return a registry where calls of the named tools need approval, whatever their own marks say."""
        tools = [
            replace(tool, mark=replace(tool.mark, confirm=True)) if name in names else tool
            for name, tool in self._tools.items()
        ]
        return Registry(tools, missing=self.missing)

    def approval_names(self, mode: Mode, *, is_confined: bool) -> tuple[str, ...]:
        """Return the tools that need approval in a mode. A command without a sandbox always needs it."""
        asks = {"ask": ("files", "anything"), "edits": ("anything",), "full": ()}[mode]
        changes = asks if is_confined else (*asks, "anything")
        return tuple(name for name, tool in self._tools.items() if tool.mark.changes in changes)

    def approval_schemas(self) -> Mapping[str, str]:
        """Return the tools that need approval, with their argument schemas. Skip client forms, which ask the user
        themselves.
        """
        tools = [tool for tool in self._tools.values() if tool.mark.confirm and not tool.mark.by_client]
        return {tool.name: tool.offer.parameters for tool in tools}

    def profile_checks(self) -> tuple[ProfileCheck, ...]:
        """Return the checks for clients' changes of a profile."""
        return tuple([check for tool in self._tools.values() if (check := tool.mark.profile_check)])

    @property
    def warnings(self) -> tuple[FileProblem, ...]:
        """The warnings of all tools."""
        return tuple([warning for tool in self._tools.values() for warning in tool.warnings])
