"""The tools that a reply may call, and matching of names that models write for them (P11)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cached_property

from recto.conversation.json import Object, load_object
from recto.conversation.messages import ToolOffer
from recto.page.prompt.tools_prompt import PromptCall

# Prefixes that some models put before the name of a tool.
PREFIXES = ("functions.", "function.", "tools.", "default_api.")


class OfferedTools:
    """The tools that a reply may call. `chooser` is the tool that activates skills.

    A call with the name of a skill becomes a call of the `chooser`.
    """

    def __init__(self, offers: Sequence[ToolOffer] = (), *, chooser: str = "") -> None:
        self._offers = {offer.name: offer for offer in offers}
        self._chooser = chooser

    def __bool__(self) -> bool:
        return bool(self._offers)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.find(name) is not None

    def is_skill(self, name: str) -> bool:
        """Return True if a skill has this name and no tool does."""
        return name in self.skills and name not in self._offers

    @cached_property
    def skills(self) -> frozenset[str]:
        """The skills that the reply may activate."""
        choices = self.properties(self._chooser).get("skill")
        skills = choices.get("enum") if isinstance(choices, dict) else None
        return frozenset(map(str, skills)) if isinstance(skills, list) else frozenset()

    @cached_property
    def _names_by_fold(self) -> Mapping[str, tuple[str, ...]]:
        names_by_fold: dict[str, tuple[str, ...]] = {}
        for name in (*self._offers, *[skill for skill in self.skills if skill not in self._offers]):
            names_by_fold[_fold(name)] = (*names_by_fold.get(_fold(name), ()), name)
        return names_by_fold

    def find(self, tool_name: str) -> str | None:
        """Return the tool or skill of this name, else the only one whose name differs just in case and punctuation."""
        for name in (tool_name, *[tool_name.removeprefix(one) for one in PREFIXES if tool_name.startswith(one)]):
            if name in self._offers or name in self.skills:
                return name
            names = self._names_by_fold.get(_fold(name), ())
            if len(names) == 1:
                return names[0]
        return None

    def may_begin(self, tool_name: str) -> bool:
        """Return True if this text may be the beginning of the name of a tool or skill."""
        prefix = next((one for one in PREFIXES if tool_name.startswith(one)), "")
        starts = (*self._names_by_fold, *map(_fold, PREFIXES))
        return any(name.startswith(_fold(tool_name.removeprefix(prefix))) for name in starts)

    def properties(self, tool: str) -> Object:
        """Return the schemas of the arguments of a tool, by name."""
        offer = self._offers.get(tool)
        properties = (load_object(offer.parameters) or {}).get("properties") if offer else None
        return properties if isinstance(properties, dict) else {}

    def only_argument(self, tool: str) -> str | None:
        """Return the argument of a tool that has only one argument or requires only one."""
        offer = self._offers.get(tool)
        needed = (load_object(offer.parameters) or {}).get("required") if offer else None
        names = list(self.properties(tool))
        required = [str(name) for name in needed] if isinstance(needed, list) else []
        return names[0] if len(names) == 1 else required[0] if len(required) == 1 else None

    def call(self, tool_name: str, arguments: Object) -> PromptCall | None:
        """Return the call of a tool or skill. Return None if neither exists or the arguments have no JSON form."""
        name = self.find(tool_name)
        if name is None:
            return None
        if name not in self._offers:
            scenario = arguments.get("scenario")
            name, arguments = self._chooser, {"skill": name, **({"scenario": scenario} if scenario else {})}
        text = as_json(arguments)
        return None if text is None else PromptCall(name=name, arguments=text)

    def settle(self, call: PromptCall) -> PromptCall:
        """Return the call with the name of the matching tool. A call of an unknown tool stays unchanged."""
        name = self.find(call.name)
        if name is None or (name == call.name and name in self._offers):
            return call
        if name in self._offers:
            return PromptCall(name=name, arguments=call.arguments)
        return self.call(name, load_object(call.arguments) or {}) or call


def as_json(value: Object) -> str | None:
    """Return arguments as JSON text, or None if they have no JSON form."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return None
    return text


def _fold(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()
