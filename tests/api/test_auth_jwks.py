"""Keys of an issuer by their url: fetched from a real server, kept, rotated, and kept still when it is down."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, HMACAlgorithm, RSAAlgorithm

from recto.api.access.jwt import (
    KEEP_SECONDS,
    MOST_BYTES,
    MOST_KEYS,
    RETRY_SECONDS,
    ClaimRules,
    JwksKeys,
    JwtReader,
    check_jwks_url,
    parse_jwks,
)
from recto.api.backend import Delayed, Denied, User
from recto.conversation.json import dump
from recto.errors import SettingsError
from tests.api.test_auth_gate import Time
from tests.api.test_auth_jwt import EC, NOW, RSA, SECRET, sign
from tests.files.a_web import Web, http

ANNA = User(name="anna")
CACHE_SECONDS = 600.0


def rsa_row(key: rsa.RSAPrivateKey = RSA, **more: object) -> Mapping[str, object]:
    return {**RSAAlgorithm.to_jwk(key.public_key(), as_dict=True), **more}


def ec_row(key: ec.EllipticCurvePrivateKey = EC, **more: object) -> Mapping[str, object]:
    return {**ECAlgorithm.to_jwk(key.public_key(), as_dict=True), **more}


def keys(*rows: object) -> bytes:
    return dump({"keys": list(rows)})


class Issuer:
    """A server of keys; what it answers can be changed at any time."""

    def __init__(self) -> None:
        self.body = keys(rsa_row(kid="one"))
        self.status = 200
        self.headers: dict[str, str] = {}
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.asked = 0
        self.url = ""

    async def answer(self, writer: asyncio.StreamWriter) -> None:
        self.asked += 1
        await self.go_on.wait()
        headers = [f"{name}: {value}" for name, value in self.headers.items()]
        writer.write(http(self.body, *headers, status=f"{self.status} Status"))
        await writer.drain()


@pytest.fixture
async def issuer() -> AsyncGenerator[Issuer]:
    one = Issuer()
    async with Web() as web:
        web.answers["/keys"] = one.answer
        one.url = f"http://127.0.0.1:{web.port}/keys"
        yield one
        one.go_on.set()


@pytest.fixture
def ticks() -> Time:
    return Time(1_000)


@pytest.fixture
def reader(issuer: Issuer, ticks: Time) -> JwtReader:
    return JwtReader(JwksKeys(issuer.url, cache_seconds=CACHE_SECONDS, ticks=ticks), ClaimRules(), lambda: NOW)


def by_rsa(kid: str = "one") -> str:
    return sign(key=RSA, algorithm="RS256", kid=kid)


def by_ec(kid: str = "two") -> str:
    return sign(key=EC, algorithm="ES256", kid=kid)


async def test_C3_keys_are_fetched_once_and_kept(issuer: Issuer, reader: JwtReader, ticks: Time):
    assert [await reader.read(by_rsa()) for _ in range(3)] == [ANNA] * 3
    ticks.now += CACHE_SECONDS - 1
    assert await reader.read(by_rsa()) == ANNA
    assert issuer.asked == 1
    ticks.now += 1
    assert await reader.read(by_rsa()) == ANNA
    assert issuer.asked == 2


async def test_C3_a_token_that_names_no_key_is_tried_with_those_of_its_algorithm(issuer: Issuer, reader: JwtReader):
    issuer.body = keys(rsa_row(kid="one"), ec_row(kid="two"))
    assert await reader.read(sign(key=EC, algorithm="ES256")) == ANNA
    assert await reader.read(sign(key=RSA, algorithm="RS256")) == ANNA


async def test_C3_many_at_once_fetch_the_keys_once(issuer: Issuer, reader: JwtReader):
    assert await asyncio.gather(*[reader.read(by_rsa()) for _ in range(20)]) == [ANNA] * 20
    assert issuer.asked == 1


async def test_C3_a_new_key_is_found_and_an_old_one_forgotten(issuer: Issuer, reader: JwtReader, ticks: Time):
    assert await reader.read(by_rsa()) == ANNA
    issuer.body = keys(ec_row(kid="two"))
    ticks.now += RETRY_SECONDS
    assert await reader.read(by_ec()) == ANNA
    assert isinstance(await reader.read(by_rsa()), Denied)


async def test_C3_unknown_ids_do_not_make_us_fetch_again_and_again(issuer: Issuer, reader: JwtReader, ticks: Time):
    assert await reader.read(by_rsa()) == ANNA
    for fetches in (1, 2):
        for number in range(20):
            assert isinstance(await reader.read(by_ec(f"made up {number}")), Denied)
        assert issuer.asked == fetches
        ticks.now += RETRY_SECONDS


async def test_C3_a_key_under_the_id_of_another_opens_nothing(issuer: Issuer, reader: JwtReader):
    issuer.body = keys(rsa_row(kid="one"), ec_row(kid="two"))
    assert isinstance(await reader.read(by_ec("one")), Denied)


async def test_C3_while_the_url_is_down_the_keys_it_gave_stay_for_a_day(issuer: Issuer, reader: JwtReader, ticks: Time):
    assert await reader.read(by_rsa()) == ANNA
    issuer.status = 500
    ticks.now += CACHE_SECONDS
    assert [await reader.read(by_rsa()) for _ in range(5)] == [ANNA] * 5
    assert issuer.asked == 2
    # What it cannot look up now may be good all the same.
    assert isinstance(await reader.read(by_ec()), Delayed)
    ticks.now += KEEP_SECONDS
    assert isinstance(await reader.read(by_rsa()), Delayed)


async def test_C3_a_url_that_comes_back_is_found_again(issuer: Issuer, reader: JwtReader, ticks: Time):
    issuer.status = 503
    result = await reader.read(by_rsa())
    assert isinstance(result, Delayed)
    assert result.retry == RETRY_SECONDS
    issuer.status = 200
    assert isinstance(await reader.read(by_rsa()), Delayed)
    assert issuer.asked == 1
    ticks.now += RETRY_SECONDS
    assert await reader.read(by_rsa()) == ANNA


async def test_C3_nobody_listening_is_told_as_not_yet_and_logged_without_the_url(
    ticks: Time, caplog: pytest.LogCaptureFixture
):
    source = JwksKeys("http://user:password@127.0.0.1:1/keys?secret", cache_seconds=1, ticks=ticks)
    with caplog.at_level(logging.WARNING, "recto.auth"):
        assert isinstance(await JwtReader(source, ClaimRules(), lambda: NOW).read(by_rsa()), Delayed)
    assert "127.0.0.1" in caplog.text
    assert "password" not in caplog.text
    assert "secret" not in caplog.text


async def test_C3_a_slow_url_is_not_waited_for(issuer: Issuer, ticks: Time):
    issuer.go_on.clear()
    source = JwksKeys(issuer.url, cache_seconds=CACHE_SECONDS, ticks=ticks, fetch_seconds=0.05)
    assert await asyncio.wait_for(source.find("one"), 10) is None
    assert issuer.asked == 1


NO_KEYS = [b"", b"nonsense", b'{"keys": {}}', b'{"keys": []}', b'{"keys": [1, null, "x", {}]}', b"{" * 100_000]
HUGE = keys(rsa_row(kid="one"), {"filler": "x" * MOST_BYTES})


@pytest.mark.parametrize("body", [*NO_KEYS, HUGE], ids=[*map(repr, NO_KEYS[:-1]), "deep", "huge"])
async def test_C3_what_is_no_set_of_keys_is_a_url_that_is_down(issuer: Issuer, reader: JwtReader, body: bytes):
    issuer.body = body
    assert isinstance(await reader.read(by_rsa()), Delayed)


async def test_C3_keys_are_not_fetched_from_where_the_url_sends_us(issuer: Issuer, reader: JwtReader):
    issuer.status, issuer.headers = 302, {"location": issuer.url}
    assert isinstance(await reader.read(by_rsa()), Delayed)
    assert issuer.asked == 1


async def test_C3_a_secret_in_a_set_of_keys_is_no_key(issuer: Issuer, reader: JwtReader):
    issuer.body = keys({**HMACAlgorithm.to_jwk(SECRET, as_dict=True), "kid": "one"}, ec_row(kid="two"))
    assert isinstance(await reader.read(sign(kid="one")), Denied)
    assert isinstance(await reader.read(sign()), Denied)


WEAK = rsa.generate_private_key(public_exponent=65537, key_size=1024)


@pytest.mark.parametrize(
    "row",
    [
        rsa_row(use="enc"),
        rsa_row(alg="RS512"),
        rsa_row(alg="HS256"),
        rsa_row(WEAK),
        ec_row(ec.generate_private_key(ec.SECP384R1())),
        {**rsa_row(), "n": 7},
        {**rsa_row(), "n": ""},
        {**ec_row(), "x": "AAAA"},
        {**ec_row(), "y": None},
        {"kty": "RSA"},
        {"kty": ["RSA"]},
    ],
)
def test_C3_keys_we_cannot_use_are_passed_over(row: Mapping[str, object]):
    assert [key.id for key in parse_jwks(keys(row, rsa_row(kid="good", alg="RS256")))] == ["good"]


def test_C3_of_a_private_key_only_the_public_half_is_supported():
    row = {**RSAAlgorithm.to_jwk(RSA, as_dict=True), "kid": "one"}
    assert "d" in row
    assert isinstance(parse_jwks(keys(row))[0].key, rsa.RSAPublicKey)


def test_C3_no_more_keys_are_taken_than_we_would_try():
    rows: Sequence[object] = [ec_row(kid=str(number)) for number in range(MOST_KEYS + 5)]
    assert len(parse_jwks(keys(*rows))) == MOST_KEYS


@pytest.mark.parametrize("url", ["https://id.example/keys", "http://127.0.0.1:9/keys", "http://localhost/keys"])
def test_C2_keys_come_over_https_or_from_this_machine(url: str):
    assert check_jwks_url(url) == url


@pytest.mark.parametrize(
    "url", ["", "keys", "http://id.example/keys", "file:///etc/keys", "https://", "https://[x", "https://x:port/"]
)
def test_C2_another_address_of_keys_stops_the_start_and_is_not_shown(url: str):
    with pytest.raises(SettingsError, match=r"RECTO_JWT_JWKS_URL is '\(not shown\)'; it must be the https URL"):
        check_jwks_url(url)
