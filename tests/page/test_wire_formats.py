"""Every wire in one table: messages written byte for byte and read back whole; state and schemas left as they are."""

from dataclasses import replace

import orjson
import pytest

from recto.conversation.messages import (
    ActivityMessage,
    AssistantMessage,
    AssistantPart,
    Data,
    DeveloperMessage,
    File,
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
    UserPart,
)
from recto.page.wire import gemini
from recto.page.wire.formats import WIRES, decode
from tests.page.wire_strategies import MODEL, encode_with

RESPONSES = "openai-responses"
HELLO = Text(text="hello")
PNG = Data(base64="aGk=")
PICTURE = File(kind="image", source=Url(url="https://x.test/a.png"))
CALL = ToolCall(id="c1", name="read", arguments='{"path":"a"}')
CALL_JSON = '{"id":"c1","type":"function","function":{"name":"read","arguments":"{\\"path\\":\\"a\\"}"}'
LIST_JSON = '{"id":"c2","type":"function","function":{"name":"list","arguments":"{}"}'


def assistant_message(*parts: AssistantPart) -> AssistantMessage:
    return AssistantMessage(parts=parts)


def user(*parts: UserPart) -> UserMessage:
    return UserMessage(parts=parts)


def result(*parts: ToolPart, error: str | None = None) -> ToolMessage:
    return ToolMessage(tool_call_id="c1", tool_name="read", parts=parts, error=error)


def state(name: str, data: str, wire: str, place: str = "block") -> Opaque:
    return Opaque(provider=wire, model=MODEL, place="field" if place == "field" else "block", name=name, data=data)


