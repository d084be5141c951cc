"""Short ways to write the messages of a log, for tests that only care who spoke, who called and who answered."""

from recto.conversation.messages import AssistantMessage, AssistantPart, Text, ToolCall, ToolMessage, UserMessage


def user(id: str, text: str = "hi") -> UserMessage:
    return UserMessage(id=id, parts=(Text(text=text),))


def says(id: str, text: str = "Well.") -> AssistantMessage:
    return AssistantMessage(id=id, parts=(Text(text=text),))


def question(id: str) -> UserMessage:
    """Words of a user that no other question has."""
    return user(id, f"words of {id}")


def answer(id: str) -> AssistantMessage:
    return says(id, f"answer {id}")


def call(id: str, tool: str = "ls") -> ToolCall:
    return ToolCall(id=id, name=tool, arguments="{}")


def asks(id: str, *calls: str | ToolCall, text: str = "") -> AssistantMessage:
    """A reply with calls; one named by its id alone is a call of `ls`."""
    words: tuple[AssistantPart, ...] = (Text(text=text),) if text else ()
    tool_calls = tuple(call(one) if isinstance(one, str) else one for one in calls)
    return AssistantMessage(id=id, parts=(*words, *tool_calls))


def result(id: str, call_id: str, text: str = "out") -> ToolMessage:
    return ToolMessage(id=id, tool_call_id=call_id, parts=(Text(text=text),))


def reads(id: str, text: str, path: str = "a.ts") -> tuple[AssistantMessage, ToolMessage]:
    """A call that reads a file, `c{id}`, and its result, `t{id}`."""
    tool_call = ToolCall(id=f"c{id}", name="filesystem-read", arguments=f'{{"filePath": "{path}"}}')
    return AssistantMessage(id=f"a{id}", parts=(tool_call,)), result(f"t{id}", tool_call.id, text)
