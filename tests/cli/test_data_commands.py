"""C1: `recto backup` and `recto user`, beside a server that runs and without one."""

import os
import threading
from pathlib import Path

import pytest

from recto.conversation.json import Json, load_object
from recto.files.storage.blobs import LABEL
from recto.ids import new_id
from recto.testing.model_server import Answer, ModelServer
from recto.testing.process import ServerProcess
from tests.api.forms import BOUNDARY, file, form_of
from tests.cli.in_process import FAILED, WRONG_USE, recto, recto_process
from tests.support.client import RUNS, TOKEN, ask, read_events, request, run, start

pytestmark = pytest.mark.full


def lines(text: str) -> list[dict[str, Json]]:
    return [dict(load_object(line) or {}) for line in text.splitlines()]


# Backup


def test_C1_a_backup_under_load_contains_all_commits_and_can_be_served(tmp_path: Path):
    data, copy = tmp_path / "data", tmp_path / "copies" / "one"
    done, stop = list[str](), threading.Event()
    with (
        ModelServer(lambda _: Answer(text="word " * 30)) as model,
        ServerProcess.serve(data, {"RECTO_MODEL": "compatible:x", "RECTO_MODEL_URL": model.url}) as server,
    ):
        first = ask("remember me")
        run(server.url, first)

        def load() -> None:
            while not stop.is_set():
                body = ask("more")
                run(server.url, body)
                done.append(str(body["runId"]))

        threads = [threading.Thread(target=load) for _ in range(4)]
        for thread in threads:
            thread.start()
        committed = list(done)
        result = recto_process(tmp_path, "backup", str(copy), "--data", str(data))
        stop.set()
        for thread in threads:
            thread.join()
        received_events = list(read_events(server.url, str(first["runId"])))
    assert (result.code, result.err) == (0, "")
    assert result.out == f"Copied to {copy}. Start a server on it with: recto serve --data {copy}\n"
    assert [path.name for path in copy.iterdir()] == ["recto.db"]
    assert copy.stat().st_mode & 0o077 == 0
    assert (copy / "recto.db").stat().st_mode & 0o077 == 0
    with ServerProcess.serve(copy, {}) as server:
        assert list(read_events(server.url, str(first["runId"]))) == received_events
        for name in committed:
            assert request(server.url, "GET", f"{RUNS}/{name}").json["status"] == "finished"
        again = ask("What is 12 * 7?", thread=str(first["threadId"]))
        assert run(server.url, again)[-1].event["type"] == "RUN_FINISHED"


def test_C1_an_active_run_continues_in_the_copy(tmp_path: Path):
    with ModelServer(
        lambda model_request: Answer(hang=True) if model_request.number == 0 else Answer(text="Done.")
    ) as model:
        settings = {"RECTO_MODEL": "compatible:x", "RECTO_MODEL_URL": model.url, "RECTO_LEASE_SECONDS": "2"}
        with ServerProcess.serve(tmp_path / "data", settings) as server:
            task = start(server.url, ask("hi"))
            model.wait_requests(1)
            assert recto(tmp_path, "backup", "copy", "--data", "data").code == 0
        with ServerProcess.serve(tmp_path / "copy", settings) as server:
            received_events = list(read_events(server.url, task))
    assert received_events[-1].event["type"] == "RUN_FINISHED"


def test_C1_a_failed_backup_is_reported_and_creates_nothing(tmp_path: Path):
    missing = recto(tmp_path, "backup", "copy", "--data", "nowhere")
    assert missing.code == WRONG_USE
    assert "there is no database. Choose the data folder with --data" in missing.err
    postgres = recto(tmp_path, "backup", "copy", RECTO_DATABASE_URL="postgresql://bob:s3cret@host/db")
    assert postgres.code == WRONG_USE
    assert "pg_dump" in postgres.err
    assert "s3cret" not in postgres.err
    (tmp_path / "taken").write_text("x")
    with ServerProcess.serve(tmp_path / "data", {}) as server:
        assert server.stop() == 0
    done = recto(tmp_path, "backup", "taken", "--data", "data")
    assert done.code == FAILED
    assert done.err.startswith("recto backup: ")
    assert "Traceback" not in done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "taken"]


# Users

