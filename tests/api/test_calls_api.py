"""Looking at model calls over HTTP (X1): the list, one call, its exact bytes, and what damage looks like."""

from collections.abc import AsyncIterator, Mapping
from hashlib import sha256
from pathlib import Path

import pytest
from sqlalchemy import create_engine, delete, update

from recto.api.threads import calls
from recto.conversation.json import dump
from recto.page.body import Segment
from recto.store.ports import CallEnd, CallStart, Lease, RunChange, RunEnding
from recto.store.schema import CALLS as CALL_TABLE
from recto.store.schema import SEGMENTS
from tests.api.local_api import LocalApi, assert_problem, local_api
from tests.store.suite.samples import NODE, admit, at, begin, lease_of

PIECES = (b'{"model": "x", ', b'"messages": [', '1.0e3, "四"'.encode(), b"]}")
BODY = b"".join(PIECES)
PART = {"kind": "envelope", "rule": "S9", "span": [0, 15]}
MANIFEST = {"parts": [PART], "tokens": 12, "skill": None}
RUNS = "/api/v1/agent/runs"


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[LocalApi]:
    async with local_api(tmp_path, calls.ROUTES) as server:
        yield server


async def a_call(api: LocalApi) -> Lease:
    lease = await begin(api.store, "r1")
    await api.store.runs.record(lease, RunChange(call_start=begin_call(1)), at(1))
    call_end = CallEnd(number=1, ended=at(3), first_token=at(2), finish="stop", usage=b'{"inputTokens": 9}', price=5)
    await api.store.runs.record(lease, RunChange(call_end=call_end), at(3))
    return lease


def begin_call(number: int, manifest: Mapping[str, object] = MANIFEST) -> CallStart:
    segments = [Segment(data=piece, sha256=sha256(piece).digest()) for piece in PIECES]
    hashes = b"".join([segment.sha256 for segment in segments])
    return CallStart(
        number=number,
        purpose="reply",
        model="gpt-x",
        digest=sha256(hashes).hexdigest(),
        shared=0,
        hashes=hashes,
        segments=segments,
        manifest=dump(manifest),
        started=at(1),
    )


async def test_X1_calls_are_listed_with_what_they_took(api: LocalApi):
    lease = await a_call(api)
    expected = {
        "n": 1,
        "purpose": "reply",
        "model": "gpt-x",
        "started": "2026-03-01T12:00:01.123Z",
        "firstToken": "2026-03-01T12:00:02.123Z",
        "ended": "2026-03-01T12:00:03.123Z",
        "finish": "stop",
        "usage": {"inputTokens": 9},
        "price": 5,
        "tokens": 12,
        "digest": sha256(b"".join([sha256(piece).digest() for piece in PIECES])).hexdigest(),
        "error": None,
    }
    for id in (lease.run, "r1"):
        assert (await api.ask("GET", f"{RUNS}/{id}/calls")).json == {"calls": [expected]}
    call_row = (await api.ask("GET", f"{RUNS}/r1/calls/1")).json
    page = {"model": "x", "messages": [1000.0, "四"]}
    more: dict[str, object] = {"bytes": len(BODY), "verified": True, "damaged": [], "page": page}
    room: dict[str, object] = {"window": 128_000, "compactAt": 102_400, "prices": None}
    assert call_row == {**expected, **more, **room, "manifest": make_row('{"model": "x",')}
    raw = await api.ask("GET", f"{RUNS}/r1/calls/1?raw=1")
    assert (raw.body, raw.headers["content-type"]) == (BODY, "application/json")


def make_row(words: str | None) -> dict[str, object]:
    """The manifest as people get it."""
    fields = {"ruleName": "system prompt", "ruleLink": "docs/rules.md#s9", "words": words}
    return {**MANIFEST, "parts": [{**PART, **fields}]}


# Calls of a thread

THREAD, OTHER = "550e8400-e29b-41d4-a716-44665544000a", "550e8400-e29b-41d4-a716-44665544000b"


def threads_calls(thread: str) -> str:
    return f"/api/v1/agent/threads/{thread}/calls"


async def a_run(api: LocalApi, name: str, calls: int, thread: str = THREAD, *, owner: str = "ann") -> str:
    """A run that made so many calls; its id."""
    await admit(api.store, name, thread, owner=owner)
    (run,) = await api.store.runs.claim(NODE, at(0), 1)
    for number in range(1, calls + 1):
        await api.store.runs.record(lease_of(run), RunChange(call_start=begin_call(number)), at(1))
    await api.store.runs.record(lease_of(run), RunChange(ending=RunEnding(outcome="done")), at(2))
    return run.id