# What the wires share: a message, and its text in each that carries it whole.
SHARED: dict[str, tuple[Message, dict[str, str]]] = {
    "words": (
        user(HELLO),
        {
            "openai": '{"role":"user","content":"hello"}',
            RESPONSES: '{"type":"message","role":"user","content":"hello"}',
            "anthropic": '{"role":"user","content":[{"type":"text","text":"hello"}]}',
            "gemini": '{"role":"user","parts":[{"text":"hello"}]}',
            "ag-ui": '{"id":"","role":"user","content":"hello"}',
        },
    ),
    "a picture by url": (
        user(HELLO, PICTURE),
        {
            "openai": '{"role":"user","content":[{"type":"text","text":"hello"},'
            '{"type":"image_url","image_url":{"url":"https://x.test/a.png"}}]}',
            RESPONSES: '{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"},'
            '{"type":"input_image","detail":"auto","image_url":"https://x.test/a.png"}]}',
            "anthropic": '{"role":"user","content":[{"type":"text","text":"hello"},'
            '{"type":"image","source":{"type":"url","url":"https://x.test/a.png"}}]}',
            "ag-ui": '{"id":"","role":"user","content":[{"type":"text","text":"hello"},'
            '{"type":"image","source":{"type":"url","value":"https://x.test/a.png"}}]}',
        },
    ),
    "a picture by bytes": (
        user(File(kind="image", source=PNG, mime_type="image/png")),
        {
            "openai": '{"role":"user","content":[{"type":"image_url","image_url":'
            '{"url":"data:image/png;base64,aGk="}}]}',
            RESPONSES: '{"type":"message","role":"user","content":[{"type":"input_image","detail":"auto",'
            '"image_url":"data:image/png;base64,aGk="}]}',
            "anthropic": '{"role":"user","content":[{"type":"image","source":'
            '{"type":"base64","media_type":"image/png","data":"aGk="}}]}',
            "gemini": '{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"aGk="}}]}',
            "ag-ui": '{"id":"","role":"user","content":[{"type":"image","source":'
            '{"type":"data","value":"aGk=","mimeType":"image/png"}}]}',
        },
    ),
    "a document by bytes": (
        user(File(kind="document", source=PNG, mime_type="application/pdf", name="a.pdf")),
        {
            "openai": '{"role":"user","content":[{"type":"file","file":'
            '{"file_data":"data:application/pdf;base64,aGk=","filename":"a.pdf"}}]}',
            RESPONSES: '{"type":"message","role":"user","content":[{"type":"input_file","filename":"a.pdf",'
            '"file_data":"data:application/pdf;base64,aGk="}]}',
            "anthropic": '{"role":"user","content":[{"type":"document","source":'
            '{"type":"base64","media_type":"application/pdf","data":"aGk="},"title":"a.pdf"}]}',
            "ag-ui": '{"id":"","role":"user","content":[{"type":"document","source":'
            '{"type":"data","value":"aGk=","mimeType":"application/pdf"},"metadata":{"filename":"a.pdf"}}]}',
        },
    ),
    "words and calls": (
        assistant_message(HELLO, CALL, ToolCall(id="c2", name="list", arguments="{}")),
        {
            "openai": f'{{"role":"assistant","content":"hello","tool_calls":[{CALL_JSON}}},{LIST_JSON}}}]}}',
            RESPONSES: '{"type":"message","role":"assistant","content":"hello"},'
            '{"type":"function_call","call_id":"c1","name":"read","arguments":"{\\"path\\":\\"a\\"}"},'
            '{"type":"function_call","call_id":"c2","name":"list","arguments":"{}"}',
            "anthropic": '{"role":"assistant","content":[{"type":"text","text":"hello"},'
            '{"type":"tool_use","id":"c1","name":"read","input":{"path":"a"}},'
            '{"type":"tool_use","id":"c2","name":"list","input":{}}]}',
            "gemini": '{"role":"model","parts":[{"text":"hello"},'
            '{"functionCall":{"id":"c1","name":"read","args":{"path":"a"}}},'
            '{"functionCall":{"id":"c2","name":"list","args":{}}}]}',
            "ag-ui": f'{{"id":"","role":"assistant","content":"hello","toolCalls":[{CALL_JSON}}},{LIST_JSON}}}]}}',
        },
    ),
    "a result": (
        result(HELLO),
        {
            "openai": '{"role":"tool","tool_call_id":"c1","content":"hello"}',
            RESPONSES: '{"type":"function_call_output","call_id":"c1","output":"hello"}',
            "anthropic": '{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"hello"}]}',
            "gemini": '{"role":"user","parts":[{"functionResponse":'
            '{"id":"c1","name":"read","response":{"output":"hello"}}}]}',
            "ag-ui": '{"id":"","role":"tool","content":"hello","toolCallId":"c1"}',
        },
    ),
    "a failure": (
        result(HELLO, error="error"),
        {
            "anthropic": '{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"hello",'
            '"is_error":true}]}',
            "gemini": '{"role":"user","parts":[{"functionResponse":'
            '{"id":"c1","name":"read","response":{"error":"hello"}}}]}',
            "ag-ui": '{"id":"","role":"tool","content":"hello","toolCallId":"c1","error":"error"}',
        },
    ),
    "a result with a picture": (
        result(HELLO, PICTURE),
        {
            RESPONSES: '{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"hello"},'
            '{"type":"input_image","detail":"auto","image_url":"https://x.test/a.png"}]}',
            "anthropic": '{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":'
            '[{"type":"text","text":"hello"},{"type":"image","source":{"type":"url","url":"https://x.test/a.png"}}]}]}',
            "ag-ui": '{"id":"","role":"tool","content":[{"type":"text","text":"hello"},'
            '{"type":"image","source":{"type":"url","value":"https://x.test/a.png"}}],"toolCallId":"c1"}',
        },
    ),
    "instructions": (
        SystemMessage(text="Be brief."),
        {
            "openai": '{"role":"system","content":"Be brief."}',
            RESPONSES: '{"type":"message","role":"system","content":"Be brief."}',
            "ag-ui": '{"id":"","role":"system","content":"Be brief."}',
        },
    ),
}


def reasoning_state(number: int = 1) -> Opaque:
    return state("reasoning", item(number), RESPONSES)


def item(number: int) -> str:
    return f'{{"type":"reasoning","id":"rs_{number}","summary":[],"encrypted_content":"gAAA"}}'


WROTE = '{"type":"message","role":"assistant","content":"hello"}'
CALL_TEXT = '{"type":"function_call","call_id":"c1","name":"read","arguments":"{\\"path\\":\\"a\\"}"}'
THINKING = '{"type":"thinking","thinking":"so  \\n","signature":"EqQB=="}'
SET_DOCUMENT = '{"type":"document","source":{"type":"url","url":"u"},"citations":{"enabled":true},"context":"c"}'
CODE = '{"executableCode":{"language":"PYTHON","code":"1"}}'
EXTRA = '"extra_content":{"google":{"thought_signature":"x=="}}'

