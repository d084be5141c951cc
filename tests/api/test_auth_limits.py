"""Who comes too often is asked to wait, and every refusal is written down in one line."""

import logging

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.api.access.gate import WRONG_PER_MINUTE, GateRules
from recto.api.access.rate import Buckets, neighbourhood
from tests.api.test_auth_gate import ANNA, BERT, TOKEN, Time, ask, gate

SECRET = "a secret of more than thirty-two bytes"

# Too often


async def test_C2_a_user_comes_so_often_a_minute_and_others_all_the_same():
    ticks = Time()
    app = gate(GateRules(user_requests=3), ticks)
    assert [(await ask(app, "GET", "/who", ANNA)).status for _ in range(5)] == [200, 200, 200, 429, 429]
    answer = await ask(app, "GET", "/who", ANNA)
    assert (answer.json["code"], answer.headers["retry-after"]) == ("limit_reached", "20")
    assert (await ask(app, "GET", "/who", BERT)).status == 200
    ticks.now += 20
    assert [(await ask(app, "GET", "/who", ANNA)).status for _ in range(2)] == [200, 429]


async def test_C2_without_a_limit_there_is_none():
    app = gate(GateRules(user_requests=0))
    assert {(await ask(app, "GET", "/who")).status for _ in range(200)} == {200}


async def test_C2_open_paths_are_counted_by_address_and_shut_no_user_out():
    app = gate(GateRules(user_requests=2))
    assert [(await ask(app, "GET", "/healthz", None)).status for _ in range(3)] == [200, 200, 429]
    assert (await ask(app, "GET", "/who", None)).status == 429
    assert (await ask(app, "GET", "/healthz", None, peer="10.0.0.2")).status == 200
    assert (await ask(app, "GET", "/who", ANNA)).status == 200


async def test_C3_who_guesses_too_often_is_not_listened_to_for_a_while():
    ticks = Time()
    app = gate(ticks=ticks)
    guesses = [(await ask(app, "GET", "/who", f"guess-number-{n}-of-many")).status for n in range(WRONG_PER_MINUTE + 2)]
    assert guesses == [401] * WRONG_PER_MINUTE + [429, 429]
    assert (await ask(app, "GET", "/who", "another.guess.with-dots")).status == 429
    assert (await ask(app, "GET", "/who", "one-guess-from-elsewhere", peer="10.0.0.2")).status == 401
    ticks.now += 1
    assert (await ask(app, "GET", "/who", "one-guess-a-second-later")).status == 401


@pytest.mark.parametrize(("credential", "user"), [(TOKEN, "local"), (ANNA, "anna"), (BERT, "bert")])
async def test_C3_who_guesses_shuts_out_nobody_who_comes_with_a_key_from_the_same_address(credential: str, user: str):
    app = gate()
    for number in range(WRONG_PER_MINUTE + 1):
        await ask(app, "GET", "/who", f"guess-number-{number}-of-many")
    answer = await ask(app, "GET", "/who", credential)
    assert (answer.status, answer.json) == (200, {"user": user})
    assert (await ask(app, "GET", "/who", None, authorization="Basic nonsense")).status == 429


async def test_C3_a_jwt_is_not_read_from_where_too_many_wrong_ones_came():
    app = gate(jwt_secret=SECRET)
    token = jwt.encode({"sub": "carl", "exp": 4_000_000_000}, SECRET, "HS256")
    assert (await ask(app, "GET", "/who", token)).json == {"user": "carl"}
    for number in range(WRONG_PER_MINUTE):
        await ask(app, "GET", "/who", f"a.guess.{number}")
    assert (await ask(app, "GET", "/who", token)).status == 429
    assert (await ask(app, "GET", "/who", token, peer="10.0.0.2")).status == 200


async def test_C3_requests_without_a_credential_are_no_guesses():
    app = gate()
    for _ in range(WRONG_PER_MINUTE + 5):
        await ask(app, "GET", "/who", None)
    assert (await ask(app, "GET", "/who", ANNA)).status == 200


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 30)), max_size=60), st.integers(1, 5))
def test_C2_nobody_comes_more_often_than_a_full_bucket_and_what_ran_in_since(
    visits: list[tuple[str, float]], limit: int
):
    ticks, came = Time(), dict.fromkeys("abc", 0)
    buckets = Buckets(limit, ticks)
    for name, pause in visits:
        ticks.now += pause
        wait = buckets.wait(name)
        assert (wait == 0) == (buckets.take(name) == 0)
        came[name] += wait == 0
        assert came[name] <= limit + ticks.now * limit / 60 + 1e-6
        assert 0 <= wait <= 60 / limit


def test_C2_the_name_not_heard_of_for_longest_is_forgotten_first():
    buckets = Buckets(2, Time(), most_names=2)
    for name in ("a", "b", "a", "c"):
        buckets.take(name)
    assert buckets.wait("a") > 0
    assert buckets.wait("b") == 0


@pytest.mark.parametrize(
    ("peer", "stands_for"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff:2", "2001:db8::/64"),
        ("-", "-"),
    ],
)
def test_C2_an_address_stands_for_all_that_its_owner_has(peer: str, stands_for: str):
    assert neighbourhood(peer) == stands_for


# Audit


async def test_C3_every_refusal_is_written_down_in_one_line_without_a_secret(caplog: pytest.LogCaptureFixture):
    app = gate()
    with caplog.at_level(logging.INFO, "recto.audit"):
        await ask(app, "GET", f"/who?token={TOKEN}", "a-secret-that-is-wrong")
        await ask(app, "POST", "/who", BERT)
        await ask(app, "GET", "/who", None, host="evil.example")
        await ask(app, "GET", "/who", TOKEN)
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "refused GET /who: status 401, reason wrong_credential, user nobody, from 10.0.0.1"),
        ("WARNING", "refused POST /who: status 403, reason read_only, user bert, from 10.0.0.1"),
        ("WARNING", "refused GET /who: status 421, reason wrong_host, user nobody, from 10.0.0.1"),
    ]


@pytest.mark.parametrize(
    ("path", "peer"),
    [
        ("/a\r\nrefused b: \x1b[2J\u2028, user admin" + "x" * 5000, "10.0.0.1"),
        ("/who", "1.2.3.4, user admin\r\n" + "x" * 5000),
    ],
)
async def test_C3_no_path_and_no_address_can_forge_a_line_or_fill_the_log(
    path: str, peer: str, caplog: pytest.LogCaptureFixture
):
    with caplog.at_level(logging.WARNING, "recto.audit"):
        await ask(gate(), "GET", path, None, peer=peer)
    line = caplog.records[0].getMessage()
    assert line.isprintable()
    assert "user admin" not in line
    assert len(line) < 400


async def test_P5_routes_can_have_a_refusal_of_their_own_written_down(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING, "recto.audit"):
        await ask(gate(), "GET", "/foreign/t-1", ANNA)
    problem = "refused GET /foreign/t-1: status 404, reason foreign_thread, user anna, from 10.0.0.1"
    assert [record.getMessage() for record in caplog.records] == [problem]
