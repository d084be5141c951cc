"""The facts of a whole agent's page: skills, cases, files, a quote and a turn, made up and always the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from recto.conversation.messages import File, Key, Message, ToolOffer, UserMessage
from recto.page.facts import Facts, Turn
from recto.page.prompt.quote import ParsedDocument
from recto.page.prompt.system_prompt import Case, Datum, Prompt
from recto.page.wire.base import Target

SKILLS, CASES, FILES = 200, 500, 50
NOON = datetime(2026, 5, 14, 12, tzinfo=UTC)
URLS = {f"key-{number}": f"https://files.example/{number}?signature=x" for number in range(FILES)}
DIRECTORY = "\n".join(f"- skill-{number}: does thing {number} when somebody asks for it" for number in range(SKILLS))
TOOLS = (
    ToolOffer(name="use_skill", description=f"Pick a skill:\n{DIRECTORY}", parameters='{"type":"object"}'),
    *[
        ToolOffer(name=f"tool-{number}", description="Does one thing well.", parameters='{"type":"object"}')
        for number in range(20)
    ],
)
PROMPT = Prompt(
    title="Expert - Front end",
    identity="You know this project by heart. " * 40,
    sop="Look, compare, say what differs. " * 60,
    cases=tuple(
        Case(id=str(number), name=f"Case {number}", content="It looked right and was not. " * 10)
        for number in range(CASES)
    ),
    data=(Datum(title="Project", text="shop, TypeScript, two themes. " * 20),),
)
QUOTE = (ParsedDocument(name="design.md", content="The button is green in both themes. " * 200),)


def with_files(log: Sequence[Message]) -> tuple[Message, ...]:
    """The log with a document on each of its first user messages."""
    numbers = iter(range(FILES))
    return tuple(_with_file(message, next(numbers, None)) if message.role == "user" else message for message in log)


def _with_file(message: UserMessage, number: int | None) -> UserMessage:
    if number is None:
        return message
    document = File(kind="document", source=Key(key=f"key-{number}"), name=f"design-{number}.pdf")
    return replace(message, parts=(*message.parts, document))


def full_facts(log: Sequence[Message]) -> Facts:
    """All facts of the page."""
    return Facts(
        log=log,
        target=Target(wire="openai", model="bench"),
        prompt=PROMPT,
        budget=8_000,
        tools=TOOLS,
        turn=Turn(response_id="reply", admitted_at=NOON),
        quote=QUOTE,
        urls=URLS,
    )
