"""What goes wrong. Each fault hits some Slurm nodes, and is mended when its time is over.

`hit` gives back which Slurm nodes it is about: a job that runs on one of them could be lost by it.
"""

import random
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from chaos.stage import NAMESPACE, WORKERS, Stage
from slurm_operator.local.errors import LocalError

MANAGER = "slurm_operator.cli manager"
ALL = frozenset(f"cpu-{number}" for number in range(WORKERS))

Hit = Callable[[Stage, random.Random], frozenset[str]]
Mend = Callable[[Stage], None]


def _nothing(stage: Stage) -> None:
    return None


@dataclass(frozen=True)
class Fault:
    name: str
    hit: Hit
    mend: Mend = _nothing
    is_deadly: bool = False  # It ends jobs by its nature, whatever the operator does.


def signalled(program: str, number: signal.Signals) -> Hit:
    def hit(stage: Stage, chance: random.Random) -> frozenset[str]:
        stage.signal(program, number)
        return ALL

    return hit


def woken(program: str) -> Mend:
    return lambda stage: stage.signal(program, signal.SIGCONT)


def restarted(part: str) -> Hit:
    def hit(stage: Stage, chance: random.Random) -> frozenset[str]:
        stage.cluster.parts.restart(part)
        return ALL

    return hit


def scaled_in(stage: Stage, chance: random.Random) -> frozenset[str]:
    wanted = chance.randrange(WORKERS)
    stage.patch("nodeset", "cpu", {"replicas": wanted})
    return ALL


def scaled_out(stage: Stage) -> None:
    stage.patch("nodeset", "cpu", {"replicas": WORKERS})


def changed_template(stage: Stage, chance: random.Random) -> frozenset[str]:
    labels = {"changed": f"x{chance.getrandbits(32)}"}
    stage.patch("nodeset", "cpu", {"template": {"metadata": {"labels": labels}}})
    return ALL


def broken_image(stage: Stage, chance: random.Random) -> frozenset[str]:
    stage.patch("nodeset", "cpu", {"slurmd": {"image": f"docker.io/local/nowhere:{chance.getrandbits(16)}"}})
    return ALL


def restored(stage: Stage) -> None:
    stage.slurm.apply(stage.nodeset())


def switched_mode(stage: Stage, chance: random.Random) -> frozenset[str]:
    stage.patch("nodeset", "cpu", {"scalingMode": "DaemonSet"})
    return ALL


def switched_back(stage: Stage) -> None:
    stage.patch("nodeset", "cpu", {"scalingMode": "StatefulSet"})


def deleted_nodeset(stage: Stage, chance: random.Random) -> frozenset[str]:
    stage.cluster.kubectl("delete", "nodeset", "cpu", "-n", NAMESPACE, "--wait=false")
    return ALL


def recreated_nodeset(stage: Stage) -> None:
    """Its finalizer waits for jobs, so the new one can be made when the old one is gone."""
    stage.cluster.kubectl("wait", "--for=delete", "nodeset/cpu", "-n", NAMESPACE, "--timeout=120s")
    stage.slurm.apply(stage.nodeset())


def one_worker(chance: random.Random) -> str:
    return f"cpu-{chance.randrange(WORKERS)}"


def deleted_worker(stage: Stage, chance: random.Random) -> frozenset[str]:
    """By hand, as anybody may try."""
    worker = one_worker(chance)
    with suppress(LocalError):  # Refused while a job may run there.
        stage.cluster.kubectl("delete", "pod", worker, "-n", NAMESPACE, "--wait=false")
    return frozenset({worker})


def deleted_pod(labels: str) -> Hit:
    def hit(stage: Stage, chance: random.Random) -> frozenset[str]:
        stage.cluster.kubectl("delete", "pods", "-l", labels, "-n", NAMESPACE, "--wait=false")
        return ALL

    return hit


def drained_machine(stage: Stage, chance: random.Random) -> frozenset[str]:
    """`kubectl drain`, by somebody who has no patience."""
    with suppress(LocalError):
        machine = stage.machine_of(one_worker(chance))
        victims = stage.workers_on(machine)
        stage.cluster.kubectl("cordon", f"node-{machine}")
        for victim in victims:
            with suppress(LocalError):
                _evict(stage, victim)
        return frozenset(victims)
    return frozenset()


def _evict(stage: Stage, pod: str) -> None:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": NAMESPACE}}
    stage.cluster.caller.call("POST", f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}/eviction", body)


def uncordoned(stage: Stage) -> None:
    stage.cluster.kubectl(
        "uncordon", *(f"node-{number}" for number in range(1, stage.cluster.state.nodes + 1))
    )


