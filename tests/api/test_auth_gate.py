"""The gate around a small application: who comes in, from which pages, and what every answer carries."""

from collections.abc import AsyncGenerator, Callable

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recto.api.access.audit import audit
from recto.api.access.auth import Authenticator
from recto.api.access.gate import OPEN_PATHS, Gate, GateRules
from recto.api.backend import user_of
from recto.config.access_settings import AuthSettings
from recto.errors import SettingsError
from tests.support.client import HttpReply

TOKEN, ANNA, BERT = "local-token-of-a-test", "anna-key-0123456789", "bert-key-0123456789"
KEYS = f"anna:{ANNA},bert:{BERT}:read"
PAGE = "https://app.example"
FILES = "/files/"


async def who(request: Request) -> Response:
    return JSONResponse({"user": user_of(request).name})


async def public(_request: Request) -> Response:
    return JSONResponse({"open": True}, headers={"cache-control": "max-age=60", "vary": "Accept"})


async def page(_request: Request) -> Response:
    return HTMLResponse("<p>", headers={"content-security-policy": "default-src 'self'"})


async def stream(_request: Request) -> Response:
    async def pieces() -> AsyncGenerator[bytes]:
        yield b"data: 1\n\n"
        yield b"data: 2\n\n"

    return StreamingResponse(pieces(), headers={"content-type": "text/event-stream", "cache-control": "no-cache"})


async def foreign(request: Request) -> Response:
    audit(request, "foreign_thread", status=404)
    return Response(status_code=404)


METHODS = ["GET", "POST", "PATCH", "DELETE", "OPTIONS"]
ROUTES = [
    *[Route(path, who, methods=METHODS) for path in ("/who", "/upload", "/docs/more", "/filesystem")],
    *[Route(path, public, methods=["GET", "POST"]) for path in OPEN_PATHS],
    Route("/files/{name}", public, methods=["GET", "POST"]),
    Route("/page", page),
    Route("/stream", stream),
    Route("/foreign/{name:path}", foreign),
]


class Time:
    """A clock that the test moves."""

    def __init__(self, now: float = 0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def gate(rules: GateRules | None = None, ticks: Callable[[], float] | None = None, **auth: str) -> Gate:
    settings = AuthSettings(**({"token": TOKEN, "api_keys": KEYS} | auth))  # pyright: ignore[reportArgumentType] - all of them are texts
    rules = rules or GateRules(open_prefixes=(FILES,), multipart_paths=frozenset({"/upload"}))
    return Gate(Starlette(routes=ROUTES), Authenticator(settings), rules, ticks or Time())


async def ask(
    app: ASGIApp, method: str, path: str, credential: str | None = TOKEN, peer: str = "10.0.0.1", **headers: str
) -> HttpReply:
    header_fields = {"host": "127.0.0.1:8787"} | {name.replace("_", "-"): value for name, value in headers.items()}
    header_fields |= {"authorization": f"Bearer {credential}"} if credential is not None else {}
    path, _, query = path.partition("?")
    messages: list[Message] = []
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in header_fields.items()],
        "client": (peer, 1),
        "server": ("127.0.0.1", 8787),
    }

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        messages.append(message)

    await app(scope, receive, send)
    assert [message["type"] for message in messages][:1] == ["http.response.start"]
    reason: dict[str, str] = {}
    for name, value in messages[0]["headers"]:
        reason[name.decode()] = ", ".join(filter(None, [reason.get(name.decode()), value.decode()]))
    body = b"".join(message.get("body", b"") for message in messages[1:])
    return HttpReply(status=messages[0]["status"], headers=reason, body=body)


# Who comes in


@pytest.mark.parametrize("path", ["/who", "/docs/more", "/filesystem", "/nowhere", "/healthz/", "//healthz", "//"])
@pytest.mark.parametrize("credential", [None, "a-wrong-one-of-its-length"])
async def test_C3_without_a_good_credential_every_other_path_is_closed(path: str, credential: str | None):
    answer = await ask(gate(), "GET", path, credential)
    assert (answer.status, answer.json["code"]) == (401, "unauthorized")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.headers["content-type"] == "application/problem+json"
    assert "Send `Authorization: Bearer X`" in str(answer.json["detail"])


