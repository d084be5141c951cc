"""The tests of a store on every database. A subclass has a fixture `store`: an empty one for each test."""

from tests.store.suite.admission import AdmissionSuite
from tests.store.suite.answers import AnswerSuite
from tests.store.suite.attachments import AttachmentSuite
from tests.store.suite.changes import ChangeSuite
from tests.store.suite.claims import ClaimSuite
from tests.store.suite.datasets import DatasetSuite
from tests.store.suite.file_refs import FileRefSuite
from tests.store.suite.forks import ForkSuite
from tests.store.suite.history import HistorySuite
from tests.store.suite.limits import LimitSuite
from tests.store.suite.long_logs import LongLogSuite
from tests.store.suite.notes import NoteSuite
from tests.store.suite.profiles import ProfileSuite
from tests.store.suite.reads import ReadSuite
from tests.store.suite.rollbacks import RollbackSuite
from tests.store.suite.threads import ThreadSuite
from tests.store.suite.users import UserSuite


class StoreSuite(
    AdmissionSuite,
    LimitSuite,
    AnswerSuite,
    ClaimSuite,
    ChangeSuite,
    AttachmentSuite,
    FileRefSuite,
    DatasetSuite,
    NoteSuite,
    ProfileSuite,
    ReadSuite,
    LongLogSuite,
    ThreadSuite,
    ForkSuite,
    RollbackSuite,
    HistorySuite,
    UserSuite,
):
    """The same tests for SQLite and PostgreSQL."""
