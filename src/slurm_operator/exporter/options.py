"""What a page shows, as the user wants it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from slurm_operator.exporter.facts import Facts

# Of each family. A job is five series, a node ten: enough for 10,000 jobs on 3,000 nodes.
MOST_SERIES: Final = 20_000


class Compat(StrEnum):
    """Whose names and labels the page has."""

    NONE = "none"
    SOPERATOR = "soperator"
    SLINKY = "slinky"


@dataclass(frozen=True, slots=True)
class Options:
    compat: Compat = Compat.NONE
    personal_data: bool | None = None  # None: in the compatibility modes, unless slurm.conf has PrivateData.
    sums: bool = True
    aliases: bool = False
    most_series: int = MOST_SERIES

    def shows_people(self, facts: Facts) -> bool:
        """Whether names of jobs and users, mail addresses and paths may be shown.

        slurmctld's own metrics are off where slurm.conf has any PrivateData. Here they stay, without people.
        """
        if self.personal_data is not None:
            return self.personal_data
        return self.compat is not Compat.NONE and not facts.private_data
