"""Provider formats, each both ways. Nothing else knows them.

- `base`: what the page has to know of a format, and where a page goes
- `content`: what of a message formats have in common
- `openai`: OpenAI chat completions
- `openai_responses`: OpenAI Responses
- `anthropic`: Anthropic messages
- `gemini`: Gemini's generateContent
- `formats`: the formats by their names, and conversations in and out of them
"""
