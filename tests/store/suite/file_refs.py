"""What a store promises of the files of runs: their ids resolve, and the same request is known by its digest."""

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
from tests.store.suite.samples import admission, at, begin, has_run, said

DIGEST, OTHER = b"\x00" * 32, b"\xff" * 32


def sent(name: str, digest: bytes | None, input: bytes = b'{"n": 1}') -> Admission:
    return replace(admission(name, input=input), digest=digest)


class FileRefSuite:
    async def test_F4_the_ids_of_a_runs_files_are_told_in_their_order(self, store: Store):
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
    async def test_P10_a_run_that_names_a_file_its_user_has_not_is_refused_whole(self, store: Store, owner: str | None):
        mine = await add(store)
        other = await add(store, owner) if owner else replace(mine, id="unknown")
        asked = with_files(admission("r1"), mine, other)
        with pytest.raises(InvalidRequest, match=NOT_SIGNED) as refused:
            await store.runs.admit(asked)
        assert refused.value.where == "messages"
        assert (await has_run(store, "ann", "r1"), tuple(await store.files.list_refs("thread-1"))) == (False, ())
        with pytest.raises(NotFound):
            await store.threads.get("ann", "thread-1")

    async def test_P10_a_run_that_is_refused_leaves_no_file_ids(self, store: Store):
        one = await add(store)
        await begin(store, "r1")
        with pytest.raises(LimitReached):
            await store.runs.admit(replace(with_files(admission("r2"), one), bounds=Bounds(user_runs=1)))
        assert list(await store.files.list_refs("thread-1")) == []
        assert (await store.files.delete_unused(at(5), 9))[0] == 1

    async def test_F4_an_id_outlives_its_attachment_and_says_that_it_is_gone(self, store: Store):
        gone, kept = await add(store), await add(store)
        asked = with_files(admission("r1"), gone, kept)
        await store.runs.admit(asked)
        assert [ref.size for ref in await store.files.list_refs("thread-1")] == [gone.size, kept.size]
        await store.files.delete("ann", gone.id)
        assert [ref.size for ref in await store.files.list_refs("thread-1")] == [0, kept.size]
        wanted = [replace(asked.files[0], is_there=False), asked.files[1]]
        assert list(await store.files.list_refs("thread-1")) == wanted

    async def test_F4_what_an_id_stands_for_never_changes(self, store: Store):
        first, second = await add(store), await add(store, content="b")
        asked = with_files(admission("r1"), first)
        await store.runs.admit(asked)
        again = tuple(replace(ref, attachment=second.id, name="other") for ref in asked.files)
        await store.runs.admit(replace(admission("r2"), files=again))
        assert list(await store.files.list_refs("thread-1")) == list(asked.files)

    async def test_F4_ids_resolve_in_a_fork_whatever_becomes_of_the_thread(self, store: Store):
        one = await add(store)
        lease = await begin(store, "r1")
        await store.runs.record(lease, RunChange(entries=[said("m1")], ending=RunEnding(outcome="done")), at(1))
        asked = with_files(admission("r2"), one)
        await store.runs.admit(asked)
        await store.threads.fork("ann", ForkOptions(thread="thread-1", id="fork", now=at(9), before="m1"))
        await store.threads.delete("ann", "thread-1")
        assert (await store.files.delete_unused(at(99), 9))[0] == 0
        assert list(await store.files.list_refs("fork")) == list(asked.files)
        assert list(await store.files.list_refs("thread-1")) == []

    async def test_P4_a_request_is_known_by_its_digest_whatever_is_kept_of_it(self, store: Store):
        first = await store.runs.admit(sent("r1", DIGEST))
        again = await store.runs.admit(sent("r1", DIGEST, b'{"n": 2}'))
        assert (again.run, again.is_new) == (first.run, False)
        with pytest.raises(Conflict, match="'r1' was started before, with another input"):
            await store.runs.admit(sent("r1", OTHER))
        assert (await store.runs.find("ann", "r1")).input == b'{"n": 1}'

    @pytest.mark.parametrize(("stored", "new"), [(None, DIGEST), (DIGEST, None), (None, None)])
    async def test_P4_where_one_has_no_digest_what_is_kept_decides(
        self, store: Store, stored: bytes | None, new: bytes | None
    ):
        first = await store.runs.admit(sent("r1", stored))
        assert (await store.runs.admit(sent("r1", new))).run == first.run
        with pytest.raises(Conflict, match="'r1'"):
            await store.runs.admit(sent("r1", new, b'{"n": 2}'))

    async def test_P4_a_run_is_found_again_before_anything_else_is_asked(self, store: Store):
        one = await add(store)
        asked = replace(with_files(admission("r1"), one), digest=DIGEST)
        first = await store.runs.admit(asked)
        await store.files.delete("ann", one.id)
        found = await store.runs.find_repeated("ann", "r1", DIGEST)
        assert (found and (found.run, found.is_new)) == (first.run, False)
        assert not (await store.runs.admit(asked)).is_new
        with pytest.raises(Conflict, match="'r1' was started before, with another input"):
            await store.runs.find_repeated("ann", "r1", OTHER)

    async def test_P4_a_run_nobody_has_sent_or_that_has_no_digest_is_not_found_again(self, store: Store):
        await store.runs.admit(sent("r1", None))
        await store.runs.admit(sent("r2", DIGEST))
        asked = [("ann", "r1"), ("ann", "r3"), ("bob", "r2")]
        assert [await store.runs.find_repeated(owner, name, DIGEST) for owner, name in asked] == [None] * 3

    async def test_F4_ids_of_a_turn_that_never_was_are_taken_back_and_no_others(self, store: Store):
        one, first, second = await add(store), admission("r1"), admission("r2")
        for asked in (first, second):
            await store.runs.admit(with_files(asked, one, one))
        await store.files.delete_refs("thread-1", second.response_id)
        await store.files.delete_refs("thread-2", first.response_id)
        left = [f"{first.response_id}-0", f"{first.response_id}-1"]
        assert [ref.id for ref in await store.files.list_refs("thread-1")] == left

    async def test_F1_the_request_that_opened_a_turn_is_found_by_its_response_id(self, store: Store):
        asked = admission("r1", input=b'{"n": 7}')
        await store.runs.admit(asked)
        await store.runs.admit(admission("r2"))
        assert await store.runs.read_opening_input("thread-1", asked.response_id) == b'{"n": 7}'
        assert await store.runs.read_opening_input("thread-2", asked.response_id) is None