# What one of them alone has.
OWN: list[tuple[str, str, Message]] = [
    (
        "openai",
        '{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"aGk=","format":"wav"}}]}',
        user(File(kind="audio", source=PNG, mime_type="audio/wav")),
    ),
    (
        "openai",
        '{"role":"user","content":[{"type":"file","file":{"file_id":"file-1"}}]}',
        user(File(kind="document", source=ProviderFile(provider="openai", handle="file-1"))),
    ),
    (
        "openai",
        '{"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"hello"},{"type":"text","text":"b"}]}',
        result(HELLO, Text(text="b")),
    ),
    ("openai", '{"role":"system","content":"Be.","name":"house"}', SystemMessage(text="Be.", name="house")),
    ("openai", '{"role":"user","content":"北京 ☂ \\n\\u0000"}', user(Text(text="北京 ☂ \n\0"))),
    (
        "openai",
        '{"role":"assistant","content":null,"reasoning":"r","reasoning_details":[{"type":"x","b":1,"a":[null]}],'
        f'"tool_calls":[{CALL_JSON}}}]}}',
        assistant_message(
            state("reasoning", '"r"', "openai", "field"),
            state("reasoning_details", '[{"type":"x","b":1,"a":[null]}]', "openai", "field"),
            CALL,
        ),
    ),
    (
        "openai",
        '{"role":"assistant","content":null,"refusal":"I will not."}',
        assistant_message(state("refusal", '"I will not."', "openai", "field")),
    ),
    (
        "openai",
        '{"role":"user","content":[{"type":"hologram","hologram":{"z":1,"a":null}}]}',
        user(state("hologram", '{"type":"hologram","hologram":{"z":1,"a":null}}', "openai")),
    ),
    (
        "openai",
        f'{{"role":"assistant","content":null,"tool_calls":[{CALL_JSON},{EXTRA}}}]}}',
        assistant_message(replace(CALL, state=state("call", f"{{{EXTRA}}}", "openai", "field"))),
    ),
    (
        "openai",
        '{"role":"user","content":[{"type":"image_url","image_url":{"url":"u","detail":"low"}}]}',
        user(state("image_url", '{"type":"image_url","image_url":{"url":"u","detail":"low"}}', "openai")),
    ),
    (
        RESPONSES,
        '{"type":"message","role":"user","content":[{"type":"input_image","detail":"auto","file_id":"file-1"}]}',
        user(File(kind="image", source=ProviderFile(provider="openai", handle="file-1"))),
    ),
    (
        RESPONSES,
        '{"type":"message","role":"user","content":[{"type":"hologram","n":1}]}',
        user(state("hologram", '{"type":"hologram","n":1}', RESPONSES)),
    ),
    (
        RESPONSES,
        f"{item(1)},{WROTE},{item(2)},{CALL_TEXT}",
        assistant_message(reasoning_state(), HELLO, replace(CALL, state=reasoning_state(2))),
    ),
    (
        RESPONSES,
        f"{item(1)},{item(2)},{CALL_TEXT}",
        assistant_message(reasoning_state(1), replace(CALL, state=reasoning_state(2))),
    ),
    (
        RESPONSES,
        f'{WROTE[:-1]},"phase":"commentary"}},{WROTE}',
        assistant_message(state("phase", '"commentary"', RESPONSES, "field"), HELLO, HELLO),
    ),
    (
        RESPONSES,
        f'{{"type":"web_search_call","id":"ws_1"}},{WROTE}',
        assistant_message(state("web_search_call", '{"type":"web_search_call","id":"ws_1"}', RESPONSES), HELLO),
    ),
    (
        "anthropic",
        '{"role":"user","content":[{"type":"document","source":{"type":"file","file_id":"file_1"},"title":"a"}]}',
        user(File(kind="document", source=ProviderFile(provider="anthropic", handle="file_1"), name="a")),
    ),
    (
        "anthropic",
        '{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"read","input":{"path":"a"}},'
        '{"type":"text","text":"hello"}]}',
        assistant_message(CALL, HELLO),
    ),
    (
        "anthropic",
        f'{{"role":"assistant","content":[{THINKING},{{"type":"text","text":"hello"}}]}}',
        assistant_message(state("thinking", THINKING, "anthropic"), HELLO),
    ),
    ("anthropic", f'{{"role":"user","content":[{SET_DOCUMENT}]}}', user(state("document", SET_DOCUMENT, "anthropic"))),
    (
        "anthropic",
        '{"role":"assistant","content":[{"type":"text","text":"a","citations":[{"type":"x"}]}]}',
        assistant_message(state("text", '{"type":"text","text":"a","citations":[{"type":"x"}]}', "anthropic")),
    ),
    ("gemini", f'{{"role":"model","parts":[{CODE}]}}', assistant_message(state("executableCode", CODE, "gemini"))),
    (
        "gemini",
        '{"role":"model","parts":[{"text":"hello"},{"text":"","thoughtSignature":"ZW5k"}]}',
        assistant_message(HELLO, gemini.part_state({"text": "", "thoughtSignature": "ZW5k"}, MODEL)),
    ),
    (
        "ag-ui",
        '{"id":"u","role":"user","content":"hello","name":"Ann","encryptedValue":"x=="}',
        UserMessage(id="u", parts=(HELLO,), name="Ann", encrypted_value="x=="),
    ),
    (
        "ag-ui",
        '{"id":"","role":"user","content":['
        '{"type":"audio","source":{"type":"data","value":"aGk=","mimeType":"audio/wav"}},'
        '{"type":"video","id":"v1","source":{"type":"url","value":"u"},"metadata":{"filename":"v.mp4"}},'
        '{"type":"document","source":{"type":"file","value":"file_1","provider":"anthropic"}}]}',
        user(
            File(kind="audio", source=PNG, mime_type="audio/wav"),
            File(kind="video", source=Url(url="u"), name="v.mp4", id="v1"),
            File(kind="document", source=ProviderFile(provider="anthropic", handle="file_1")),
        ),
    ),
    (
        "ag-ui",
        f'{{"id":"a","role":"assistant","toolCalls":[{CALL_JSON},"encryptedValue":"y=="}}],"name":"Bot",'
        '"encryptedValue":"x=="}',
        AssistantMessage(id="a", name="Bot", encrypted_value="x==", parts=(replace(CALL, encrypted_value="y=="),)),
    ),
    (
        "ag-ui",
        '{"id":"d","role":"developer","content":"Be brief.","encryptedValue":"x"}',
        DeveloperMessage(id="d", text="Be brief.", encrypted_value="x"),
    ),
    (
        "ag-ui",
        '{"id":"r","role":"reasoning","content":"so","encryptedValue":"x"}',
        ReasoningMessage(id="r", text="so", encrypted_value="x"),
    ),
    (
        "ag-ui",
        '{"id":"p","role":"activity","activityType":"PLAN","content":{"z":[1.5,null],"a":{"b":true}}}',
        ActivityMessage(id="p", activity_type="PLAN", content='{"z":[1.5,null],"a":{"b":true}}'),
    ),
]
ROWS = [(wire, text, message) for message, texts in SHARED.values() for wire, text in texts.items()]


