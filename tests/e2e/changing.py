"""A Cluster that is changed again and again: what is planned for each change, and what then really happens."""

import json
import random
import uuid
from dataclasses import dataclass, replace

import yaml
from click.testing import CliRunner
from e2e_pods import make_namespace
from operator_rig import until

from slurm_local.cluster import Cluster
from slurm_local.errors import LocalError
from slurm_operator.cli.kubectl import kubectl_slurm

PATIENCE_S = 400

# As this rig applies its manifests.
APPLIED = ("--server-side", "--force-conflicts", "--field-manager=slurm-operator-local")

# What has to come to rest.
OURS = "clusters.slinky.slurm.net,controllers,restapis,loginsets,nodesets,pods"

# They run until somebody has waited for them, or until the next change.
JOB = ("sleep 3000", "--exclusive", "--time=60")


@dataclass(frozen=True)
class Wish:
    """A Cluster as somebody wants it."""

    replicas: int = 2
    colour: str = "red"
    kill_wait_s: int = 30
    most_nodes: int = 50
    has_gpus: bool = False
    has_login: bool = False

    @property
    def spec(self) -> dict:
        workers = {"oversubscribeNode": True}
        cpu = {
            "name": "cpu",
            "replicas": self.replicas,
            **workers,
            "template": {"metadata": {"labels": {"colour": self.colour}}},
        }
        gpu = {"name": "gpu", "replicas": 1, **workers}
        conf = f"KillWait={self.kill_wait_s}\nMaxNodeCount={self.most_nodes}\nMinJobAge=300\n"
        return {
            "isolation": "process", "extraConf": conf, "nodeSets": [cpu, *([gpu] if self.has_gpus else [])],
            "logins": [{"name": "login"}] if self.has_login else [],
        }  # fmt: skip


# Changes that may take workers away, and so meet jobs.
TAKING = ("scale in", "replace and scale in", "replace", "replace and scale out", "fewer node sets")


def changed(wish: Wish, class_: str, chance: random.Random) -> Wish:
    repainted = replace(wish, colour=f"{wish.colour[:3]}-{chance.randrange(1000)}")
    match class_:
        case "scale out":
            return replace(wish, replicas=wish.replicas + 1)
        case "scale in":
            return replace(wish, replicas=wish.replicas - 1)
        case "replace":
            return repainted
        case "replace and scale out":
            return replace(repainted, replicas=wish.replicas + 1)
        case "replace and scale in":
            return replace(repainted, replicas=wish.replicas - 1)
        case "more node sets" | "fewer node sets":
            return replace(wish, has_gpus=not wish.has_gpus)
        case "a login" | "no login":
            return replace(wish, has_login=not wish.has_login)
        case "reconfigure":
            return replace(wish, kill_wait_s=wish.kill_wait_s + chance.randint(1, 9))
        case "restart slurmctld":
            return replace(wish, most_nodes=wish.most_nodes + chance.randint(1, 9))
        case _:
            return wish


@dataclass(frozen=True)
class Sight:
    """Pods by uid with their names, and Slurm's nodes by name."""

    pods: dict[str, str]
    slurm_nodes: frozenset[str]


