"""Ask a server in ten lines: words as they come, and a tool of this program that the model calls."""

from recto.client import Client


def stock(item: str) -> int:
    """How many of an item are in stock."""
    return {"milk": 3}.get(item, 0)


client = Client(agent="chat", tools=[stock])
# A real model needs the question alone; the demo model makes calls that are written out.
for words in client.chat('Is there milk? stock({"item": "milk"})'):
    print(words, end="", flush=True)
