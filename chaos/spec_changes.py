"""Changes of specs that take workers away, or the operator's eyes. The manifests are put back afterwards."""

import random

from chaos.impact import ALL, EVERYBODY, NOBODY, WORKERS, Blow
from chaos.manifests import EXTRA_CONF
from chaos.stage import Stage


def scaled_in(stage: Stage, chance: random.Random) -> Blow:
    """Which ones go is the operator's choice, so as many as stay may have been spared."""
    wanted = chance.randrange(WORKERS)
    stage.kube.patch("nodesets", "cpu", {"replicas": wanted})
    return Blow(ALL, spared=wanted)


def scaled_out(stage: Stage, chance: random.Random) -> Blow:
    stage.kube.patch("nodesets", "cpu", {"replicas": WORKERS + chance.randint(2, 4)})
    return NOBODY


def changed_template(stage: Stage, chance: random.Random) -> Blow:
    labels = {"changed": f"x{chance.getrandbits(32)}-{stage.count()}"}
    stage.kube.patch("nodesets", "cpu", {"template": {"metadata": {"labels": labels}}})
    return EVERYBODY


def broken_image(stage: Stage, chance: random.Random) -> Blow:
    image = f"docker.io/local/nowhere:{chance.getrandbits(16)}"
    stage.kube.patch("nodesets", "cpu", {"slurmd": {"image": image}})
    return EVERYBODY


def switched_mode(stage: Stage, chance: random.Random) -> Blow:
    stage.kube.patch("nodesets", "cpu", {"scalingMode": "DaemonSet"})
    return EVERYBODY


def deleted_nodeset(stage: Stage, chance: random.Random) -> Blow:
    stage.kube.delete("nodesets", "cpu")
    return EVERYBODY


def deleted_restapi(stage: Stage, chance: random.Random) -> Blow:
    stage.kube.delete("restapis", "slurm")
    return NOBODY


def bad_config(stage: Stage, chance: random.Random) -> Blow:
    line = chance.choice(
        ("Mistake=1", "SelectType=select/nonsense", "PartitionName=all Nodes=nowhere", "TaskPlugin=task/no")
    )
    stage.kube.patch("controllers", "slurm", {"extraConf": f"{EXTRA_CONF}{line}\n"})
    return NOBODY