@pytest.mark.parametrize("path", [*sorted(OPEN_PATHS), "/files/a.png?signature=x"])
@pytest.mark.parametrize("credential", [None, "a-wrong-one-of-its-length", TOKEN])
async def test_C3_open_paths_and_signed_urls_need_none(path: str, credential: str | None):
    assert (await ask(gate(), "GET", path, credential)).json == {"open": True}


async def test_C3_what_is_open_is_open_for_reading_only():
    assert (await ask(gate(), "POST", "/files/a.png", None)).status == 401
    assert (await ask(gate(), "POST", "/files/a.png", TOKEN)).status == 200


@pytest.mark.parametrize("name", ["token", "access_token", "authorization", "key"])
async def test_C3_a_credential_in_the_query_opens_nothing(name: str):
    assert (await ask(gate(), "GET", f"/who?{name}={TOKEN}", None)).status == 401


@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE", "PUT", "MADE-UP"])
async def test_C3_a_user_that_may_only_read_changes_nothing(method: str):
    answer = await ask(gate(), method, "/who", BERT)
    assert (answer.status, answer.json["code"]) == (403, "read_only")
    assert (await ask(gate(), "HEAD", "/who", BERT)).status == 200


async def test_C3_keys_that_cannot_be_fetched_are_told_as_not_yet():
    app = gate(jwt_jwks_url="http://127.0.0.1:1/keys")
    header = "eyJhbGciOiJSUzI1NiIsImtpZCI6IngifQ"
    answer = await ask(app, "GET", "/who", f"{header}.e30.AAAA")
    assert (answer.status, answer.json["code"], answer.headers["retry-after"]) == (503, "auth_unavailable", "5")
    assert (await ask(app, "GET", "/who", TOKEN)).status == 200


