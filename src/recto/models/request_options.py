"""What an agent asks of a model, in the words of each provider. Pure. Refuses an output that is no JSON Schema.

None is left to the model. What a model is known to refuse on every call is left out; everything else is sent as asked,
and the provider's refusal says what is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

from recto.agents.agent import Effort, Sampling
from recto.conversation.json import Json, load_object
from recto.errors import SettingsError
from recto.page.wire.base import WireName

Options: TypeAlias = Mapping[str, Json]
ModelVersion: TypeAlias = tuple[int, int]

# Anthropic demands a limit. Every model since Claude 4 can write as much.
MAX_TOKENS = 32_000
ANSWER = "answer"
FORCED = {"required": "any"}
CLAUDE = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")
# Newer than any model: a name that tells no version is taken for one of today's.
NEWEST: ModelVersion = (99, 0)
# From here on a model decides itself how long it thinks; those before are given tokens for it.
ADAPTIVE: ModelVersion = (4, 6)
# From here on a temperature is refused.
NO_TEMPERATURE: ModelVersion = (4, 7)
HIGHEST_TEMPERATURE = 1.0
EFFORTS: Mapping[Effort, str] = {"minimal": "low", "low": "low", "medium": "medium", "high": "high"}
BUDGETS: Mapping[Effort, int] = {"minimal": 0, "low": 2_048, "medium": 8_192, "high": 16_000}
LEAST_BUDGET = 1_024
# Without it the thinking of newer models comes signed but empty, and readers see nothing.
SHOWN: Options = {"type": "adaptive", "display": "summarized"}


def request_options(wire: WireName, provider: str, model: str, sampling: Sampling, *, has_tools: bool) -> Options:
    """The fields of a request that say what the agent asks for. `has_tools`: the page offers tools natively."""
    if wire == "anthropic":
        return _anthropic(model, sampling, has_tools=has_tools)
    return _openai(provider, sampling, has_tools=has_tools)


def _openai(provider: str, sampling: Sampling, *, has_tools: bool) -> Options:
    # The older name is all that most compatible servers know.
    limit = "max_completion_tokens" if provider == "openai" else "max_tokens"
    choice = sampling.tool_choice if has_tools else None
    named: Json = {"type": "function", "function": {"name": choice}}
    output = _schema(sampling)
    answer: Json = {"name": ANSWER, "strict": True, "schema": output}
    return _present(
        temperature=sampling.temperature,
        reasoning_effort=sampling.reasoning_effort,
        tool_choice=choice if choice in (None, "auto", "none", "required") else named,
        response_format={"type": "json_schema", "json_schema": answer} if output else None,
    ) | _present(**{limit: sampling.max_tokens})


def _anthropic(model: str, sampling: Sampling, *, has_tools: bool) -> dict[str, Json]:
    version, choice = _version(model), _anthropic_choice(sampling, has_tools=has_tools)
    is_forced = choice is not None and choice["type"] in ("any", "tool")
    # A model may not think and be made to call a tool at once.
    thinking = None if is_forced else _thinking(version, sampling)
    takes_temperature = version < NO_TEMPERATURE and thinking is None and sampling.temperature is not None
    output = _schema(sampling)
    effort = sampling.reasoning_effort if version >= ADAPTIVE else None
    config = _present(
        effort=EFFORTS[effort] if effort else None,
        format={"type": "json_schema", "schema": output} if output else None,
    )
    return _present(
        temperature=min(sampling.temperature or 0.0, HIGHEST_TEMPERATURE) if takes_temperature else None,
        max_tokens=sampling.max_tokens,
        thinking=thinking,
        tool_choice=choice,
        output_config=config or None,
    )


def _anthropic_choice(sampling: Sampling, *, has_tools: bool) -> dict[str, Json] | None:
    choice = sampling.tool_choice if has_tools else None
    if choice is None:
        return None
    if choice in ("auto", "none", "required"):
        return {"type": FORCED.get(choice, choice)}
    return {"type": "tool", "name": choice}


def _thinking(version: ModelVersion, sampling: Sampling) -> Options | None:
    effort = sampling.reasoning_effort
    if effort is None:
        return None
    if version >= ADAPTIVE:
        return SHOWN
    # What it thinks counts in what it may write: half of that is for the answer.
    budget = min(BUDGETS[effort], (sampling.max_tokens or MAX_TOKENS) // 2)
    return {"type": "enabled", "budget_tokens": budget} if budget >= LEAST_BUDGET else None


def _version(model: str) -> ModelVersion:
    found = CLAUDE.search(model)
    return (int(found[1]), int(found[2] or 0)) if found else NEWEST


def _schema(sampling: Sampling) -> Mapping[str, Json] | None:
    if sampling.output is None:
        return None
    schema = load_object(sampling.output)
    if not schema:
        raise SettingsError(
            name="output", value=sampling.output, allowed="it is a JSON Schema: an object, as JSON text"
        )
    return schema


def _present(**fields: Json) -> dict[str, Json]:
    return {name: value for name, value in fields.items() if value is not None}
