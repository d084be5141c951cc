"""Local Python functions as tools for the model (P11)."""

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
    """A function with the signature shown to the model."""

    function: LocalFunction
    signature: FunctionSignature

    @property
    def definition(self) -> Mapping[str, Json]:
        """Tool definition to send with a run."""
        parameters = load(self.signature.arguments.schema)
        name, description = self.function.__name__, self.signature.description
        return {"name": name, "description": description, "parameters": parameters}

    async def call(self, transport: Transport, arguments: str) -> Mapping[str, Json]:
        """Call the function and return result fields: `content`, or `error` for the model to read."""
        values = self.signature.arguments.read(arguments)
        if isinstance(values, str):
            return {"content": "", "error": values}
        from recto.tools.signature import format_answer

        try:
            return {"content": format_answer(await transport.call(self.function, **values))}
        except ToolError as error:
            return {"content": "", "error": str(error)}
        # User code may raise anything; report it to the model.
        except Exception as error:
            LOGGER.exception("Tool %s failed.", self.function.__name__)
            return {"content": "", "error": f"{type(error).__name__}: {error}"}


def build_local_tools(functions: Iterable[LocalFunction]) -> Mapping[str, LocalTool]:
    """Return the functions as tools, by name. Raise SettingsError for a signature the model cannot call."""
    all_functions = tuple(functions)
    if not all_functions:
        return {}
    from recto.tools.signature import read_signature  # here: programs without tools need no schemas

    return {one.__name__: LocalTool(function=one, signature=read_signature(one)) for one in all_functions}
