"""Profiles: merged by field, limited, separate by user; and the tier of runs."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from recto.conversation.json import Json
from recto.errors import InvalidRequest, LeaseLost, WireError
from recto.store.store import Store
from recto.store.users.users import MAX_FIELDS, ProfileChange, StoredProfile
from tests.store.suite.samples import NODE, START, admission, admit, at, begin, lease_of

LIMIT, TOGETHER = 262_144, 12
BORN: Json = {"date": "1990-05-15", "place": "北京", "gender": "女"}
CHART: Json = {"pillars": ["庚午", "辛巳"], "score": 1.5, "none": None, "odd": "\0😀"}
NO_NAMES = ("", "a.b", "a b", "名", "x" * 65, "a\n", "a\0")
TIME = "2026-03-01T12:00:00.123Z"


def keeping(skill: str, data: Json) -> ProfileChange:
    return ProfileChange(skill_data={skill: data}, replaces=True)


async def patch(store: Store, fields: Mapping[str, Json], owner: str = "ann", seconds: float = 0) -> StoredProfile:
    return await store.users.change_profile(owner, ProfileChange(fields=fields), at(seconds), LIMIT)


async def patch_data(store: Store, data: Mapping[str, Json], owner: str = "ann") -> StoredProfile:
    return await store.users.change_profile(owner, ProfileChange(skill_data=data), START, LIMIT)


class ProfileSuite:
    async def test_S6_a_new_user_has_an_empty_profile(self, store: Store):
        assert await store.users.read_profile("ann") == StoredProfile()
        assert await store.users.read_fields("ann", ["birth_info"]) == {}
        assert await store.users.read_skill_data("ann", "bazi") is None
        assert await store.users.change_profile("ann", ProfileChange(), START, LIMIT) == StoredProfile(tier="free")
        assert [line async for line in store.users.export("ann")] == []

    async def test_S6_fields_and_skill_data_survive_a_round_trip(self, store: Store):
        change = ProfileChange(fields={"z": [1, None, {"a": None}], "birth_info": BORN}, skill_data={"bazi": [CHART]})
        result = StoredProfile(fields=change.fields, skill_data=change.skill_data, updated=at(3))
        assert await store.users.change_profile("ann", change, at(3), LIMIT) == result
        assert await store.users.read_profile("ann") == result
        assert list((await store.users.read_profile("ann")).fields) == ["birth_info", "z"]
        assert await store.users.read_fields("ann", ("birth_info", "absent")) == {"birth_info": BORN}
        assert await store.users.read_fields("ann", ()) == {}
        assert (
            await store.users.read_skill_data("ann", "bazi"),
            await store.users.read_skill_data("ann", "tarot"),
        ) == ([CHART], None)

    async def test_S6_X4_a_run_without_its_lease_cannot_change_the_profile(self, store: Store):
        lease = await begin(store, "r1")
        active = replace(keeping("bazi", "first"), lease=lease)
        await store.users.change_profile("ann", active, START, LIMIT)
        for stale in (replace(lease, fence=lease.fence + 1), replace(lease, run="nobody's")):
            with pytest.raises(LeaseLost):
                await store.users.change_profile("ann", replace(keeping("bazi", "second"), lease=stale), START, LIMIT)
        assert await store.users.read_skill_data("ann", "bazi") == "first"
        await store.users.delete("ann")
        with pytest.raises(LeaseLost):
            await store.users.change_profile("ann", active, START, LIMIT)
        assert await store.users.read_profile("ann") == StoredProfile()

    async def test_S6_a_change_can_replace_values(self, store: Store):
        await patch(store, {"birth_info": {"date": "x", "deep": {"a": 1}}, "other": {"b": 2}, "gone": 3})
        await patch_data(store, {"bazi": {"a": 1}, "tarot": 2, "gone": 3})
        born: Json = {"time": "y", "deep": {"none": None}}
        skill_data: Mapping[str, Json] = {"bazi": [3], "gone": None}
        change = ProfileChange(fields={"birth_info": born, "gone": None}, skill_data=skill_data, replaces=True)
        result = await store.users.change_profile("ann", change, START, LIMIT)
        assert result.fields == {"birth_info": born, "other": {"b": 2}}
        assert result.skill_data == {"bazi": [3], "tarot": 2}

    async def test_S6_a_check_gets_the_changed_fields_and_can_reject_the_change(self, store: Store):
        before = await patch(store, {"birth_info": {"date": "x"}, "other": 1})
        results: list[Mapping[str, Json]] = []

        def refuse(fields: Mapping[str, Json]) -> None:
            results.append(fields)
            raise WireError(where="birth_info", problem="is not to be so")

        change = ProfileChange(fields={"birth_info": {"time": "y"}, "gone": None}, skill_data={"bazi": 1}, check=refuse)
        with pytest.raises(WireError, match="not to be so"):
            await store.users.change_profile("ann", change, at(8), LIMIT)
        assert results == [{"birth_info": {"date": "x", "time": "y"}}]
        assert await store.users.read_profile("ann") == before

    async def test_S6_invalid_names_are_rejected(self, store: Store):
        for name in (*NO_NAMES, "tier", "scenario", "skill_data"):
            with pytest.raises(WireError, match=r"is (not a valid name; use|reserved)"):
                await patch(store, {"good": 1, name: 1})
        for name in NO_NAMES:
            for change in (ProfileChange(skill_data={name: 1}), keeping(name, 1)):
                with pytest.raises(WireError, match="is not a valid name"):
                    await store.users.change_profile("ann", change, START, LIMIT)
        assert await store.users.read_profile("ann") == StoredProfile()

    async def test_S6_a_profile_that_would_be_too_large_is_rejected(self, store: Store):
        change = ProfileChange(fields={"a": "四"}, skill_data={"b": "x"})
        most = len("a") + len('"四"'.encode()) + len("b") + len('"x"')
        rest = await store.users.change_profile("ann", change, START, most)
        for more in (ProfileChange(fields={"a": "四 "}), ProfileChange(skill_data={"c": 1})):
            with pytest.raises(InvalidRequest, match=f"the limit is {most}. Delete values"):
                await store.users.change_profile("ann", more, at(1), most)
        with pytest.raises(InvalidRequest, match="The profile would have 11 bytes; the limit is 10"):
            await store.users.change_profile("ann", keeping("b", "xy"), at(1), most)
        assert await store.users.read_profile("ann") == rest
        # A profile above its limit may shrink.
        less = await store.users.change_profile("ann", ProfileChange(skill_data={"b": None}), at(2), 1)
        assert (less.fields, less.skill_data) == ({"a": "四"}, {})

    async def test_S6_too_many_fields_or_skills_are_rejected(self, store: Store):
        many: Mapping[str, Json] = {f"f{number}": number for number in range(MAX_FIELDS)}
        assert len((await patch(store, many)).fields) == MAX_FIELDS
        with pytest.raises(InvalidRequest, match="The profile would have 65 fields; the limit is 64"):
            await patch(store, {"one-more": 1})
        assert "one-more" in (await patch(store, {"f0": None, "one-more": 1})).fields
        await patch_data(store, many)
        with pytest.raises(InvalidRequest, match="65 skills with data"):
            await store.users.change_profile("ann", keeping("one-more", 1), START, LIMIT)

    async def test_S6_concurrent_changes_all_apply(self, store: Store):
        names = [f"k{number}" for number in range(TOGETHER)]
        await asyncio.gather(
            *[patch(store, {"birth_info": {name: name}}) for name in names],
            *[patch_data(store, {"bazi": {name: name}}) for name in names],
            store.users.set_tier("ann", "pro", at(1)),
        )
        result = await store.users.read_profile("ann")
        every = {name: name for name in names}
        assert (result.fields, result.skill_data, result.tier) == ({"birth_info": every}, {"bazi": every}, "pro")

    async def test_S6_concurrent_changes_respect_the_limit(self, store: Store):
        changes = [ProfileChange(fields={f"k{number:02}": "x" * 100}) for number in range(TOGETHER)]
        changing = [store.users.change_profile("ann", change, START, 3 * 105) for change in changes]
        results = await asyncio.gather(*changing, return_exceptions=True)
        assert len([one for one in results if isinstance(one, StoredProfile)]) == 3
        assert len((await store.users.read_profile("ann")).fields) == 3

    async def test_P5_a_profile_is_exported_and_deleted_with_its_user(self, store: Store):
        for owner in ("ann", "bob"):
            await patch(store, {"extracted": [owner], "birth_info": BORN}, owner)
            await store.users.change_profile(owner, keeping("bazi", [owner, CHART]), START, LIMIT)
        await store.users.set_tier("ann", "pro", START)
        both = [await store.users.read_profile(owner) for owner in ("ann", "bob")]
        assert [(one.fields["extracted"], one.tier) for one in both] == [(["ann"], "pro"), (["bob"], "free")]
        assert await store.users.read_fields("bob", ["extracted"]) == {"extracted": ["bob"]}
        lines = [json.loads(line) async for line in store.users.export("ann")]
        expected = [
            {"type": "profile", "owner": "ann", "tier": "pro", "updated": TIME},
            {"type": "profile_field", "field": "birth_info", "body": BORN, "updated": TIME},
            {"type": "profile_field", "field": "extracted", "body": ["ann"], "updated": TIME},
            {"type": "skill_data", "skill": "bazi", "body": ["ann", CHART], "updated": TIME},
        ]
        assert lines == expected
        assert [(await store.users.delete("ann")).profiles, (await store.users.delete("ann")).profiles] == [1, 0]
        assert await store.users.read_profile("ann") == StoredProfile()
        assert [line async for line in store.users.export("ann")] == []
        assert (await store.users.read_profile("bob")).fields["extracted"] == ["bob"]
        assert [await store.users.read_skill_data(owner, "bazi") for owner in ("ann", "bob")] == [None, ["bob", CHART]]

    async def test_S6_a_run_keeps_the_tier_of_its_admission(self, store: Store):
        assert (await admit(store, "r0", "thread-0")).tier == "free"
        await store.users.set_tier("ann", "pro", at(1))
        assert await store.users.read_profile("ann") == StoredProfile(tier="pro", updated=at(1))
        new = admission("r1")
        claimed = (await store.runs.admit(new, NODE)).run
        assert (claimed.tier, claimed.status) == ("pro", "running")
        await store.users.set_tier("ann", "team", at(2))
        assert (await store.runs.admit(replace(new, id="another"))).run.tier == "pro"
        assert [(await store.runs.find("ann", name)).tier for name in ("r0", "r1")] == ["free", "pro"]
        assert (await admit(store, "r2", "thread-2")).tier == "team"
        await store.runs.release([lease_of(claimed)], at(0))
        claim = await store.runs.claim(NODE, at(9), 9)
        assert {run.name: run.tier for run in claim} == {"r0": "free", "r1": "pro", "r2": "team"}
        assert (await admit(store, "r9", "thread-9", owner="bob")).tier == "free"

    async def test_S6_an_invalid_tier_is_rejected(self, store: Store):
        for tier in ("", "Pro", "a b", "x" * 33, "金", "a\n"):
            with pytest.raises(WireError, match="tier: must be 1 to 32 lower-case letters"):
                await store.users.set_tier("ann", tier, START)
        assert await store.users.read_profile("ann") == StoredProfile()
