"""Hypothesis strategies for conversations: every role and part, calls good and bad, orphans, duplicates, any time.

The vocabulary is small on purpose: ids, files and tools meet again, so that there is something to fold and repair.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial

from hypothesis import strategies as st

from recto.conversation.messages import (
    ActivityMessage,
    AssistantMessage,
    AssistantPart,
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
    ToolPart,
    Url,
    UserMessage,
)
from recto.page.fold.fold_settings import FoldSettings
from recto.page.fold.paths import Project
from recto.page.fold.rules import READS, SEARCH, TERMINAL, FoldRule

START = datetime(2026, 1, 31, 2, 20, tzinfo=UTC)
TOOLS = ("filesystem-read", "terminal-execute", "ace-text_search", "filesystem-edit")
FILES = ("a.py", "./a.py", "src/b.py", "src\\b.py", "/srv/app/a.py", "F:/app/a.py", "docs/")
CALL_IDS = ("c0", "c1", "c2", "c3")
KINDS: tuple[FileKind, ...] = ("document", "image", "audio", "video")
RESULTS = (
    "",
    " ",
    "Error: ENOENT",
    "\n  Error: late",
    "no Error: here",
    "📄 a.py (lines 1-2/2)\n1→x",
    "[该文件的历史读取内容已压缩,请参看最新读取结果]",
    '{"stdout": "ok", "stderr": "", "exitCode": 0}',
    '{"stdout": "", "stderr": "boom", "exitCode": 0}',
    '{"exit_code": "2"}',
    '{"metadata": {"exit_code": 1}}',
    "{not json",
    "<|endoftext|>",
)
ARGUMENTS = (
    '{"filePath": "a.py"}',
    '{"filePath": ["a.py", "src/b.py"]}',
    '{"filePath": ["a.py", {"path": "./a.py"}, null, 3, ["b.py"]]}',
    '{"filePath": [{"path": "docs/"}, {"path": null}]}',
    '{"path": "src\\\\b.py"}',
    '{"file_path": "/srv/app/a.py"}',
    '{"filePath": "", "path": "docs"}',
    '{"filePath": " "}',
    '{"filePath": null}',
    '{"command": "make"}',
    '["a.py"]',
    '"a.py"',
    '{"filePath": ',
    "",
)
FOLDED_CALLS = (
    ("filesystem-read", '{"filePath": "a.py"}'),
    ("filesystem-read", '{"filePath": "./a.py"}'),
    ("filesystem-read", '{"filePath": ["a.py", "src/b.py"]}'),
    ("terminal-execute", '{"command": "make"}'),
    ("ace-text_search", '{"pattern": "x"}'),
)


def words() -> st.SearchStrategy[str]:
    """Any text, and texts that mean something to folding."""
    return st.one_of(st.sampled_from(RESULTS), st.text(max_size=12))


@cache
def times() -> st.SearchStrategy[datetime | None]:
    """No time, or one of few, so that many are equal."""
    return st.one_of(st.none(), st.integers(0, 40).map(lambda minute: START + timedelta(minutes=minute)))


def ids() -> st.SearchStrategy[str]:
    """Ids of messages: often none."""
    return st.sampled_from(("", "", "m1", "m2"))


def texts() -> st.SearchStrategy[Text]:
    return st.builds(Text, text=words())


def path_texts() -> st.SearchStrategy[Text]:
    """Parts of a batch result."""
    return st.builds(Text, text=words(), path=st.sampled_from(FILES))


def files() -> st.SearchStrategy[File]:
    """Files of every kind, from every source."""
    sources = st.sampled_from(
        (Url(url="https://x.test/a"), Data(base64="aGk="), Key(key="k"), ProviderFile(provider="openai", handle="h"))
    )
    return st.builds(
        File,
        kind=st.sampled_from(KINDS),
        source=sources,
        mime_type=st.sampled_from((None, "image/png")),
        name=st.sampled_from((None, "a.png")),
    )


def states() -> st.SearchStrategy[Opaque]:
    """Provider state: thoughts and other things, as blocks and as fields."""
    return st.builds(
        Opaque,
        provider=st.sampled_from(("openai", "anthropic")),
        model=st.sampled_from((None, "m")),
        place=st.sampled_from(("block", "field")),
        name=st.sampled_from(("thinking", "reasoning_content", "refusal", "unknown")),
        data=st.sampled_from(('"x"', '{"type": "thinking", "signature": "s"}')),
    )


@cache
def calls() -> st.SearchStrategy[ToolCall]:
    """Calls with arguments that parse and that do not."""
    return st.builds(
        ToolCall,
        id=st.sampled_from(CALL_IDS),
        name=st.sampled_from(TOOLS),
        arguments=st.one_of(st.sampled_from(ARGUMENTS), st.text(max_size=8)),
        provider_id=st.sampled_from(("", "", *CALL_IDS)),
    )


@cache
def tool_parts() -> st.SearchStrategy[tuple[ToolPart, ...]]:
    """What a tool answers: one text, a part for each file, or anything."""
    return st.one_of(
        texts().map(lambda text: (text,)),
        st.lists(path_texts(), min_size=1, max_size=3).map(tuple),
        st.lists(st.one_of(texts(), path_texts(), files(), states()), max_size=3).map(tuple),
    )


def assistant_parts() -> st.SearchStrategy[tuple[AssistantPart, ...]]:
    return st.lists(st.one_of(texts(), calls(), calls(), states(), files()), max_size=4).map(tuple)


def users() -> st.SearchStrategy[UserMessage]:
    parts = st.lists(st.one_of(texts(), files(), states()), max_size=3).map(tuple)
    return st.builds(UserMessage, id=ids(), time=times(), parts=parts)


@cache
def assistants() -> st.SearchStrategy[AssistantMessage]:
    return st.builds(AssistantMessage, id=ids(), time=times(), parts=assistant_parts())


@cache
def results(*call_ids: str) -> st.SearchStrategy[ToolMessage]:
    """Results for these calls, or for any: answered before, not yet asked, or never."""
    return st.builds(
        ToolMessage,
        id=ids(),
        time=times(),
        tool_call_id=st.sampled_from(call_ids or CALL_IDS),
        parts=tool_parts(),
        error=st.sampled_from((None, None, None, "error")),
    )


@cache
def messages() -> st.SearchStrategy[Message]:
    """One message of any of the seven roles."""
    return st.one_of(
        users(),
        assistants(),
        results(),
        st.builds(SystemMessage, id=ids(), time=times(), text=words()),
        st.builds(DeveloperMessage, id=ids(), time=times(), text=words()),
        st.builds(ReasoningMessage, id=ids(), time=times(), text=words()),
        st.builds(ActivityMessage, id=ids(), time=times(), activity_type=st.just("PLAN"), content=st.just("{}")),
    )


@st.composite
def exchanges(draw: st.DrawFn) -> list[Message]:
    """An assistant's calls and the results they got, some of them late."""
    asked = draw(assistants())
    between = draw(st.lists(messages(), max_size=1))
    answered = [draw(results(call.id)) for call in asked.tool_calls]
    early = draw(st.integers(0, len(answered)))
    return [asked, *answered[:early], *between, *answered[early:]]


