"""Options of an agent in each provider's request format; the types of their SDKs validate the fields."""

from collections.abc import Mapping
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.agents.agent import Effort, Sampling
from recto.conversation.json import Json
from recto.conversation.messages import Text, UserMessage
from recto.errors import SettingsError
from recto.models.anthropic_messages import MAX_TOKENS
from recto.models.choose import BY_NAME
from recto.page.assemble import Facts, assemble
from recto.page.wire.base import Target
from tests.page.oracles import breaches
from tests.page.page_rules import parse

SCHEMA = '{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}'
PARSED_OPTIONS: Json = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
NEW, MIDDLE, OLD = "claude-opus-5-5", "claude-sonnet-4-6", "claude-haiku-4-5-20251001"
TALK = (UserMessage(parts=(Text(text="hi"),)),)
EFFORTS: tuple[Effort, ...] = ("minimal", "low", "medium", "high")
MESSAGES: Json = [{"role": "user", "content": "hi"}]
CONVERSATIONS: Mapping[str, Mapping[str, Json]] = {
    "openai": {"model": "m", "messages": MESSAGES},
    "anthropic": {"model": "m", "messages": MESSAGES},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
}
samplings = st.builds(
    Sampling,
    max_tokens=st.none() | st.integers(1, 100_000),
    reasoning_effort=st.none() | st.sampled_from(EFFORTS),
    tool_choice=st.none() | st.sampled_from(["auto", "none", "required", "look"]),
    output=st.none() | st.just(SCHEMA),
)


def request_options(provider: str, model: str, sampling: Sampling, *, has_tools: bool) -> Mapping[str, Json]:
    return BY_NAME[provider].protocol.request_options(model, sampling, has_tools=has_tools)


def openai(sampling: Sampling, provider: str = "openai") -> Mapping[str, Json]:
    return request_options(provider, "gpt-5", sampling, has_tools=True)


def responses(sampling: Sampling) -> Mapping[str, Json]:
    return request_options("openai-responses", "gpt-5", sampling, has_tools=True)


def anthropic(sampling: Sampling, model: str = NEW) -> Mapping[str, Json]:
    return request_options("anthropic", model, sampling, has_tools=True)


@pytest.mark.parametrize("provider", BY_NAME)
def test_what_is_not_asked_for_is_left_to_the_model(provider: str):
    assert request_options(provider, NEW, Sampling(), has_tools=True) == {}


def test_openai_has_its_own_name_for_the_limit_and_compatible_servers_the_older_one():
    assert openai(Sampling(max_tokens=9)) == {"max_completion_tokens": 9}
    assert openai(Sampling(max_tokens=9), "compatible") == {"max_tokens": 9}


def test_temperature_and_effort_go_to_openai_as_they_are():
    assert openai(Sampling(temperature=0.0, reasoning_effort="minimal")) == {
        "temperature": 0.0,
        "reasoning_effort": "minimal",
    }


LOOK: Json = {"type": "function", "function": {"name": "look"}}
CHOICES: dict[str, tuple[Json, Json, Json, Json]] = {
    "openai": ("auto", "none", "required", LOOK),
    "openai-responses": ("auto", "none", "required", {"type": "function", "name": "look"}),
    "anthropic": ({"type": "auto"}, {"type": "none"}, {"type": "any"}, {"type": "tool", "name": "look"}),
    "gemini": ({"mode": "AUTO"}, {"mode": "NONE"}, {"mode": "ANY"}, {"mode": "ANY", "allowedFunctionNames": ["look"]}),
}


@pytest.mark.parametrize("provider", CHOICES)
def test_a_choice_of_tool_is_written_as_the_provider_does(provider: str):
    for choice, expected in zip(("auto", "none", "required", "look"), CHOICES[provider], strict=True):
        options = request_options(provider, NEW, Sampling(tool_choice=choice), has_tools=True)
        assert options == (
            {"toolConfig": {"functionCallingConfig": expected}} if provider == "gemini" else {"tool_choice": expected}
        )


def test_an_answer_of_openai_follows_the_schema_strictly():
    schema: Json = {"name": "answer", "strict": True, "schema": PARSED_OPTIONS}
    assert openai(Sampling(output=SCHEMA)) == {"response_format": {"type": "json_schema", "json_schema": schema}}


def test_responses_have_their_own_words_for_the_same():
    sampling = Sampling(temperature=0.0, max_tokens=9, reasoning_effort="low", tool_choice="look", output=SCHEMA)
    answer: Json = {"type": "json_schema", "name": "answer", "strict": True, "schema": PARSED_OPTIONS}
    assert responses(sampling) == {
        "temperature": 0.0,
        "max_output_tokens": 9,
        "reasoning": {"effort": "low", "summary": "auto"},
        "tool_choice": {"type": "function", "name": "look"},
        "text": {"format": answer},
    }


@pytest.mark.parametrize("provider", BY_NAME)
@pytest.mark.parametrize("choice", ["auto", "none", "required", "look"])
def test_without_tools_there_is_no_choice_of_one(provider: str, choice: str):
    assert request_options(provider, NEW, Sampling(tool_choice=choice), has_tools=False) == {}


def test_an_answer_of_anthropic_follows_the_schema():
    assert anthropic(Sampling(output=SCHEMA)) == {
        "output_config": {"format": {"type": "json_schema", "schema": PARSED_OPTIONS}}
    }