@pytest.mark.parametrize(("wire", "text", "message"), [*ROWS, *OWN])
def test_P3_a_message_is_written_byte_for_byte_and_read_back_whole(wire: str, text: str, message: Message):
    assert encode_with(message, wire) == text
    # The name of a tool stands on its call.
    plain_message = replace(message, tool_name="") if isinstance(message, ToolMessage) else message
    assert decode(orjson.loads(f"[{text}]"), wire, model=MODEL) == (plain_message,)


ODD = ' {"b" : 1.0e3, "a":[ null ],"a":1,"big":123456789012345678901234567890,"e":"\\ud83d\\ude00😀"} '


@pytest.mark.parametrize(
    ("wire", "message"),
    [
        ("openai", assistant_message(state("reasoning_details", ODD, "openai", "field"), HELLO)),
        ("openai", user(HELLO, state("hologram", ODD, "openai"))),
        (
            "openai",
            assistant_message(replace(CALL, state=state("call", f'{{"extra_content":{ODD}}}', "openai", "field"))),
        ),
        ("anthropic", assistant_message(HELLO, state("thinking", ODD, "anthropic"))),
        ("anthropic", assistant_message(replace(CALL, arguments=ODD))),
        ("gemini", assistant_message(replace(CALL, arguments=ODD))),
        (RESPONSES, assistant_message(state("reasoning", ODD, RESPONSES), HELLO)),
    ],
)
def test_state_and_arguments_go_back_byte_for_byte(wire: str, message: Message):
    assert ODD in encode_with(message, wire)


@pytest.mark.parametrize(
    ("wire", "text"),
    [
        (
            "openai",
            '{"type":"function","function":{"name":"n","description":"Does.","parameters":{ "type": "object" }}}',
        ),
        (
            RESPONSES,
            '{"type":"function","name":"n","description":"Does.","parameters":{ "type": "object" },"strict":false}',
        ),
        ("anthropic", '{"name":"n","description":"Does.","input_schema":{ "type": "object" }'),
        ("gemini", '{"name":"n","description":"Does.","parametersJsonSchema":{ "type": "object" }}'),
    ],
)
def test_a_tool_is_offered_with_its_schema_as_written(wire: str, text: str):
    assert WIRES[wire].encode_tool("n", "Does.", '{ "type": "object" }').decode() == text
