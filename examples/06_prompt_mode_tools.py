"""Tools for a model that cannot call any: it is told of them in words and writes its calls as text.

Needs nothing: the server and the model are started here. The model is a scripted one, since the demo model has native
calls; what it is shown and what becomes of its words is what any model without them gets.
"""

import tempfile
from pathlib import Path

from recto.client import Client
from recto.testing.model_server import Answer, ModelServer
from recto.testing.process import TOKEN, ServerProcess

AGENTS = Path(__file__).parent / "agents"
SCRIPT = (
    Answer(text='Let me look.\n<tool_call>{"name": "stock", "arguments": {"item": "milk"}}</tool_call>'),
    Answer(text="There are 3 of milk."),
)

with tempfile.TemporaryDirectory() as data, ModelServer(SCRIPT) as model:
    environment = {"RECTO_MODEL": "compatible:plain", "RECTO_MODEL_URL": model.url}
    with ServerProcess.serve(Path(data), environment, "--agents", str(AGENTS)) as server:
        turn = Client(url=server.url, token=TOKEN, agent="plain").chat("Is there milk?")
        events = list(turn.events())
    first, second = [request.page for request in model.requests]

print(f"The request has a field for tools: {'tools' in first}. The system prompt ends:\n")
match first["messages"]:
    case [{"content": str(prompt)}, *_]:
        print(prompt[prompt.index("<!-- TOOLS_START -->") :])
    case _:
        print(first)
print("\nThe client hears of a call like any other:\n")
for event in events:
    match event:
        case {"type": "TEXT_MESSAGE_CONTENT", "delta": delta}:
            print(f"  says {delta}")
        case {"type": "TOOL_CALL_START", "toolCallName": name}:
            print(f"  calls {name}")
        case {"type": "TOOL_CALL_RESULT", "content": content}:
            print(f"  gets {content}")
        case _:
            pass
print("\nThe model gets the result as text:\n")
match second["messages"]:
    case [*_, {"content": str(result)}]:
        print(result)
    case _:
        print(second)
