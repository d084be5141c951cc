"""A crash while the server reads documents (X4)."""

from collections.abc import Iterator

import pytest

from recto.conversation.json import load_object
from tests.api.forms import file
from tests.end_to_end.files import FileWorld, Talk, a_run, part, words
from tests.layers import ROOT
from tests.support.client import RUNS
from tests.waiting import wait_for

pytestmark = pytest.mark.full

DOCUMENTS = ROOT / "tests" / "documents"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FileWorld]:
    world = FileWorld(tmp_path_factory.mktemp("documents"))
    world.write_agent("always", files=", mode: always")
    with world:
        yield world


def test_X4_a_server_killed_while_it_reads_documents_goes_on_and_tells_the_run_from_its_start(world: FileWorld):
    rows_of_csv = b"".join(b"%d,some words in a cell,%d\n" % (number, number * 7) for number in range(200_000))
    (large,) = world.upload(file("large.csv", rows_of_csv))
    body = a_run(Talk(agent="always"), [words("So?"), part(large)])
    assert world.post(body).status == 202
    run, thread = str(body["runId"]), str(body["threadId"])
    wait_for(lambda: any(b"ACTIVITY_SNAPSHOT" in event for event in told_of(world, run)))
    assert len(world.users(thread)) == 1
    world.restart(kill=True)
    wait_for(lambda: world.ask("GET", f"{RUNS}/{run}").json["status"] == "finished")
    types = [str((load_object(event) or {})["type"]) for event in told_of(world, run)]
    assert (types[0], types.count("RUN_STARTED"), types[-1]) == ("RUN_STARTED", 1, "RUN_FINISHED")
    world.forget_all()


def told_of(world: FileWorld, run: str) -> list[bytes]:
    query = "SELECT body FROM events WHERE run IN (SELECT id FROM runs WHERE name = ?) ORDER BY number"
    return world.column(query, run)
