"""Outbound fetches (D7): allowed and rejected URLs; no forbidden address receives a request."""

import gzip
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from threading import Event

import pytest

from recto.config.file_settings import OutboundSettings
from recto.errors import FileRefused, LimitReached, SettingsError
from recto.files.fetch.outbound import Outbound
from tests.files.a_web import Answering, Web, endless, http, leading, stalling
from tests.files.loop_clock import LoopClock
from tests.files.resolver import Table, TableResolver
from tests.waiting import settle

OPEN, FORBIDDEN = "127.0.0.1", "127.0.0.2"
NAMES: Table = {
    "files.example": [[OPEN]],
    "inside.example": [[FORBIDDEN]],
    "mixed.example": [[OPEN, FORBIDDEN]],
    "rebinding.example": [[OPEN], [FORBIDDEN]],
    "mapped.example": [["::ffff:127.0.0.1"]],
    "nothing.example": [[]],
}
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
USUAL = OutboundSettings(file_bytes=10_000)


@dataclass(frozen=True, kw_only=True)
class Came:
    url: str
    name: str
    mime_type: str | None
    body: bytes


class World:
    """An allowed server, a forbidden one, and the resolver."""

    def __init__(self, web: Web, inside: Web) -> None:
        self.web, self.inside = web, inside
        self.hosts: tuple[str, ...] = (f"*:{web.port}", f"*:{inside.port}")

    def outbound(self, settings: OutboundSettings = USUAL, resolver: TableResolver | None = None) -> Outbound:
        return Outbound(settings, resolve=resolver or TableResolver(NAMES), allowance=(f"{OPEN}/32",))

    def url(self, path: str = "/", host: str = "files.example") -> str:
        return f"http://{host}:{self.web.port}{path}"

    async def get(self, url: str, outbound: Outbound | None = None, most_bytes: int | None = None) -> Came:
        way = outbound or self.outbound()
        async with way.fetch(url, hosts=self.hosts, owner="ann", most_bytes=most_bytes) as got:
            body = b"".join([piece async for piece in got.pieces])
            return Came(url=got.url, name=got.name, mime_type=got.mime_type, body=body)

    async def refusal(self, url: str, outbound: Outbound | None = None) -> FileRefused:
        with pytest.raises(FileRefused) as error:
            await self.get(url, outbound)
        return error.value

    async def code(self, url: str, outbound: Outbound | None = None) -> str:
        return (await self.refusal(url, outbound)).code


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with Web(OPEN) as web, Web(FORBIDDEN) as inside:
        inside.answers["/"] = web.answers["/"] = http(b"hello", "Content-Type: text/plain")
        yield World(web, inside)
        assert inside.accepted == 0, "a forbidden address was connected to"


# Successful fetches


async def test_D7_a_file_is_fetched_with_its_name_and_type(world: World):
    world.web.answers["/a%20b"] = http(b"%PDF-1.7", "Content-Type: application/pdf; x=y")
    came = await world.get(world.url("/a%20b?x=%41+1#part"))
    assert (came.name, came.mime_type, came.body) == ("a b.pdf", "application/pdf; x=y", b"%PDF-1.7")
    assert world.web.paths == ["/a%20b?x=%41+1"]


async def test_D7_nothing_is_told_of_us_or_our_user(world: World):
    await world.get(world.url())
    lines = world.web.requests[0].strip().split("\r\n")[1:]
    text = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    assert text.pop("user-agent").startswith("recto ")
    assert text.pop("host") == f"files.example:{world.web.port}"
    assert text == {"accept": "*/*", "accept-encoding": "identity", "connection": "close"}


async def test_D7_redirects_are_followed_without_cookies_or_referrer(world: World):
    world.web.answers["/first"] = leading("/second", "Set-Cookie: a=b")
    world.web.answers["/second"] = leading(world.url("/third?q=1"), status="308 Permanent Redirect")
    world.web.answers["/third"] = http(b"there")
    outbound = world.outbound()
    came = await world.get(world.url("/first"), outbound)
    assert (came.body, came.url) == (b"there", world.url("/third?q=1"))
    await world.get(world.url("/third"), outbound)
    assert not any(word in request.lower() for request in world.web.requests for word in ("cookie", "referer"))


async def test_D7_five_redirects_are_followed_and_a_sixth_is_not(world: World):
    world.web.answers |= {f"/{place}": leading(f"/{place + 1}") for place in range(6)}
    world.web.answers["/6"] = http(b"the end")
    assert (await world.get(world.url("/1"))).body == b"the end"
    assert await world.code(world.url("/0")) == "redirects"
    world.web.answers |= {"/loop": leading("/loop"), "/nowhere": http(b"", status="302 Found")}
    assert await world.code(world.url("/nowhere")) == "redirects"
    assert await world.code(world.url("/loop")) == "redirects"
    assert world.web.paths.count("/loop") == 6


# Rejected URLs and addresses


