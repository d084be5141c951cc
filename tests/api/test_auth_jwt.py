"""JWTs: signed with the right key for the right algorithm, in time, for us, by a name that is nobody else's."""

import base64
import hmac
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from recto.api.access.auth import Authenticator
from recto.api.access.jwt import LEEWAY_SECONDS, ClaimRules, read_claims
from recto.api.backend import AuthResult, Delayed, Denied, User
from recto.config.access_settings import AuthSettings
from recto.conversation.json import dump
from recto.errors import SettingsError

NOW = 1_800_000_000.0
SECRET = "a secret of more than thirty-two bytes"
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC = ec.generate_private_key(ec.SECP256R1())
CLAIMS: Mapping[str, object] = {"sub": "anna", "exp": NOW + 60}
BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey) -> str:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def private_pem(key: PrivateKeyTypes) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def unsigned(header: Mapping[str, object], claims: Mapping[str, object] = CLAIMS) -> str:
    return f"{text(dump(header))}.{text(dump(claims))}"


def make_gate(
    *, secret: str | None = None, public_key: str | None = None, keys: str | None = None, audience: str | None = None
) -> Authenticator:
    settings = AuthSettings(jwt_secret=secret, jwt_public_key=public_key, api_keys=keys, jwt_audience=audience)
    return Authenticator(settings, clock=lambda: NOW)


async def come(auth: Authenticator, token: str) -> AuthResult:
    return await auth.admit([f"Bearer {token}"])


def sign(
    claims: Mapping[str, object] = CLAIMS,
    key: str | rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey = SECRET,
    algorithm: str = "HS256",
    **headers: object,
) -> str:
    return jwt.encode(dict(claims), key, algorithm=algorithm, headers=headers)


async def test_C3_a_secret_checks_HS256():
    assert await come(make_gate(secret=SECRET), sign()) == User(name="anna")


async def test_C3_a_public_key_checks_its_own_algorithm():
    assert await come(make_gate(public_key=pem(RSA)), sign(key=RSA, algorithm="RS256")) == User(name="anna")
    assert await come(make_gate(public_key=pem(EC)), sign(key=EC, algorithm="ES256", kid="any")) == User(name="anna")


async def test_C2_a_public_key_may_be_a_file_or_have_its_line_ends_spelled_out(tmp_path: Path):
    (tmp_path / "key.pem").write_text(pem(EC))
    for text in (str(tmp_path / "key.pem"), pem(EC).replace("\n", "\\n")):
        assert await come(make_gate(public_key=text), sign(key=EC, algorithm="ES256")) == User(name="anna")


def forged() -> dict[str, tuple[Authenticator, str]]:
    """Tokens of somebody who knows everything but the private key, each with who should refuse it."""
    public = pem(RSA)
    # PyJWT itself will not sign with a PEM as the secret; others would.
    body = unsigned({"alg": "HS256"})
    confused = f"{body}.{text(hmac.digest(public.encode(), body.encode(), 'sha256'))}"
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return {
        "HS256 with the public key as secret": (make_gate(public_key=public), confused),
        "HS256 for a server with a public key": (make_gate(public_key=public), sign()),
        "RS256 for a server with a secret": (make_gate(secret=SECRET), sign(key=RSA, algorithm="RS256")),
        "another secret": (make_gate(secret=SECRET), sign(key=SECRET + "!")),
        "another private key": (make_gate(public_key=public), sign(key=other, algorithm="RS256")),
        "HS512 with the secret": (make_gate(secret=SECRET), sign(key=SECRET * 2, algorithm="HS512")),
        "RS512 with the key": (make_gate(public_key=public), sign(key=RSA, algorithm="RS512")),
        "PS256 with the key": (make_gate(public_key=public), sign(key=RSA, algorithm="PS256")),
        "none, without a signature": (make_gate(secret=SECRET), f"{unsigned({'alg': 'none'})}."),
        "none, with one": (make_gate(secret=SECRET), f"{unsigned({'alg': 'none'})}.AAAA"),
        "no alg": (make_gate(secret=SECRET), f"{unsigned({})}.AAAA"),
        "alg of another kind": (make_gate(secret=SECRET), f"{unsigned({'alg': ['HS256']})}.AAAA"),
        "deep nonsense": (make_gate(secret=SECRET), f"{text(b'[' * 5000)}.{text(b'[' * 500)}.AAAA"),
        "two parts": (make_gate(secret=SECRET), "AAAA.AAAA"),
        "four parts": (make_gate(secret=SECRET), f"{sign()}.AAAA"),
        "crit": (make_gate(secret=SECRET), sign(crit=["x"], x=1)),
    }


