"""What a small model gets done: skills it takes up, tools it calls, and calls that a user is shown as an answer.

`python bench/small_model.py --url http://127.0.0.1:8080/v1 --model NAME` starts Recto with that model and talks to it
over HTTP. With `--python` it is the Recto of another environment: figures before and after come from the same words.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
import urllib.request
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, TypeAlias, TypedDict, cast

from processes import Process, scratch
from relay import relay
from traffic import TOKEN

Target: TypeAlias = Literal["skill", "tool"]
RUNS, THREADS, FILES = "/api/v1/agent/runs", "/api/v1/agent/threads", "/api/v1/agent/attachments"
# A model on a processor takes its time for a page.
SECONDS = "900"
# Words that name a skill, and the skill.
SKILLS = {
    "vibe": (
        ("帮我看看八字。", "bazi"),
        ("我想抽一张塔罗牌。", "tarot"),
        ("我的星座今天怎么样？", "zodiac"),
        ("我想跳槽，给点职业建议。", "career"),
        ("我最近很迷茫，也很焦虑，想理清人生目标。", "lifecoach"),
        ("我的四柱和五行是怎样的？", "bazi"),
        ("用塔罗给我占卜一下感情。", "tarot"),
        ("我的上升星座和星盘说明什么？", "zodiac"),
        ("下周有面试，怎么准备晋升？", "career"),
        ("我总是拖延，想养成好习惯。", "lifecoach"),
    ),
    "vibe-en": (
        ("Please read my bazi.", "bazi"),
        ("Draw a tarot card for me.", "tarot"),
        ("What does my horoscope say? I am into astrology.", "zodiac"),
        ("I want a career change. Any advice?", "career"),
        ("I am feeling lost and need a life coach.", "lifecoach"),
        ("What are my four pillars and five elements?", "bazi"),
        ("Do a card reading about my love life, with a spread.", "tarot"),
        ("Tell me about my rising sign and my natal chart.", "zodiac"),
        ("I have a job interview after a layoff. Help me with my career.", "career"),
        ("Procrastination is ruining my goal. Help me with a habit.", "lifecoach"),
    ),
}
# Words that need a tool, and the tool.
FILE = "The meeting is on Thursday at 15:30 in room B12. Ada brings the figures.\n"
TOOLS = (
    ("What is 17 * 23? Use the calculator.", "calculator"),
    ("What is 4812 / 16?", "calculator"),
    ("Calculate (3.5 + 8.25) * 12.", "calculator"),
    ("How much is 19 percent of 2480?", "calculator"),
    ("用计算器算一下 128 * 256。", "calculator"),
    ("What is 987654 - 123456?", "calculator"),
    ("2 的 20 次方是多少？", "calculator"),
    ("Compute sqrt(7056) with your tool.", "calculator"),
    ("What time is it in Tokyo right now?", "current_time"),
    ("Use your tool to tell me the current time in UTC.", "current_time"),
    ("现在纽约几点？", "current_time"),
    ("What is today's date in London?", "current_time"),
    ("Which day of the week is it in Sydney?", "current_time"),
    ("请用工具查一下现在的北京时间。", "current_time"),
    ("Read the attached file. When is the meeting?", "read_files"),
    ("What does the attached file say?", "read_files"),
    ("In which room is the meeting? It is in the file.", "read_files"),
    ("读一下附件，谁带数字来？", "read_files"),
    ("Summarise the attached document.", "read_files"),
    ("Use read_files to open my file and tell me the time of the meeting.", "read_files"),
)
NAMES = "|".join(("use_skill", "bazi", "tarot", "zodiac", "lifecoach", "calculator", "current_time", "read_files"))
# A call that was not taken for one, as a user would see it.
CLOTHED = re.compile(
    rf"</?tool_?(?:call|s\b|_result|_response)|<function|\[TOOL_CALLS\]|[\"'](?:name|tool|function)[\"']\s*:\s*[\"']"
    rf"(?:{NAMES})|\b(?:{NAMES})\s*\(|[\"']arguments[\"']\s*:"
)


class Options(argparse.Namespace):
    """What the command line says."""

    url: str
    model: str
    python: str
    tool_calling: str | None
    tries: int
    max_tokens: int | None
    replies: Path | None
    json: Path | None


class Message(TypedDict, total=False):
    """A message of a thread, as far as it is read here."""

    role: str
    content: str


@dataclass(frozen=True, kw_only=True)
class Try:
    """One question: what it wants, whether that came, whether a user was shown a call, and what was said."""

    kind: Target
    words: str
    wanted: str
    is_done: bool
    is_shown: bool
    seconds: float
    answer: str


def main(arguments: Sequence[str]) -> None:
    """Ask all of it and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True, help="the address before /chat/completions of a compatible server")
    parser.add_argument("--model", required=True, help="the name of the model there")
    parser.add_argument(
        "--python", default=sys.executable, help="the Python whose Recto is tried; this one's otherwise"
    )
    parser.add_argument("--tool-calling", help="RECTO_TOOL_CALLING, where that Recto knows it")
    parser.add_argument("--tries", type=int, default=20, help="how many of each kind")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="cut every reply at N tokens")
    parser.add_argument(
        "--replies", type=Path, metavar="FILE", help="add each reply to FILE, a line of JSON, as it came"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every try to FILE as JSON")
    options = parser.parse_args(arguments, namespace=Options())
    with scratch(None) as folder, relay(options.url, options.max_tokens, options.replies) as url:
        server = start(options, url, Path(folder))
        try:
            tries = [*skill_tries(server.port, options.tries), *tool_tries(server.port, options.tries)]
        finally:
            server.stop()
    print(table(options, tries))
    if options.json:
        rows = json.dumps([asdict(one) for one in tries], indent=2, ensure_ascii=False)
        options.json.write_text(rows + "\n", encoding="utf-8")


def start(options: Options, url: str, folder: Path) -> Process:
    """Recto with that model at an address, and a new data folder."""
    settings = {"RECTO_MODEL": f"compatible:{options.model}", "RECTO_MODEL_URL": url, "RECTO_TOKEN": TOKEN}
    settings |= {"RECTO_MODEL_FIRST_BYTE_SECONDS": SECONDS, "RECTO_MODEL_BETWEEN_SECONDS": SECONDS}
    settings |= {"RECTO_TOOL_CALLING": options.tool_calling} if options.tool_calling else {}
    command = [options.python, "-m", "recto", "serve", "--port", "0", "--data", str(folder / "data")]
    process = Process(command, folder, settings)
    process.wait_until_answers("/readyz")
    return process


def skill_tries(port: int, most: int) -> list[Try]:
    """Each question in a thread of its own; what counts is the skill that the thread has in the end."""
    both = [
        (agent, *one) for pair in zip(*SKILLS.values(), strict=True) for agent, one in zip(SKILLS, pair, strict=True)
    ]
    tries: list[Try] = []
    for agent, words, skill in both[:most]:
        thread, start = str(uuid.uuid4()), time.perf_counter()
        ask(port, thread, agent, words)
        active_skill = cast("dict[str, object]", fetch(port, f"{THREADS}/{thread}")).get("skill")
        tries.append(record_try(port, thread, "skill", words, skill, start=start, is_done=active_skill == skill))
    return tries


def tool_tries(port: int, most: int) -> list[Try]:
    """What counts is a call of the tool that came to a result."""
    part = upload(port)
    spread = [TOOLS[place * 7 % len(TOOLS)] for place in range(len(TOOLS))]
    tries: list[Try] = []
    for words, tool in spread[:most]:
        thread, start = str(uuid.uuid4()), time.perf_counter()
        events = ask(port, thread, "chat", words, part if tool == "read_files" else None)
        call_ids = {one["toolCallId"] for one in events if one.get("toolCallName") == tool}
        results = [one for one in events if one["type"] == "TOOL_CALL_RESULT" and one["toolCallId"] in call_ids]
        is_done = any(not str(one["content"]).startswith("Error") for one in results)
        tries.append(record_try(port, thread, "tool", words, tool, start=start, is_done=is_done))
    return tries


def record_try(port: int, thread: str, kind: Target, words: str, wanted: str, *, start: float, is_done: bool) -> Try:
    """A question that was asked, with what its user reads."""
    messages = cast("dict[str, Sequence[Message]]", fetch(port, f"{THREADS}/{thread}/messages"))["messages"]
    answer = "\n".join(str(one.get("content") or "") for one in messages if one.get("role") == "assistant").strip()
    one = Try(
        kind=kind,
        words=words,
        wanted=wanted,
        is_done=is_done,
        is_shown=CLOTHED.search(answer) is not None,
        seconds=time.perf_counter() - start,
        answer=answer,
    )
    print(f"{'yes' if is_done else 'no ':<4}{'SHOWN' if one.is_shown else '':<6}{wanted:<13}{words}", flush=True)
    return one


def table(options: Options, tries: Sequence[Try]) -> str:
    """The figures, a line each."""
    rows = [f"{options.model}, tool calling {options.tool_calling or 'as it comes'}"]
    for kind, what in (("skill", "skills taken up"), ("tool", "tools called")):
        of_kind = [one for one in tries if one.kind == kind]
        rows.append(f"{what:<36}{sum(one.is_done for one in of_kind):>4}/{len(of_kind)}")
    rows.append(f"{'replies that showed a call':<36}{sum(one.is_shown for one in tries):>4}/{len(tries)}")
    rows.append(f"{'seconds a try':<36}{sum(one.seconds for one in tries) / max(1, len(tries)):>7.1f}")
    return "\n".join(rows)


def ask(
    port: int, thread: str, agent: str, words: str, part: Mapping[str, object] | None = None
) -> list[dict[str, object]]:
    """One run: its events."""
    content = [{"type": "text", "text": words}, part] if part else words
    body = {
        "threadId": thread,
        "runId": str(uuid.uuid4()),
        "messages": [{"id": "m1", "role": "user", "content": content}],
        "forwardedProps": {"agent": agent},
    }
    lines = send(port, RUNS, json.dumps(body).encode(), Accept="text/event-stream").splitlines()
    return [cast("dict[str, object]", json.loads(line[6:])) for line in lines if line.startswith(b"data: ")]


def upload(port: int) -> Mapping[str, object]:
    """A file that is sent up once: the part of a message that names it."""
    edge = "edge-of-the-bench"
    head = f'--{edge}\r\nContent-Disposition: form-data; name="file"; filename="meeting.txt"\r\n'
    body = f"{head}Content-Type: text/plain\r\n\r\n{FILE}\r\n--{edge}--\r\n".encode()
    answer = send(port, FILES, body, **{"Content-Type": f"multipart/form-data; boundary={edge}"})
    (attachment,) = cast("dict[str, Sequence[dict[str, str]]]", json.loads(answer))["attachments"]
    return {"type": "document", "source": {"type": "url", "value": attachment["url"]}}


def fetch(port: int, path: str) -> object:
    """What a GET answers, as JSON."""
    return json.loads(send(port, path, None))


def send(port: int, path: str, body: bytes | None, **headers: str) -> bytes:
    """One request to the server, whole."""
    fields = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", **headers}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, fields)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
        request, timeout=4 * float(SECONDS)
    ) as reply:
        return cast("bytes", reply.read())


if __name__ == "__main__":
    main(sys.argv[1:])
