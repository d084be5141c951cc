"""Files of runs: their ids resolve, and a repeated request is recognized by its digest."""

from dataclasses import replace

import pytest

from recto.config.run_settings import Bounds
from recto.conversation.input.input_rules import NOT_SIGNED
from recto.conversation.message_files import FileRef
from recto.errors import Conflict, InvalidRequest, LimitReached, NotFound
from recto.store.ports import Admission, RunChange, RunEnding
from recto.store.store import Store
from recto.store.threads.threads import ForkOptions
from tests.store.suite.attachments import add, with_files
from tests.store.suite.samples import admission, at, begin, has_run, message_of

DIGEST, OTHER = b"\x00" * 32, b"\xff" * 32


def make_request(name: str, digest: bytes | None, input: bytes = b'{"n": 1}') -> Admission:
    return replace(admission(name, input=input), digest=digest)


class FileRefSuite:
    async def test_F4_file_ids_of_a_run_are_listed_in_order(self, store: Store):
        one = await add(store)
        first = replace(admission("r1"), response_id="r")
        refs = tuple(
            FileRef(id=f"r-{number}", attachment=one.id, name=f"四 {number}.png", kind="image", mime_type="image/png")
            for number in range(12)
        )
        await store.runs.admit(replace(first, files=refs))
        later = FileRef(id="a-0", attachment=one.id, name="b.pdf", kind="document")
        await store.runs.admit(replace(admission("r2"), created=at(1), files=(later,)))
        await store.runs.admit(with_files(admission("r3", "thread-2"), one))
        assert list(await store.files.list_refs("thread-1")) == [*refs, later]
        assert list(await store.files.list_refs("unknown")) == []

    @pytest.mark.parametrize("owner", ["bob", None])
    async def test_P10_a_run_with_another_users_file_is_rejected(self, store: Store, owner: str | None):
        mine = await add(store)
        other = await add(store, owner) if owner else replace(mine, id="unknown")
        request = with_files(admission("r1"), mine, other)
        with pytest.raises(InvalidRequest, match=NOT_SIGNED) as error:
            await store.runs.admit(request)
        assert error.value.where == "messages"
        assert (await has_run(store, "ann", "r1"), tuple(await store.files.list_refs("thread-1"))) == (False, ())
        with pytest.raises(NotFound):
            await store.threads.get("ann", "thread-1")

    async def test_P10_a_rejected_run_leaves_no_file_ids(self, store: Store):
        one = await add(store)
        await begin(store, "r1")
        with pytest.raises(LimitReached):
            await store.runs.admit(replace(with_files(admission("r2"), one), bounds=Bounds(user_runs=1)))
        assert list(await store.files.list_refs("thread-1")) == []
        assert (await store.files.delete_unused(at(5), 9))[0] == 1

    async def test_F4_a_file_id_outlives_its_attachment(self, store: Store):
        removed, rest = await add(store), await add(store)
        request = with_files(admission("r1"), removed, rest)
        await store.runs.admit(request)
        assert [ref.size for ref in await store.files.list_refs("thread-1")] == [removed.size, rest.size]
        await store.files.delete("ann", removed.id)
        assert [ref.size for ref in await store.files.list_refs("thread-1")] == [0, rest.size]
        expected = [replace(request.files[0], is_there=False), request.files[1]]
        assert list(await store.files.list_refs("thread-1")) == expected

    async def test_F4_a_file_id_never_changes_its_file(self, store: Store):
        first, second = await add(store), await add(store, content="b")
        request = with_files(admission("r1"), first)
        await store.runs.admit(request)
        again = tuple(replace(ref, attachment=second.id, name="other") for ref in request.files)
        await store.runs.admit(replace(admission("r2"), files=again))
        assert list(await store.files.list_refs("thread-1")) == list(request.files)

    async def test_F4_file_ids_of_a_fork_survive_the_deletion_of_its_source(self, store: Store):
        one = await add(store)
        lease = await begin(store, "r1")
        await store.runs.record(lease, RunChange(entries=[message_of("m1")], ending=RunEnding(outcome="done")), at(1))
        request = with_files(admission("r2"), one)
        await store.runs.admit(request)
        await store.threads.fork("ann", ForkOptions(thread="thread-1", id="fork", now=at(9), before="m1"))
        await store.threads.delete("ann", "thread-1")
        assert (await store.files.delete_unused(at(99), 9))[0] == 0
        assert list(await store.files.list_refs("fork")) == list(request.files)
        assert list(await store.files.list_refs("thread-1")) == []

    async def test_P4_a_repeated_request_is_recognized_by_its_digest(self, store: Store):
        first = await store.runs.admit(make_request("r1", DIGEST))
        again = await store.runs.admit(make_request("r1", DIGEST, b'{"n": 2}'))
        assert (again.run, again.is_new) == (first.run, False)
        with pytest.raises(Conflict, match="'r1' was started before, with another input"):
            await store.runs.admit(make_request("r1", OTHER))
        assert (await store.runs.find("ann", "r1")).input == b'{"n": 1}'

    @pytest.mark.parametrize(("old", "new"), [(None, DIGEST), (DIGEST, None), (None, None)])
    async def test_P4_without_a_digest_the_stored_input_decides(
        self, store: Store, old: bytes | None, new: bytes | None
    ):
        first = await store.runs.admit(make_request("r1", old))
        assert (await store.runs.admit(make_request("r1", new))).run == first.run
        with pytest.raises(Conflict, match="'r1'"):
            await store.runs.admit(make_request("r1", new, b'{"n": 2}'))

    async def test_P4_a_repeated_request_returns_its_run_before_other_checks(self, store: Store):
        one = await add(store)
        request = replace(with_files(admission("r1"), one), digest=DIGEST)
        first = await store.runs.admit(request)
        await store.files.delete("ann", one.id)
        result = await store.runs.find_repeated("ann", "r1", DIGEST)
        assert (result and (result.run, result.is_new)) == (first.run, False)
        assert not (await store.runs.admit(request)).is_new
        with pytest.raises(Conflict, match="'r1' was started before, with another input"):
            await store.runs.find_repeated("ann", "r1", OTHER)

    async def test_P4_only_a_stored_digest_finds_a_repetition(self, store: Store):
        await store.runs.admit(make_request("r1", None))
        await store.runs.admit(make_request("r2", DIGEST))
        requests = [("ann", "r1"), ("ann", "r3"), ("bob", "r2")]
        assert [await store.runs.find_repeated(owner, name, DIGEST) for owner, name in requests] == [None] * 3

    async def test_F4_unused_file_ids_of_a_turn_are_deleted(self, store: Store):
        one, first, second = await add(store), admission("r1"), admission("r2")
        for request in (first, second):
            await store.runs.admit(with_files(request, one, one))
        await store.files.delete_refs("thread-1", second.response_id)
        await store.files.delete_refs("thread-2", first.response_id)
        rest = [f"{first.response_id}-0", f"{first.response_id}-1"]
        assert [ref.id for ref in await store.files.list_refs("thread-1")] == rest

    async def test_F1_a_response_id_finds_the_opening_request(self, store: Store):
        request = admission("r1", input=b'{"n": 7}')
        await store.runs.admit(request)
        await store.runs.admit(admission("r2"))
        assert await store.runs.read_opening_input("thread-1", request.response_id) == b'{"n": 7}'
        assert await store.runs.read_opening_input("thread-2", request.response_id) is None
