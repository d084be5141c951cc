"""File ids in whole pages: what a reminder shows resolves for the life of the thread (F4, F7). Blind models (D2)."""

import json
import re
from dataclasses import dataclass, field
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.log import Entry, RolledBack, Undone, view
from recto.conversation.messages import AssistantMessage, File, FileKind, Key, Text, ToolCall, ToolMessage, UserMessage
from recto.page.assemble import assemble
from recto.page.body import Page
from recto.page.facts import Facts, Turn
from recto.page.steps.remind import maps_of
from recto.page.wire.base import Target

FILE_ROWS = re.compile(r"<file>\n<id>(.*?)</id>\n<name>(.*?)</name>")
ZH_BLIND = "当前模型看不到图片：以上图片只有 id、名称和地址，不要猜测其内容。"
EN_BLIND = "This model cannot see images: of those above it has the id, name and url only. Do not guess what they show."


def a_file(name: str, kind: FileKind = "document") -> File:
    return File(kind=kind, source=Key(key=name), name=name)


def asks(*files: File, id: str = "", response_id: str = "") -> UserMessage:
    return UserMessage(id=id, response_id=response_id, parts=(Text(text="go"), *files))


def says(id: str = "") -> AssistantMessage:
    return AssistantMessage(id=id, parts=(Text(text="ok"),))


def contents(page: Page) -> list[object]:
    return [message["content"] for message in json.loads(page.body)["messages"]]


def ids_in(page: Page) -> list[tuple[str, str]]:
    return [match for content in contents(page) for match in FILE_ROWS.findall(str(content))]


def ids_shown(log: tuple[Entry, ...], response_id: str) -> list[tuple[str, str]]:
    return ids_in(assemble(Facts(log=log, turn=Turn(response_id=response_id)))[0])


def names_by_id(log: tuple[Entry, ...], response_id: str) -> dict[str, str]:
    maps = maps_of(Facts(log=log, turn=Turn(response_id=response_id)))
    return {id: one.name for id, one in maps.files.items()}


def test_F4_the_current_turn_is_that_of_the_last_message_seen_and_not_of_one_rolled_back():
    log = (asks(a_file("a"), id="u1"), asks(a_file("b"), id="u2"), RolledBack(id="b", to="u2"))
    assert ids_shown(log, "r1") == [("r1-0", "a")]
    assert names_by_id(log, "r1") == {"r1-0": "a", "u1-0": "a", "u2-0": "b"}, "u1-0 is what pages of u2 showed"


def test_F4_the_id_of_another_messages_response_is_not_taken_by_the_current_turn():
    log = (asks(a_file("a"), id="u1"), asks(a_file("b"), id="u2", response_id="r2"), RolledBack(id="b", to="u2"))
    assert names_by_id(log, "r2") == {"u1-0": "a", "r2-0": "b"}


@dataclass
class Thread:
    """A thread that grows, and every id its pages ever showed, with the name of its file."""

    log: list[Entry] = field(default_factory=list[Entry])
    visible_names: dict[str, str] = field(default_factory=dict[str, str])
    count: int = 0

    def number(self) -> int:
        self.count += 1
        return self.count

    def add_past(self, files: int, *, is_named: bool, replies: bool) -> None:
        number = self.number()
        self.log.append(asks(*self.files(files), id=f"u{number}" if is_named else ""))
        self.log += [says(f"a{number}" if is_named else "")] if replies else []

    def run_turn(self, files: int, *, is_named: bool, replies: bool) -> None:
        number = self.number()
        response_id = f"r{number}"
        self.log.append(asks(*self.files(files), id=f"u{number}" if is_named else "", response_id=response_id))
        self.look(response_id)
        if replies:
            call = ToolCall(id=f"c{number}", name="t", arguments="{}")
            self.log += [AssistantMessage(id=response_id, parts=(call,)), ToolMessage(tool_call_id=call.id)]
            self.look(response_id)
            self.log.append(says())

    def turn_back(self, choice: int) -> None:
        targets = [one.id for one in view(self.log).messages if one.role == "user" and one.id and one.response_id]
        if targets:
            self.log.append(RolledBack(id=f"b{self.number()}", to=targets[choice % len(targets)]))

    def files(self, count: int) -> list[File]:
        return [a_file(f"f{self.number()}", "image" if place else "document") for place in range(count)]

    def look(self, response_id: str) -> None:
        facts = Facts(log=tuple(self.log), turn=Turn(response_id=response_id))
        for id, name in ids_in(assemble(facts)[0]):
            assert self.visible_names.setdefault(id, name) == name, "one id, one file"
        assert self.resolved(response_id) == self.visible_names

    def resolved(self, response_id: str) -> dict[str, str | None]:
        names = names_by_id(tuple(self.log), response_id)
        return {id: names.get(id) for id in self.visible_names}