@pytest.mark.parametrize(
    ("effort", "expected"), [("minimal", "low"), ("low", "low"), ("medium", "medium"), ("high", "high")]
)
@pytest.mark.parametrize("model", [NEW, MIDDLE, "claude-mythos-preview", "somebody-elses"])
def test_models_of_today_think_as_long_as_they_want_with_so_much_effort(model: str, effort: Effort, expected: str):
    thinking: Json = {"type": "adaptive", "display": "summarized"}
    assert anthropic(Sampling(reasoning_effort=effort), model) == {
        "thinking": thinking,
        "output_config": {"effort": expected},
    }


@pytest.mark.parametrize(
    ("effort", "limit", "budget"),
    [("low", None, 2_048), ("medium", None, 8_192), ("high", None, 16_000), ("high", 4_000, 2_000)],
)
@pytest.mark.parametrize("model", [OLD, "claude-sonnet-4-20250514", "claude-3-7-sonnet-20250219", "claude-opus-4-5"])
def test_older_models_are_given_tokens_to_think(model: str, effort: Effort, limit: int | None, budget: int):
    options = anthropic(Sampling(reasoning_effort=effort, max_tokens=limit), model)
    limits = {"max_tokens": limit} if limit else {}
    assert options == {"thinking": {"type": "enabled", "budget_tokens": budget}, **limits}
    assert budget < (limit or MAX_TOKENS)


@pytest.mark.parametrize(("effort", "limit"), [("minimal", None), ("high", 2_000)])
def test_older_models_do_not_think_where_there_is_no_room_for_it(effort: Effort, limit: int | None):
    assert "thinking" not in anthropic(Sampling(reasoning_effort=effort, max_tokens=limit), OLD)


@pytest.mark.parametrize(("model", "is_sent"), [(OLD, True), (MIDDLE, True), ("claude-opus-4-7", False), (NEW, False)])
def test_a_temperature_goes_only_to_models_that_take_one(model: str, is_sent: bool):
    assert anthropic(Sampling(temperature=0.5), model) == ({"temperature": 0.5} if is_sent else {})


def test_anthropics_temperature_ends_at_one_and_is_left_out_where_the_model_thinks():
    assert anthropic(Sampling(temperature=1.7), OLD) == {"temperature": 1.0}
    assert anthropic(Sampling(temperature=0.0), OLD) == {"temperature": 0.0}
    assert "temperature" not in anthropic(Sampling(temperature=0.5, reasoning_effort="high"), OLD)


@pytest.mark.parametrize(("choice", "model"), list(product(["required", "look"], [NEW, OLD])))
def test_a_model_that_must_call_a_tool_is_not_asked_to_think(choice: str, model: str):
    assert "thinking" not in anthropic(Sampling(tool_choice=choice, reasoning_effort="high"), model)


def gemini(sampling: Sampling, model: str = "gemini-3-pro") -> Mapping[str, Json]:
    return request_options("gemini", model, sampling, has_tools=True)


def test_gemini_is_asked_in_its_generation_config():
    sampling = Sampling(temperature=0.0, max_tokens=9, output=SCHEMA)
    assert gemini(sampling) == {
        "generationConfig": {
            "temperature": 0.0,
            "maxOutputTokens": 9,
            "responseMimeType": "application/json",
            "responseJsonSchema": PARSED_OPTIONS,
        }
    }


@pytest.mark.parametrize(
    ("model", "effort", "expected"),
    [
        ("gemini-3-pro-preview", "low", {"thinkingLevel": "LOW"}),
        ("gemini-3.1-flash", "minimal", {"thinkingLevel": "MINIMAL"}),
        ("gemini-flash-latest", "high", {"thinkingLevel": "HIGH"}),
        ("gemini-2.5-pro", "minimal", {"thinkingBudget": 512}),
        ("gemini-2.5-flash", "low", {"thinkingBudget": 2_048}),
        ("gemini-2.5-flash", "medium", {"thinkingBudget": 8_192}),
        ("gemini-2.5-flash-lite", "high", {"thinkingBudget": 24_576}),
    ],
)
def test_gemini_thinks_by_level_or_by_tokens_and_shows_it(model: str, effort: Effort, expected: dict[str, Json]):
    config: Json = {"thinkingConfig": {"includeThoughts": True, **expected}}
    assert gemini(Sampling(reasoning_effort=effort), model) == {"generationConfig": config}


@pytest.mark.parametrize(
    "model", ["gemini-2.0-flash", "gemini-1.5-pro", "gemini-robotics-er-1.5-preview", "gemma-3-27b-it", "learnlm-2.0"]
)
def test_a_gemini_that_does_not_think_is_not_asked_to(model: str):
    assert gemini(Sampling(reasoning_effort="high"), model) == {}


@pytest.mark.parametrize("provider", BY_NAME)
@pytest.mark.parametrize("output", ["", "{oops", "[]", "7", "{}"])
def test_an_output_that_is_no_schema_is_refused(provider: str, output: str):
    with pytest.raises(SettingsError, match=r"output.*JSON Schema"):
        request_options(provider, NEW, Sampling(output=output), has_tools=True)


@pytest.mark.full
@given(
    sampling=samplings,
    has_tools=st.booleans(),
    model=st.sampled_from([NEW, MIDDLE, OLD, "gemini-3-pro", "gemini-2.5-flash", "gemini-2.0-flash"]),
)
def test_the_providers_own_types_accept_the_fields(sampling: Sampling, has_tools: bool, model: str):
    for provider, endpoint in BY_NAME.items():
        options = request_options(provider, model, sampling, has_tools=has_tools)
        all_options = {**endpoint.protocol.options, **options}
        page, _ = assemble(
            Facts(log=TALK, target=Target(wire=endpoint.protocol.wire, model=model), options=all_options)
        )
        body = parse(page)
        assert breaches(body, endpoint.protocol.wire) == []
