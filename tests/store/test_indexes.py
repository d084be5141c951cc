"""Queries use indexes: their cost does not grow with the log, the list or the shares."""

from functools import partial

from recto.store.database.opening import FOLDER, HEAD
from recto.store.files import files
from recto.store.files.datasets import StoredDataset
from recto.store.files.files import AttachmentCursor
from recto.store.schema import THREADS
from recto.store.threads import cleanup
from recto.store.threads.cleanup import CleanupCursor
from recto.store.threads.history import HistoryQuery
from recto.store.users.users import ProfileChange
from tests.store.suite.attachments import SIZE, attachment
from tests.store.suite.samples import START, at
from tests.store.tables import complete, plan_of, statements_of, store_in, tables


def test_the_head_is_the_newest_migration():
    assert max(path.stem[1:5] for path in (FOLDER / "versions").glob("v*.py")) == HEAD


def test_P9_attachments_are_found_by_an_index_and_never_sorted():
    with tables() as connection:
        store = store_in(connection)
        one, _other = [complete(store.files.add(attachment(content=content), 9 * SIZE)) for content in "ab"]
        plan = plan_of(
            connection,
            lambda: complete(store.files.list_page("ann", None, 9)),
            partial(files.find_unused, connection, START, 9, AttachmentCursor(7, "x")),
            lambda: complete(store.files.total_bytes("ann")),
            partial(files.delete_if_unused, connection, [one.id]),
            lambda: complete(store.files.rename_blob(one.blob, "new")),
            partial(files.delete_batch, connection, "ann"),
            lambda: complete(store.files.list_refs("thread-1")),
        )
    assert "ix_attachments_owner_created_id" in str(plan)
    assert "ix_attachments_created_id (created>? AND created<?)" in str(plan)
    assert "SCAN" not in str(plan)
    assert "TEMP B-TREE" not in str(plan)


def test_F10_a_share_is_found_by_an_index():
    many = tuple(f"user-{number}" for number in range(1_000))
    with tables() as connection:
        new = StoredDataset(id="d1", owner="ann", name="All", shared_with=many, created=START, updated=START)
        datasets = store_in(connection).datasets
        complete(datasets.create(new))
        plan = plan_of(
            connection,
            lambda: complete(datasets.get("user-7", "d1")),
            lambda: complete(datasets.find_usable("user-7", ["d1"])),
            lambda: complete(datasets.find_usable("nobody", ["d1"])),
        )
        assert complete(datasets.get("user-7", "d1")).shared_with == ("user-7",)
    shares = [step for step in plan if "dataset_shares" in step]
    assert shares
    assert all("(dataset=? AND user=?)" in step for step in shares)
    assert not [step for step in plan if step.startswith("SCAN")]


def test_P13_a_day_and_its_markers_are_found_by_an_index():
    with tables() as connection:
        connection.execute(THREADS.insert(), {"id": "t", "owner": "ann", "last_seq": 0, "created": 0, "updated": 0})
        plan = plan_of(
            connection, lambda: complete(store_in(connection).messages.read_day("ann", HistoryQuery(thread="t")))
        )
    steps = [step for step in plan if " log " in step]
    assert any("ix_log_turned_back" in step for step in steps)
    assert any("ix_log_thread_time_seq" in step for step in steps)
    assert "TEMP B-TREE" not in str(plan)


def test_P7_ended_runs_are_found_by_an_index_and_never_sorted():
    with tables() as connection:
        find = partial(cleanup.find_runs_with_events, connection, before=at(9), limit=9, after=CleanupCursor())
        plan = plan_of(connection, find)
    assert "ix_runs_ended" in str(plan)
    assert "B-TREE" not in str(plan)


def test_S6_fields_take_one_statement_and_skill_data_another():
    changes = ProfileChange(fields={"birth_info": {"date": "x"}, "b": 2, "c": 3}, skill_data={"bazi": [1], "tarot": 2})
    names, result = ["b", "birth_info", "no"], list[object]()
    with tables() as connection:
        users = store_in(connection).users
        complete(users.change_profile("ann", changes, START, 999))
        (question,) = statements_of(connection, lambda: result.append(complete(users.read_fields("ann", names))))
        assert "profile_fields" in question
        assert (
            len(statements_of(connection, lambda: result.append(complete(users.read_skill_data("ann", "bazi"))))) == 1
        )
    assert result == [{"b": 2, "birth_info": {"date": "x"}}, [1]]
