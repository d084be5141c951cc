"""Encoding of entries: each survives a round trip, unknown rows are errors, and stored bytes never change."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.log import Entry
from recto.conversation.messages import Text, UserMessage
from recto.errors import WireError
from recto.store.log.entry_codec import ENTRIES, VALUES, decode_entry, encode_entry, entry_kind
from tests.page import entry_strategies, log_strategies
from tests.store.suite.stored_entries import STORED_ENTRIES

TIME = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
HALF = "\ud800"

messages = st.one_of(
    log_strategies.users, log_strategies.assistants, log_strategies.results, log_strategies.others
) | st.builds(
    UserMessage,
    response_id=st.text(max_size=3),
    parts=log_strategies.user_parts,
    name=st.none() | st.text(max_size=3),
    encrypted_value=st.none() | st.text(max_size=3),
)
# A lone surrogate has no bytes; another test covers it.
entries: st.SearchStrategy[Entry] = (messages | entry_strategies.any_marker).filter(
    lambda entry: ascii(HALF).strip("'") not in repr(entry)
)


@given(entries)
def test_every_entry_survives_a_round_trip(entry: Entry):
    logged = replace(entry, id="m1", seq=3, time=TIME)
    assert decoded(entry_kind(logged), encode_entry(logged)) == logged


def test_a_lone_surrogate_is_replaced():
    entry = UserMessage(parts=(Text(text=f"{HALF} half"),))
    assert decoded("user", encode_entry(entry)) == logged(UserMessage(parts=(Text(text="\ufffd half"),)))


@pytest.mark.parametrize(("entry", "kind", "body"), STORED_ENTRIES)
def test_the_stored_bytes_of_each_kind_never_change(entry: Entry, kind: str, body: bytes):
    assert (entry_kind(entry), encode_entry(entry)) == (kind, body)
    assert decoded(kind, body) == logged(entry)


def test_the_table_of_stored_bytes_covers_every_kind():
    assert {kind for _, kind, _ in STORED_ENTRIES} == ENTRIES.keys()
    assert all(any(f'"is":"{name}"'.encode() in body for _, _, body in STORED_ENTRIES) for name in VALUES)


@pytest.mark.parametrize(
    ("kind", "body", "problem"),
    [
        ("hologram", b"{}", r"log\[3\]: is an unknown kind of entry \('hologram'\)"),
        ("user", b"[]", r"log\[3\]: is an unknown kind of entry"),
        ("user", b"not JSON", r"log\[3\]: is an unknown kind of entry"),
        ("user", b'{"mood":"good"}', r"log\[3\]\.mood: is an unknown field"),
        ("user", b'{"is":"user"}', r"log\[3\]\.is: is an unknown field"),
        ("user", b'{"seq":4}', r"log\[3\]\.seq: is an unknown field"),
        ("user", b'{"parts":[{"is":"smell","text":"t"}]}', r"parts: is an unknown kind of value \('smell'\)"),
        ("user", b'{"parts":[{"is":"text","text":"t","size":1}]}', r"parts\.size: is an unknown field"),
        ("user", b'{"parts":[{"text":"t"}]}', r"parts: has no type"),
        ("user", b'{"parts":[{"is":"text"}]}', r"parts\.text: is missing"),
        ("tool", b"{}", r"log\[3\]\.tool_call_id: is missing"),
    ],
)
def test_an_unreadable_row_is_an_error(kind: str, body: bytes, problem: str):
    with pytest.raises(WireError, match=problem):
        decoded(kind, body)


def decoded(kind: str, body: bytes) -> Entry:
    return decode_entry(kind, body, id="m1", seq=3, time=TIME)


def logged(entry: Entry) -> Entry:
    return replace(entry, id="m1", seq=3, time=TIME)
