"""HttpAgent with files in its messages, as bytes: the model sees them, they are sent again, bad ones are told."""

import base64

from recto.conversation.json import Json
from tests.api.scripted_server import PLAIN, Scripted, page_messages
from tests.clients.agents import ClientMaker, rows
from tests.clients.scripts import model_page

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
NOTES = base64.b64encode(b"The lighthouse was built in 1848.").decode()


def part(kind: str, mime: str, data: str, name: str) -> Json:
    return {"type": kind, "source": {"type": "data", "value": data, "mimeType": mime}, "metadata": {"filename": name}}


def words(text: str) -> Json:
    return {"type": "text", "text": text}


def test_P15_files_come_along_as_bytes_and_are_stored_once(make: ClientMaker, server: Scripted):
    client = make()
    files = [part("image", "image/png", PNG, "dot.png"), part("document", "text/plain", NOTES, "notes.txt")]
    first = client.say([words("look"), *files])
    assert (first.failed, list(first.warned)) == (None, [])
    assert "notes.txt" in str(page_messages(server.model.requests[-1]))
    assert first.read_texts[-1] == f"assistant: {PLAIN.text}"
    state = client.say("and now?")
    assert state.failed is None
    first_of_history = server.rows(f"/history?threadId={client.thread}", "messages")[0]
    assert [file["name"] for file in rows(first_of_history["files"])] == ["dot.png", "notes.txt"]
    assert model_page(server)[-1] == "user: and now?"


def test_P15_a_part_that_cannot_be_used_is_told_and_the_run_goes_on(make: ClientMaker, server: Scripted):
    client = make()
    state = client.say([words("look"), part("image", "image/png", NOTES, "no-picture.png")])
    assert (state.failed, list(state.warned)) == (None, [])
    assert state.read_texts[-1] == f"assistant: {PLAIN.text}"
    assert "no-picture.png" in str(page_messages(server.model.requests[-1]))
    results = [event for event in state.events if event["type"] == "ACTIVITY_SNAPSHOT"]
    assert [event["activityType"] for event in results] == ["recto.attachments"]
    assert "no-picture.png" in str(results[0]["content"])
    assert client.say("never mind").failed is None
