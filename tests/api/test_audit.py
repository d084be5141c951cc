"""Who looks for what is not theirs is written down; the credential they came with is not."""

from pathlib import Path

import pytest

from recto.testing.client import RUNS, ask, request, start
from recto.testing.process import ServerProcess

pytestmark = pytest.mark.full

ALICE, BOB = "alices-key-0123456789", "bobs-key-0123456789"


def test_P5_looking_for_somebody_elses_run_is_written_down_under_the_name_of_who_looked(tmp_path: Path):
    settings = {"RECTO_API_KEYS": f"alice:{ALICE},bob:{BOB}"}
    with ServerProcess.serve(tmp_path, settings) as server:
        run = start(server.url, ask("hello"), token=ALICE)
        assert request(server.url, "GET", f"{RUNS}/{run}", token=BOB).status == 404
        assert (
            request(server.url, "GET", f"{RUNS}/{run}?key=secret-in-a-query", token="a-wrong-key-9876543210").status
            == 401
        )
        output = server.output
    lines = [line for line in output.splitlines() if "recto.audit" in line]
    assert f"refused GET {RUNS}/{run}: status 404, reason no_run, user bob, from 127.0.0.1" in lines[0]
    assert f"refused GET {RUNS}/{run}: status 401, reason wrong_credential, user nobody" in lines[1]
    assert not any(secret in output for secret in (ALICE, BOB, "a-wrong-key-9876543210", "secret-in-a-query"))
