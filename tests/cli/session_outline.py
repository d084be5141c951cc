"""Sessions of other agents in tests: rows as a file, and the messages read from it in a line each."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from recto.cli.sessions.reader import read_session
from recto.cli.sessions.session import Session
from recto.conversation.messages import (
    AssistantMessage,
    AssistantPart,
    Data,
    DeveloperMessage,
    File,
    Message,
    Opaque,
    SystemMessage,
    Text,
    ToolCall,
    ToolMessage,
    Url,
    UserMessage,
)

TIME = "2026-01-02T03:04:05.000Z"
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

Json = dict[str, object]


def read(*rows: object) -> Session:
    return read_session("".join(json.dumps(row) + "\n" for row in rows).encode(), source="session.jsonl")


def outline(session: Session) -> list[str]:
    """Return a line for each message: its id, who said it, and its parts."""
    return [_line(message) for message in session.messages]


def _line(message: Message) -> str:
    match message:
        case UserMessage(parts=parts) | AssistantMessage(parts=parts):
            return f"{message.id} {message.role}: {_words(parts)}"
        case ToolMessage(tool_call_id=call, error=error):
            return f"{message.id} {error or 'result'} of {call}: {_words(message.parts)}"
        case SystemMessage(text=text) | DeveloperMessage(text=text):
            return f"{message.id} {message.role}: {text}"
        case _:
            raise AssertionError(message)


def _words(parts: Sequence[AssistantPart]) -> str:
    return " + ".join(map(_word, parts))


def _word(part: AssistantPart) -> str:
    match part:
        case Text(text=text):
            return text
        case ToolCall(id=id, name=name, arguments=arguments):
            return f"{id} = {name} {arguments}"
        case File(source=Data(base64=words) | Url(url=words)):
            return " ".join(filter(None, (part.kind, words, part.mime_type, part.name)))
        case Opaque(provider=provider, model=model, name=name, data=data):
            return f"{provider}:{model} {name} {data}"
        case _:
            raise AssertionError(part)
