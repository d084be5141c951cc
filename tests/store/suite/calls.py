"""What a store promises of model calls: the exact body and manifest, however much of it calls have in common."""

from collections.abc import Sequence
from hashlib import sha256

import pytest

from recto.errors import Conflict
from recto.page.body import Segment
from recto.store.ports import CallBegun, CallEnded, RunChange
from recto.store.store import Store
from tests.store.suite.samples import PLENTY, at, begin


class CallSuite:
    async def test_a_call_comes_back_with_all_that_was_said_of_it(self, store: Store):
        lease = await begin(store, "r1")
        await store.record(lease, RunChange(call=call(1, "ab", manifest=b'[{"kind": "tools"}]')), at(1))
        (begun,) = await store.calls(lease.run)
        assert (begun.purpose, begun.model, begun.digest) == ("reply", "gpt-x", "d" * 64)
        assert (begun.manifest, begun.started, begun.ended) == (b'[{"kind": "tools"}]', at(1), None)
        end = CallEnded(number=1, ended=at(3), first_token=at(2), finish="stop", usage=b'{"n": 1}', error="cut off")
        await store.record(lease, RunChange(call_ended=end, call=call(2, "abc", shared=2)), at(3))
        ended, following = await store.calls(lease.run)
        assert (following.body, following.ended) == (body_of("abc"), None)
        assert (ended.ended, ended.first_token, ended.finish) == (at(3), at(2), "stop")
        assert (ended.usage, ended.error, ended.body) == (b'{"n": 1}', "cut off", begun.body)

    async def test_a_page_of_many_segments_is_put_together(self, store: Store):
        lease = await begin(store, "r1")
        page = "".join(chr(0x4E00 + number) for number in range(PLENTY * 2))
        await store.record(lease, RunChange(call=call(1, page)), at(1))
        assert [one.body == body_of(page) for one in await store.calls(lease.run)] == [True]

    async def test_a_call_under_a_number_that_is_taken_is_refused(self, store: Store):
        lease = await begin(store, "r1")
        await store.record(lease, RunChange(call=call(1, "ab")), at(1))
        with pytest.raises(Conflict):
            await store.record(lease, RunChange(call=call(1, "xy"), events=(b"e",)), at(2))
        assert [one.body for one in await store.calls(lease.run)] == [body_of("ab")]
        assert (await store.find_run("ann", "r1")).last_event == 0


def call(number: int, page: str, *, shared: int = 0, new: str | None = None, manifest: bytes = b"[]") -> CallBegun:
    """A call of a page with one segment a letter; `new` are those that are sent along."""
    segments = [segment(letter) for letter in (page[shared:] if new is None else new)]
    return CallBegun(
        number=number,
        purpose="reply",
        model="gpt-x",
        digest="d" * 64,
        shared=shared,
        hashes=b"".join([segment(letter).sha256 for letter in page[shared:]]),
        segments=segments,
        manifest=manifest,
        started=at(number),
    )


def segment(letter: str) -> Segment:
    """Bytes that are not the letter alone, so that order and borders show."""
    data = f"<{letter}>".encode() * 3
    return Segment(data=data, sha256=sha256(data).digest())


def body_of(page: Sequence[str]) -> bytes:
    return b"".join([segment(letter).data for letter in page])
