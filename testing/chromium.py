"""The browser of the distribution, installed when it is missing."""

import sys
from typing import Final

from slurm_local.build import packages
from slurm_local.progress import progress_for

PROGRAM: Final = "/usr/bin/chromium"

if __name__ == "__main__":
    packages.install(progress_for(sys.stderr), {PROGRAM: "chromium"})
