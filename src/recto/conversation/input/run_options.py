"""Options of a run (P1): what of a request's `forwardedProps` means something to the server itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from recto.conversation.json import Json, as_list, kind_of
from recto.errors import WireError

Multitask: TypeAlias = Literal["enqueue", "reject", "interrupt"]
MULTITASK: tuple[Multitask, ...] = ("enqueue", "reject", "interrupt")


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What of `forwardedProps` we know (P1). None where nothing was said."""

    agent: str | None = None
    skill: str | None = None
    scenario: str | None = None
    voice_mode: str | None = None
    timezone: str | None = None
    datasets: tuple[str, ...] = ()
    multitask: Multitask = "enqueue"


def run_options(props: Mapping[str, Json]) -> RunOptions:
    """What `forwardedProps` ask for. A value that means nothing is a WireError; names we do not know are the tools'."""
    multitask = _word(props, "multitask") or MULTITASK[0]
    if multitask not in MULTITASK:
        problem = f"is {multitask[:64]!r}; it is one of {', '.join(MULTITASK)}"
        raise WireError(where="forwardedProps.multitask", problem=problem)
    return RunOptions(
        agent=_word(props, "agent"),
        skill=_word(props, "skill"),
        scenario=_word(props, "scenario"),
        voice_mode=_word(props, "voice_mode"),
        timezone=_word(props, "timezone"),
        datasets=tuple(_words(props, "datasets")),
        multitask=multitask,
    )


def _word(props: Mapping[str, Json], name: str) -> str | None:
    found = props.get(name)
    if found is None:
        return None
    if not isinstance(found, str):
        raise WireError(where=f"forwardedProps.{name}", problem=f"must be a string, is {kind_of(found)}")
    if not found.strip():
        raise WireError(where=f"forwardedProps.{name}", problem="is empty; leave it out or name one")
    return found


def _words(props: Mapping[str, Json], name: str) -> Iterator[str]:
    where = f"forwardedProps.{name}"
    found = props.get(name)
    for place, item in enumerate(as_list(found, where) if found is not None else ()):
        if not isinstance(item, str) or not item:
            raise WireError(where=f"{where}[{place}]", problem=f"must be an id, is {kind_of(item)}")
        yield item