async def test_D7_an_address_that_is_not_public_is_never_connected_to_and_all_are_told_alike(world: World):
    names = ["inside.example", "mixed.example", "mapped.example"]
    addresses = [FORBIDDEN, "127.0.0.3", "10.0.0.1", "169.254.169.254", "[fd00:ec2::254]", "[::1]", "[::]"]
    texts = set[str]()
    for host in [*names, *addresses]:
        for port in (world.inside.port, world.web.port):
            error = await world.refusal(f"http://{host}:{port}/")
            assert error.code == "private_address"
            texts.add(str(error).replace(host.strip("[]"), "HOST"))
    assert len(texts) == 1
    assert FORBIDDEN not in texts.pop()
    assert world.web.accepted == 0


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::ffff:127.0.0.1]", "[::1]", "0.0.0.0"])
async def test_D7_without_an_allowance_this_machine_is_not_asked(world: World, host: str):
    assert await world.code(world.url(host=host), Outbound(USUAL)) == "private_address"
    assert world.web.accepted == 0


@pytest.mark.parametrize("network", ["10.0.0.1/8", "10", "example.com", "", "*"])
def test_C2_a_network_that_is_none_stops_the_start(network: str):
    with pytest.raises(SettingsError, match=r"fetch_networks.*10\.0\.0\.0/8"):
        Outbound(allowance=(network,))


async def test_D7_a_name_that_stands_for_another_address_after_a_redirect_is_not_followed(world: World):
    world.web.answers["/again"] = leading("/again")
    assert await world.code(world.url("/again", "rebinding.example")) == "private_address"
    assert world.web.accepted == 1


@pytest.mark.parametrize(
    ("location", "code"),
    [
        ("http://inside.example:{inside}/", "private_address"),
        ("http://[::ffff:127.0.0.2]:{inside}/", "private_address"),
        ("http://user@files.example:{inside}/", "bad_url"),
        ("file:///etc/passwd", "bad_url"),
        ("http://files.example/", "host_not_allowed"),
    ],
)
async def test_D7_a_redirect_is_judged_like_the_first_url(world: World, location: str, code: str):
    world.web.answers["/away"] = leading(location.format(inside=world.inside.port))
    assert await world.code(world.url("/away")) == code
    assert world.web.accepted == 1


async def test_D7_a_server_does_not_ask_itself_not_by_a_redirect_either(world: World):
    world.web.answers["/away"] = leading(world.url("/own", "127.0.0.1"))
    own = f"http://127.0.0.1:{world.web.port}/base"
    for url in (world.url("/own", "127.0.0.1"), world.url("/away")):
        with pytest.raises(FileRefused) as error:
            async with world.outbound().fetch(url, hosts=world.hosts, own=own):
                pass
        assert error.value.code == "host_not_allowed"
    assert world.web.paths == ["/away"]


async def test_D7_hosts_that_are_not_named_are_not_even_looked_up(world: World):
    resolver = TableResolver(NAMES)
    with pytest.raises(FileRefused, match=r"no files are taken from files\.example") as error:
        async with world.outbound(resolver=resolver).fetch(world.url(), hosts=(f"other.example:{world.web.port}",)):
            pass
    assert (error.value.code, resolver.lookups) == ("host_not_allowed", [])


# Broken responses


async def test_D7_what_cannot_be_reached_says_so(world: World):
    async with Web() as deleted:
        port = deleted.port
    world.hosts = (*world.hosts, f"*:{port}")
    assert await world.code(f"http://files.example:{port}/") == "unreachable"
    assert await world.code(world.url(host="unknown.example")) == "unreachable"
    assert await world.code(world.url(host="nothing.example")) == "unreachable"
    # It never starts TLS.
    hasty = world.outbound(OutboundSettings(connect_seconds=0.05))
    assert await world.code(f"https://files.example:{world.web.port}/", hasty) == "unreachable"


@pytest.mark.parametrize("status", ["404 Not Found", "500 Oops", "206 Partial Content", "204 No Content"])
async def test_D7_an_answer_that_is_no_file_says_its_status(world: World, status: str):
    world.web.answers["/no"] = http(b"no", status=status) if status[:3] != "204" else http(status=status)
    error = await world.refusal(world.url("/no"))
    assert (error.code, status[:3] in str(error)) == ("bad_status", True)


async def test_D7_a_length_beyond_the_limit_is_refused_before_anything_is_read(world: World):
    world.web.answers["/large"] = stalling(HEAD + b"Content-Length: 10001\r\n\r\n")
    assert await world.code(world.url("/large")) == "too_large"
    world.web.answers["/fits"] = http(b"x" * 10_000)
    assert len((await world.get(world.url("/fits"))).body) == 10_000
    with pytest.raises(FileRefused, match="more than 9,999 bytes"):
        await world.get(world.url("/fits"), most_bytes=9_999)


async def test_D7_an_endless_body_is_read_up_to_the_limit(world: World):
    world.web.answers["/endless"] = endless(HEAD + b"\r\n", b"x" * 1_000)
    assert await world.code(world.url("/endless")) == "too_large"
    world.web.answers["/chunked"] = endless(CHUNKED, b"5\r\nhello\r\n")
    assert await world.code(world.url("/chunked")) == "too_large"


