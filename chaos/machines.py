"""Machines that are gone at once, with whatever runs on them."""

import random

from chaos.blow import Blow
from chaos.stage import Stage


def unplugged(stage: Stage, chance: random.Random) -> Blow:
    """Also the machine of slurmctld: it may, once it has written down what it knows."""
    number = stage.kube.machine_of(stage.one_worker(chance))
    victims = stage.kube.workers_on(number)
    stage.wait_saved()
    stage.excuse(victims, f"node-{number} was unplugged")
    stage.cluster.stop_node(number)
    return Blow()


def plugged_in(stage: Stage) -> None:
    dead = {
        part.node
        for name, part in stage.cluster.state.parts.items()
        if not stage.cluster.state.cell.has(part.process)
    }
    for number in sorted(number for number in dead if number is not None):
        stage.cluster.start_node(number)
