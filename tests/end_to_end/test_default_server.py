"""A server that was told nothing but its model: who answers there (C4), and in which zone (P1)."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import Json
from recto.testing.client import RUNS, TOKEN, HttpReply, ask, parse_events, request
from recto.testing.model_server import Answer, ModelServer
from tests.api.forms import FORM, file, form_of
from tests.api.protocol_examples import PICTURE
from tests.end_to_end.files import ATTACHMENTS, rows
from tests.end_to_end.world import ServerHere
from tests.files.heads import PNG

pytestmark = pytest.mark.full

TIME = re.compile(r"# Current time\n([0-9-]+ [0-9:]+)")
AN_AGENT = "---\ntimezone: Asia/Tokyo\n---\nYou are in Tokyo.\n"
FOREIGN = "https://storage.example.com/agent-inputs/user-123/image.png?signature=xxx"


class DefaultServer(ServerHere):
    """The server, and a model that sees pictures."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.model = ModelServer(lambda _: Answer(text="Well."))
        self.data = folder

    def start(self, **settings: str) -> None:
        known = {"port": str(self._port), "data": str(self.data), "model": "openai:sees", "token": TOKEN, **settings}
        ours = {f"RECTO_{name.upper()}": value for name, value in known.items()}
        # A machine in Kathmandu: no zone else is so far from UTC.
        self.begin({**ours, "OPENAI_BASE_URL": self.model.url, "OPENAI_API_KEY": "sk-1", "TZ": "Asia/Kathmandu"})

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> HttpReply:
        return request(self.url, method, path, body, **headers)

    def answering(self, reply: HttpReply) -> str:
        """The agent of a run that was streamed, once it has ended well."""
        events = [sent.event for sent in parse_events(iter(reply.body.splitlines(keepends=True)))]
        assert events[-1]["type"] == "RUN_FINISHED", reply.body
        return str(self.ask("GET", f"{RUNS}/{events[0]['runId']}").json["agent"])

    def run(self, body: object) -> HttpReply:
        return self.ask("POST", RUNS, body, accept="text/event-stream")

    def offset(self, reply: HttpReply) -> timedelta:
        """How far from UTC the time was that the model was told in a turn."""
        self.answering(reply)
        found = TIME.search(str(server_words(self.model.requests[-1].page)))
        assert found
        ahead = datetime.fromisoformat(found[1]).replace(tzinfo=UTC) - datetime.now(UTC)
        return timedelta(minutes=15 * round(ahead / timedelta(minutes=15)))

    def chat(self, **body: Json) -> HttpReply:
        return self.ask("POST", "/api/v1/chat", body)


def server_words(page: Mapping[str, Json]) -> Json:
    """The user message of a page."""
    return cast("list[Mapping[str, Json]]", page["messages"])[-1]["content"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DefaultServer]:
    made = DefaultServer(tmp_path_factory.mktemp("default"))
    with made.model:
        made.start()
        try:
            yield made
        finally:
            made.end(kill=True)


def test_C4_the_protocol_s_request_with_a_picture_works_and_so_does_its_upload_without_an_agent(server: DefaultServer):
    reply = server.ask("POST", ATTACHMENTS, form_of(file("image.png", PNG)), content_type=FORM)
    (row,) = rows(reply.json["attachments"])
    assert "error" not in row, reply.body
    reply = server.run(PICTURE.replace(FOREIGN, str(row["url"])).encode())
    assert server.answering(reply) == "chat"
    (_, words), (_, picture) = [part.values() for part in rows(server_words(server.model.requests[-1].page))]
    assert str(words).endswith("</system-reminder>\n\n这张图片里的内容是什么?")
    assert "<name>image.png</name>\n<type>image</type>" in str(words)
    assert "image.png" in str(picture) or "data:image/png;base64," in str(picture)
    # As it stands it names a url of nobody's.
    assert server.run(PICTURE.replace("run-002", "run-004").encode()).status == 422


def test_S10_a_birth_that_cannot_be_is_refused_without_naming_an_agent_too(server: DefaultServer):
    for birth in ({"date": "1990-02-30"}, {"date": "2190-01-01"}, {"date": "1990-05-15", "time": "25:00"}):
        reply = server.ask("PATCH", "/api/v1/profile", {"birth_info": birth})
        assert (reply.status, "profile: birth_info: " in str(reply.json["detail"])) == (422, True)
    assert server.ask("PATCH", "/api/v1/profile", {"birth_info": {"date": "1990-02-28"}}).status == 200


def test_P1_without_a_word_the_zone_of_a_turn_is_the_machine_s(server: DefaultServer):
    assert server.offset(server.run(ask("hi"))) == timedelta(hours=5, minutes=45)
    assert server.offset(server.chat(message="hi")) == timedelta(hours=5, minutes=45)
    assert server.offset(server.chat(message="hi", timezone="Asia/Tokyo")) == timedelta(hours=9)
    assert server.chat(message="hi", timezone="Tokyo").status == 422


def test_P1_the_request_s_zone_wins_then_the_agent_s_then_the_server_s(server: DefaultServer, tmp_path: Path):
    (tmp_path / "tokyo").mkdir()
    (tmp_path / "tokyo" / "AGENT.md").write_text(AN_AGENT, encoding="utf-8")
    server.end()
    server.start(timezone="Asia/Kolkata", agents=str(tmp_path))
    assert server.offset(server.run(ask("hi"))) == timedelta(hours=5, minutes=30)
    assert server.offset(server.run(ask("hi", forwardedProps={"agent": "tokyo"}))) == timedelta(hours=9)
    asked = ask("hi", forwardedProps={"agent": "tokyo", "timezone": "Pacific/Kiritimati"})
    assert server.offset(server.run(asked)) == timedelta(hours=14)