KEYS = {"RECTO_API_KEYS": "ann:the-key-that-ann-has,bob:the-key-that-bob-has"}
ANN, BOB = "the-key-that-ann-has", "the-key-that-bob-has"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of ann's and two of bob's."""
    folder = tmp_path_factory.mktemp("users")
    with ServerProcess.serve(folder / "data", KEYS) as server:
        for token, words in ((ANN, "I am Ann"), (BOB, "I am Bob"), (BOB, "Bob again")):
            run(server.url, ask(words), token=token)
        assert server.stop() == 0
    return folder


def test_C1_user_export_prints_the_data_of_one_user_only(data: Path):
    done = recto_process(data, "user", "export", "ann", "--data", "data")
    assert done.code == 0
    result = lines(done.out)
    assert done.err == f"{len(result)} lines.\n"
    assert {"spending", "thread", "entry", "run", "call"} == {
        line["type"] for line in result if isinstance(line["type"], str)
    }
    assert "I am Ann" in done.out
    assert "Bob" not in done.out


def test_C1_user_delete_asks_and_deletes_all_data_of_a_user(data: Path, tmp_path: Path):
    assert recto(data, "backup", str(tmp_path / "data"), "--data", "data").code == 0
    done = recto(tmp_path, "user", "delete", "bob", "--data", "data", stdin="n\n")
    assert done.code == FAILED
    assert "Delete all threads, runs, calls and files of 'bob' forever?" in done.err
    assert recto(tmp_path, "user", "export", "bob", "--data", "data").out
    sure = recto(tmp_path, "user", "delete", "bob", "--data", "data", "--yes")
    assert (sure.code, sure.out) == (0, "Deleted 2 threads, 0 files and 0 datasets; stopped 0 active runs.\n")
    result = recto(tmp_path, "user", "export", "bob", "--data", "data")
    assert (result.code, result.out) == (FAILED, "")
    assert result.err.startswith(
        "recto user export: There is no data of a user 'bob'. The name is that in RECTO_API_KEYS"
    )
    assert "I am Ann" in recto(tmp_path, "user", "export", "ann", "--data", "data").out


def test_C1_a_running_server_notices_a_deleted_user(tmp_path: Path):
    with ModelServer(lambda _: Answer(hang=True)) as model:
        settings = {"RECTO_MODEL": "compatible:x", "RECTO_MODEL_URL": model.url, "RECTO_LEASE_SECONDS": "1"}
        with ServerProcess.serve(tmp_path / "data", settings) as server:
            task = start(server.url, ask("hi"))
            (model_request,) = model.wait_requests(1)
            done = recto(tmp_path, "user", "delete", "local", "--data", "data", "--yes")
            assert done.out == "Deleted 1 threads, 0 files and 0 datasets; stopped 1 active runs.\n"
            assert request(server.url, "GET", f"{RUNS}/{task}").status == 404
            # Whoever worked on it finds out when it wants to keep its lease.
            assert model_request.wait_disconnected(20)
            assert request(server.url, "GET", "/readyz").status == 200


def test_S6_user_tier_gives_a_user_a_tier_that_a_server_tells_them(tmp_path: Path):
    with ServerProcess.serve(tmp_path / "data", KEYS) as server:
        done = recto(tmp_path, "user", "tier", "ann", "pro", "--data", "data")
        assert (done.code, done.out, done.err) == (0, "User 'ann' has the tier 'pro'.\n", "")
        problem = [request(server.url, "GET", "/api/v1/profile", token=token).json["tier"] for token in (ANN, BOB)]
    assert problem == ["pro", "free"]
    (line,) = lines(recto(tmp_path, "user", "export", "ann", "--data", "data").out)
    assert (line["type"], line["tier"]) == ("profile", "pro")
    wrong = recto(tmp_path, "user", "tier", "ann", "Gold!", "--data", "data")
    assert (wrong.code, wrong.out) == (WRONG_USE, "")
    assert wrong.err.startswith("recto user tier: tier: must be 1 to 32 lower-case letters")
    for name in ("", os.fsdecode(b"\xff")):
        nobody = recto(tmp_path, "user", "tier", name, "pro", "--data", "data")
        assert (nobody.code, nobody.out) == (WRONG_USE, "")
        assert nobody.err.startswith("recto user tier: user: must be a name of 1 to 256 characters of Unicode")


@pytest.mark.parametrize("command", ["export", "delete", "tier"])
def test_C1_a_folder_without_a_database_is_reported_and_stays_empty(tmp_path: Path, command: str):
    more = {"export": [], "delete": ["--yes"], "tier": ["pro"]}[command]
    done = recto(tmp_path, "user", command, "ann", *more)
    assert done.code == WRONG_USE
    assert done.err.startswith(f"recto user {command}: Setting data is 'recto-data/recto.db'")
    assert not list(tmp_path.iterdir())


# Files

ATTACHMENTS = "/api/v1/agent/attachments"


def upload(url: str, name: str, body: bytes, token: str = TOKEN) -> str:
    """The url of a file that was uploaded."""
    media = {"content_type": f"multipart/form-data; boundary={BOUNDARY}"}
    answer = request(url, "POST", f"{ATTACHMENTS}?agent=chat", form_of(file(name, body)), **media, token=token)
    rows = answer.json["attachments"]
    assert isinstance(rows, list)
    row = rows[0]
    assert isinstance(row, dict)
    return str(row["url"])


def blobs(data: Path) -> list[bytes]:
    return sorted(path.read_bytes() for path in (data / "files").rglob("*") if path.is_file() and path.name != LABEL)


def test_C1_a_backup_copies_files_and_rejects_a_used_folder(tmp_path: Path):
    data, copy = tmp_path / "data", tmp_path / "copy"
    with ServerProcess.serve(data, {}) as server:
        upload(server.url, "one.txt", b"first")
        upload(server.url, "two.txt", b"second")
        (data / "files" / "incoming" / new_id()).write_bytes(b"not whole yet")
        done = recto(tmp_path, "backup", str(copy), "--data", str(data))
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"Copied to {copy} with 2 files. ")
    assert blobs(copy) == [b"first", b"second"]
    assert all(path.stat().st_mode & 0o077 == 0 for path in (copy / "files").rglob("*"))
    with ServerProcess.serve(copy, {}) as server:
        rows = request(server.url, "GET", ATTACHMENTS).json["attachments"]
        assert isinstance(rows, list)
        urls = [str(row["url"]) for row in rows if isinstance(row, dict)]
        bodies = [request(server.url, "GET", url.removeprefix(server.url)).body for url in urls]
        assert sorted(bodies) == [b"first", b"second"]
    assert recto(tmp_path, "backup", str(copy), "--data", str(data)).code == WRONG_USE


def test_C1_a_deleted_user_leaves_no_bytes_and_takes_none_of_others(tmp_path: Path):
    keys = {"RECTO_API_KEYS": "ann:ann-key-0123456789,bob:bob-key-0123456789"}
    ann, bob = (f"{name}-key-0123456789" for name in ("ann", "bob"))
    with ServerProcess.serve(tmp_path / "data", keys, token=None) as server:
        upload(server.url, "mine.txt", b"only mine", ann)
        upload(server.url, "ours.txt", b"ours", ann)
        upload(server.url, "ours too.txt", b"ours", bob)
    assert blobs(tmp_path / "data") == [b"only mine", b"ours", b"ours"]
    done = recto(tmp_path, "user", "delete", "ann", "--yes", "--data", "data")
    assert (done.code, done.out) == (0, "Deleted 0 threads, 2 files and 0 datasets; stopped 0 active runs.\n")
    assert blobs(tmp_path / "data") == [b"ours"]


def test_C1_a_user_deleted_beside_a_server_takes_nothing_of_an_upload_on_its_way(tmp_path: Path):
    with ServerProcess.serve(tmp_path / "data", {}) as server:
        staged = tmp_path / "data" / "files" / "incoming" / new_id()
        staged.write_bytes(b"half of a file")
        assert recto(tmp_path, "user", "delete", "nobody", "--yes", "--data", "data").code == 0
        assert staged.exists()
        assert server.stop() == 0
    with ServerProcess.serve(tmp_path / "data", {}):
        assert not staged.exists()


def test_C1_deleting_a_user_deletes_only_their_workspaces(data: Path, tmp_path: Path):
    assert recto(data, "backup", str(tmp_path / "data"), "--data", "data").code == 0
    folders = dict[str, Path]()
    for user in ("ann", "bob"):
        exported = lines(recto(tmp_path, "user", "export", user, "--data", "data").out)
        folders[user] = (
            tmp_path / "data" / "workspaces" / next(str(one["id"]) for one in exported if one["type"] == "thread")
        )
        folders[user].mkdir(parents=True)
        (folders[user] / "plan.txt").write_text("secret")
    assert recto(tmp_path, "user", "delete", "ann", "--yes", "--data", "data").code == 0
    assert (folders["ann"].exists(), folders["bob"].exists()) == (False, True)


# Keys


def test_C1_a_new_key_signs_and_the_previous_key_stays_valid_until_the_next_rotation(tmp_path: Path):
    data = tmp_path / "data"
    with ServerProcess.serve(data, {}) as server:
        place = upload(server.url, "one.txt", b"first").removeprefix(server.url)
    for rotate, status in ((recto_process, 200), (recto, 404)):
        changed = rotate(tmp_path, "keys", "rotate", "--data", str(data))
        assert changed.code == 0
        assert changed.out.startswith("Key ")
        with ServerProcess.serve(data, {}) as server:
            assert request(server.url, "GET", place, token=None).status == status
            assert changed.out.split()[1] in upload(server.url, "two.txt", b"second")
    assert (data / "signing-keys").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("words", "environment", "problem"),
    [
        (("--data", "nowhere"), {}, "there is no such folder"),
        (("--data", "."), {"RECTO_SIGNING_KEYS": "a:0123456789abcdef"}, "put a new one first there"),
    ],
)
def test_C1_keys_that_cannot_be_changed_here_are_left_alone(
    tmp_path: Path, words: tuple[str, ...], environment: dict[str, str], problem: str
):
    done = recto(tmp_path, "keys", "rotate", *words, **environment)
    assert done.code == WRONG_USE
    assert problem in done.err
    assert "0123456789abcdef" not in done.err
    assert list(tmp_path.iterdir()) == []
