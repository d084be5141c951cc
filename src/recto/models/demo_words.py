"""What the demo model says to a page. Pure: same page, same reply. Refuses to pretend it is a real model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from recto.models.demo_files import READER, Language, documents_in, tell_files, wants_files
from recto.page.canonical import Json, dump, load_object
from recto.page.summarise import INSTRUCTIONS

CALCULATOR = "calculator"
CLOCK = "current_time"
REMINDERS = re.compile(r"\A(?:\s*<system-reminder>.*?</system-reminder>\s*)+", re.DOTALL)
CHINESE = re.compile("[\u4e00-\u9fff]")
TIME_WORDS = re.compile(r"\b(?:time|date)\b|几点|时间|日期", re.IGNORECASE)
SIGNS = str.maketrans({"（": "(", "）": ")", "＋": "+", "－": "-", "×": "*", "＊": "*", "÷": "/", "／": "/", "−": "-"})
SUM = re.compile(r"(?<![A-Za-z0-9_.])[-(]*\d[\d\s.+\-*/%^()]*")
OPERATION = re.compile(r"[\d)]\s*(?:\*\*|//|[-+*/%^])\s*[-(.\d]")
# A date or a telephone number is no subtraction.
NO_SUM = re.compile(r"\d+(?:-\d+){2,}|\d{1,4}/\d{1,2}/\d{1,4}|0\d*-\d+")
NUMBER = re.compile(r"[-+]?[\d,]*\.?\d+(?:e[-+]?\d+)?", re.IGNORECASE)
TIME = re.compile(r"\d{4}-\d{2}-\d{2}|\d{1,2}:\d{2}")
FAILED = re.compile(r"\W*(?:error|failed|cannot|错误|失败|无法)", re.IGNORECASE)
SAID = re.compile(r'<message role="(\w+)">\n(.*?)\n</message>', re.DOTALL)
QUOTED = 120
SUMMARY_MESSAGES = 6

ABOUT = {
    "en": (
        "I am Recto's demo model: no real model is set, so I only know three tricks: arithmetic, the time, "
        "and showing how text files you attach begin. "
        'You said: "{words}". Try "what is 12*7?" or "what time is it?". '
        "For a real model set RECTO_MODEL=openai:NAME with OPENAI_API_KEY, "
        "or RECTO_MODEL=compatible:NAME with RECTO_MODEL_URL, and start again."
    ),
    "zh": (
        "我是 Recto 的演示模型：还没有设置真正的模型，所以我只会三件事：算术、看时间、展示你上传的文本文件的开头。"
        "你说的是：“{words}”。可以试试“算一下 12*7”或“现在几点”。"
        "要用真正的模型，请设置 RECTO_MODEL=openai:NAME 和 OPENAI_API_KEY，"
        "或 RECTO_MODEL=compatible:NAME 和 RECTO_MODEL_URL，然后重新启动。"
    ),
}
NOTHING = {"en": "nothing", "zh": "（没有文字）"}
SUM_ANSWER = {"en": "{expression} = {result}.", "zh": "{expression} = {result}。"}
TIME_ANSWER = {"en": "The time is {result}.", "zh": "现在的时间是 {result}。"}
TOOL_ANSWER = {"en": "{name} answered: {result}", "zh": "{name} 的回答：{result}"}
TOOL_FAILED = {"en": "{name} did not work. It said: {result}", "zh": "{name} 没有成功。它说：{result}"}
SUMMARY = {"en": "In short (by the demo model, an extract only):", "zh": "摘要（演示模型，仅为摘录）："}


@dataclass(frozen=True, kw_only=True)
class DemoCall:
    """A tool the demo model wants to call."""

    name: str
    arguments: str


@dataclass(frozen=True, kw_only=True)
class DemoReply:
    """What the demo model says: words, or calls."""

    text: str = ""
    calls: tuple[DemoCall, ...] = ()


def reply_to(body: bytes) -> DemoReply:
    """The reply to a page in OpenAI form."""
    page = load_object(body) or {}
    messages = list(_objects(page.get("messages")))
    rules = "\n".join(_text(message.get("content")) for message in messages if _is_system(message))
    if any(instructions in rules for instructions in INSTRUCTIONS.values()):
        return DemoReply(text=_summary(messages, "zh" if INSTRUCTIONS["zh"] in rules else "en"))
    asked = max((place for place, message in enumerate(messages) if message.get("role") == "user"), default=-1)
    said = _text(messages[asked].get("content")) if asked >= 0 else ""
    words = REMINDERS.sub("", said).strip()
    documents = _documents(messages, asked, words)
    language: Language = "zh" if CHINESE.search(words or " ".join(documents.values())) else "en"
    results = list(_results(messages[asked + 1 :], language))
    if results:
        return DemoReply(text=("" if language == "zh" else " ").join(results))
    offered = {_text(_object(tool.get("function")).get("name")) for tool in _objects(page.get("tools"))}
    calls = tuple(call for call in _wanted(words) if call.name in offered)
    if documents and READER in offered and (wants_files(words) or not calls):
        calls = (*calls, DemoCall(name=READER, arguments=dump({"ids": list(documents)}).decode()))
    return DemoReply(calls=calls) if calls else DemoReply(text=_about(words, language))


def _documents(messages: Sequence[Mapping[str, Json]], asked: int, words: str) -> Mapping[str, str]:
    """The documents of the current turn; where it has none and asks for some, those of the turn that last had any."""
    users = [one for one in reversed(messages[: asked + 1]) if one.get("role") == "user"]
    for user in users if wants_files(words) else users[:1]:
        if found := REMINDERS.match(_text(user.get("content"))):
            documents = documents_in(found[0])
            if documents:
                return documents
    return {}


def find_sum(words: str) -> str | None:
    """The first arithmetic in the words, as a calculator takes it."""
    for found in SUM.finditer(words.translate(SIGNS)):
        expression = _balanced(found[0].rstrip(" .+-*/%^(\t\r\n"))
        if OPERATION.search(expression) and not NO_SUM.fullmatch(expression):
            return expression.replace("^", "**")
    return None


def _balanced(expression: str) -> str:
    """Without the brackets of a sentence around it."""
    while expression.startswith("(") and expression.count("(") > expression.count(")"):
        expression = expression[1:].lstrip()
    while expression.endswith(")") and expression.count(")") > expression.count("("):
        expression = expression[:-1].rstrip()
    return expression


def _wanted(words: str) -> Iterator[DemoCall]:
    expression = find_sum(words)
    if expression:
        yield DemoCall(name=CALCULATOR, arguments=dump({"expression": expression}).decode())
    if TIME_WORDS.search(words):
        yield DemoCall(name=CLOCK, arguments="{}")


def _results(messages: Sequence[Mapping[str, Json]], language: Language) -> Iterator[str]:
    """What the tools answered since the user spoke, in words."""
    calls = {_text(call.get("id")): call for message in messages for call in _objects(message.get("tool_calls"))}
    for message in messages:
        if message.get("role") == "tool":
            call = _object(calls.get(_text(message.get("tool_call_id")), {}).get("function"))
            yield _told(call, _text(message.get("content")).strip(), language)


def _told(call: Mapping[str, Json], result: str, language: Language) -> str:
    name = _text(call.get("name")) or "tool"
    expression = _text((load_object(_text(call.get("arguments"))) or {}).get("expression"))
    if name == CALCULATOR and NUMBER.fullmatch(result):
        return SUM_ANSWER[language].format(expression=expression, result=result)
    if name == CLOCK and TIME.match(result):
        return TIME_ANSWER[language].format(result=result)
    if name == READER and (files := tell_files(result, language)):
        return files
    # Whatever else these say is why they could not.
    failed = name in (CALCULATOR, CLOCK, READER) or FAILED.match(result)
    return (TOOL_FAILED if failed else TOOL_ANSWER)[language].format(name=name, result=result)


def _about(words: str, language: Language) -> str:
    return ABOUT[language].format(words=_short(words) or NOTHING[language])


def _summary(messages: Sequence[Mapping[str, Json]], language: Language) -> str:
    said = [pair for message in messages for pair in SAID.findall(_text(message.get("content")))]
    lines = [f"- {role}: {_short(text)}" for role, text in said[-SUMMARY_MESSAGES:]]
    return "\n".join((SUMMARY[language], *lines))


def _short(words: str) -> str:
    line = " ".join(words.split())
    return line if len(line) <= QUOTED else f"{line[:QUOTED]}..."


def _is_system(message: Mapping[str, Json]) -> bool:
    return message.get("role") in ("system", "developer")


def _object(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}


def _objects(value: Json) -> Iterator[Mapping[str, Json]]:
    if isinstance(value, Sequence) and not isinstance(value, str):
        yield from (item for item in value if isinstance(item, Mapping))


def _text(content: Json) -> str:
    """Words as a string or as blocks."""
    if isinstance(content, str):
        return content
    return "\n".join(text for block in _objects(content) if isinstance(text := block.get("text"), str))
