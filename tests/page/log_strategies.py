"""Hypothesis strategies for any log: every role and part, orphans, ids used twice, odd arguments, no ids, no times."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Literal

from hypothesis import strategies as st

from recto.conversation.messages import (
    ActivityMessage,
    AssistantMessage,
    Data,
    DeveloperMessage,
    File,
    FileKind,
    Key,
    Message,
    Opaque,
    ProviderFile,
    ReasoningMessage,
    SystemMessage,
    Text,
    ToolCall,
    ToolMessage,
    ToolOffer,
    Url,
    UserMessage,
    UserPart,
)
from recto.page.fold.fold_settings import FoldSettings
from recto.page.fold.paths import Project
from recto.page.fold.rules import READS, SEARCH, TERMINAL, FoldRule

START = datetime(2026, 1, 1, tzinfo=UTC)
MODELS = ("gpt-x", "claude-x", "")
KINDS: tuple[FileKind, ...] = ("document", "image", "audio", "video")
PLACES: tuple[Literal["block", "field"], ...] = ("block", "field")
# Few of each, so that calls and results meet, ids come twice and reads name the same file.
CALL_IDS = ("c1", "c2", "c3", "call|4", "x" * 70, "")
TOOLS = ("read", "read", "bash", "search", "other")
ARGUMENTS = (
    '{"path":"a.py"}',
    '{"path":"a.py"}',
    '{"path":"/app/a.py"}',
    '{ "path" : "./a.py", "n": 1.0e3 }',
    '{"path":["a.py","b.py"]}',
    '{"path": ["a.py", {"path": "./a.py"}, null, 3, ["b.py"]]}',
    "{}",
    "",
    '{"path": "unfin',
    "[]",
)
OLD_READS = replace(READS, tools=("read",), path_args=("path",), keep=1)
OLD_COMMANDS = replace(TERMINAL, tools=("bash",), keep=0, max_age=timedelta(minutes=2), placeholder="old")
OLD_SEARCHES = replace(SEARCH, tools=("search",), keep=1, max_age=timedelta(0), placeholder="older")
FOLD = FoldSettings(reads=OLD_READS, terminal=OLD_COMMANDS, search=OLD_SEARCHES, project=Project(root="/app"))
OFFERS = (
    ToolOffer(name="read", description="Read a file.", parameters='{"type": "object", "properties": {}}'),
    ToolOffer(name="bash", description="", parameters='{"type":"object"}'),
)

SPECIAL = (
    *("", " \n", "Error: no", "\n  Error: late", "no Error: here", "\ud800 half", "<|endoftext|>", READS.placeholder),
    *('{"exitCode":1}', '{"exit_code": "2"}', '{"metadata": {"exit_code": 1}}', '{"stderr": "boom"}', "{not json"),
)

texts = st.text(max_size=8) | st.sampled_from(SPECIAL)
parts_of_text = st.builds(Text, text=texts, path=st.sampled_from((None, None, None, "a.py", "/app/b.py")))
sources = st.one_of(
    st.just(Url(url="https://x.test/a")),
    st.just(Data(base64="aGk=")),
    st.just(Key(key="k")),
    st.builds(ProviderFile, provider=st.sampled_from(("openai", "anthropic", "gemini")), handle=st.just("f")),
)
files = st.builds(
    File,
    kind=st.sampled_from(KINDS),
    source=sources,
    mime_type=st.sampled_from((None, "image/png", "image/svg+xml", "audio/wav", "application/pdf", "text/csv")),
    name=st.sampled_from((None, "a.pdf")),
)


@st.composite
def states(draw: st.DrawFn) -> Opaque:
    """State of any provider and model, as a block or a field."""
    place = draw(st.sampled_from(PLACES))
    name = draw(st.sampled_from(("thinking", "hologram") if place == "block" else ("reasoning_content", "refusal")))
    data = f'{{"type":"{name}","n": 1.0e3}}' if place == "block" else '"so"'
    provider = draw(st.sampled_from(("openai", "anthropic", "gemini", "google")))
    return Opaque(provider=provider, model=draw(st.sampled_from((None, *MODELS))), place=place, name=name, data=data)


@st.composite
def calls(draw: st.DrawFn) -> ToolCall:
    """A call under one of few ids, to one of few tools."""
    state = draw(st.none() | st.none() | states())
    return ToolCall(
        id=draw(st.sampled_from(CALL_IDS)),
        name=draw(st.sampled_from(TOOLS)),
        arguments=draw(st.sampled_from(ARGUMENTS)),
        state=replace(state, data='{"extra_content": 1}') if state else None,
        runner=draw(st.sampled_from((None, "server", "client", "form"))),
        provider_id=draw(st.sampled_from(("", "", *CALL_IDS))),
    )


def tuples_of(parts: st.SearchStrategy[UserPart]) -> st.SearchStrategy[tuple[UserPart, ...]]:
    """A few parts of one message."""
    return st.lists(parts, max_size=3).map(tuple)


user_parts = tuples_of(parts_of_text | parts_of_text | files | states())
assistant_parts = st.lists(st.one_of(parts_of_text, calls(), calls(), states(), files), max_size=4)
users = st.builds(UserMessage, parts=user_parts, name=st.sampled_from((None, None, "Ann")))
assistants = st.builds(AssistantMessage, parts=assistant_parts.map(tuple))
results = st.builds(
    ToolMessage,
    tool_call_id=st.sampled_from(CALL_IDS),
    parts=user_parts,
    error=st.sampled_from((None, None, None, "error")),
)
others = st.one_of(
    st.builds(SystemMessage, text=texts),
    st.builds(DeveloperMessage, text=texts),
    st.builds(ReasoningMessage, text=texts),
    st.just(ActivityMessage(activity_type="x", content="{}")),
)


any_message: st.SearchStrategy[Message] = st.one_of(users, assistants, results, others)


@st.composite
def rounds(draw: st.DrawFn) -> list[Message]:
    """Calls with their results, as most of a real log is; now and then something comes between, or one is missing."""
    new_calls = [replace(draw(calls()), id=id) for id in draw(st.permutations(CALL_IDS[:4]))[: draw(st.integers(1, 2))]]
    answers = [ToolMessage(tool_call_id=call.id, parts=(Text(text=draw(texts)),)) for call in new_calls]
    between = draw(st.lists(users | others, max_size=1)) if draw(st.integers(0, 3)) == 0 else []
    missing = 1 if draw(st.integers(0, 5)) == 0 else 0
    return [
        AssistantMessage(parts=(*draw(st.lists(parts_of_text, max_size=1)), *new_calls)),
        *between,
        *answers[missing:],
    ]


@st.composite
def repeats(draw: st.DrawFn) -> list[Message]:
    """One call made again and again, each with its result, so that there is something to fold."""
    arguments = draw(st.sampled_from(ARGUMENTS[:5]))
    call = replace(draw(calls()), name=draw(st.sampled_from(TOOLS[:4])), arguments=arguments)
    answers = draw(st.lists(texts.filter(str.strip), min_size=2, max_size=3))
    pairs = [
        (AssistantMessage(parts=(call,)), ToolMessage(tool_call_id=call.id, parts=(Text(text=a),))) for a in answers
    ]
    return [message for pair in pairs for message in pair]


@st.composite
def logs(draw: st.DrawFn, *, most: int = 12, repeats_ids: bool = False) -> tuple[Message, ...]:
    """Any log. Times go up and down and are missing, and so do ids; an id is there once, unless it `repeats_ids`."""
    one = any_message.map(lambda message: [message])
    first = draw(st.lists(users, max_size=1))
    pieces = draw(st.lists(st.one_of(one, rounds(), repeats()), max_size=most))
    minutes = st.none() | st.integers(0, 30)
    messages = [*first, *(message for piece in pieces for message in piece)][:most]
    return tuple(
        stamped(message, (place % 2 if repeats_ids else place) if draw(st.integers(0, 4)) else None, draw(minutes))
        for place, message in enumerate(messages)
    )


def stamped(message: Message, number: int | None, minutes: int | None) -> Message:
    """The message with an id and a time of the log, or without them."""
    time = None if minutes is None else START + timedelta(minutes=minutes)
    return replace(message, id="" if number is None else f"m{number}", time=time)


def newest_user(log: Sequence[Message]) -> tuple[str, UserMessage] | None:
    """The last user's message, and what the manifest calls it."""
    users_by_place = [(place, message) for place, message in enumerate(log) if isinstance(message, UserMessage)]
    return (
        (users_by_place[-1][1].id or f"messages[{users_by_place[-1][0]}]", users_by_place[-1][1])
        if users_by_place
        else None
    )


