"""The official clients of four providers, each reading one reply of the scripted model server."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from pydantic import TypeAdapter

from recto.conversation.json import Json, load
from recto.models.ports import Usage
from recto.page.wire.base import WireName
from recto.testing.model_server import ModelServer

if TYPE_CHECKING:
    from google.genai.types import GenerateContentResponse
    from openai.types.chat import ChatCompletionChunk


@dataclass(frozen=True, kw_only=True)
class OfficialReply:
    """A reply as an official client presents it. `state` is the opaque state that it would send back."""

    text: str
    thoughts: str
    calls: Sequence[tuple[str | None, str | None, Json]]
    finish: str
    usage: Usage | None
    state: Sequence[Json] = ()


def ask_chat(server: ModelServer) -> OfficialReply:
    """Stream OpenAI chat completions."""
    import openai

    with openai.OpenAI(base_url=server.url, api_key="k", max_retries=0) as client:
        chunks = list(
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}], stream=True)
        )
    choices = [chunk.choices[0] for chunk in chunks if chunk.choices]
    usage = chunks[-1].usage
    # The package has no field for thoughts; other providers stream them as an extra one.
    thoughts = "".join(str((choice.delta.model_extra or {}).get("reasoning_content") or "") for choice in choices)
    return OfficialReply(
        text="".join(choice.delta.content or "" for choice in choices),
        thoughts=thoughts,
        state=[thoughts] if thoughts else [],
        calls=_chat_calls(chunks),
        finish=next(choice.finish_reason for choice in choices if choice.finish_reason),
        usage=usage
        and Usage(
            input=usage.prompt_tokens,
            output=usage.completion_tokens,
            cached=(usage.prompt_tokens_details and usage.prompt_tokens_details.cached_tokens) or 0,
            reasoning=(usage.completion_tokens_details and usage.completion_tokens_details.reasoning_tokens) or 0,
        ),
    )


def _chat_calls(chunks: Sequence[ChatCompletionChunk]) -> Sequence[tuple[str, str, Json]]:
    """Join the fragments of calls as users of the package do."""
    calls: dict[int, tuple[str, str, str]] = {}
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    for fragment in (fragment for delta in deltas for fragment in delta.tool_calls or ()):
        id, name, arguments = calls.get(fragment.index, ("", "", ""))
        function = fragment.function
        more = (function.name or "", function.arguments or "") if function else ("", "")
        calls[fragment.index] = (id + (fragment.id or ""), name + more[0], arguments + more[1])
    return [(id, name, load(arguments)) for id, name, arguments in calls.values()]


def ask_responses(server: ModelServer) -> OfficialReply:
    """Stream OpenAI Responses."""
    import openai
    from openai.types import responses

    endings = {"max_output_tokens": "length", "content_filter": "filtered"}
    with openai.OpenAI(base_url=server.url, api_key="k", max_retries=0) as client:
        events = list(client.responses.create(model="m", input="hi", stream=True, store=False))
    last = events[-1]
    if isinstance(last, responses.ResponseErrorEvent):
        raise openai.OpenAIError(last.message)
    assert isinstance(last, (responses.ResponseCompletedEvent, responses.ResponseIncompleteEvent))
    response, usage = last.response, last.response.usage
    calls = [item for item in response.output if isinstance(item, responses.ResponseFunctionToolCall)]
    reason = response.incomplete_details.reason if response.incomplete_details else None
    thoughts = [item for item in response.output if isinstance(item, responses.ResponseReasoningItem)]
    return OfficialReply(
        text=response.output_text,
        thoughts="".join(event.delta for event in events if event.type == "response.reasoning_summary_text.delta"),
        calls=[(call.call_id, call.name, load(call.arguments)) for call in calls],
        finish=endings[reason] if reason else "tool_calls" if calls else "stop",
        usage=usage
        and Usage(
            input=usage.input_tokens,
            output=usage.output_tokens,
            cached=usage.input_tokens_details.cached_tokens,
            cache_written=usage.input_tokens_details.cache_write_tokens,
            reasoning=usage.output_tokens_details.reasoning_tokens,
        ),
        state=[item.model_dump(exclude_none=True) for item in thoughts],
    )


def ask_messages(server: ModelServer) -> OfficialReply:
    """Stream Anthropic messages."""
    import anthropic

    endings = {"end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length", "refusal": "refused"}
    with (
        anthropic.Anthropic(base_url=server.root, api_key="k", max_retries=0) as client,
        client.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}]) as stream,
    ):
        message = stream.get_final_message()
    usage, blocks = message.usage, message.content
    cached, cache_writes = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
    details = usage.output_tokens_details
    kinds = ("thinking", "redacted_thinking")
    return OfficialReply(
        text="".join(block.text for block in blocks if block.type == "text"),
        thoughts="".join(block.thinking for block in blocks if block.type == "thinking"),
        calls=[(block.id, block.name, cast("Json", block.input)) for block in blocks if block.type == "tool_use"],
        finish=endings[str(message.stop_reason)],
        usage=Usage(
            input=usage.input_tokens + cached + cache_writes,
            output=usage.output_tokens,
            cached=cached,
            cache_written=cache_writes,
            reasoning=details.thinking_tokens if details else 0,
        ),
        state=[block.model_dump(exclude_none=True) for block in blocks if block.type in kinds],
    )


def ask_gemini(server: ModelServer) -> OfficialReply:
    """Stream Gemini's generateContent."""
    from google import genai
    from google.genai import types

    endings = {"MAX_TOKENS": "length", "SAFETY": "filtered"}
    options = types.HttpOptions(base_url=server.root, api_version="v1beta")
    with genai.Client(api_key="k", http_options=options) as client:
        stream = client.models.generate_content_stream(model="m", contents="hi")  # pyright: ignore[reportUnknownMemberType] - it takes pictures of a package that is not here
        chunks: list[GenerateContentResponse] = list(stream)
    candidates = [candidate for chunk in chunks for candidate in chunk.candidates or ()]
    parts = [part for one in candidates for part in (one.content and one.content.parts) or ()]
    calls = [call for part in parts if (call := part.function_call)]
    reason, usage = candidates[-1].finish_reason, chunks[-1].usage_metadata
    assert reason and usage
    thoughts = usage.thoughts_token_count or 0
    return OfficialReply(
        text="".join(part.text or "" for part in parts if not part.thought),
        thoughts="".join(part.text or "" for part in parts if part.thought),
        calls=[(call.id, call.name, call.args) for call in calls],
        finish=endings.get(reason.value, "tool_calls" if calls else "stop"),
        usage=Usage(
            input=usage.prompt_token_count or 0,
            output=(usage.candidates_token_count or 0) + thoughts,
            cached=usage.cached_content_token_count or 0,
            reasoning=thoughts,
        ),
        state=[base64.b64encode(part.thought_signature).decode() for part in parts if part.thought_signature],
    )


