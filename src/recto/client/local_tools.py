"""Functions of the program that the model may call (P11): offered with each run, called here, answered to the model."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from recto.client.transports import Transport
from recto.conversation.json import Json, load
from recto.errors import ToolError

if TYPE_CHECKING:
    from recto.tools.signature import FunctionSignature

LOGGER = logging.getLogger("recto.client")
LocalFunction: TypeAlias = Callable[..., object]


@dataclass(frozen=True, kw_only=True)
class LocalTool:
    """A function, and what the model is told of it."""

    function: LocalFunction
    signature: FunctionSignature

    @property
    def offer(self) -> Mapping[str, Json]:
        """The tool as a run offers it."""
        parameters = load(self.signature.arguments.schema)
        name, description = self.function.__name__, self.signature.description
        return {"name": name, "description": description, "parameters": parameters}

    async def answer(self, transport: Transport, arguments: str) -> Mapping[str, Json]:
        """The fields of a result: `content`, or what went wrong as `error`, which the model reads too."""
        values = self.signature.arguments.read(arguments)
        if isinstance(values, str):
            return {"content": "", "error": values}
        from recto.tools.signature import answer_text

        try:
            return {"content": answer_text(await transport.call(self.function, **values))}
        except ToolError as error:
            return {"content": "", "error": str(error)}
        # Somebody else's code: whatever it raises the model is told, and may go on without.
        except Exception as error:
            LOGGER.exception("Tool %s failed.", self.function.__name__)
            return {"content": "", "error": f"{type(error).__name__}: {error}"}


def local_tools(functions: Iterable[LocalFunction]) -> Mapping[str, LocalTool]:
    """Typed functions as tools, by their names. Raises SettingsError for one that no model could call."""
    found = tuple(functions)
    if not found:
        return {}
    from recto.tools.signature import signature_of  # here: programs without tools need no schemas

    return {one.__name__: LocalTool(function=one, signature=signature_of(one)) for one in found}
