"""What is written of a conversation is kept for its next page: written anew only where it is another, and once only."""

import gc
from collections.abc import Iterator, Sequence
from dataclasses import replace

import recto
from recto.conversation.log import Entry
from recto.conversation.messages import Message
from recto.page.assemble import assemble
from recto.page.facts import Facts
from recto.page.fold.rules import READS
from recto.page.wire.base import Target
from tests.page.talk import reads, user

READ_1, READ_2 = (reads(str(n), f"lines of read {n}") for n in (1, 2))
KEEP_ONE = recto.FoldSettings(reads=replace(READS, keep=1))


def facts(log: Sequence[Entry], wire: str = "openai") -> Facts:
    return Facts(log=log, target=Target(wire=wire, model="m"), fold=KEEP_ONE)


def test_the_bytes_of_a_result_are_gone_once_it_is_folded():
    log = (user("u1"), *READ_1)
    assemble(facts(log))
    assert any(b"lines of read 1" in data for data in bytes_of(log))
    log = (*log, *READ_2)
    assemble(facts(log))
    body_pieces = list(bytes_of(log))
    assert not any(b"lines of read 1" in data for data in body_pieces)
    assert sum(b"lines of read 2" in data for data in body_pieces) == 1


def bytes_of(log: Sequence[Message]) -> Iterator[bytes]:
    """All bytes that messages keep alive."""
    waiting: list[object] = [message.memo for message in log]
    ids = set[int]()
    while waiting:
        value = waiting.pop()
        if id(value) not in ids and not isinstance(value, type) and not callable(value):
            ids.add(id(value))
            waiting += gc.get_referents(value)
            if isinstance(value, bytes):
                yield value


def test_a_log_that_is_dropped_takes_what_it_remembers_with_it():
    log = (user("u1"), *READ_1, *READ_2)
    assemble(facts(log))
    gc.collect()
    gc.disable()
    try:
        del log
        assert gc.collect() == 0
    finally:
        gc.enable()
