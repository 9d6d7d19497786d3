import sys
from pathlib import Path

sys.path += [str(Path(__file__).parents[2] / folder) for folder in ("kube", "slurmrest")]
