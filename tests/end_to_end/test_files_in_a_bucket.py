"""Files in a bucket over HTTP (F5)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.forms import file
from tests.end_to_end.files import ATTACHMENTS, FileWorld, Talk, reading
from tests.support.s3 import S3Server, bucket_server

pytestmark = pytest.mark.full

NOTES = file("notes.txt", b"The key is under the mat.")
PAGE = file("page.html", b"<script>alert(1)</script>")


@pytest.fixture(scope="module")
def bucket() -> Iterator[S3Server]:
    with bucket_server() as server:
        yield server


@pytest.fixture
def world(tmp_path: Path, bucket: S3Server) -> Iterator[FileWorld]:
    with FileWorld(tmp_path, storage_url=bucket.url(prefix=tmp_path.name)) as world:
        yield world


def test_F5_files_of_a_bucket_are_read_after_a_restart_and_gone_once_deleted(world: FileWorld):
    (notes,) = world.upload(NOTES)
    talk = Talk()
    id = f"{world.attach(talk, notes)}-0"
    world.restart()
    assert world.say(talk, "Where is the key?", reading(id)).contents == [NOTES.body.decode()]
    assert world.ask("DELETE", f"{ATTACHMENTS}/{notes['id']}").status == 200
    assert world.get(str(notes["url"])).status == 404
