"""Machines that are gone at once, with whatever runs on them."""

import random

from chaos.impact import Blow
from chaos.stage import Stage
from testing.power import start_node, stop_node


def unplugged(stage: Stage, chance: random.Random) -> Blow:
    """Also the machine of slurmctld: it may, once it has written down what it knows."""
    number = stage.kube.machine_of(stage.one_worker(chance))
    victims = stage.kube.workers_on(number)
    stage.wait_saved()
    stage.excuse(victims, f"node-{number} was unplugged")
    stop_node(stage.cluster, number)
    return Blow()


def plugged_in(stage: Stage) -> None:
    dead = {
        part.node
        for name, part in stage.cluster.state.parts.items()
        if not stage.cluster.state.cell.has(part.process)
    }
    for number in sorted(number for number in dead if number is not None):
        start_node(stage.cluster, number)
