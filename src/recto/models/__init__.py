"""The only room that talks to model providers: protocol, endpoint, auth. Refuses to decide what is sent.

- `anthropic_messages`: anthropic messages as they stream
- `backoff`: how long to wait before a failed model call is made again
- `choose`: A model by its name in the settings
- `deltas`: deltas that came together told as one
- `demo`: ...
- `endpoint`: A model behind an endpoint over HTTP
- `faults`: what a provider's refusal means
- `openai_chat`: openAI chat completions as they stream
- `ports`: what a model is to the rest
- `prices`: what a model call cost, by a dated list of prices
- `request_options`: what an agent asks of a model, in the words of each provider
- `sse`: server-sent events from bytes in any fragmentation
- `wire_protocol`: what talking to a provider takes
"""
