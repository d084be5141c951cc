"""Entries of every kind and their stored bytes."""

from collections.abc import Sequence
from dataclasses import replace

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
from tests.store.suite.samples import at

STATE = Opaque(provider="p", model="m", place="block", name="thinking", data='{"n": 1.0}')
FILE = File(kind="image", source=Url(url="u"), mime_type="t", name="n", id="i")
CALL = ToolCall(id="c", name="n", arguments='{ "a":1', encrypted_value="e", state=STATE)
STATE_BYTES = b'{"is":"opaque","provider":"p","model":"m","place":"block","name":"thinking","data":"{\\"n\\": 1.0}"}'

# Databases contain rows like these: lines may be added here, none may change.
STORED_ENTRIES: list[tuple[Entry, str, bytes]] = [
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


def every_kind_of_entry() -> Sequence[Entry]:
    """Return the entries of the table, each with an id and a time."""
    return [
        replace(entry, id=f"m{place}", time=at(place)) for place, (entry, _, _) in enumerate(STORED_ENTRIES, start=1)
    ]