@pytest.mark.parametrize("name", forged().keys())
async def test_C3_no_forged_token_is_supported(name: str):
    auth, token = forged()[name]
    result = await come(auth, token)
    assert isinstance(result, Denied), name
    assert result.reason in ("jwt_signature", "jwt_form", "malformed_credential")


HS256, ES256 = sign(), sign(key=EC, algorithm="ES256")


@pytest.mark.parametrize(
    ("auth", "token"),
    [(make_gate(secret=SECRET), HS256), (make_gate(public_key=pem(EC)), ES256)],
    ids=["HS256", "ES256"],
)
@given(data=st.data())
async def test_C3_every_single_character_of_a_token_counts(auth: Authenticator, token: str, data: st.DataObject):
    at = data.draw(st.integers(0, len(token) - 1))
    changed = token[:at] + data.draw(st.sampled_from(BASE64 + ".=")) + token[at + 1 :]
    assert isinstance(await come(auth, changed), User) == (changed == token)


@given(st.text(st.sampled_from(BASE64 + "."), min_size=1))
async def test_C3_no_text_whatever_brings_the_reader_down(token: str):
    assert isinstance(await come(make_gate(secret=SECRET), token), Denied)


# Claims


SOON = NOW + LEEWAY_SECONDS + 1
WRONG_CLAIMS: Mapping[str, Mapping[str, Sequence[object]]] = {
    "jwt_exp": {"exp": [None, "never", True]},
    "jwt_expired": {"exp": [NOW, NOW - 1, math.nan]},
    "jwt_nbf": {"nbf": [SOON, "soon", None]},
    "jwt_iat": {"iat": [SOON, math.nan]},
    "jwt_aud": {"aud": ["recto", None]},
    "jwt_sub": {"sub": [None, "", 7, "a" * 256, "an\x00na", "an\nna", "\ud800", "anna\u202e", " anna", "local"]},
    "jwt_scope": {"scope": [["recto:read"]]},
}


@pytest.mark.parametrize("reason", WRONG_CLAIMS)
def test_C3_claims_that_are_not_taken(reason: str):
    for name, values in WRONG_CLAIMS[reason].items():
        for value in values:
            result = read_claims({**CLAIMS, name: value}, ClaimRules(reserved=frozenset({"local"})), NOW)
            assert isinstance(result, Denied), value
            assert result.reason == reason


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": NOW + 0.5},
        {"exp": 10**400},
        {"nbf": NOW + LEEWAY_SECONDS, "iat": NOW + LEEWAY_SECONDS},
        {"sub": "a" * 255},
        {"sub": "安娜 Müller|auth0"},
        {"iss": "anybody"},
    ],
)
def test_C3_claims_that_are_taken(claims: Mapping[str, object]):
    assert isinstance(read_claims({**CLAIMS, **claims}, ClaimRules(), NOW), User)


@pytest.mark.parametrize(
    ("audience", "is_taken"),
    [("recto", True), (["x", "recto"], True), ("recto2", False), ([], False), ({"recto": 1}, False), (None, False)],
)
def test_C3_the_audience_is_compared_where_it_is_set(audience: object, is_taken: bool):
    result = read_claims({**CLAIMS, "aud": audience}, ClaimRules(audience="recto"), NOW)
    assert isinstance(result, User) is is_taken
    assert isinstance(read_claims(CLAIMS, ClaimRules(audience="recto"), NOW), Denied)


