"""Built-in tools: time, arithmetic, skills, recall."""
