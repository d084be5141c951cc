"""The frame filter (D7) passes pages and characters up to their limits, in the order of a document."""

from dataclasses import replace

import pytest

from recto.config.file_settings import ParseLimits
from recto.conversation.document import Element
from recto.errors import FileRefused, WireError
from recto.files.parsing.frames import FrameFilter, Ready
from recto.files.parsing.ports import DocumentEnd, DocumentStart, Failed, FoundElements, Frame, Task


def answer_to(limits: ParseLimits, *frames: Frame | Ready) -> tuple[list[Frame], FrameFilter]:
    answer = FrameFilter(Task(format="pdf", name="a.pdf", limits=limits))
    passed: list[Frame] = []
    for frame in frames:
        passed += answer.accept(frame, 10)
    return passed, answer


def on_page(number: int, text: str = "text") -> FoundElements:
    return FoundElements(elements=(Element(kind="paragraph", text=text, page=number),), pages=number)


def note(text: str, pages: int = 0) -> FoundElements:
    return FoundElements(elements=(Element(kind="note", text=text),), pages=pages)


def test_F5_of_pages_that_were_cut_off_only_those_that_begin_before_are_read():
    elements = tuple([one for page in (1, 2, 3) for one in on_page(page, "12345").elements])
    passed, _ = answer_to(
        ParseLimits(characters=8), DocumentStart(unit="page"), FoundElements(elements=elements, pages=3)
    )
    assert [frame.pages for frame in passed if isinstance(frame, FoundElements)] == [2, 2]


def test_D7_what_is_within_the_limits_passes_as_it_is():
    frames = (DocumentStart(unit="page", page_count=2), on_page(1), on_page(2), DocumentEnd())
    passed, answer = answer_to(ParseLimits(pages=2, characters=8), *frames)
    assert (tuple(passed), answer.is_ended, answer.is_child_ready) == (frames, True, True)


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (DocumentStart(unit="page", page_count=1_200), "[only the first 2 pages of 1,200 were read]"),
        (DocumentStart(unit="slide"), "[only the first 2 slides were read]"),
        (DocumentStart(page_count=1), "[only the first 2 pages were read]"),
    ],
)
def test_D7_of_too_many_pages_the_first_are_read_and_a_note_says_so(start: DocumentStart, words: str):
    passed, answer = answer_to(ParseLimits(pages=2), start, on_page(1), on_page(2), on_page(3))
    assert passed == [start, on_page(1), on_page(2), note(words, pages=2), DocumentEnd()]
    assert (answer.is_ended, answer.is_child_ready) == (True, False)


def test_D7_of_too_many_characters_the_first_are_read_and_a_note_says_so():
    passed, answer = answer_to(ParseLimits(characters=6), DocumentStart(), on_page(1), on_page(1, "12345"))
    words = "[only the first 6 characters were read]"
    assert passed == [DocumentStart(), on_page(1), on_page(1, "12"), note(words, pages=1), DocumentEnd()]
    assert (answer.is_ended, answer.is_child_ready) == (True, False)


def test_D7_pages_are_counted_by_what_stands_on_them_too():
    passed, _ = answer_to(ParseLimits(pages=1), DocumentStart(unit="page"), FoundElements(elements=on_page(2).elements))
    assert passed[1:] == [note("[only the first 1 pages were read]"), DocumentEnd()]


def test_D7_what_cannot_be_read_is_refused_in_the_childs_words():
    with pytest.raises(FileRefused, match="It has a password") as error:
        answer_to(ParseLimits(), Failed(code="locked", reason="It has a password."))
    assert error.value.code == "locked"


@pytest.mark.parametrize(
    "frames",
    [
        *((on_page(1),), (DocumentEnd(),), (Ready(),), (DocumentStart(), DocumentStart()), (DocumentStart(), Ready())),
        (DocumentStart(), on_page(2), on_page(1)),
    ],
)
def test_D7_frames_out_of_order_are_refused(frames: tuple[Frame | Ready, ...]):
    with pytest.raises(WireError, match=r"after|may not come"):
        answer_to(ParseLimits(), *frames)


def test_D7_frames_that_say_nothing_are_not_passed_on_and_not_taken_for_ever():
    answer = FrameFilter(Task(format="pdf", name="a.pdf", limits=ParseLimits(characters=1)))
    answer.accept(DocumentStart(), 10)
    assert answer.accept(FoundElements(), 10) == ()
    with pytest.raises(WireError, match="more frames than any document has"):
        for _ in range(100):
            answer.accept(FoundElements(), 2**20)


SCAN = Task(format="pdf", name="a.pdf", limits=ParseLimits(seconds=5, ocr_seconds=7), ocr="eng")


def test_D7_a_document_has_the_time_of_scans_only_once_the_child_says_that_it_reads_them():
    answer = FrameFilter(SCAN)
    for frame in (DocumentStart(), on_page(1)):
        answer.accept(frame, 10)
    assert answer.seconds == 5
    assert answer.accept(replace(on_page(1), scans=True), 10) == (on_page(1),)
    for _ in range(2):
        assert answer.seconds == 12
        with pytest.raises(WireError, match="scans"):
            answer.accept(FoundElements(pages=1, scans=True), 10)


def test_D7_a_child_that_reads_scans_which_nobody_asked_for_is_refused():
    with pytest.raises(WireError, match="scans"):
        answer_to(SCAN.limits, DocumentStart(), FoundElements(scans=True))
