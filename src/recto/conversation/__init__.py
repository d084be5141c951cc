"""The conversation: messages, the log and its views, input rules, events and history. Pure."""