@st.composite
def good_results(draw: st.DrawFn) -> list[Message]:
    """A call of a tool that is folded, and a result that went well: several are needed before anything folds."""
    tool, arguments = draw(st.sampled_from(FOLDED_CALLS))
    call = ToolCall(id=draw(st.sampled_from(CALL_IDS)), name=tool, arguments=arguments)
    whole = (Text(text=draw(st.sampled_from(("1→x", "out", "x" * 9)))),)
    parts = (Text(text="1→x", path="a.py"), Text(text="1→y", path="src\\b.py"))
    is_read = tool == "filesystem-read"
    shown = parts if is_read and draw(st.booleans()) else whole
    answer = ToolMessage(id=draw(ids()), time=draw(times()), tool_call_id=call.id, parts=shown)
    return [AssistantMessage(time=draw(times()), parts=(call,)), answer]


def logs(max_pieces: int = 14) -> st.SearchStrategy[tuple[Message, ...]]:
    """Conversations: single messages, exchanges and results to fold, in any order; some short, some long."""
    piece = st.one_of(messages().map(lambda message: [message]), exchanges(), good_results(), good_results())
    pieces = st.one_of(st.lists(piece, max_size=max_pieces), st.lists(piece, min_size=max_pieces, max_size=max_pieces))
    return pieces.map(lambda found: tuple(message for one in found for message in one))


def projects() -> st.SearchStrategy[Project]:
    """Roots of every form, on disks that tell case and that do not."""
    roots = (None, "/srv/app", "/", "F:/app", "f:\\App\\", "\\\\server\\share\\app", "work/app", ".")
    return st.builds(Project, root=st.sampled_from(roots), case_sensitive=st.booleans())


@st.composite
def spelled_paths(draw: st.DrawFn) -> str:
    """Paths as people and models spell them. A colon stands only behind a drive, as file systems have it."""
    start = draw(
        st.sampled_from(("", "", "./", "/", "//", "F:/", "f:\\", "C:", "/srv/app/", "F:\\app\\", "\\\\server\\"))
    )
    step = st.one_of(
        st.sampled_from(("..", ".", "", "a", "A", "src", "app", "App", "srv", "server", "share", "文档")),
        st.text(st.characters(exclude_characters="/\\:", exclude_categories=["Cs"]), max_size=4),
    )
    steps = draw(st.lists(st.tuples(step, st.sampled_from(("/", "\\", "//"))), max_size=6))
    path = start + ("/" if start == "C:" else "") + "".join(name + slash for name, slash in steps)
    return path if draw(st.booleans()) else path.rstrip("/\\") or path or "."


def age_rules(rule: FoldRule, tool: str) -> st.SearchStrategy[FoldRule | None]:
    made = st.builds(
        partial(replace, rule),
        tools=st.just((tool,)),
        keep=st.integers(0, 2),
        max_age=st.sampled_from((timedelta(0), timedelta(minutes=5))),
    )
    return st.one_of(st.none(), made)


def fold_settings() -> st.SearchStrategy[FoldSettings]:
    """Settings that keep little, so that short conversations have something to fold."""
    rule = st.builds(
        partial(replace, READS),
        keep=st.integers(1, 3),
        keep_by_size=st.sampled_from(((), ((0, 1),), ((5, 1),), ((3, 2), (8, 1)))),
    )
    return st.builds(
        FoldSettings,
        reads=st.one_of(rule, rule, rule, st.none()),
        terminal=age_rules(TERMINAL, TOOLS[1]),
        search=age_rules(SEARCH, TOOLS[2]),
        project=projects(),
    )


def afresh(log: tuple[Message, ...]) -> tuple[Message, ...]:
    """Equal messages that remember nothing."""
    return tuple(_forgetful(message) for message in log)


def _forgetful(message: Message) -> Message:
    if isinstance(message, AssistantMessage):
        parts = tuple(replace(part) if isinstance(part, ToolCall) else part for part in message.parts)
        return replace(message, parts=parts)
    return replace(message)
