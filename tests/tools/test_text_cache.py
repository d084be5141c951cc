"""D3: texts are kept by what files hold, as many as fit, and each is made once however many ask for it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.tools.text_cache import LEAST_COUNTED, TextCache, TextKey

ONE, TWO = TextKey(sha256="1", parser=1), TextKey(sha256="2", parser=1)


@dataclass(frozen=True, kw_only=True)
class Maker:
    """Makes texts, and knows of which key each was asked. It waits at the gate, where there is one."""

    gate: asyncio.Event | None = None
    made: list[TextKey] = field(default_factory=list[TextKey])

    def of(self, key: TextKey, made: str | Exception = "text") -> Callable[[], Awaitable[str]]:
        async def make() -> str:
            self.made.append(key)
            if self.gate:
                await self.gate.wait()
            if isinstance(made, Exception):
                raise made
            return made

        return make


async def settled(*tasks: asyncio.Task[str]) -> None:
    """Let everybody come to where they wait."""
    for _ in range(5 * len(tasks)):
        await asyncio.sleep(0)


async def test_D3_a_text_that_was_made_is_kept():
    texts, maker = TextCache(), Maker()
    assert [await texts.text(ONE, maker.of(ONE, "one")) for _ in range(3)] == ["one"] * 3
    assert await texts.text(TWO, maker.of(TWO, "two")) == "two"
    assert maker.made == [ONE, TWO]


async def test_D3_another_version_of_the_parser_makes_it_anew():
    texts, maker, newer = TextCache(), Maker(), TextKey(sha256=ONE.sha256, parser=2)
    assert await texts.text(ONE, maker.of(ONE, "old")) == "old"
    assert await texts.text(newer, maker.of(newer, "new")) == "new"
    assert maker.made == [ONE, newer]


@pytest.mark.parametrize("most", [1_000_000, 1])
async def test_D3_who_ask_at_once_get_the_text_that_one_makes_kept_or_not(most: int):
    texts, maker = TextCache(most_characters=most), Maker(gate=asyncio.Event())
    asking = [asyncio.create_task(texts.text(ONE, maker.of(ONE))) for _ in range(5)]
    await settled(*asking)
    assert maker.gate
    maker.gate.set()
    assert await asyncio.gather(*asking) == ["text"] * 5
    assert maker.made == [ONE]


async def test_D3_another_text_does_not_wait_for_one_that_takes_long():
    texts, maker = TextCache(), Maker(gate=asyncio.Event())
    slow = asyncio.create_task(texts.text(ONE, maker.of(ONE)))
    await settled(slow)
    assert await texts.text(TWO, Maker().of(TWO, "two")) == "two"
    slow.cancel()


async def test_D3_a_failure_is_told_to_who_made_it_and_the_next_makes_it():
    texts, maker = TextCache(), Maker(gate=asyncio.Event())
    made: tuple[str | Exception, ...] = (OSError("gone"), "text", "never asked for")
    asking = [asyncio.create_task(texts.text(ONE, maker.of(ONE, one))) for one in made]
    await settled(*asking)
    assert maker.gate
    maker.gate.set()
    failed, *others = await asyncio.gather(*asking, return_exceptions=True)
    assert isinstance(failed, OSError)
    assert others == ["text", "text"]
    assert maker.made == [ONE, ONE]


async def test_D3_a_failure_is_not_kept():
    texts, maker = TextCache(), Maker()
    with pytest.raises(OSError, match="gone"):
        await texts.text(ONE, maker.of(ONE, OSError("gone")))
    assert await texts.text(ONE, maker.of(ONE)) == "text"


@pytest.mark.parametrize(("leaving", "made"), [(0, [ONE, ONE]), (1, [ONE])])
async def test_D3_who_is_cancelled_takes_the_text_from_nobody(leaving: int, made: list[TextKey]):
    texts, maker = TextCache(), Maker(gate=asyncio.Event())
    asking = [asyncio.create_task(texts.text(ONE, maker.of(ONE))) for _ in range(3)]
    await settled(*asking)
    asking[leaving].cancel()
    await settled(*asking)
    assert maker.gate
    maker.gate.set()
    answers = await asyncio.gather(*asking, return_exceptions=True)
    assert isinstance(answers.pop(leaving), asyncio.CancelledError)
    assert answers == ["text", "text"]
    assert maker.made == made


async def test_D3_a_text_larger_than_the_room_is_given_and_not_kept_and_drives_out_no_other():
    texts, maker = TextCache(most_characters=1_000), Maker()
    await texts.text(TWO, maker.of(TWO, "y" * 1_000))
    for _ in range(2):
        assert await texts.text(ONE, maker.of(ONE, "x" * 1_001)) == "x" * 1_001
    await texts.text(TWO, maker.of(TWO))
    assert maker.made == [TWO, ONE, ONE]


async def test_D3_a_text_that_is_used_again_outlives_one_that_is_not():
    texts, maker = TextCache(most_characters=2_000), Maker()
    three = TextKey(sha256="3", parser=1)
    for key in (ONE, TWO, ONE, three, ONE, TWO):
        await texts.text(key, maker.of(key, "x" * 1_000))
    assert maker.made == [ONE, TWO, three, TWO]


@given(
    asked=st.lists(st.integers(0, 3), max_size=40),
    lengths=st.lists(st.integers(0, 4 * LEAST_COUNTED), min_size=4, max_size=4),
    most=st.integers(0, 10 * LEAST_COUNTED),
)
def test_D3_those_used_last_are_kept_and_never_more_than_fit(asked: list[int], lengths: list[int], most: int):
    texts, counted = TextCache(most_characters=most), [max(length, LEAST_COUNTED) for length in lengths]
    kept: list[int] = []

    async def ask_all() -> None:
        for number in asked:
            maker, key = Maker(), TextKey(sha256=str(number), parser=1)
            assert await texts.text(key, maker.of(key, "x" * lengths[number])) == "x" * lengths[number]
            assert (maker.made == []) is (number in kept)
            kept[:] = [*[one for one in kept if one != number], *([number] if counted[number] <= most else [])]
            while sum(counted[one] for one in kept) > most:
                kept.pop(0)
            assert texts.size == sum(counted[one] for one in kept) <= most

    asyncio.run(ask_all())
