"""Profiles over HTTP (S6): told and changed by their user, held against the agent's schema; tiers by operators."""

import logging
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from recto.agents.agent import CHAT
from recto.api import accounts
from recto.conversation.json import Json, dump
from recto.errors import ToolError
from recto.tools.registry import Registry
from tests.api.local_api import NOW, Answer, LocalApi, assert_problem, local_api, named_tool

PROFILE = "/api/v1/profile"
TIME = "2026-05-14T12:00:00.000Z"
BORN: dict[str, Json] = {"date": "1990-05-15", "place": "北京"}
EMPTY: dict[str, Json] = {"tier": "free", "profile": {}, "skillData": {}, "updated": None}
BIRTH: Json = {"type": "object", "properties": {"date": {"type": "string"}, "calendar": {"enum": ["solar", "lunar"]}}}
SCHEMA = dump({"properties": {"birth_info": BIRTH}, "required": ["birth_info"]}).decode()
AGENTS = {"vibe": replace(CHAT, name="vibe", profile_schema=SCHEMA), "free": replace(CHAT, name="free")}


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[LocalApi]:
    async with local_api(tmp_path, accounts.ROUTES) as server:
        server.change(by_name=AGENTS, operators=frozenset({"root"}))
        yield server


async def patch(api: LocalApi, body: object, *, user: str = "ann", agent: str = "") -> Answer:
    return await api.ask("PATCH", f"{PROFILE}{f'?agent={agent}' if agent else ''}", body, user=user)


async def problem(api: LocalApi, user: str = "ann") -> Mapping[str, Json]:
    answer = await api.ask("GET", PROFILE, user=user)
    assert answer.status == 200
    return answer.json


def field_of(answer: Answer) -> Json:
    return answer.rows("errors")[0]["field"]


async def test_S6_a_profile_is_changed_by_a_merge_patch_and_told_as_it_is(api: LocalApi):
    assert await problem(api) == (await patch(api, {})).json == EMPTY
    fields: dict[str, Json] = {"birth_info": BORN, "extracted": ["a"], "life_context": {"work": {"at": "X"}}}
    skills: dict[str, Json] = {"bazi": {"pillars": ["庚午"]}, "tarot": ["sun"]}
    first = await patch(api, {**fields, "skill_data": skills})
    assert (first.status, first.json) == (200, {**EMPTY, "profile": fields, "skillData": skills, "updated": TIME})
    api.change(clock=lambda: NOW + timedelta(seconds=5))
    change: dict[str, Json] = {"birth_info": {"time": "14:30", "place": None}, "extracted": None, "my-own_1": True}
    change |= {"life_context": {"work": {"role": "Y"}}, "skill_data": {"bazi": {"score": 1}, "tarot": None}}
    second = await patch(api, change)
    fields = {
        "birth_info": {"date": "1990-05-15", "time": "14:30"},
        "life_context": {"work": {"at": "X", "role": "Y"}},
        "my-own_1": True,
    }
    profile = {"profile": fields, "skillData": {"bazi": {"pillars": ["庚午"], "score": 1}}}
    assert second.json == {**EMPTY, **profile, "updated": "2026-05-14T12:00:05.000Z"} == await problem(api)


async def test_S6_what_the_agents_schema_does_not_allow_is_refused_by_field(api: LocalApi):
    await patch(api, {"birth_info": BORN})
    before = await problem(api)
    answer = await patch(api, {"birth_info": {"calendar": "moon"}, "other": 1, "skill_data": {"bazi": 1}})
    words = 'profile: birth_info.calendar: "moon" is not one of "solar" or "lunar". Follow the profile schema of agent '
    assert_problem(answer, 422, f"{words}'vibe'")
    assert (field_of(answer), await problem(api)) == ("profile", before)
    assert_problem(await patch(api, {"birth_info": 7}, agent="vibe"), 422, 'birth_info: 7 is not of type "object"')


async def test_S6_a_tool_may_refuse_what_no_schema_can_say(api: LocalApi):
    def check(fields: Mapping[str, Json], now: datetime) -> None:
        if "birth_info" in fields:
            raise ToolError(f"no birth of {now.year} is wanted.")

    api.change(tools={"vibe": Registry([named_tool("birth", profile_check=check)])})
    assert_problem(await patch(api, {"birth_info": BORN}), 422, "profile: no birth of 2026 is wanted.")
    assert (await patch(api, {"birth_info": BORN}, agent="free")).status == 200
    assert (await patch(api, {"other": 1})).status == 200


async def test_S6_the_result_of_a_merge_is_what_is_checked(api: LocalApi):
    assert (await patch(api, {"birth_info": {"date": 7}}, agent="free")).status == 200
    assert_problem(await patch(api, {"birth_info": {"place": "x"}}), 422, "birth_info.date: 7 is not of type")
    # A field that is left alone stands in the way of no other.
    assert (await patch(api, {"life_context": None})).status == 200
    assert (await patch(api, {"birth_info": {"date": None}})).json["profile"] == {"birth_info": {}}