class Changing:
    """The Cluster `demo` in a namespace of its own."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.namespace, self.wish = cluster, f"plan-{uuid.uuid4().hex[:6]}", Wish()
        make_namespace(cluster, self.namespace)
        self.apply(self.wish)

    def manifest(self, wish: Wish) -> dict:
        metadata = {"name": "demo", "namespace": self.namespace}
        return {
            "apiVersion": "slinky.slurm.net/v1beta1",
            "kind": "Cluster",
            "metadata": metadata,
            "spec": wish.spec,
        }

    def apply(self, wish: Wish) -> None:
        self.cluster.apply([self.manifest(wish)])
        self.wish = wish

    def plan(self, wish: Wish) -> dict:
        where = ("--kubeconfig", str(self.cluster.kubeconfig), "-n", self.namespace)
        words = ["plan", *where, "-o", "json", "-f", "-", *APPLIED]
        done = CliRunner().invoke(kubectl_slurm, words, input=yaml.safe_dump(self.manifest(wish)))
        assert done.exit_code == 0, done.output
        return json.loads(done.output)

    def get(self, what: str, *flags: str) -> list[dict]:
        return json.loads(self.cluster.kubectl("get", what, "-n", self.namespace, "-o", "json", *flags))[
            "items"
        ]

    def run(self, *command: str) -> str:
        where = ("exec", "-n", self.namespace, "demo-controller-0", "-c", "slurmctld", "--", "timeout", "30")
        return self.cluster.kubectl(*where, *command, timeout_s=60)

    def free(self) -> None:
        """No job is left of the change before; one that ended between a plan and its deeds would belie both."""
        self.run("scancel", "--user=slurm")
        idle = ("sinfo", "--noheader", "--Node", "--format=%T")
        until(lambda: set(self.run(*idle).split()) == {"idle"}, PATIENCE_S, lambda: self.run("squeue"))

    def occupy(self, workers: list[str]) -> set[int]:
        """A job on each of these; until they run."""
        script, *options = JOB
        submit = ("sbatch", "--parsable", "--output=/dev/null", *options)
        jobs = {int(self.run(*submit, f"--nodelist={name}", f"--wrap={script}")) for name in workers}
        running = ("squeue", "--noheader", "--states=RUNNING", "--format=%A")
        until(
            lambda: jobs <= {int(word) for word in self.run(*running).split()},
            PATIENCE_S,
            lambda: f"jobs {jobs}",
        )
        return jobs

    def see(self) -> Sight:
        """What there is. Pods in which slurmctld only tries files out come and go."""
        pods = [pod["metadata"] for pod in self.get("pods")]
        kept = {
            one["uid"]: one["name"]
            for one in pods
            if one["labels"].get("app.kubernetes.io/name") != "slurm-rehearsal"
        }
        nodes = self.run("sinfo", "--noheader", "--Node", "--format=%N").split()
        return Sight(kept, frozenset(nodes))

    def settle(self) -> set[int]:
        """Waits until nothing is on its way any more; the jobs that were waited for until then.

        Such a job is then ended, as its owner may; jobs that nobody waits for run on.
        """
        jobs: set[int] = set()
        quiet = 0

        def is_settled() -> bool:
            nonlocal quiet
            things = self.get(OURS)
            drains = [drain for one in things for drain in one.get("status", {}).get("drains") or ()]
            awaited = {int(job) for drain in drains for job in drain.get("jobs") or ()}
            if awaited - jobs:
                self.run("scancel", *map(str, awaited - jobs))
            jobs.update(awaited)
            quiet = quiet + 1 if not drains and self.is_at_rest(things) else 0
            return quiet >= 3

        until(
            is_settled,
            PATIENCE_S,
            lambda: f"rest: {self.cluster.kubectl('get', 'clusters,nodesets,pods', '-n', self.namespace)}",
        )
        return jobs

    def is_at_rest(self, things: list[dict]) -> bool:
        """Everything of this Cluster is ready, as its last spec says, and slurmctld answers for all workers."""
        if any(one["metadata"].get("deletionTimestamp") for one in things):
            return False
        if not all(_is_done(one) for one in things if one["kind"] != "Pod"):
            return False
        try:
            states = self.run("sinfo", "--noheader", "--Node", "--format=%T").split()
        except LocalError:
            return False
        workers = self.wish.replicas + self.wish.has_gpus
        return len(states) == workers and set(states) <= {"idle", "allocated"}


def _is_done(thing: dict) -> bool:
    status = thing.get("status") or {}
    conditions = {one["type"]: one for one in status.get("conditions") or ()}
    is_seen = all(
        one.get("observedGeneration") == thing["metadata"]["generation"] for one in conditions.values()
    )
    states = {name: one["status"] for name, one in conditions.items()}
    return is_seen and (states.get("Ready"), states.get("Progressing")) == ("True", "False")
