"""F6: old logs read uploads by number, and what they get tells of the tool there is now."""

from recto.tools.documents.read_files import file_read, numbered
from tests.tools.files_at_hand import AtHand, a_file, at_hand, rows_of, run

OLD = (
    (a_file("o0", "plan.txt"), a_file("o1", "cat.png", "image"), a_file("o2", "old.txt")),
    (a_file("m0", "middle.txt"), a_file("m1", "plan.txt")),
    (a_file("n0", "new.txt"), a_file("n1", "plan.txt")),
)


def test_F6_numbers_count_the_current_files_first_then_history_each_name_once():
    assert [one.id for one in numbered(OLD)] == ["n0", "n1", "o2", "m0"]
    assert list(numbered(())) == []


def test_F6_documents_are_read_by_number_from_one():
    files = AtHand(turns=OLD, holds={one.id: one.id.encode() for turn in OLD for one in turn})
    rows = rows_of(run(file_read, files, {"file_indexes": [4, 1, 5, 0, -1]}))
    assert rows == [
        {"id": "m0", "name": "middle.txt", "content": "m0"},
        {"id": "n0", "name": "new.txt", "content": "n0"},
        {"id": "5", "name": "", "content": "Error: there is no document 5; they are counted from 1 to 4."},
        {"id": "0", "name": "", "content": "Error: there is no document 0; they are counted from 1 to 4."},
        {"id": "-1", "name": "", "content": "Error: there is no document -1; they are counted from 1 to 4."},
    ]


def test_F6_without_documents_there_is_nothing_to_count():
    (row,) = rows_of(run(file_read, at_hand(), {"file_indexes": [1]}))
    assert row["content"] == "Error: there is no document 1; there are none."


def test_F6_a_long_text_tells_how_to_go_on_with_the_tool_there_is_now():
    (row,) = rows_of(run(file_read, at_hand(a="x" * 20_001), {"file_indexes": [1]}))
    assert row["content"].startswith(
        '[characters 1-20000 of 20001; for more: read_files({"ids":["a"],"offset":20000})]'
    )