OFFICIAL: Mapping[WireName, Callable[[ModelServer], OfficialReply]] = {
    "openai": ask_chat,
    "openai-responses": ask_responses,
    "anthropic": ask_messages,
    "gemini": ask_gemini,
}


def send_chat(server: ModelServer, body: Mapping[str, object]) -> None:
    """Send a body of chat completions."""
    import openai

    with openai.OpenAI(base_url=server.url, api_key="k", max_retries=0) as client:
        list(cast("Callable[..., Iterable[object]]", client.chat.completions.create)(**body))


def send_responses(server: ModelServer, body: Mapping[str, object]) -> None:
    """Send a body of OpenAI Responses."""
    import openai

    with openai.OpenAI(base_url=server.url, api_key="k", max_retries=0) as client:
        list(cast("Callable[..., Iterable[object]]", client.responses.create)(**body))


def send_messages(server: ModelServer, body: Mapping[str, object]) -> None:
    """Send a body of Anthropic messages."""
    import anthropic

    with anthropic.Anthropic(base_url=server.root, api_key="k", max_retries=0) as client:
        list(cast("Callable[..., Iterable[object]]", client.messages.create)(**body))


def send_gemini(server: ModelServer, body: Mapping[str, object]) -> None:
    """Send a body of Gemini's, taken apart into what its client asks for."""
    from google import genai
    from google.genai import types

    fields = {name: body[name] for name in ("systemInstruction", "tools", "toolConfig") if name in body}
    settings = fields | cast("dict[str, object]", body["generationConfig"])
    contents = TypeAdapter(list[types.Content]).validate_json(json.dumps(body["contents"]))
    config = types.GenerateContentConfig.model_validate_json(json.dumps(settings))
    options = types.HttpOptions(base_url=server.root, api_version="v1beta")
    with genai.Client(api_key="k", http_options=options) as client:
        list(client.models.generate_content_stream(model="m", contents=contents, config=config))  # pyright: ignore[reportUnknownMemberType] - it takes pictures of a package that is not here


SEND: Mapping[WireName, Callable[[ModelServer, Mapping[str, object]], None]] = {
    "openai": send_chat,
    "openai-responses": send_responses,
    "anthropic": send_messages,
    "gemini": send_gemini,
}
