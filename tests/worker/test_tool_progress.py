"""How far a tool is: shown as activities under one id, not too often, and with an end."""

from datetime import UTC, datetime, timedelta

from recto.conversation.events import ActivityUpdate, Event
from recto.conversation.json import Json
from recto.tools.ports import Progress
from recto.worker.tools.tool_context import ACTIVITY, ProgressReporter

START_TIME = datetime(2026, 5, 14, 12, tzinfo=UTC)


class Watch:
    def __init__(self) -> None:
        self.now = START_TIME
        self.heard: list[Event] = []
        self.reporter = ProgressReporter(self.heard.append, "c1-progress", lambda: self.now)

    def report(self, done: int, after: float = 0.0, total: int | None = 300) -> None:
        self.now += timedelta(seconds=after)
        self.reporter(Progress(label="a.pdf", done=done, total=total, unit="pages"))


def update(done: int, status: str = "running") -> ActivityUpdate:
    content: dict[str, Json] = {"label": "a.pdf", "status": status, "done": done, "total": 300, "unit": "pages"}
    return ActivityUpdate(message="c1-progress", activity=ACTIVITY, content=content)


def test_F5_progress_is_shown_under_one_id_and_ends():
    watch = Watch()
    watch.report(4)
    watch.report(20, after=0.5)
    watch.reporter.end()
    assert watch.heard == [update(4), update(20), update(20, "ended")]


def test_F5_a_tool_that_reports_all_the_time_is_heard_now_and_then_and_its_last_word_at_the_end():
    watch = Watch()
    for done in range(1, 101):
        watch.report(done, after=0.01)
    watch.reporter.end()
    assert watch.heard == [update(1), update(31), update(61), update(91), update(100, "ended")]


def test_F5_what_did_not_change_is_not_shown_again():
    watch = Watch()
    for done in (4, 4, 4, 5, 5):
        watch.report(done, after=1.0)
    watch.reporter.end()
    assert watch.heard == [update(4), update(5), update(5, "ended")]


def test_F5_who_reports_nothing_ends_without_a_word():
    watch = Watch()
    watch.reporter.end()
    assert watch.heard == []


def test_F5_what_has_ended_does_not_end_again():
    watch = Watch()
    watch.report(4)
    watch.reporter.end()
    watch.reporter.end()
    assert len(watch.heard) == 2


def test_F5_a_total_that_is_not_known_is_not_shown():
    watch = Watch()
    watch.report(4, total=None)
    (event,) = watch.heard
    assert isinstance(event, ActivityUpdate)
    assert "total" not in event.content


def test_F5_what_goes_on_at_once_is_shown_under_ids_of_its_own_and_all_of_it_ends():
    watch = Watch()
    for id in ("r-0", "r-1"):
        watch.reporter(Progress(label=id, done=1, total=None, unit="pages", id=id))
    watch.reporter.end()
    updates = [event for event in watch.heard if isinstance(event, ActivityUpdate)]
    assert [(event.message, event.content["status"]) for event in updates] == [
        ("c1-progress-r-0", "running"),
        ("c1-progress-r-1", "running"),
        ("c1-progress-r-0", "ended"),
        ("c1-progress-r-1", "ended"),
    ]


def test_R15_what_a_tool_has_to_show_goes_with_how_far_it_is():
    watch = Watch()
    watch.reporter(Progress(label="make", done=2, total=None, unit="lines", text="ok"))
    content: dict[str, Json] = {"label": "make", "status": "running", "done": 2, "unit": "lines", "text": "ok"}
    assert watch.heard == [ActivityUpdate(message="c1-progress", activity=ACTIVITY, content=content)]
