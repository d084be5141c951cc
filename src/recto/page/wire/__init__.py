"""Provider and client formats, each both ways: OpenAI chat, Anthropic messages, AG-UI. Nothing else knows them."""