async def test_C3_a_websocket_is_refused_and_a_lifespan_handed_on():
    messages: list[Message] = []

    async def receive() -> Message:
        return {"type": "lifespan.startup"} if not messages else {"type": "lifespan.shutdown"}

    async def send(message: Message) -> None:
        messages.append(message)

    await gate()({"type": "websocket", "path": "/who", "headers": []}, receive, send)
    assert messages == [{"type": "websocket.close", "code": 1008}]
    await gate()({"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}, receive, send)
    assert messages[-1]["type"] == "lifespan.shutdown.complete"


# Host, Origin, content-type


async def test_C2_the_public_address_is_a_host_and_an_origin_of_its_own():
    app = gate(GateRules(public_url="https://Recto.example/here"))
    for host in ("recto.example", "RECTO.example:443", "localhost:1"):
        assert (await ask(app, "GET", "/who", host=host)).status == 200
    for host in ("recto.example:80", "evil.example", "recto.example.evil", ""):
        assert (await ask(app, "GET", "/who", host=host)).status == 421
    assert (await ask(app, "POST", "/who", origin="https://recto.example")).status == 200
    assert (await ask(app, "POST", "/who", origin="http://recto.example")).status == 403


@pytest.mark.parametrize(
    ("host", "status"),
    [
        *[
            (host, 421)
            for host in ("evil.example", "evil.example:8787", "127.0.0.1.evil.example", "localhost@evil", "")
        ],
        *[(host, 200) for host in ("127.0.0.1", "localhost", "LOCALHOST:1", "[::1]", "[::1]:8787")],
    ],
)
async def test_C2_only_names_of_this_machine_are_known_under_any_port(host: str, status: int):
    for method, path in (("GET", "/healthz"), ("POST", "/who")):
        assert (await ask(gate(), method, path, host=host)).status == status


async def test_C2_a_server_others_can_reach_is_called_by_any_name():
    app = gate(GateRules(is_loopback=False))
    assert (await ask(app, "GET", "/who", host="whatever.example")).status == 200
    assert (await ask(app, "POST", "/who", host="whatever.example", origin="https://whatever.example")).status == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost.evil.example"])
async def test_C2_a_page_of_elsewhere_changes_nothing_on_this_machine(origin: str):
    for method in ("POST", "PATCH", "DELETE"):
        answer = await ask(gate(), method, "/who", origin=origin)
        assert (answer.status, answer.json["code"]) == (403, "wrong_origin")
    assert (await ask(gate(), "POST", "/who", origin="http://localhost:3000")).status == 200


@pytest.mark.parametrize(
    ("media", "status"),
    [
        *[
            (media, 415)
            for media in ("text/plain", "", "application/x-www-form-urlencoded", "application/jsonp", "json")
        ],
        *[(media, 200) for media in ("application/json", "application/json; charset=utf-8", "Application/JSON;x=y")],
    ],
)
async def test_C2_a_body_is_json_with_or_without_parameters(media: str, status: int):
    assert (await ask(gate(), "POST", "/who", content_type=media, content_length="9")).status == status


@pytest.mark.parametrize(
    ("method", "path", "media", "status"),
    [
        ("PATCH", "/who", "application/merge-patch+json", 200),
        ("POST", "/who", "application/merge-patch+json", 415),
        *[(method, "/upload", "multipart/form-data; boundary=x", 200) for method in ("POST", "PATCH", "DELETE")],
        *[(method, "/who", "multipart/form-data; boundary=x", 415) for method in ("POST", "PATCH", "DELETE")],
        ("POST", "/upload", "application/json", 200),
        ("POST", "/upload", "text/plain", 415),
    ],
)
async def test_S6_P9_patches_and_forms_are_taken_where_they_mean_something(
    method: str, path: str, media: str, status: int
):
    answer = await ask(gate(), method, path, content_type=media, content_length="9")
    assert (answer.status, answer.json.get("code")) == (status, "wrong_media" if status == 415 else None)


BAD_URLS = ("", "recto.example", "ftp://x", "https://", "https://u@x", "https://x?y", "https://x#y", "https://x:p")
BAD_NAMES = ("*", "X-One,*", "two words", "X-One,,X-Two", "X-One\r\nX-Two")
BAD_ORIGINS = {
    "*": "any web page could",
    f"{PAGE},*": "any web page could",
    "app.example": "an origin looks like",
    f"{PAGE}/": "no path",
    f"{PAGE},": "an origin looks like",
    "null": "an origin looks like",
    "https://*.example": "an origin looks like",
    "https://APP.example": "lower case",
}


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        *[({"public_url": url}, "RECTO_PUBLIC_URL") for url in BAD_URLS],
        *[({"cors_headers": names}, "RECTO_CORS_HEADERS") for names in BAD_NAMES],
        *[({"cors_origins": one}, f"RECTO_CORS_ORIGINS.*{problem}") for one, problem in BAD_ORIGINS.items()],
    ],
)
def test_C2_addresses_origins_and_headers_that_are_none_stop_the_start(rules: dict[str, str], problem: str):
    with pytest.raises(SettingsError, match=problem):
        GateRules(**rules)  # pyright: ignore[reportArgumentType] - all of them are texts


# CORS


def shared() -> Gate:
    return gate(GateRules(cors_origins=f"{PAGE}, http://localhost:3000"))


async def preflight(app: Gate, origin: str = PAGE) -> HttpReply:
    return await ask(app, "OPTIONS", "/who", None, origin=origin, access_control_request_method="POST")


async def test_C2_without_origins_no_page_is_told_anything():
    answer = await preflight(gate())
    assert answer.status == 401
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert "vary" not in answer.headers


async def test_C2_a_named_origin_is_told_what_it_may_send():
    answer = await preflight(shared())
    assert answer.status == 204
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert "DELETE" in answer.headers["access-control-allow-methods"]
    allowed = "Authorization, Content-Type, Last-Event-ID, X-CopilotCloud-Public-Api-Key"
    assert answer.headers["access-control-allow-headers"] == allowed
    assert answer.headers["vary"] == "Origin"
    assert "access-control-allow-credentials" not in answer.headers


