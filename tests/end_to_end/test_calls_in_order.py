"""R15: calls of one reply find files as those before them left them, also where a person has to agree to one."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import Json, dump
from recto.testing.model_server import Answer, Call, Request, Script
from recto.tools.mark import Mark
from tests.end_to_end.harness import Harness
from tests.end_to_end.test_interrupts_crash import agreeing, interrupts, outcome, results
from tests.support.client import Reader, ask, start

TOOLS = "filesystem-read, filesystem-edit, filesystem-create, ace-text_search, terminal-execute"
AGENT = f"---\ntools: [{TOOLS}]\n---\n\nYou work on code.\n"
EDITS, READS, KEEPS = Mark(changes="files"), Mark(reads=True), Mark(in_order=True)


def one_reply(*calls: tuple[str, Mapping[str, Json]]) -> Script:
    own_calls = [
        Call(name=name, arguments=dump(arguments).decode(), id=f"c{number}")
        for number, (name, arguments) in enumerate(calls)
    ]

    def script(model_request: Request) -> Answer:
        last = cast("list[Mapping[str, Json]]", model_request.page["messages"])[-1]
        return Answer(text="Done.") if last["role"] == "tool" else Answer(calls=tuple(own_calls))

    return script


@contextmanager
def coder(folder: Path, script: Script) -> Generator[Harness]:
    with Harness(folder, script) as harness:
        (harness.agent / "AGENT.md").write_text(AGENT)
        yield harness


def edit(search: str, replace: str) -> tuple[str, Mapping[str, Json]]:
    return "filesystem-edit", {"filePath": "a.txt", "searchContent": search, "replaceContent": replace}


CREATE = ("filesystem-create", {"filePath": "a.txt", "content": "one\n"})
READ = ("filesystem-read", {"filePath": "a.txt"})
SEARCH = ("ace-text_search", {"pattern": "three"})
RUN = ("terminal-execute", {"command": "seq 200000 > /dev/null; cat a.txt; echo three > a.txt"})


@pytest.mark.full
def test_R15_a_reply_that_edits_then_runs_then_reads_has_it_done_in_this_order(tmp_path: Path):
    script = one_reply(CREATE, READ, edit("one", "two"), RUN, READ, SEARCH, edit("three", "four"), READ)
    with coder(tmp_path, script) as harness, harness.serve():
        results_seen = results(Reader(lambda: harness.url, start(harness.url, ask("Go."))).wait())
        assert len(results_seen) == 8
        reads = [text.splitlines()[1] for text in results_seen if text.startswith("📄")]
        assert reads == ["1→one", "1→three", "1→four"]
        assert '"stdout":"two\\n"' in results_seen[3]
        assert sum("three" in text for text in results_seen if "matching line" in text) == 1


@pytest.mark.full
def test_R15_a_read_waits_for_the_edit_before_it_that_waits_for_a_person(tmp_path: Path):
    with coder(tmp_path, one_reply(READ, edit("one", "two"), READ)) as harness, harness.serve(mode="ask"):
        body = ask("Go.")
        thread = str(body["threadId"])
        (harness.data / "workspaces" / thread).mkdir(parents=True)
        (harness.data / "workspaces" / thread / "a.txt").write_text("one\n")
        events = Reader(lambda: harness.url, start(harness.url, body)).wait()
        assert (outcome(events), [text.splitlines()[1] for text in results(events)]) == ("interrupt", ["1→one"])
        [interrupt] = interrupts(harness, thread)
        results_seen = results(Reader(lambda: harness.url, start(harness.url, agreeing(thread, interrupt))).wait())
        assert results_seen[0].startswith("Changed a.txt.")
        assert results_seen[1].splitlines()[1] == "1→two"


@pytest.mark.parametrize(
    ("first", "later", "waits"),
    [
        (EDITS, EDITS, True),
        (EDITS, READS, True),
        (READS, EDITS, True),
        (READS, READS, False),
        (EDITS, Mark(), False),
        (Mark(), EDITS, False),
        (KEEPS, KEEPS, True),
        (KEEPS, EDITS, False),
        (Mark(), Mark(), False),
    ],
)
def test_R15_only_calls_that_work_on_what_others_change_wait(first: Mark, later: Mark, waits: bool):
    assert first.precedes(later) is waits
