"""How whoever reads our messages can call this program again."""

import shlex
import shutil
import sys
from pathlib import Path

_PROGRAM = "slurm-operator"


def own_command() -> str:
    """Its name where the reader's PATH leads to this very program, else the way to it from here."""
    own = Path(sys.executable).with_name(_PROGRAM)
    found = shutil.which(_PROGRAM)
    if found is not None and Path(found).resolve() == own.resolve():
        return _PROGRAM
    return shlex.quote(str(own)) if own.exists() else f"{shlex.quote(sys.executable)} -m slurm_operator.cli"
