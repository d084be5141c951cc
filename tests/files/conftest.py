"""One S3 server for each test process; each test gets its own prefix."""

from collections.abc import Iterator

import pytest

from tests.support.s3 import S3Server, bucket_server


@pytest.fixture(scope="session")
def object_server() -> Iterator[S3Server]:
    with bucket_server() as server:
        yield server