async def test_P15_an_app_may_send_headers_of_its_own_and_cookies_where_settings_say_so():
    rules = GateRules(cors_origins=PAGE, cors_headers="X-Tenant, X-Request-Id", cors_credentials=True)
    answer = await preflight(gate(rules))
    assert answer.headers["access-control-allow-headers"].endswith("Api-Key, X-Tenant, X-Request-Id")
    response = await ask(gate(rules), "GET", "/who", origin=PAGE)
    assert [answer.headers["access-control-allow-credentials"] for answer in (answer, response)] == ["true", "true"]
    assert "access-control-allow-credentials" not in (await ask(gate(rules), "GET", "/who")).headers


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", "application/problem+json"),
        ("*/*", "application/problem+json"),
        ("application/*;q=0.5", "application/problem+json"),
        ("application/json, application/problem+json", "application/problem+json"),
        ("application/json", "application/json"),
        ("Application/JSON;q=0.9, */*", "application/json"),
        ("text/event-stream", "application/json"),
    ],
)
async def test_P15_a_refusal_is_called_what_the_client_reads_and_has_a_message(accept: str, kind: str):
    answer = await ask(gate(), "GET", "/who", None, accept=accept)
    assert (answer.status, answer.headers["content-type"]) == (401, kind)
    assert answer.json["message"] == answer.json["detail"] != ""


@pytest.mark.parametrize("origin", ["https://evil.example", f"{PAGE}.evil", f"{PAGE}:444", "null", "http://localhost"])
async def test_C2_another_origin_is_told_nothing(origin: str):
    answer = await preflight(shared(), origin)
    assert answer.status == 403
    assert "access-control-allow-origin" not in answer.headers
    assert answer.headers["vary"] == "Origin"


async def test_C2_answers_and_refusals_reach_the_page_and_no_cache_mixes_them_up():
    good = await ask(shared(), "POST", "/who", origin=PAGE)
    rejection = await ask(shared(), "GET", "/who", None, origin=PAGE)
    assert (good.status, rejection.status) == (200, 401)
    for answer in (good, rejection):
        assert answer.headers["access-control-allow-origin"] == PAGE
        assert answer.headers["access-control-expose-headers"] == "Retry-After, recto-task-id"
        assert "cross-origin-resource-policy" not in answer.headers
    other = await ask(shared(), "GET", "/healthz", None)
    assert other.headers["vary"] == "Accept, Origin"
    assert "access-control-allow-origin" not in other.headers
    assert (await ask(shared(), "OPTIONS", "/who", None)).status == 401


# Headers


@pytest.mark.parametrize("credential", [None, TOKEN])
async def test_C2_every_answer_keeps_browsers_from_harm_and_most_from_caches(credential: str | None):
    caches = dict[str, str]()
    for path in ("/who", "/stream", "/nowhere", "/healthz"):
        answer = await ask(gate(), "GET", path, credential)
        caches[path] = answer.headers["cache-control"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert "strict-transport-security" not in answer.headers
    own = {"/stream": "no-cache" if credential else "no-store", "/healthz": "max-age=60"}
    assert caches == {"/who": "no-store", "/nowhere": "no-store", **own}
    assert (await ask(gate(), "GET", "/page")).headers["content-security-policy"] == "default-src 'self'"


async def test_C2_a_server_behind_https_is_only_reached_that_way_from_then_on():
    app = gate(GateRules(public_url="https://recto.example"))
    assert (await ask(app, "GET", "/who")).headers["strict-transport-security"] == "max-age=31536000"
    app = gate(GateRules(public_url="http://recto.example"))
    assert "strict-transport-security" not in (await ask(app, "GET", "/who")).headers


async def test_C2_an_error_of_ours_is_answered_without_its_words_and_with_all_headers():
    async def fail(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise RuntimeError("a secret of ours")

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        with pytest.raises(RuntimeError, match="a secret of ours"):
            await Gate(fail, Authenticator(AuthSettings(token=TOKEN)), GateRules())(scope, receive, send)

    answer = await ask(guarded, "GET", "/")
    assert (answer.status, answer.json["code"], b"secret" in answer.body) == (500, "internal", False)
    assert answer.headers["x-content-type-options"] == "nosniff"
