"""Gemini's contents in pages: a whole example, and what the page does for what the format demands."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

import pytest

from recto.conversation.json import Json
from recto.conversation.messages import (
    AssistantMessage,
    Data,
    File,
    Message,
    ProviderFile,
    ReasoningMessage,
    Source,
    SystemMessage,
    Text,
    ToolCall,
    ToolMessage,
    ToolOffer,
    Url,
    UserMessage,
)
from recto.errors import CannotCarry, SettingsError
from recto.page.assemble import Facts, assemble
from recto.page.manifest import Manifest
from recto.page.wire import gemini
from recto.page.wire.base import Target
from recto.page.wire.formats import decode
from tests.page.page_rules import parse

MODEL = "gemini-3-pro"
PNG = Data(base64="aGk=")
VIDEO = "https://x.test/v.MP4?a=b"
HI = UserMessage(id="u", parts=(Text(text="hi"),))
LOOK = ToolCall(id="c1", name="look", arguments='{"at": 1}', state=gemini.signature_state("c2ln", MODEL))
TALK: tuple[Message, ...] = (
    SystemMessage(id="s", text="Be brief."),
    HI,
    AssistantMessage(id="a", parts=(Text(text="I look."), LOOK, ToolCall(id="c2", name="time", arguments="{}"))),
    ToolMessage(id="t1", tool_call_id="c1", parts=(Text(text="green"),)),
    ToolMessage(id="t2", tool_call_id="c2", parts=(Text(text="no clock"),), error="failed"),
    AssistantMessage(id="b", parts=(Text(text="Green."), gemini.signature_state("ZW5k", MODEL))),
    UserMessage(id="v", parts=(Text(text="thanks"),)),
)
TALK_BODY: Json = {
    "tools": [
        {"functionDeclarations": [{"name": "look", "description": "Look.", "parametersJsonSchema": {"type": "object"}}]}
    ],
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "contents": [
        {"role": "user", "parts": [{"text": "hi"}]},
        {
            "role": "model",
            "parts": [
                {"text": "I look."},
                {"functionCall": {"id": "c1", "name": "look", "args": {"at": 1}}, "thoughtSignature": "c2ln"},
                {"functionCall": {"id": "c2", "name": "time", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "c1", "name": "look", "response": {"output": "green"}}},
                {"functionResponse": {"id": "c2", "name": "time", "response": {"error": "no clock"}}},
            ],
        },
        {"role": "model", "parts": [{"text": "Green.", "thoughtSignature": "ZW5k"}]},
        {"role": "user", "parts": [{"text": "thanks"}]},
    ],
}
TOOL = ToolOffer(name="look", description="Look.", parameters='{"type":"object"}')


def page_of(
    *log: Message, model: str = MODEL, options: Mapping[str, Json] | None = None, **facts: object
) -> tuple[Mapping[str, Json], Manifest]:
    target = Target(wire="gemini", model=model)
    page, manifest = assemble(Facts(log=log, target=target, options=options or {}, **facts))  # pyright: ignore[reportArgumentType] - each test gives facts of the right type
    return cast("Mapping[str, Json]", parse(page)), manifest


def turns(body: Mapping[str, Json]) -> list[Mapping[str, Json]]:
    return cast("list[Mapping[str, Json]]", body["contents"])


def test_a_conversation_with_tools_is_written_as_the_provider_has_it():
    body, manifest = page_of(*TALK, tools=(TOOL,))
    assert body == TALK_BODY
    assert list(body) == ["tools", "systemInstruction", "contents"]
    assert {part.decision for part in manifest.parts} == {"kept"}


def test_a_body_begins_with_its_options_where_it_has_some_and_never_with_the_model():
    body, _ = page_of(HI, options={"generationConfig": {"temperature": 0}})
    assert body == {"generationConfig": {"temperature": 0}, "contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    assert page_of()[0] == {"contents": []}
    with pytest.raises(SettingsError, match=r"options\.contents"):
        page_of(HI, options={"contents": []})


def test_a_body_is_read_back_with_each_result_at_its_call():
    read = decode(TALK_BODY, "gemini", model=MODEL)
    nameless = [
        replace(message, id="", error="error" if message.error else None)
        for message in TALK
        if isinstance(message, ToolMessage)
    ]
    assert [message for message in read if isinstance(message, ToolMessage)] == nameless
    assert page_of(*read, tools=(TOOL,))[0] == TALK_BODY


def test_calls_without_ids_find_their_results_by_name_and_order():
    call: Json = {"functionCall": {"name": "look", "args": {}}}
    answers: list[Json] = [{"functionResponse": {"name": "look", "response": {"n": n}}} for n in (1, 2)]
    first, *results = decode([{"role": "model", "parts": [call, call]}, {"role": "user", "parts": answers}], "gemini")
    assert isinstance(first, AssistantMessage)
    assert [message.tool_call_id for message in results if isinstance(message, ToolMessage)] == [
        call.id for call in first.tool_calls
    ]
    assert len({call.id for call in first.tool_calls}) == 2
    assert [message.parts for message in results if isinstance(message, ToolMessage)] == [
        (Text(text='{"n":1}'),),
        (Text(text='{"n":2}'),),
    ]


def test_thoughts_are_read_for_people_and_never_sent_back():
    body: Json = [
        {"role": "user", "parts": [{"text": "hi"}]},
        {"role": "model", "parts": [{"text": "Hm.", "thought": True}, {"text": "Yes."}]},
    ]
    read = decode(body, "gemini")
    assert read[1:] == (ReasoningMessage(text="Hm."), AssistantMessage(parts=(Text(text="Yes."),)))
    assert turns(page_of(*read)[0])[1] == {"role": "model", "parts": [{"text": "Yes."}]}


def test_a_signature_without_words_stands_in_a_part_of_its_own():
    # What it signed was blank, and blank texts are refused.
    signed_message = AssistantMessage(id="a", parts=(LOOK, Text(text=" "), gemini.signature_state("ZW5k", MODEL)))
    result_message = ToolMessage(tool_call_id="c1", parts=())
    parts = cast("Sequence[Json]", turns(page_of(HI, signed_message, result_message)[0])[1]["parts"])
    assert parts[1] == {"text": "", "thoughtSignature": "ZW5k"}


@pytest.mark.parametrize("model", ["gemini-3-pro", "gemini-flash-latest", "gemini-2.5-pro", "gemma-3-27b-it"])
def test_signatures_go_to_the_model_that_made_them_alone(model: str):
    body, manifest = page_of(*TALK, model=model)
    parts = [part for turn in turns(body) for part in cast("Sequence[Mapping[str, Json]]", turn["parts"])]
    signatures = [part["thoughtSignature"] for part in parts if "thoughtSignature" in part]
    # The first call of a reply must be signed for newer models: another word stands for it.
    instead = [] if "-2" in model else ["skip_thought_signature_validator"]
    assert signatures == (["c2ln", "ZW5k"] if model == MODEL else instead)
    reasons = {part.source: part.reason for part in manifest.parts}
    if model != MODEL:
        assert "thinking of gemini-3-pro left out" in reasons["b"]
        assert ("calls that another model made" in reasons["a"]) == bool(instead)


def test_calls_of_other_providers_are_marked_as_such_where_the_model_demands_a_signature():
    other = AssistantMessage(
        id="a", parts=(ToolCall(id="c1", name="look", arguments="{}"), ToolCall(id="c2", name="look", arguments="{}"))
    )
    results = [ToolMessage(tool_call_id=id, parts=(Text(text="x"),)) for id in ("c1", "c2")]
    parts = cast("Sequence[Mapping[str, Json]]", turns(page_of(HI, other, *results)[0])[1]["parts"])
    assert [part.get("thoughtSignature") for part in parts] == ["skip_thought_signature_validator", None]


@pytest.mark.parametrize(
    ("kind", "mime", "source", "expected"),
    [
        ("image", "image/png", PNG, {"inlineData": {"mimeType": "image/png", "data": "aGk="}}),
        ("audio", "audio/wav", PNG, {"inlineData": {"mimeType": "audio/wav", "data": "aGk="}}),
        ("video", None, Url(url=VIDEO), {"fileData": {"mimeType": "video/mp4", "fileUri": VIDEO}}),
        (
            "image",
            "image/png",
            ProviderFile(provider="gemini", handle="https://g/files/1"),
            {"fileData": {"mimeType": "image/png", "fileUri": "https://g/files/1"}},
        ),
        ("image", "image/gif", PNG, None),
        ("image", "application/pdf", PNG, None),
        ("image", None, Url(url="https://[x/1.png"), None),
        ("image", None, PNG, None),
        ("image", "image/png", ProviderFile(provider="openai", handle="f"), None),
        ("document", "text/csv", PNG, None),
    ],
)
def test_files_go_by_their_type_or_are_named(kind: str, mime: str | None, source: Source, expected: Json):
    file = File(kind=cast("gemini.FileKind", kind), source=source, mime_type=mime, name="f")
    assert gemini.carries_file(file, "user") is (expected is not None)
    assert not gemini.carries_file(file, "assistant")
    parts = cast("Sequence[Json]", turns(page_of(UserMessage(parts=(file,)))[0])[0]["parts"])
    assert parts == [expected or {"text": f"[{kind} not shown: f]"}]
    if expected is None:
        with pytest.raises(CannotCarry, match=kind):
            gemini.encode(UserMessage(parts=(file,)))


def test_what_a_tool_shows_stands_behind_its_result():
    picture = File(kind="image", source=PNG, mime_type="image/png")
    result = ToolMessage(tool_call_id="c1", parts=(Text(text="here"), picture, Text(text="it is")))
    call_message = AssistantMessage(parts=(LOOK,))
    parts = cast("Sequence[Json]", turns(page_of(HI, call_message, result)[0])[2]["parts"])
    response: Json = {"id": "c1", "name": "look", "response": {"output": "here\nit is"}}
    assert parts == [{"functionResponse": response}, {"inlineData": {"mimeType": "image/png", "data": "aGk="}}]


def test_neighbours_of_one_role_are_one_turn_and_blank_ones_are_left_out():
    log = (
        AssistantMessage(parts=(Text(text="early"),)),
        HI,
        AssistantMessage(parts=(Text(text=" "),)),
        UserMessage(parts=()),
    )
    body, _ = page_of(*log)
    assert turns(body) == [{"role": "user", "parts": [{"text": "hi"}, {"text": "(empty)"}]}]
