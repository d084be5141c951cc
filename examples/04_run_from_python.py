"""Two turns from Python: what happens as it happens, the answer, and what it used. A lost connection is gone on with.

Needs a server (`recto serve`): one started in this folder is found, another is named in RECTO_URL and RECTO_TOKEN.
"""

from recto.client import Client

client = Client(agent="chat")
turn = client.chat("What is 12 * 7, and what time is it?")
for event in turn.events():
    match event:
        case {"type": "TOOL_CALL_START", "toolCallName": name}:
            print(f"calls {name}")
        case {"type": "TOOL_CALL_RESULT", "content": content}:
            print(f"gets {content}")
        case {"type": "TEXT_MESSAGE_CONTENT", "delta": delta}:
            print(delta, end="", flush=True)
        case _:
            pass
print(f"\n{turn.outcome}: {turn.usage['totalTokens']} tokens")

# The thread goes on: the server has what was said before.
for words in client.chat("What is 3 * 7?"):
    print(words, end="", flush=True)
print()
