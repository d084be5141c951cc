"""Provider and client formats, each both ways: OpenAI chat, Anthropic messages, AG-UI. Nothing else knows them.

- `anthropic`: anthropic messages, both ways
- `formats`: conversations in and out of a named wire format
- `openai`: openAI chat completions, both ways
"""