def projects() -> st.SearchStrategy[Project]:
    """Roots of every form, on disks that tell case and that do not."""
    roots = (None, "/app", "/srv/app", "/", "F:/app", "f:\\App\\", "\\\\server\\share\\app", "work/app", ".")
    return st.builds(Project, root=st.sampled_from(roots), case_sensitive=st.booleans())


@st.composite
def spelled_paths(draw: st.DrawFn) -> str:
    """Paths as people and models spell them. A colon stands only behind a drive, as file systems have it."""
    starts = ("", "", "./", "/", "//", "F:/", "f:\\", "C:", "/srv/app/", "F:\\app\\", "\\\\server\\")
    start = draw(st.sampled_from(starts))
    step = st.one_of(
        st.sampled_from(("..", ".", "", "a", "A", "src", "app", "App", "srv", "server", "share", "文档")),
        st.text(st.characters(exclude_characters="/\\:", exclude_categories=["Cs"]), max_size=4),
    )
    steps = draw(st.lists(st.tuples(step, st.sampled_from(("/", "\\", "//"))), max_size=6))
    path = start + ("/" if start == "C:" else "") + "".join(name + slash for name, slash in steps)
    return path if draw(st.booleans()) else path.rstrip("/\\") or path or "."


def age_rules(rule: FoldRule) -> st.SearchStrategy[FoldRule | None]:
    ages = st.sampled_from((timedelta(0), timedelta(minutes=5)))
    return st.none() | st.builds(partial(replace, rule), keep=st.integers(0, 2), max_age=ages)


def fold_settings() -> st.SearchStrategy[FoldSettings]:
    """Settings that keep little, so that short conversations have something to fold."""
    sizes = st.sampled_from(((), ((0, 1),), ((5, 1),), ((3, 2), (8, 1))))
    reads = st.builds(partial(replace, OLD_READS), keep=st.integers(1, 3), keep_by_size=sizes)
    return st.builds(
        FoldSettings,
        reads=st.one_of(reads, reads, reads, st.none()),
        terminal=age_rules(OLD_COMMANDS),
        search=age_rules(OLD_SEARCHES),
        project=projects(),
    )