async def test_X1_the_calls_of_a_thread_are_told_newest_first_and_no_more_than_wanted(api: LocalApi):
    first, second = await a_run(api, "r1", 2), await a_run(api, "r2", 3)
    await a_run(api, "r3", 1, OTHER)
    every = [(second, 3), (second, 2), (second, 1), (first, 2), (first, 1)]
    for query, expected_rows in (("", every), ("?limit=500", every), ("?limit=4", every[:4]), ("?limit=1", every[:1])):
        rows = (await api.ask("GET", threads_calls(THREAD) + query)).rows("calls")
        assert [(row["run"], row["n"]) for row in rows] == expected_rows
    for row in rows:
        (of_run,) = [one for one in (await api.ask("GET", f"{RUNS}/r2/calls")).rows("calls") if one["n"] == 3]
        assert row == {**of_run, "run": second, "saved": None}


async def test_X1_a_call_of_a_thread_tells_the_tokens_that_were_kept_out_of_its_page(api: LocalApi, tmp_path: Path):
    lease = await begin(api.store, "r1", THREAD)
    tokens = [("folded", 100, 10), ("dropped", 40, 0), ("cut", 5, 4), ("kept", 7, 9), ("injected", 50, 20)]
    parts = [
        {**PART, "source": "m", "role": "user", "decision": decision, "reason": "", "tokens": {"before": b, "after": a}}
        for decision, b, a in tokens
    ]
    await api.store.runs.record(lease, RunChange(call_start=begin_call(1, {"parts": parts, "tokens": 43})), at(1))
    (row,) = (await api.ask("GET", threads_calls(THREAD))).rows("calls")
    assert (row["tokens"], row["saved"]) == (43, 90 + 40 + 1)
    harm(tmp_path, update(CALL_TABLE).values(manifest=b"no zlib"))
    (row,) = (await api.ask("GET", threads_calls(THREAD))).rows("calls")
    assert (row["tokens"], row["saved"]) == (None, None)


HASH = sha256(PIECES[2]).digest()
ANOTHER = b"x\x9c\x03\x00\x00\x00\x00\x01"


@pytest.mark.parametrize(
    ("damage", "field"),
    [
        (update(SEGMENTS).where(SEGMENTS.c.hash == HASH).values(data=ANOTHER), HASH.hex()),
        (delete(SEGMENTS).where(SEGMENTS.c.hash == HASH), HASH.hex()),
        (update(CALL_TABLE).values(digest="0" * 64), "digest"),
        (update(CALL_TABLE).values(shared=3, hashes=b""), "digest"),
    ],
)
async def test_X1_what_was_damaged_is_named_and_never_shown_as_what_was_sent(
    api: LocalApi, tmp_path: Path, damage: object, field: str
):
    await a_call(api)
    harm(tmp_path, damage)
    response = await api.ask("GET", f"{RUNS}/r1/calls/1")
    assert (response.status, response.json["verified"], response.json["page"], response.json["bytes"]) == (
        200,
        False,
        None,
        None,
    )
    damaged = response.json["damaged"]
    assert isinstance(damaged, list)
    assert field in damaged
    assert response.json["manifest"] == make_row(None)
    assert_problem(await api.ask("GET", f"{RUNS}/r1/calls/1?raw=1"), 409, field)


async def test_X1_a_damaged_manifest_is_named_and_the_page_is_still_told(api: LocalApi, tmp_path: Path):
    await a_call(api)
    harm(tmp_path, update(CALL_TABLE).values(manifest=b"no zlib"))
    call_row = (await api.ask("GET", f"{RUNS}/r1/calls/1")).json
    assert (call_row["verified"], call_row["damaged"], call_row["manifest"]) == (False, ["manifest"], None)
    assert (await api.ask("GET", f"{RUNS}/r1/calls")).status == 200
    assert (await api.ask("GET", f"{RUNS}/r1/calls/1?raw=1")).body == BODY


def harm(folder: Path, damage: object) -> None:
    engine = create_engine(f"sqlite:///{folder / 'recto.db'}")
    with engine.begin() as connection:
        connection.execute(damage)  # pyright: ignore[reportArgumentType, reportCallIssue] - any statement
    engine.dispose()


async def test_X1_a_call_that_was_never_made_is_refused(api: LocalApi):
    await a_call(api)
    for n, status in (("2", 404), ("0", 422), ("x", 422), ("9" * 30, 422)):
        assert (await api.ask("GET", f"{RUNS}/r1/calls/{n}")).status == status
