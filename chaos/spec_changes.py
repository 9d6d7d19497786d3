"""Changes of specs that take workers away, or the operator's eyes. The manifests are put back afterwards."""

import random
from collections.abc import Callable

from chaos.impact import EVERYBODY, NOBODY, WORKERS, Blow
from chaos.kube import Change, Named
from chaos.stage import Stage
from chaos.subjects import SHARED_ROOT


def scaled_in(stage: Stage, chance: random.Random) -> Blow:
    wanted = chance.randrange(WORKERS)
    stage.kube.patch(stage.subject.scaled(wanted))
    return stage.subject.leaving(wanted)


def scaled_out(stage: Stage, chance: random.Random) -> Blow:
    stage.kube.patch(stage.subject.scaled(WORKERS + chance.randint(2, 4)))
    return NOBODY


def changed_template(stage: Stage, chance: random.Random) -> Blow:
    stage.kube.patch(stage.subject.marked(f"x{chance.getrandbits(32)}-{stage.count()}"))
    return EVERYBODY


def broken_image(stage: Stage, chance: random.Random) -> Blow:
    stage.kube.patch(stage.subject.with_image("docker.io/local/nowhere", str(chance.getrandbits(16))))
    return EVERYBODY


def switched_mode(stage: Stage, chance: random.Random) -> Blow:
    stage.kube.patch(Change(stage.subject.nodeset, {"scalingMode": "DaemonSet"}))
    return EVERYBODY


def maintenance(stage: Stage, chance: random.Random) -> Blow:
    stage.kube.patch(SHARED_ROOT.in_maintenance())
    return EVERYBODY


def deleted(what: Named) -> Callable[[Stage, random.Random], Blow]:
    """Deletes an object that workers belong to."""

    def hit(stage: Stage, chance: random.Random) -> Blow:
        stage.kube.delete(what)
        return EVERYBODY

    return hit


def deleted_nodeset(stage: Stage, chance: random.Random) -> Blow:
    stage.kube.delete(stage.subject.nodeset)
    return EVERYBODY


def deleted_restapi(stage: Stage, chance: random.Random) -> Blow:
    stage.kube.delete(stage.subject.restapi)
    return NOBODY


def bad_config(stage: Stage, chance: random.Random) -> Blow:
    line = chance.choice(
        ("Mistake=1", "SelectType=select/nonsense", "PartitionName=all Nodes=nowhere", "TaskPlugin=task/no")
    )
    stage.kube.patch(stage.subject.configured(line))
    return NOBODY
