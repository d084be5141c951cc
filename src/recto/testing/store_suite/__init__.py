"""What every store has to do, as tests to inherit from. Each test wants an empty store of its own.

    class TestMyStore(StoreSuite):
        @pytest.fixture
        async def store(self): ...

The tests are coroutines: pytest-asyncio runs them, with `asyncio_mode = "auto"`.
"""

from __future__ import annotations

from recto.testing.store_suite.admission import AdmissionSuite
from recto.testing.store_suite.attachments import AttachmentSuite, UnusedSuite
from recto.testing.store_suite.bounds import BoundsSuite
from recto.testing.store_suite.calls import CallSuite
from recto.testing.store_suite.cancels import CancelSuite
from recto.testing.store_suite.claims import ClaimSuite
from recto.testing.store_suite.datasets import DatasetSuite
from recto.testing.store_suite.file_refs import DigestSuite, FileRefSuite
from recto.testing.store_suite.forks import ForkSuite
from recto.testing.store_suite.leases import LeaseSuite
from recto.testing.store_suite.looking import HistorySuite, LookingSuite
from recto.testing.store_suite.meeting import MeetingSuite
from recto.testing.store_suite.notes import NoteSuite
from recto.testing.store_suite.profiles import ProfileSuite, TierSuite
from recto.testing.store_suite.reading import ReadingSuite
from recto.testing.store_suite.records import RecordSuite
from recto.testing.store_suite.threads import ThreadSuite
from recto.testing.store_suite.users import CleaningSuite, SpendingSuite, UserSuite

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
