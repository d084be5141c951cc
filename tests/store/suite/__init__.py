"""What every store has to do, as tests to inherit from. Each test wants an empty store of its own.

    class TestMyStore(StoreSuite):
        @pytest.fixture
        async def store(self): ...

The tests are coroutines: pytest-asyncio runs them, with `asyncio_mode = "auto"`.
"""

from __future__ import annotations

from tests.store.suite.admission import AdmissionSuite
from tests.store.suite.attachments import AttachmentSuite, UnusedSuite
from tests.store.suite.bounds import BoundsSuite
from tests.store.suite.calls import CallSuite
from tests.store.suite.cancels import CancelSuite
from tests.store.suite.claims import ClaimSuite
from tests.store.suite.datasets import DatasetSuite
from tests.store.suite.file_refs import DigestSuite, FileRefSuite
from tests.store.suite.forks import ForkSuite
from tests.store.suite.leases import LeaseSuite
from tests.store.suite.looking import HistorySuite, LookingSuite
from tests.store.suite.meeting import MeetingSuite
from tests.store.suite.notes import NoteSuite
from tests.store.suite.profiles import ProfileSuite, TierSuite
from tests.store.suite.reading import ReadingSuite
from tests.store.suite.records import RecordSuite
from tests.store.suite.threads import ThreadSuite
from tests.store.suite.users import CleaningSuite, SpendingSuite, UserSuite

__all__ = ["StoreSuite"]


class RunSuite(AdmissionSuite, BoundsSuite, ClaimSuite, LeaseSuite, RecordSuite, CancelSuite):
    """What a store promises to who makes runs and works on them."""


class FileSuite(AttachmentSuite, UnusedSuite, MeetingSuite, FileRefSuite):
    """What a store promises of files."""


class StoreSuite(
    RunSuite,
    DigestSuite,
    FileSuite,
    DatasetSuite,
    NoteSuite,
    ProfileSuite,
    TierSuite,
    ReadingSuite,
    CallSuite,
    ThreadSuite,
    ForkSuite,
    HistorySuite,
    LookingSuite,
    SpendingSuite,
    UserSuite,
    CleaningSuite,
):
    """Everything a store promises."""
