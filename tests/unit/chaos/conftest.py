"""The harness makes its Slurm clusters with the rig of the end-to-end tests."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "e2e"))
