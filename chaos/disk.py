"""The volume of slurmctld's state, in memory and small, so that it can be full."""

import random

from chaos.impact import NOBODY, Blow
from chaos.stage import Stage


def filled(stage: Stage, chance: random.Random) -> Blow:
    """Not a byte is left: slurmctld cannot write its state."""
    stage.on_state_volume("dd if=/dev/zero of=ballast bs=64k 2>/dev/null || :")
    return NOBODY


def emptied(stage: Stage) -> None:
    stage.on_state_volume("rm -f ballast")
