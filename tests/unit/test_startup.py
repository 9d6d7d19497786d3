import gc
import subprocess
import sys

import pytest

from slurm_operator import startup


@pytest.fixture
def _thawed():
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("_thawed")
def test_what_was_loaded_is_not_looked_through_for_garbage():
    before = gc.get_freeze_count()
    with startup.loading():
        assert not gc.isenabled()
        loaded = [[number] for number in range(1000)]

    assert gc.isenabled()
    assert gc.get_freeze_count() >= before + len(loaded)


@pytest.mark.usefixtures("_thawed")
def test_a_collector_that_was_off_stays_off():
    gc.disable()
    try:
        with startup.loading():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.usefixtures("_thawed")
def test_what_is_left_out_can_be_imported_later():
    with startup.loading(without=["colorsys_of_nobody", "gc"]):
        assert sys.modules["colorsys_of_nobody"] is None
        assert sys.modules["gc"] is gc, "what is there stays"

    assert "colorsys_of_nobody" not in sys.modules


def test_the_manager_starts_without_what_it_never_needs():
    """And signs tokens, and writes its log for people."""
    code = """
import sys
from slurm_operator.cli.lazy import LazyGroup
table = {"manager": ("slurm_operator.cli.manager", "manager", "")}
assert LazyGroup(table, help="").get_command(None, "manager") is not None
assert not {"rich", "pygments", "cryptography"} & sys.modules.keys()
from datetime import UTC, datetime, timedelta
import structlog
from slurm_operator.runtime.logs import configure
from slurm_operator.slurmrest.tokens import signed
assert signed(b"k" * 32, user="slurm", now=datetime.now(UTC), lifetime=timedelta(minutes=1)).count(".") == 2
configure("plain")
try:
    raise ValueError("told in plain words")
except ValueError:
    structlog.get_logger().exception("trouble")
from slurm_operator.runtime.metrics_auth import self_signed_context
self_signed_context()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (done.returncode, "told in plain words" in done.stderr) == (0, True), done.stderr
