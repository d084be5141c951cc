"""Hypothesis strategies: for each wire the messages it can carry whole, and JSON for its decoder to refuse.

What a wire has no place for is not in its strategy: seq, time and the path of a part in all of them; ids where the
provider has none; the type and name of a file where its format has no field for them.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import cast

from hypothesis import strategies as st

from recto.conversation.input import agui
from recto.conversation.json import Json, dump, load
from recto.conversation.messages import (
    ActivityMessage,
    AssistantMessage,
    AssistantPart,
    Data,
    DeveloperMessage,
    File,
    FileKind,
    Message,
    Opaque,
    ProviderFile,
    ReasoningMessage,
    Source,
    SystemMessage,
    Text,
    ToolCall,
    ToolMessage,
    ToolPart,
    Url,
    UserMessage,
    UserPart,
)
from recto.page.wire import anthropic, gemini, openai, openai_responses

MODEL = "model-x"

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
words = texts.filter(bool)
names = st.none() | words
NO_NAME = st.none()
urls = words.map(lambda text: f"https://x.test/{text}")
base64s = st.sampled_from(("", "aGk=", "AAAA"))
scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | texts
# JSON as any parser may give it: huge numbers, halves of surrogate pairs, the words our decoders look for.
KEYS = (
    *("role", "content", "type", "text", "id", "name", "source", "url", "tool_calls", "toolCalls", "function"),
    *("parts", "functionCall", "functionResponse", "response", "args", "thoughtSignature", "thought"),
    *("inlineData", "arguments", "tool_call_id", "toolCallId", "input", "tool_use_id", "system", "messages"),
    *("timestamp", "path", "mimeType", "data", "value", "activityType", "reasoning_content", "image_url", "file"),
    *("file_id", "encryptedValue", "call_id", "output", "phase"),
)
VALUES = (
    *("user", "assistant", "model", "tool", "system", "developer", "reasoning", "activity", "text", "image"),
    *("document", "binary", "image_url", "file", "input_audio", "tool_use", "tool_result", "thinking", "url"),
    *("data", "base64", "message", "function_call", "function_call_output", "input_file", "output_text"),
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(VALUES),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), inner),
    max_leaves=12,
)


@st.composite
def json_texts(draw: st.DrawFn) -> str:
    """A JSON value as the canonical text that decoding makes of provider state."""
    nested = st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)
    )
    return dump(draw(nested)).decode()


@st.composite
def objects(draw: st.DrawFn, *, without: Sequence[str] = (), **fields: Json) -> str:
    """A JSON object as text: the fields given, then any others not named."""
    more = draw(
        st.dictionaries(texts.filter(lambda key: key not in without and key not in fields), scalars, max_size=3)
    )
    return dump(fields | more).decode()


def tuples_of(parts: st.SearchStrategy[UserPart]) -> st.SearchStrategy[tuple[UserPart, ...]]:
    """Content of a message. A lone empty text and no content are the same on these wires."""
    return st.lists(parts, max_size=4).map(tuple).filter(lambda items: items != (Text(text=""),))


PDF = ("application/pdf",)
by_url = st.builds(Url, url=urls)
by_bytes = st.builds(Data, base64=base64s)


def by_handle(provider: str) -> st.SearchStrategy[Source]:
    return st.builds(ProviderFile, provider=st.just(provider), handle=texts)


def file(
    kind: FileKind,
    source: st.SearchStrategy[Source],
    types: Sequence[str | None] = (None,),
    names: st.SearchStrategy[str | None] = NO_NAME,
) -> st.SearchStrategy[File]:
    return st.builds(File, kind=st.just(kind), source=source, mime_type=st.sampled_from(types), name=names)


# OpenAI

openai_texts = st.builds(Text, text=texts)
openai_files = st.one_of(
    file("image", by_url),
    file("image", by_bytes, types=("image/png", "image/jpeg")),
    file("audio", by_bytes, types=("audio/wav", "audio/mpeg")),
    file("document", by_bytes, PDF, names=texts),
    file("document", by_handle("openai")),
)


@st.composite
def openai_states(draw: st.DrawFn) -> tuple[Opaque, ...]:
    """Fields beside the content, in the order the decoder reads them. Null is no state."""
    order = ("refusal", "audio", "reasoning", "reasoning_content", "reasoning_details")
    choice = draw(st.sets(st.sampled_from(order), max_size=2))
    data = json_texts().filter(lambda text: text != "null")
    return tuple(
        Opaque(provider="openai", model=MODEL, place="field", name=name, data=draw(data))
        for name in order
        if name in choice
    )


@st.composite
def openai_blocks(draw: st.DrawFn) -> Opaque:
    """A block of a type this version of Recto does not know."""
    data = draw(objects(type="hologram"))
    return Opaque(provider="openai", model=MODEL, place="block", name="hologram", data=data)


@st.composite
def openai_calls(draw: st.DrawFn) -> ToolCall:
    """A call, with state of its own now and then."""
    extra = draw(st.none() | objects(without=("id", "type", "function", "index"), extra_content=1))
    state = Opaque(provider="openai", model=MODEL, place="field", name="call", data=extra) if extra else None
    return ToolCall(id=draw(texts), name=draw(texts), arguments=draw(texts), state=state)


@st.composite
def openai_assistants(draw: st.DrawFn) -> AssistantMessage:
    """State first, then words, then calls: the order the format has."""
    content = draw(tuples_of(openai_texts | openai_blocks()))
    parts: tuple[AssistantPart, ...] = (*draw(openai_states()), *content, *draw(st.lists(openai_calls(), max_size=2)))
    return AssistantMessage(name=draw(names), parts=parts)


openai_messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(UserMessage, name=names, parts=tuples_of(openai_texts | openai_files | openai_blocks())),
    openai_assistants(),
    st.builds(ToolMessage, tool_call_id=texts, parts=tuples_of(openai_texts | openai_blocks())),
    st.builds(SystemMessage, text=texts, name=names),
    st.builds(DeveloperMessage, text=texts, name=names),
)

# Anthropic

anthropic_files = st.one_of(
    file("image", by_url),
    file("document", by_url, names=names),
    file("image", by_bytes, types=("image/png",)),
    file("document", by_bytes, PDF, names=names),
    file("image", by_handle("anthropic")),
)
anthropic_texts = st.builds(Text, text=words)


@st.composite
def anthropic_blocks(draw: st.DrawFn) -> Opaque:
    """Thinking, signed or redacted, and blocks nobody knows."""
    name = draw(st.sampled_from(("thinking", "redacted_thinking", "hologram")))
    return Opaque(provider="anthropic", model=MODEL, place="block", name=name, data=draw(objects(type=name)))


@st.composite
def anthropic_calls(draw: st.DrawFn) -> ToolCall:
    """A call whose arguments are an object as the decoder writes it."""
    return ToolCall(id=draw(texts), name=draw(texts), arguments=draw(objects()))


anthropic_shown = anthropic_texts | anthropic_files | anthropic_blocks()
anthropic_said: st.SearchStrategy[AssistantPart] = st.one_of(anthropic_texts, anthropic_blocks(), anthropic_calls())
anthropic_messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(UserMessage, parts=st.lists(anthropic_shown, min_size=1, max_size=4).map(tuple)),
    st.builds(AssistantMessage, parts=st.lists(anthropic_said, min_size=1, max_size=4).map(tuple)),
    st.builds(
        ToolMessage,
        tool_call_id=texts,
        parts=st.lists(anthropic_shown, max_size=4).map(tuple),
        error=st.sampled_from((None, "error")),
    ),
)

# Gemini

gemini_files = st.one_of(
    file("image", by_bytes | by_url, types=("image/png", "image/webp")),
    file("document", by_bytes, PDF),
    file("video", by_url, types=("video/mp4",)),
)
gemini_signatures = words.map(lambda text: gemini.signature_state(text, MODEL))


@st.composite
def gemini_blocks(draw: st.DrawFn) -> Opaque:
    """A part of a kind this version of Recto does not know, or a signature without words."""
    unknown = Opaque(
        provider="gemini",
        model=MODEL,
        place="block",
        name="hologram",
        data=draw(objects(hologram=1, without=("text",))),
    )
    signed_part = gemini.part_state({"text": "", "thoughtSignature": draw(words)}, MODEL)
    return draw(st.sampled_from((unknown, signed_part)))


@st.composite
def gemini_calls(draw: st.DrawFn) -> ToolCall:
    """A call whose arguments are an object as the decoder writes it, signed now and then."""
    state = draw(st.none() | gemini_signatures)
    return ToolCall(id=draw(words), name=draw(texts), arguments=draw(objects()), state=state)


gemini_texts = st.builds(Text, text=words)
gemini_signed = st.tuples(gemini_texts, gemini_signatures)
gemini_said = st.one_of(
    gemini_signed, st.one_of(gemini_texts, gemini_blocks(), gemini_calls()).map(lambda part: (part,))
)
gemini_messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(
        UserMessage, parts=st.lists(gemini_texts | gemini_files | gemini_blocks(), min_size=1, max_size=4).map(tuple)
    ),
    st.builds(
        AssistantMessage,
        parts=st.lists(gemini_said, min_size=1, max_size=4).map(lambda part: tuple(chain.from_iterable(part))),
    ),
    st.builds(
        ToolMessage,
        tool_call_id=words,
        tool_name=words,
        parts=st.lists(gemini_texts, max_size=1).map(tuple),
        error=st.sampled_from((None, "error")),
    ),
)


# OpenAI Responses

responses_files = st.one_of(
    *[file(kind, source) for kind in ("image", "document") for source in (by_url, by_handle("openai"))],
    file("image", by_bytes, types=("image/png",)),
    file("document", by_bytes, PDF, names=texts),
)


@st.composite
def responses_states(draw: st.DrawFn, name: str) -> Opaque:
    """An item or a block: a thought, or one that nobody knows."""
    data = draw(objects(without=("role",), type=name))
    return Opaque(provider="openai-responses", model=MODEL, place="block", name=name, data=data)


@st.composite
def responses_said(draw: st.DrawFn) -> tuple[AssistantPart, ...]:
    """Words, with what led to them and what they are for; a call with what led to it; an item nobody knows."""
    thoughts = draw(st.lists(responses_states("reasoning"), max_size=2))
    if draw(st.booleans()):
        state = thoughts[-1] if thoughts else None
        call = ToolCall(id=draw(texts), name=draw(texts), arguments=draw(texts), state=state)
        return (*thoughts[:-1], call)
    label = Opaque(
        provider="openai-responses", model=MODEL, place="field", name="phase", data=dump(draw(texts)).decode()
    )
    labels = draw(st.lists(st.just(label), max_size=1))
    return (*thoughts, *labels, Text(text=draw(texts)), *draw(st.lists(responses_states("hologram"), max_size=1)))


responses_shown = tuples_of(openai_texts | responses_files | responses_states("hologram"))
responses_messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(UserMessage, parts=responses_shown),
    st.lists(responses_said(), min_size=1, max_size=3).map(
        lambda item: AssistantMessage(parts=tuple(part for parts in item for part in parts))
    ),
    st.builds(ToolMessage, tool_call_id=texts, parts=responses_shown),
    st.builds(SystemMessage, text=texts),
    st.builds(DeveloperMessage, text=texts),
)

# AG-UI

agui_sources = st.one_of(
    st.builds(Url, url=texts), st.builds(ProviderFile, provider=st.sampled_from(("", "openai")), handle=texts)
)
kinds = st.sampled_from(("document", "image", "audio", "video"))
agui_files = st.one_of(
    st.builds(File, kind=kinds, source=agui_sources, mime_type=st.none() | texts, name=st.none() | texts, id=names),
    st.builds(File, kind=kinds, source=st.builds(Data, base64=base64s), mime_type=words, name=st.none() | texts),
)
agui_parts: st.SearchStrategy[tuple[ToolPart, ...]] = tuples_of(st.builds(Text, text=texts) | agui_files)
agui_calls = st.builds(ToolCall, id=texts, name=texts, arguments=texts, encrypted_value=st.none() | texts)
agui_said = st.tuples(st.lists(st.builds(Text, text=words), max_size=1), st.lists(agui_calls, max_size=2)).map(
    lambda pair: cast("tuple[AssistantPart, ...]", (*pair[0], *pair[1]))
)
sealed = st.none() | texts
agui_messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(UserMessage, id=texts, name=st.none() | texts, encrypted_value=sealed, parts=agui_parts),
    st.builds(AssistantMessage, id=texts, name=st.none() | texts, encrypted_value=sealed, parts=agui_said),
    st.builds(ToolMessage, id=texts, tool_call_id=texts, error=sealed, encrypted_value=sealed, parts=agui_parts),
    st.builds(SystemMessage, id=texts, text=texts, name=st.none() | texts, encrypted_value=sealed),
    st.builds(DeveloperMessage, id=texts, text=texts, name=st.none() | texts, encrypted_value=sealed),
    st.builds(ReasoningMessage, id=texts, text=texts, encrypted_value=sealed),
    st.builds(ActivityMessage, id=texts, activity_type=texts, content=objects()),
)


# JSON for a decoder to refuse


CARRIED: dict[str, st.SearchStrategy[Message]] = {
    "openai": openai_messages,
    "openai-responses": responses_messages,
    "anthropic": anthropic_messages,
    "gemini": gemini_messages,
    "ag-ui": agui_messages,
}


def encode_with(message: Message, wire: str) -> str:
    """A message as the text of its items in a conversation; where a format has turns, as a turn of its own."""
    match wire:
        case "anthropic":
            role, blocks = anthropic.encode(message)
            return f'{{"role":"{role}","content":[{blocks.decode()}]}}'
        case "gemini":
            role = "model" if message.role == "assistant" else "user"
            return f'{{"role":"{role}","parts":[{gemini.encode(message).decode()}]}}'
        case "ag-ui":
            return agui.encode(message).decode()
        case _:
            return {"openai": openai, "openai-responses": openai_responses}[wire].encode(message).decode()


@st.composite
def damaged(draw: st.DrawFn, wire: str) -> object:
    """Good messages of a wire with one value in them, at any depth, replaced by anything."""
    messages = draw(st.lists(CARRIED[wire], min_size=1, max_size=2))
    good = load(f"[{','.join([encode_with(message, wire) for message in messages])}]".encode())
    return replaced(good, draw(st.sampled_from(list(places(good)))), draw(anything))


def places(value: Json) -> Iterator[tuple[str | int, ...]]:
    """The way to every value inside a JSON value, itself included."""
    yield ()
    match value:
        case dict():
            yield from ((key, *way) for key, inner in value.items() for way in places(inner))
        case list():
            yield from ((index, *way) for index, inner in enumerate(value) for way in places(inner))
        case _:
            return


def replaced(value: Json, way: tuple[str | int, ...], new: object) -> object:
    """The value with the one at the end of the way replaced."""
    match value, way:
        case _, ():
            return new
        case dict(), (key, *rest):
            return {name: replaced(inner, tuple(rest), new) if name == key else inner for name, inner in value.items()}
        case list(), (index, *rest):
            return [replaced(inner, tuple(rest), new) if at == index else inner for at, inner in enumerate(value)]
        case _:
            return value