async def test_S6_an_agent_there_is_not_is_refused(api: LocalApi):
    for method, body in (("GET", None), ("PATCH", {"a": 1})):
        answer = await api.ask(method, f"{PROFILE}?agent=nobody", body)
        assert_problem(answer, 422, "agent: there is no agent 'nobody'; known: vibe, free")
    assert (await api.ask("GET", f"{PROFILE}?agent=free")).json == EMPTY


def nested(levels: int) -> dict[str, Json]:
    inner: dict[str, Json] = {"a": 1}
    for _ in range(levels - 1):
        inner = {"a": inner}
    return inner


NO_PATCHES: list[tuple[object, str, str]] = [
    (b"{", "body", "is not JSON"),
    (b'{"a": NaN}', "body", "is not JSON"),
    (b"null", "body", "must be a JSON object"),
    (b"[" * 100_000, "body", "is not JSON"),
    (nested(33), "body", "is nested more than 32 levels deep"),
    (b'{"a": 18446744073709551616}', "body", "the integer 18446744073709551616 has more than 64 bits"),
    (b'{"a": [{"b": -9223372036854775809}]}', "body", "has more than 64 bits. Send it as a string"),
    ({"a": [{"b": "x\0y"}]}, "body", r"'x\x00y' contains the character U+0000, which cannot be stored. Remove it"),
    (b'{"a": "\\\\\\u0000"}', "body", "contains the character U+0000"),
    ({"tier": "pro"}, "tier", "is reserved; use another name"),
    ({"": 1}, "''", "is not a valid name; use 1 to 64 letters"),
    ({"x" * 65: None}, f"'{'x' * 64}'", "is not a valid name"),
    ({"skill_data": ["bazi"]}, "skill_data", "must be an object by skill name"),
]


async def test_S6_what_is_no_patch_is_refused_and_nothing_changes(api: LocalApi):
    for body, field, words in NO_PATCHES:
        answer = await patch(api, body)
        assert_problem(answer, 422, words)
        assert field_of(answer) == field
    assert await problem(api) == EMPTY


async def test_S6_numbers_and_strings_that_only_look_like_those_are_kept_as_they_are(api: LocalApi):
    profile: dict[str, Json] = {
        "most": 2**64 - 1,
        "least": -(2**63),
        "words": '18446744073709551616, "9" * 20, \\u0000 and \\',
        "18446744073709551616": [1.5e300, 0.12345678901234567, -0.0],
        # As deep as may be.
        **nested(32),
    }
    assert (await patch(api, profile)).json["profile"] == profile == (await problem(api))["profile"]


async def test_S6_more_than_may_be_kept_of_a_user_is_refused_with_what_to_do(api: LocalApi):
    api.change(profile_bytes=20)
    response = await patch(api, {"a": "x" * 17})
    answer = await patch(api, {"b": 1})
    assert_problem(answer, 422, "The profile would have 22 bytes; the limit is 20. Delete values first")
    assert (field_of(answer), await problem(api)) == ("profile", response.json)


async def test_S6_an_operator_gives_a_user_a_tier_and_their_profile_tells_it(api: LocalApi):
    answer = await api.ask("PUT", "/api/v1/users/ann@example.com/tier", {"tier": "pro"}, user="root")
    assert (answer.status, answer.json) == (200, {"user": "ann@example.com", "tier": "pro"})
    assert await problem(api, "ann@example.com") == {**EMPTY, "tier": "pro", "updated": TIME}
    assert (await problem(api))["tier"] == "free"


async def test_S6_nobody_else_gives_anybody_a_tier(api: LocalApi, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING, "recto.audit"):
        for user in ("ann", "bob"):
            for body in ({"tier": "pro"}, b"{"):
                answer = await api.ask("PUT", "/api/v1/users/ann/tier", body, user=user)
                assert_problem(answer, 403, "Only an operator of this server may assign tiers.")
                assert answer.json["code"] == "not_an_operator"
    assert "status 403, reason not_an_operator, user bob" in caplog.text
    assert await problem(api) == EMPTY


async def test_S6_what_is_no_tier_or_no_user_is_refused(api: LocalApi):
    no_tier = "tier: must be 1 to 32 lower-case letters and digits of ASCII, `_` or `-`"
    options: list[tuple[str, object, str]] = [
        *[("ann", {"tier": tier}, no_tier) for tier in ("", "Pro", "x" * 33, "a b", "金", 7, None)],
        ("ann", b"{", "is not JSON"),
        ("ann", [], "must be a JSON object"),
        ("x" * 257, {"tier": "pro"}, "user: must be a name of 1 to 256"),
        ("a\0", {"tier": "pro"}, "user: must be a name of 1 to 256 characters of Unicode, without U+0000"),
    ]
    for user, body, words in options:
        assert_problem(await api.ask("PUT", f"/api/v1/users/{user}/tier", body, user="root"), 422, words)
    assert await problem(api) == EMPTY
