"""What a page in a browser could send is refused while there are no accounts; programs of this machine come in."""

from collections.abc import Generator

import pytest

from recto.testing.client import RUNS, ask, request, start
from recto.testing.process import ServerProcess


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    with ServerProcess.serve(tmp_path_factory.mktemp("gate"), {"RECTO_MODEL": "demo"}) as server:
        yield server.url


@pytest.mark.parametrize("kind", ["text/plain", "", "application/x-www-form-urlencoded", "application/jsonp", "json"])
def test_a_body_that_is_not_sent_as_json_is_refused(url: str, kind: str):
    reply = request(url, "POST", RUNS, ask("hi"), content_type=kind)
    assert (reply.status, reply.json["code"]) == (415, "wrong_media")
    assert "application/json" in str(reply.json["detail"])


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8", "Application/JSON;x=y"])
def test_json_is_taken_with_or_without_parameters(url: str, kind: str):
    assert request(url, "POST", RUNS, ask("hi"), content_type=kind).status == 202


def test_a_post_without_a_body_needs_no_content_type(url: str):
    run = start(url, ask("hi"))
    assert request(url, "POST", f"{RUNS}/{run}/cancel", content_type="").status == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8787", "127.0.0.1.evil.example", "localhost@evil", ""])
@pytest.mark.parametrize(("method", "path"), [("GET", "/healthz"), ("POST", RUNS)])
def test_a_name_that_is_not_of_this_machine_is_refused(url: str, host: str, method: str, path: str):
    reply = request(url, method, path, host=host)
    assert (reply.status, reply.json["code"]) == (421, "wrong_host")
    assert reply.headers["content-type"] == "application/problem+json"
    assert "127.0.0.1" in str(reply.json["detail"])


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST:1", "[::1]", "[::1]:8787"])
def test_every_name_of_this_machine_is_known_under_any_port(url: str, host: str):
    assert request(url, "GET", "/healthz", host=host).status == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost.evil.example"])
def test_a_page_of_elsewhere_may_not_post(url: str, origin: str):
    run = start(url, ask("hi"))
    reply = request(url, "POST", f"{RUNS}/{run}/cancel", origin=origin)
    assert (reply.status, reply.json["code"]) == (403, "wrong_origin")


def test_a_page_of_this_machine_may_post(url: str):
    assert request(url, "POST", RUNS, ask("hi"), origin="http://localhost:3000").status == 202


@pytest.mark.parametrize("name", ["calculator", "current_time"])
def test_a_tool_of_the_client_with_the_name_of_one_of_the_agents_is_refused(url: str, name: str):
    reply = request(url, "POST", RUNS, ask("hi", tools=[{"name": "show_map"}, {"name": name}]))
    assert (reply.status, reply.json["code"]) == (422, "invalid_input")
    assert f"tools[1].name: {name!r} is a tool of the agent itself" in str(reply.json["detail"])


def test_a_tool_of_the_client_with_a_name_of_its_own_is_taken(url: str):
    assert request(url, "POST", RUNS, ask("hi", tools=[{"name": "show_map"}])).status == 202
