"""Models, and the only room that talks to their providers: protocol, endpoint, auth. Refuses to decide what is sent.

- `ports`: what a model is to the rest, and the pieces of its reply
- `choose`: providers, and a model by its name in the settings
- `wire_protocol`: what talking to a provider takes
- `openai_chat`: OpenAI chat completions: the address, what an agent asks for, and the reply as it streams
- `openai_responses_api`: OpenAI Responses: the address, what an agent asks for, and the reply as it streams
- `anthropic_messages`: Anthropic messages: the address, what an agent asks for, and the reply as it streams
- `gemini_content`: Gemini's generateContent: the address, what an agent asks for, and the reply as it streams
- `endpoint`: a model behind an endpoint over HTTP
- `upstream`: providers that requests of other agents are sent on to
- `http_client`: requests to a model's address over kept connections, answers as they come
- `sse`: server-sent events from bytes in any fragmentation
- `deltas`: deltas that came together, joined into one
- `faults`: what a provider's refusal means, and how long to wait before the call is made again
- `prices`: what a model call cost, by a dated list of prices
- `demo`: the built-in demo model
"""
