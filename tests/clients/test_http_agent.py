"""HttpAgent of @ag-ui/client, newest and older, unchanged: whole histories, tools, edits, stops, faults."""

from recto.testing.model_server import Answer, Call
from tests.api.scripted_server import PLAIN, Scripted, page_messages
from tests.clients.agents import Client, result, tool, user
from tests.clients.node import NodeProcess

ASK = tool("ask", question={"type": "string"})


def url_of(server: Scripted) -> str:
    return f"{server.url}/api/v1/agent/ag-ui"


def client_of(node: NodeProcess, version: str, server: Scripted, **config: str) -> Client:
    return Client(node, version, url_of(server), **config)


def test_P15_a_first_turn_is_answered(node: NodeProcess, version: str, server: Scripted):
    seen = Client(node, version, f"{server.url}/api/v1/agent/runs").say("hello")
    assert seen.said == ["user: hello", f"assistant: {PLAIN.text}"]
    assert (seen.failed, seen.warned) == (None, [])
