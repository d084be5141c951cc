"""Entries as bytes: every one comes back, what is unknown is refused, and the bytes stay what they are."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.log import (
    Compacted,
    ConfirmAsked,
    ConfirmDecided,
    Entry,
    FoldStep,
    Interrupted,
    ReplyEnded,
    RolledBack,
    SkillChanged,
    StateChanged,
    ToolStarted,
    Undone,
)
from recto.conversation.messages import (
    ActivityMessage,
    AssistantMessage,
    Data,
    DeveloperMessage,
    File,
    Key,
    Opaque,
    ProviderFile,
    ReasoningMessage,
    SystemMessage,
    Text,
    ToolCall,
    ToolMessage,
    Url,
    UserMessage,
)
from recto.errors import WireError
from recto.store.log.entries import ENTRIES, VALUES, decode_entry, encode_entry, kind_of_entry
from tests.page import entry_strategies, log_strategies
from tests.store.suite.samples import every_kind_of_entry

TIME = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
HALF = "\ud800"

messages = st.one_of(
    log_strategies.users, log_strategies.assistants, log_strategies.results, log_strategies.others
) | st.builds(
    UserMessage,
    response_id=st.text(max_size=3),
    parts=log_strategies.shown,
    name=st.none() | st.text(max_size=3),
    encrypted_value=st.none() | st.text(max_size=3),
)
# Half a surrogate pair has no bytes; what becomes of it has a test of its own.
entries: st.SearchStrategy[Entry] = (messages | entry_strategies.any_marker).filter(
    lambda entry: ascii(HALF).strip("'") not in repr(entry)
)

STATE = Opaque(provider="p", model="m", place="block", name="thinking", data='{"n": 1.0}')
FILE = File(kind="image", source=Url(url="u"), mime_type="t", name="n", id="i")
CALL = ToolCall(id="c", name="n", arguments='{ "a":1', encrypted_value="e", state=STATE)
STATE_BYTES = b'{"is":"opaque","provider":"p","model":"m","place":"block","name":"thinking","data":"{\\"n\\": 1.0}"}'

# Rows like these stand in databases: a line may be added here, none may change.
STORED: list[tuple[Entry, str, bytes]] = [
    (
        UserMessage(response_id="r", parts=(Text(text="四", path="a.py"),), name="A", encrypted_value="e"),
        "user",
        '{"response_id":"r","parts":[{"is":"text","text":"四","path":"a.py"}],"name":"A","encrypted_value":"e"}'.encode(),
    ),
    (UserMessage(), "user", b"{}"),
    (
        UserMessage(parts=(FILE,)),
        "user",
        b'{"parts":[{"is":"file","kind":"image","source":{"is":"url","url":"u"},"mime_type":"t","name":"n","id":"i"}]}',
    ),
    (
        UserMessage(parts=(File(kind="audio", source=Data(base64="b")), File(kind="video", source=Key(key="k")))),
        "user",
        b'{"parts":[{"is":"file","kind":"audio","source":{"is":"data","base64":"b"}},'
        b'{"is":"file","kind":"video","source":{"is":"key","key":"k"}}]}',
    ),
    (
        UserMessage(parts=(File(kind="document", source=ProviderFile(provider="p", handle="h")),)),
        "user",
        b'{"parts":[{"is":"file","kind":"document","source":{"is":"provider_file","provider":"p","handle":"h"}}]}',
    ),
    (
        AssistantMessage(parts=(Text(text=""), CALL, STATE), name="A", encrypted_value="e"),
        "assistant",
        b'{"parts":[{"is":"text","text":""},{"is":"call","id":"c","name":"n","arguments":"{ \\"a\\":1",'
        b'"encrypted_value":"e","state":' + STATE_BYTES + b"}," + STATE_BYTES + b'],"name":"A","encrypted_value":"e"}',
    ),
    (
        AssistantMessage(parts=(Opaque(provider="p", model=None, place="field", name="n", data="1"),)),
        "assistant",
        b'{"parts":[{"is":"opaque","provider":"p","model":null,"place":"field","name":"n","data":"1"}]}',
    ),
    (
        ToolMessage(tool_call_id="c", parts=(Text(text="t"),), error="e", encrypted_value="v"),
        "tool",
        b'{"tool_call_id":"c","parts":[{"is":"text","text":"t"}],"error":"e","encrypted_value":"v"}',
    ),
    (SystemMessage(text="t", name="n"), "system", b'{"text":"t","name":"n"}'),
    (DeveloperMessage(text="t", encrypted_value="e"), "developer", b'{"text":"t","encrypted_value":"e"}'),
    (ReasoningMessage(text="t"), "reasoning", b'{"text":"t"}'),
    (ActivityMessage(activity_type="a", content="{}"), "activity", b'{"activity_type":"a","content":"{}"}'),
    (SkillChanged(skill="s", scenario="c"), "skill_changed", b'{"skill":"s","scenario":"c"}'),
    (SkillChanged(skill=None), "skill_changed", b'{"skill":null}'),
    (ToolStarted(message="m", call="c"), "tool_started", b'{"message":"m","call":"c"}'),
    (
        ConfirmAsked(message="m", call="c", run="r", seconds=60.0),
        "confirm_asked",
        b'{"message":"m","call":"c","run":"r","seconds":60.0}',
    ),
    (
        ConfirmDecided(interrupt="i", run="t", approved=True, text="ok", arguments="{}"),
        "confirm_decided",
        b'{"interrupt":"i","run":"t","approved":true,"text":"ok","arguments":"{}"}',
    ),
    (
        FoldStep(results=("m",), model="a:b", cause="pays", freed=9, rewritten=4, saves=3, costs=2),
        "fold_step",
        b'{"results":["m"],"model":"a:b","cause":"pays","freed":9,"rewritten":4,"saves":3,"costs":2}',
    ),
    (FoldStep(results=("m",)), "fold_step", b'{"results":["m"]}'),
    (Interrupted(message="m", reason="r"), "interrupted", b'{"message":"m","reason":"r"}'),
    (ReplyEnded(message="m", finish="length"), "reply_ended", b'{"message":"m","finish":"length"}'),
    (RolledBack(to="m"), "rolled_back", b'{"to":"m"}'),
    (RolledBack(to="m", cause="client"), "rolled_back", b'{"to":"m","cause":"client"}'),
    (Undone(), "undone", b"{}"),
    (Compacted(upto="m", summary="s"), "compacted", b'{"upto":"m","summary":"s"}'),
    (StateChanged(value='{"a":1}'), "state_changed", b'{"value":"{\\"a\\":1}"}'),
]


@given(entries)
def test_every_entry_comes_back_as_it_was(entry: Entry):
    logged = replace(entry, id="m1", seq=3, time=TIME)
    assert decoded(kind_of_entry(logged), encode_entry(logged)) == logged


def test_half_a_surrogate_pair_is_replaced_because_it_has_no_bytes():
    entry = UserMessage(parts=(Text(text=f"{HALF} half"),))
    assert decoded("user", encode_entry(entry)) == logged(UserMessage(parts=(Text(text="\ufffd half"),)))


@pytest.mark.parametrize(("entry", "kind", "body"), STORED)
def test_the_stored_bytes_of_each_kind_never_change(entry: Entry, kind: str, body: bytes):
    assert (kind_of_entry(entry), encode_entry(entry)) == (kind, body)
    assert decoded(kind, body) == logged(entry)


def test_every_kind_and_value_there_is_stands_in_the_table_of_stored_bytes():
    assert {kind for _, kind, _ in STORED} == ENTRIES.keys()
    assert all(any(f'"is":"{name}"'.encode() in body for _, _, body in STORED) for name in VALUES)
    assert {kind_of_entry(entry) for entry in every_kind_of_entry()} == ENTRIES.keys()


@pytest.mark.parametrize(
    ("kind", "body", "problem"),
    [
        ("hologram", b"{}", r"log\[3\]: is no entry this version knows \('hologram'\)"),
        ("user", b"[]", r"log\[3\]: is no entry"),
        ("user", b"not JSON", r"log\[3\]: is no entry"),
        ("user", b'{"mood":"good"}', r"log\[3\]\.mood: is a field this version does not know"),
        ("user", b'{"is":"user"}', r"log\[3\]\.is: is a field this version does not know"),
        ("user", b'{"seq":4}', r"log\[3\]\.seq: is a field this version does not know"),
        ("user", b'{"parts":[{"is":"smell","text":"t"}]}', r"parts: is no value this version knows \('smell'\)"),
        ("user", b'{"parts":[{"is":"text","text":"t","size":1}]}', r"parts\.size: is a field this version"),
        ("user", b'{"parts":[{"text":"t"}]}', r"parts: is a value without a name"),
        ("user", b'{"parts":[{"is":"text"}]}', r"parts\.text: is missing"),
        ("tool", b"{}", r"log\[3\]\.tool_call_id: is missing"),
    ],
)
def test_a_row_this_version_cannot_read_whole_is_refused(kind: str, body: bytes, problem: str):
    with pytest.raises(WireError, match=problem):
        decoded(kind, body)


def decoded(kind: str, body: bytes) -> Entry:
    return decode_entry(kind, body, id="m1", seq=3, time=TIME)


def logged(entry: Entry) -> Entry:
    return replace(entry, id="m1", seq=3, time=TIME)
