"""What the store does on every database. Whoever inherits from it has a fixture `store`: an empty one for each test."""

from tests.store.suite.admission import AdmissionSuite
from tests.store.suite.attachments import AttachmentSuite
from tests.store.suite.bounds import BoundsSuite
from tests.store.suite.claims import ClaimSuite
from tests.store.suite.datasets import DatasetSuite
from tests.store.suite.file_refs import FileRefSuite
from tests.store.suite.forks import ForkSuite
from tests.store.suite.long_logs import LongLogSuite
from tests.store.suite.looking import LookingSuite
from tests.store.suite.notes import NoteSuite
from tests.store.suite.profiles import ProfileSuite
from tests.store.suite.reading import ReadingSuite
from tests.store.suite.records import RecordSuite
from tests.store.suite.resuming import ResumingSuite
from tests.store.suite.rollbacks import TurningBackSuite
from tests.store.suite.threads import ThreadSuite
from tests.store.suite.users import UserSuite


class StoreSuite(
    AdmissionSuite,
    BoundsSuite,
    ResumingSuite,
    ClaimSuite,
    RecordSuite,
    AttachmentSuite,
    FileRefSuite,
    DatasetSuite,
    NoteSuite,
    ProfileSuite,
    ReadingSuite,
    LongLogSuite,
    ThreadSuite,
    ForkSuite,
    TurningBackSuite,
    LookingSuite,
    UserSuite,
):
    """The same tests for SQLite and PostgreSQL."""