Act = tuple[Literal["turn", "back", "undo", "run on"], int, bool, bool]
PAST = st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.booleans()), max_size=3)
ACTS = st.lists(
    st.tuples(
        st.sampled_from(("turn", "turn", "turn", "back", "undo", "run on")),
        st.integers(0, 3),
        st.booleans(),
        st.booleans(),
    ),
    max_size=12,
)


@given(PAST, ACTS)
def test_F4_F7_every_id_a_page_ever_showed_resolves_to_its_file(past: list[tuple[int, bool, bool]], acts: list[Act]):
    thread = Thread()
    for files, is_named, replies in past:
        thread.add_past(files, is_named=is_named, replies=replies)
    for kind, choice, is_named, replies in acts:
        match kind:
            case "turn":
                thread.run_turn(choice, is_named=is_named, replies=replies)
            case "back":
                thread.turn_back(choice)
            case "undo":
                thread.log.append(Undone(id=f"b{thread.number()}"))
            case "run on":
                log_view = [one for one in view(thread.log).messages if one.role == "user"]
                # A message of the past is no turn of ours: nothing runs on from it.
                if log_view and log_view[-1].response_id:
                    thread.look("a response of its own")
    assert thread.resolved("a later response") == thread.visible_names


# D2: models that do not see


@pytest.mark.parametrize(
    ("locale", "intro", "blind"),
    [("zh", "用户本次可用的文件:", ZH_BLIND), ("en", "Files available to the user in this turn:", EN_BLIND)],
)
def test_D2_the_reminder_tells_a_model_that_cannot_see_so(locale: str, intro: str, blind: str):
    log = (asks(a_file("p.png", "image"), response_id="r1"), says(), asks(a_file("q.png", "image"), a_file("a.pdf")))
    facts = Facts(
        log=log, turn=Turn(response_id="r2"), urls={"p.png": "https://x.test/p"}, locale=locale, target=Target()
    )
    blind_facts = Facts(log=log, turn=facts.turn, urls=facts.urls, locale=locale, target=Target(sees_images=False))
    assert contents(assemble(blind_facts)[0]) == [
        f"<system-reminder>\n# Input Files\n{intro}\n\n<file>\n<id>r1-0</id>\n<name>p.png</name>\n"
        f"<type>image</type>\n<url>https://x.test/p</url>\n</file>\n{blind}\n</system-reminder>\n\ngo",
        "ok",
        f"<system-reminder>\n# Input Files\n{intro}\n\n<file>\n<id>r2-0</id>\n<name>q.png</name>\n"
        "<type>image</type>\n</file>\n<file>\n<id>r2-1</id>\n<name>a.pdf</name>\n<type>document</type>\n</file>\n"
        f"{blind}\n</system-reminder>\n\ngo",
    ]
    assert blind not in assemble(facts)[0].body.decode()


def test_D2_without_images_there_is_nothing_a_blind_model_must_know():
    facts = Facts(log=(asks(a_file("a.pdf")),), turn=Turn(response_id="r"), target=Target(sees_images=False))
    assert ZH_BLIND not in assemble(facts)[0].body.decode()
