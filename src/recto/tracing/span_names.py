"""Names of spans, attributes and events, from OpenTelemetry's unfinished conventions for generative AI.

Names that the conventions lack begin with `recto.`.
"""

from __future__ import annotations

# Operations. The name of a span is an operation and its object.
INVOKE_AGENT, CHAT, EXECUTE_TOOL = "invoke_agent", "chat", "execute_tool"

OPERATION = "gen_ai.operation.name"
AGENT = "gen_ai.agent.name"
CONVERSATION = "gen_ai.conversation.id"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
STREAM = "gen_ai.request.stream"
FINISH_REASONS = "gen_ai.response.finish_reasons"
FIRST_CHUNK_SECONDS = "gen_ai.response.time_to_first_chunk"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITTEN_TOKENS = "gen_ai.usage.cache_creation.input_tokens"
REASONING_TOKENS = "gen_ai.usage.reasoning.output_tokens"
TOOL_NAME = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
TOOL_CALL = "gen_ai.tool.call.id"
ERROR_TYPE = "error.type"

# Attributes with content, set only if a setting allows it.
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"

RUN = "recto.run.id"
RUN_NAME = "recto.run.name"
ATTEMPT = "recto.run.attempt"
OUTCOME = "recto.run.outcome"
QUEUE_SECONDS = "recto.queue.seconds"
CALL_NUMBER = "recto.call.number"
CALL_PURPOSE = "recto.call.purpose"
PAGE_TOKENS = "recto.page.tokens"
FOLDED_RESULTS = "recto.fold.results"
SAVED_TOKENS = "recto.fold.tokens_saved"
PRICE = "recto.price"
CURRENCY = "recto.currency"
BROKEN_OFF = "recto.broken_off"

RETRY = "recto.retry"
RETRY_FAILURES = "recto.retry.failures"
RETRY_SECONDS = "recto.retry.seconds"
