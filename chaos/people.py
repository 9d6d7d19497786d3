"""People who delete, evict and drain by hand."""

import random
from contextlib import suppress

from chaos.impact import EVERYBODY, NOBODY, Blow
from chaos.kube import Unwilling
from chaos.stage import Stage


def deleted_worker(stage: Stage, chance: random.Random) -> Blow:
    """As anybody may try. It is refused while a job may run there."""
    worker = stage.one_worker(chance)
    with suppress(Unwilling):
        stage.kube.delete_pod(worker)
    return Blow(frozenset({worker}))


def deleted_workers(stage: Stage, chance: random.Random) -> Blow:
    for worker in stage.kube.workers():
        with suppress(Unwilling):
            stage.kube.delete_pod(worker)
    return EVERYBODY


def deleted_slurmctld(stage: Stage, chance: random.Random) -> Blow:
    stage.kube.delete_pod(stage.subject.slurmctld)
    return NOBODY


def drained_machine(stage: Stage, chance: random.Random) -> Blow:
    """`kubectl drain`, by somebody who has no patience."""
    machine = stage.kube.machine_of(stage.one_worker(chance))
    victims = stage.kube.workers_on(machine)
    stage.kube.set_cordon(machine, is_on=True)
    for victim in victims:
        with suppress(Unwilling):
            stage.kube.evict(victim)
    return Blow(frozenset(victims))


def uncordoned(stage: Stage) -> None:
    for number in range(1, stage.cluster.state.nodes + 1):
        stage.kube.set_cordon(number, is_on=False)


def drained_by_hand(stage: Stage, chance: random.Random) -> Blow:
    worker = stage.one_worker(chance)
    stage.client("scontrol", "update", f"nodename={worker}", "state=drain", "reason=chaos by hand")
    return Blow(frozenset({worker}))


def resumed_by_hand(stage: Stage) -> None:
    """Where it still stands; a worker that left for good took its drain along."""
    for line in stage.client("scontrol", "--oneliner", "show", "nodes").splitlines():
        if "chaos by hand" in line:
            worker = line.split()[0].partition("=")[2]
            stage.client("scontrol", "update", f"nodename={worker}", "state=resume")
