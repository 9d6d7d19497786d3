"""What slurm.conf says that there is."""

from collections.abc import Mapping
from typing import Final

from slurm_operator.slurm.conf.includes import load

SLURM_CONF: Final = "slurm.conf"


def partition_names(texts: Mapping[str, str]) -> set[str]:
    """Every partition of these files, those included that slurm.conf includes."""
    if SLURM_CONF not in texts:
        return set()
    lines = load(texts, SLURM_CONF).all("PartitionName")
    return {name for line in lines for name in line.value.split(",")} - {"DEFAULT"}
