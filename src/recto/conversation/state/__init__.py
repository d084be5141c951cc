"""The state that a thread shares with its clients."""
