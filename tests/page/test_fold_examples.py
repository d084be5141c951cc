"""The ten examples of seed 003, each as a whole conversation before and after."""

import copy

import recto
from recto.page.fold.paths import Project
from tests.page.conversations import Row, answers, at, on_wire, reads, runs, user

PLACEHOLDER = "[该文件的历史读取内容已压缩,请参看最新读取结果]"
BUTTON = "src/components/Button.tsx"


def fold_rows(rows: list[Row], settings: recto.FoldSettings | None = None) -> list[object]:
    return list(recto.encode(recto.fold(recto.decode(rows), settings=settings or recto.FoldSettings()).messages))


def lines(path: str, first: int, last: int) -> str:
    return f"📄 {path} (lines {first}-{last}/250)\n{first}→export const a = {first};\n{last}→export const b = {last};"


def read_seven_times() -> list[Row]:
    expected_ranges = ((150, 200), (100, 150), (1, 50), (200, 250), (1, 100), (51, 100), (1, 50))
    return [
        user("Make the button blue.", timestamp=at(0)),
        *[
            row
            for n, part in enumerate(expected_ranges)
            for row in reads(f"r{7 - n}", BUTTON, lines(BUTTON, *part), 5 * n)
        ],
    ]


def test_R2_example_1_of_seven_reads_of_one_file_the_two_oldest_are_replaced():
    rows = read_seven_times()
    assert fold_rows(rows) == on_wire(rows, {"r7": PLACEHOLDER, "r6": PLACEHOLDER})


def test_R3_example_2_three_reads_of_a_file_all_stay():
    path = "src/utils/helpers.ts"
    rows = [
        user("What is in the helpers?"),
        *reads("r3", path, lines(path, 1, 50), 20),
        *reads("r2", path, lines(path, 50, 150), 25),
        *reads("r1", path, lines(path, 1, 100), 30),
    ]
    assert fold_rows(rows) == on_wire(rows)


def test_R3_example_3_a_failed_read_stays_and_does_not_count():
    path = "src/config/settings.json"
    rows = [row for n in range(7, 0, -1) for row in reads(f"r{n}", path, lines(path, n, n + 1), 35 - 5 * n)]
    rows[9] = answers("r3", "Error: File not found", timestamp=at(20))
    assert fold_rows(rows) == on_wire(rows, {"r7": PLACEHOLDER})


def test_R2_example_4_each_file_counts_for_itself_and_other_tools_are_untouched():
    rows = [
        user("Look around."),
        *runs("t1", '{"stdout": "Button.tsx", "stderr": "", "exitCode": 0}', 0),
        *reads("c2", "src/utils/api.ts", lines("src/utils/api.ts", 1, 9), 1),
        *reads("b7", BUTTON, lines(BUTTON, 7, 8), 2),
        *reads("a3", "src/App.tsx", lines("src/App.tsx", 3, 4), 3),
        *reads("b6", BUTTON, lines(BUTTON, 6, 7), 4),
        *reads("b5", BUTTON, lines(BUTTON, 5, 6), 5),
        *reads("a2", "src/App.tsx", lines("src/App.tsx", 2, 3), 6),
        *reads("b4", BUTTON, lines(BUTTON, 4, 5), 7),
        *runs("e1", "--- a\n+++ b", 8, tool="filesystem-edit"),
        *reads("b3", BUTTON, lines(BUTTON, 3, 4), 9),
        *reads("c1", "src/utils/api.ts", lines("src/utils/api.ts", 1, 9), 10),
        *reads("b2", BUTTON, lines(BUTTON, 2, 3), 30),
        *reads("a1", "src/App.tsx", lines("src/App.tsx", 1, 2), 50),
        *reads("b1", BUTTON, lines(BUTTON, 1, 2), 60),
    ]
    assert fold_rows(rows) == on_wire(rows, {"b7": PLACEHOLDER, "b6": PLACEHOLDER})


def test_R5_example_5_a_batch_counts_once_for_each_of_its_files():
    files = ["file1.ts", "file2.ts", "file3.ts"]
    rows = [
        *reads("old", "file2.ts", "2: first", 0),
        *reads("batch", files, "1: all\n2: all\n3: all", 1),
        *[row for n in range(4) for row in reads(f"s{n}", "file2.ts", f"2: again {n}", 2 + n)],
    ]
    assert fold_rows(rows) == on_wire(rows, {"old": PLACEHOLDER})


def test_R5_example_5_a_batch_is_replaced_when_five_newer_reads_stand_for_each_of_its_files():
    files = ["file1.ts", "file2.ts", "file3.ts"]
    singles = [(f"{name}-{n}", name, f"{name}: again {n}", 2 + n) for n in range(5) for name in files]
    rows = [*reads("batch", files, "1: all\n2: all\n3: all", 1), *[row for single in singles for row in reads(*single)]]
    assert fold_rows(rows[:-2]) == on_wire(rows[:-2])
    assert fold_rows(rows) == on_wire(rows, {"batch": PLACEHOLDER})


def test_R4_example_6_three_spellings_of_a_path_are_one_file():
    spellings = [
        "src/components/Button.tsx",
        "./src/components/Button.tsx",
        "F:/Projects/snow-cli/src/components/Button.tsx",
    ]
    rows = [row for n in range(7) for row in reads(f"r{n}", spellings[n % 3], lines(BUTTON, n, n + 1), n)]
    settings = recto.FoldSettings(project=Project(root="F:/Projects/snow-cli"))
    assert fold_rows(rows, settings) == on_wire(rows, {"r0": PLACEHOLDER, "r1": PLACEHOLDER})


def test_R4_example_7_a_folder_counts_like_a_file():
    spellings = ["src/components/", "src/components"]
    rows = [row for n in range(7) for row in reads(f"r{n}", spellings[n % 2], f"Button.tsx\nInput{n}.tsx", n)]
    assert fold_rows(rows) == on_wire(rows, {"r0": PLACEHOLDER, "r1": PLACEHOLDER})


def test_R6_example_8_results_of_an_old_session_without_its_calls_all_stay():
    rows = [user("Go on."), *[answers(f"r{n}", lines(BUTTON, n, n + 1), timestamp=at(n)) for n in range(7)]]
    assert fold_rows(rows) == on_wire(rows)


def test_R6_example_9_reads_of_an_empty_or_null_path_all_stay():
    rows = [
        *[row for n in range(7) for row in reads(f"e{n}", "", f"empty {n}", n)],
        *[row for n in range(7) for row in reads(f"n{n}", None, f"null {n}", 10 + n)],
    ]
    assert fold_rows(rows) == on_wire(rows)


def test_R1_example_10_what_is_stored_stays_as_it_is():
    rows = read_seven_times()
    log = recto.decode(rows)
    rows_before, log_before = copy.deepcopy(rows), copy.deepcopy(log)
    first, again = recto.fold(log), recto.fold(log)
    assert rows == rows_before
    assert log == log_before
    assert list(recto.encode(log)) == on_wire(rows)
    assert recto.encode(first.messages) == recto.encode(again.messages)
    assert list(recto.encode(first.messages)) == on_wire(rows, {"r7": PLACEHOLDER, "r6": PLACEHOLDER})
