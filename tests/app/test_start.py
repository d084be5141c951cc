"""What a start loads: all that it needs, and nothing that only other settings or requests do."""

import subprocess
import sys
from pathlib import Path

import pytest

STARTED = """
import asyncio, gc, os, sys
from recto.app.run_server import make_application
from recto.cli.server_settings import load_settings
from recto.store.database.folder import DataFolder
from recto.worker.runtime import ignore_checkpoint

async def start():
    os.environ |= {{"RECTO_MODEL": "compatible:none", "RECTO_MODEL_URL": "http://127.0.0.1:9/v1"}}
    settings = load_settings({{}}, {{**os.environ, "RECTO_DATA": {data!r}}}, None)
    gc.disable()
    api = make_application(settings, DataFolder(settings.data), ignore_checkpoint).api
    async with api.lifespan(api):
        print(gc.isenabled(), gc.get_freeze_count() > 0)
        print(*sys.modules)

asyncio.run(start())
"""
# JWTs, PostgreSQL, an older database, S3, files of other addresses, the demo model, counting, reading, a terminal.
OF_OTHERS = {
    *("cryptography", "jwt", "sqlalchemy.orm", "asyncpg", "alembic", "obstore", "recto.files.fetch.outbound"),
    *("recto.models.demo", "splintr", "pypdfium2", "xberg", "astronomy", "tyme4py", "rich", "fastapi"),
}


@pytest.mark.full
def test_C1_a_start_loads_nothing_that_only_others_need_and_collects_garbage_once_it_is_ready(tmp_path: Path):
    script = STARTED.format(data=str(tmp_path / "data"))
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    collecting, modules = done.stdout.splitlines()[-2:]
    assert collecting == "True True"
    assert not OF_OTHERS & set(modules.split())