@pytest.mark.parametrize(("issuer", "is_taken"), [("https://id", True), ("https://id/", False), (None, False)])
def test_C3_the_issuer_is_compared_where_it_is_set(issuer: object, is_taken: bool):
    result = read_claims({**CLAIMS, "iss": issuer}, ClaimRules(issuer="https://id"), NOW)
    assert isinstance(result, User) is is_taken


@pytest.mark.parametrize(
    ("scope", "can_write"),
    [("", True), ("openid", True), ("recto:read", False), ("a recto:read b", False), ("recto:read recto:write", True)],
)
def test_C3_a_scope_to_read_makes_a_user_that_only_reads(scope: str, can_write: bool):
    assert read_claims({**CLAIMS, "scope": scope}, ClaimRules(), NOW) == User(name="anna", can_write=can_write)


@given(st.dictionaries(st.sampled_from(["sub", "exp", "nbf", "iat", "aud", "scope"]), st.from_type(object) | st.text()))
def test_C3_no_claims_whatever_bring_the_reader_down(claims: Mapping[str, object]):
    assert isinstance(read_claims(claims, ClaimRules(), NOW), User | Denied)


async def test_P5_a_token_under_the_name_of_a_key_or_of_the_local_user_is_refused():
    auth = make_gate(secret=SECRET, keys="anna:anna-key-0123456789")
    for name in ("anna", "local"):
        result = await come(auth, sign({**CLAIMS, "sub": name}))
        assert isinstance(result, Denied)
        assert "its sub is the user name of an API key or of the local token" in result.detail
    assert await come(auth, sign({**CLAIMS, "sub": "Anna"})) == User(name="Anna")


async def test_C3_the_settings_reach_the_claims():
    auth = make_gate(secret=SECRET, audience="recto")
    assert isinstance(await come(auth, sign()), Denied)
    assert isinstance(await come(auth, sign({**CLAIMS, "aud": "recto"})), User)
    assert not isinstance(await come(auth, sign({**CLAIMS, "aud": "recto", "exp": NOW - 1})), User | Delayed)


# Settings


@pytest.mark.parametrize("secret", ["s" * 31, pem(RSA), ""])
def test_C2_a_secret_that_is_short_or_public_stops_the_start(secret: str):
    with pytest.raises(SettingsError, match="RECTO_JWT_SECRET is '\\(not shown\\)'; it must have at least 32 bytes"):
        make_gate(secret=secret)


WEAK = rsa.generate_private_key(public_exponent=65537, key_size=1024)


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        ("/there/is/no/such/file.pem", "neither a PEM nor the path"),
        ("", "neither a PEM nor the path"),
        ("a\0b", "neither a PEM nor the path"),
        ("-----BEGIN PUBLIC KEY-----\nnonsense", "contains no public key"),
        (private_pem(RSA), "contains no public key"),
        (pem(WEAK), "at least 2048 bits"),
        (pem(ed25519.Ed25519PrivateKey.generate()), "EC key on P-256"),
    ],
)
def test_C2_a_public_key_that_is_none_stops_the_start_and_is_not_shown(key: str, problem: str):
    with pytest.raises(SettingsError, match=r"RECTO_JWT_PUBLIC_KEY is '\(not shown\)'") as raised:
        make_gate(public_key=key)
    assert problem in str(raised.value)
    assert not key or key not in str(raised.value)


def test_C2_only_one_way_to_check_a_token_can_be_set():
    with pytest.raises(SettingsError, match="only one of RECTO_JWT_SECRET, RECTO_JWT_PUBLIC_KEY"):
        make_gate(secret=SECRET, public_key=pem(RSA))