def drained_by_hand(stage: Stage, chance: random.Random) -> frozenset[str]:
    worker = one_worker(chance)
    stage.slurm.run("scontrol", "update", f"nodename={worker}", "state=drain", "reason=chaos by hand")
    return frozenset({worker})


def resumed_by_hand(stage: Stage) -> None:
    """Where it still stands; a worker that left for good took its drain along."""
    for worker in ALL:
        with suppress(LocalError):
            if "chaos by hand" in stage.slurm.run("scontrol", "show", "node", worker):
                stage.slurm.run("scontrol", "update", f"nodename={worker}", "state=resume")


def bad_config(stage: Stage, chance: random.Random) -> frozenset[str]:
    line = chance.choice(
        ("Mistake=1", "SelectType=select/nonsense", "PartitionName=all Nodes=nowhere", "TaskPlugin=task/no")
    )
    good = stage.get("controller", "slurm")["spec"]["extraConf"]
    stage.patch("controller", "slurm", {"extraConf": f"{good}{line}\n"})
    return ALL


def good_config(stage: Stage) -> None:
    stage.slurm.apply(*stage.control_plane())


def read_only_state(stage: Stage, chance: random.Random) -> frozenset[str]:
    _chmod_state(stage, "0500")
    return ALL


def writable_state(stage: Stage) -> None:
    _chmod_state(stage, "0755")


def _chmod_state(stage: Stage, mode: str) -> None:
    """As if its volume were full: slurmctld cannot write its state."""
    for directory in (stage.cluster.directory / "volumes").glob("*statesave*"):
        directory.chmod(int(mode, 8))


def unplugged(stage: Stage, chance: random.Random) -> frozenset[str]:
    """The machine without slurmctld's state is no exception: whatever runs on it is gone at once."""
    number = stage.machine_of(one_worker(chance))
    victims = frozenset(stage.workers_on(number))
    for job in stage.jobs:
        if job.node in victims:
            job.excuses.append(f"node-{number} was unplugged")
    stage.cluster.stop_node(number)
    return ALL - victims


def plugged_in(stage: Stage) -> None:
    for number in range(1, stage.cluster.state.nodes + 1):
        if not stage.cluster.is_node_ready(number):
            stage.cluster.start_node(number)


def cut(stage: Stage, chance: random.Random) -> frozenset[str]:
    """Nobody reaches slurmrestd."""
    rule = (
        "table inet chaos { chain forward { type filter hook forward priority -10; tcp dport 6820 drop; }; }"
    )
    stage.cluster.state.cell.run("nft", "-f", "-", stdin=rule)
    return ALL


def joined(stage: Stage) -> None:
    stage.cluster.state.cell.run("nft", "delete", "table", "inet", "chaos")


def deleted_restapi(stage: Stage, chance: random.Random) -> frozenset[str]:
    stage.cluster.kubectl("delete", "restapi", "slurm", "-n", NAMESPACE, "--wait=false")
    return ALL


FAULTS = {
    fault.name: fault
    for fault in (
        Fault("operator killed", signalled(MANAGER, signal.SIGKILL)),
        Fault("operator stopped and woken", signalled(MANAGER, signal.SIGSTOP), woken(MANAGER)),
        Fault("API server restarted", restarted("kube-apiserver")),
        Fault("slurmctld killed", signalled("slurmctld", signal.SIGKILL)),
        Fault("slurmctld hangs", signalled("slurmctld", signal.SIGSTOP), woken("slurmctld")),
        Fault("slurmctld pod deleted", deleted_pod("app.kubernetes.io/name=slurmctld")),
        Fault("slurmrestd killed", signalled("slurmrestd", signal.SIGKILL)),
        Fault("slurmrestd hangs", signalled("slurmrestd", signal.SIGSTOP), woken("slurmrestd")),
        Fault("slurmrestd cut off", cut, joined),
        Fault("RestApi deleted", deleted_restapi, good_config),
        Fault("database hangs", signalled("mariadbd", signal.SIGSTOP), woken("mariadbd")),
        Fault("slurmdbd killed", signalled("slurmdbd", signal.SIGKILL)),
        Fault("state cannot be written", read_only_state, writable_state),
        Fault("bad configuration pushed", bad_config, good_config),
        Fault("worker pod deleted by hand", deleted_worker),
        Fault("machine drained", drained_machine, uncordoned),
        Fault("worker drained by a human", drained_by_hand, resumed_by_hand),
        Fault("scale in", scaled_in, scaled_out),
        Fault("template changed", changed_template),
        Fault("image broken", broken_image, restored),
        Fault("mode switched", switched_mode, switched_back),
        Fault("NodeSet deleted", deleted_nodeset, recreated_nodeset),
        Fault("machine unplugged", unplugged, plugged_in, is_deadly=True),
    )
}  # fmt: skip