async def test_D7_what_comes_compressed_is_refused_so_no_bomb_is_opened(world: World):
    world.web.answers["/bomb"] = http(gzip.compress(bytes(9_000_000)), "Content-Encoding: gzip")
    error = await world.refusal(world.url("/bomb"))
    assert (error.code, "gzip" in str(error)) == ("compressed", True)
    world.web.answers["/plain"] = http(b"hello", "Content-Encoding: Identity")
    assert (await world.get(world.url("/plain"))).body == b"hello"


@pytest.mark.parametrize(
    "answer",
    [
        *(http(b"half", length=100), CHUNKED + b"5\r\nhel"),
        *(b"\x16\x03\x01\0", b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", b"\r\n\r\n\r\n", b""),
        endless(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
        endless(b"HTTP/1.1 200 OK\r\nX: ", b"x" * 100),
        endless(b"HTTP/1.1 302 Found\r\nLocation: /", b"x" * 100),
        *(endless(b"HTTP/1.1 ", b"x" * 100), endless(b"", b"x" * 100)),
    ],
)
async def test_D7_a_body_of_another_length_and_what_is_no_answer_are_no_file(world: World, answer: bytes | Answering):
    world.web.answers["/broken"] = answer
    assert await world.code(world.url("/broken")) == "unreachable"


@pytest.mark.parametrize("head", [b"", HEAD, HEAD + b"Content-Length: 10\r\n\r\nhalf"])
async def test_D7_silence_ends_a_fetch_long_before_its_time(world: World, head: bytes):
    world.web.answers["/slow"] = stalling(head)
    patient = OutboundSettings(seconds=3_600, idle_seconds=0.05)
    assert await world.code(world.url("/slow"), world.outbound(patient)) == "too_slow"


@pytest.mark.parametrize(
    ("head", "piece"),
    [(HEAD + b"\r\n", b"x"), (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"), (b"", b"HTTP/1.1 100 Continue\r\n\r\n")],
)
async def test_D7_whoever_sends_bit_by_bit_has_no_more_time(
    world: World, monkeypatch: pytest.MonkeyPatch, head: bytes, piece: bytes
):
    clock = LoopClock(monkeypatch)
    world.web.answers["/slow"] = endless(head, piece, lambda: clock.advance(1))
    assert await world.code(world.url("/slow")) == "too_slow"


# Limits of concurrency


async def test_D7_so_many_are_fetched_at_once_and_more_are_told_to_wait(world: World):
    outbound = world.outbound(OutboundSettings(at_once=3, of_user=2))
    async with AsyncExitStack() as stack:
        for owner in ("ann", "ann", "bob"):
            await stack.enter_async_context(outbound.fetch(world.url(), hosts=world.hosts, owner=owner))
        for owner, most in (("ann", "than 2 of one user"), ("eve", "than 3 are")):
            with pytest.raises(LimitReached, match=most):
                await stack.enter_async_context(outbound.fetch(world.url(), hosts=world.hosts, owner=owner))
    assert (await world.get(world.url(), outbound)).body == b"hello"


async def test_D7_a_fetch_that_fails_or_is_left_early_makes_room(world: World):
    outbound = world.outbound(OutboundSettings(at_once=1, of_user=1))
    assert await world.code(world.url("/none"), outbound) == "bad_status"
    world.web.answers["/endless"] = endless(HEAD + b"\r\n", b"x" * 1_000)
    async with outbound.fetch(world.url("/endless"), hosts=world.hosts, owner="ann") as got:
        assert await anext(got.pieces)
    assert (await world.get(world.url(), outbound)).body == b"hello"


async def test_D7_a_dns_that_hangs_for_one_user_leaves_the_others_their_threads(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    answer_event, look = Event(), socket.getaddrinfo

    def hanging(host: str, port: int, **option: int) -> object:
        if host == "localhost":
            return look(host, port, **option)
        answer_event.wait()
        raise socket.gaierror(f"no such name: {host}")

    monkeypatch.setattr(socket, "getaddrinfo", hanging)
    settings = OutboundSettings(connect_seconds=0.05, at_once=3, of_user=2)
    outbound = Outbound(settings, allowance=("127.0.0.0/8", "::1/128"))
    try:
        for host in ("hang1.example", "hang2.example"):
            assert await world.code(world.url(host=host), outbound) == "unreachable"
        with pytest.raises(LimitReached, match="than 2 of one user"):
            await world.get(world.url(host="hang3.example"), outbound)
        async with outbound.fetch(world.url(host="localhost"), hosts=world.hosts, owner="bob") as got:
            assert [piece async for piece in got.pieces] == [b"hello"]
    finally:
        answer_event.set()
    while not await has_room(world, outbound):
        await settle(1)


async def has_room(world: World, outbound: Outbound) -> bool:
    try:
        return (await world.get(world.url(host="localhost"), outbound)).body == b"hello"
    except LimitReached:
        return False
