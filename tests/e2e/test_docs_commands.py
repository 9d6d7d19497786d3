"""The commands of the tutorial, in its order, as a reader types them."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from slurm_operator.local import stop
from slurm_operator.local.cluster import DEFAULT_NAME
from slurm_operator.local.paths import Paths
from slurm_operator.local.progress import Quiet
from support.docs import ROOT, blocks

TUTORIAL = ROOT / "docs" / "tutorial" / "first-cluster.md"

# The environment that runs this test is never made anew under it, however old it is: `make` would empty it first.
MAKE = "make --old-file=.venv/.ready "


@pytest.mark.full
@pytest.mark.timeout(900)
def test_the_tutorial_can_be_typed_as_it_stands(tmp_path: Path, paths: Paths) -> None:
    environment = {
        **os.environ,
        "SLURM_OPERATOR_HOME": str(tmp_path),
        "SLURM_OPERATOR_CACHE": str(paths.cache),
    }
    tried = list(blocks("sh", (TUTORIAL,)))
    assert len(tried) > 3

    try:
        for block in tried:
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", re.sub("^make ", MAKE, block.text, flags=re.MULTILINE)],
                cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=600,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
            assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"
    finally:
        stop.down(DEFAULT_NAME, Paths.of(environment), Quiet())
