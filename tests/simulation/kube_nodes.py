"""Kubernetes nodes under workers of a SlurmCluster: a provider that announces maintenance, tasks that cannot be ended,
and a rebooter that empties and reboots. What node controllers do about it is the operator's.
"""

from functools import partial

from simulation.apiserver import OPERATOR, Object
from simulation.deeds import Deeds
from simulation.machines import Process
from simulation.world import World
from slurm_operator.api.nebius import node_conditions as names
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.manifests import kinds

PROVIDER, REBOOTER = "provider", "rebooter"
KILL_FAILED = "Kill task failed"

# How often each is drawn, beside what happens to a SlurmCluster and its workers.
NODE_DEEDS = {"announce": 4, "unannounce": 5, "doubt_announcement": 1, "fail_to_kill": 3}

# A job that came so shortly before Slurm was read may not have been seen.
NEWS_SECONDS = 9.0

_CALL = names.MAINTENANCE_SCHEDULED


class NodeDeeds(Deeds):
    """What a provider says of Kubernetes nodes, and what slurmd says of its own."""

    def announce(self, pick: int, amount: int) -> None:
        for machine in self._one(self._machines(), pick):
            _say(self.world, machine.name, _CALL, "True", "Planned", PROVIDER)

    def unannounce(self, pick: int, amount: int) -> None:
        for name in self._one(self._announced(), pick):
            _say(self.world, name, _CALL, "False", "Over", PROVIDER)

    def doubt_announcement(self, pick: int, amount: int) -> None:
        for name in self._one(self._announced(), pick):
            _say(self.world, name, _CALL, "Unknown", "Silent", PROVIDER)

    def fail_to_kill(self, pick: int, amount: int) -> None:
        """slurmd drains its node: a task of a job that ended does not end."""
        records = sorted(self.world.ctld.records.items())
        free = [name for name, one in records if one.pod_uid and not one.is_drain and not one.reason]
        for name in self._one(free, pick):
            self.world.ctld.drain(name, KILL_FAILED, "root")

    def _announced(self) -> list[str]:
        nodes = self.world.server.all(kinds.KUBE_NODE)
        return [node["metadata"]["name"] for node in nodes if condition(node, _CALL) in ("True", "Unknown")]

    async def make_good(self) -> None:
        while self._announced():
            self.unannounce(0, 0)
        await super().make_good()


class Rebooter:
    """On every Kubernetes node: it cordons one that is to be emptied, reboots one that is asked to, and says so."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.cordoned: set[str] = set()
        self.due: dict[tuple[str, str], float] = {}

    def tick(self) -> None:
        for node in self.world.server.all(kinds.KUBE_NODE):
            name = node["metadata"]["name"]
            self._empty(name, node)
            self._reboot(name, node)

    def _empty(self, name: str, node: Object) -> None:
        is_wanted = condition(node, names.DRAIN) == "True"
        if is_wanted and reason(node, names.DRAIN) == names.NEED_DRAIN and self._is_due(name, names.DRAIN):
            self._cordon(name, is_on=True)
            _say(self.world, name, names.DRAIN, "True", names.DRAINING, REBOOTER)
        if not is_wanted and name in self.cordoned:
            self._cordon(name, is_on=False)

    def _reboot(self, name: str, node: Object) -> None:
        if condition(node, names.REBOOT) != "True":
            return
        step = reason(node, names.REBOOT)
        if step == names.NEED_REBOOT and self._is_due(name, names.NEED_REBOOT):
            _say(self.world, name, names.REBOOT, "True", names.REBOOTING, REBOOTER)
            for process in _workers_on(self.world, name):
                self.world.machines.crash(process)
        if step == names.REBOOTING and self._is_due(name, names.REBOOTING):
            _say(self.world, name, names.REBOOT, "True", names.REBOOTED, REBOOTER)

    def _is_due(self, name: str, step: str) -> bool:
        """Some seconds after it was first seen."""
        now = self.world.loop.time()
        wait = 2.0 + self.world.weather.seconds(f"{step} of {name}", 15.0)
        if now < self.due.setdefault((name, step), now + wait):
            return False
        del self.due[name, step]
        return True

    def _cordon(self, name: str, *, is_on: bool) -> None:
        (self.cordoned.add if is_on else self.cordoned.discard)(name)
        key = ObjectKey("", name)
        self.world.server.change(
            kinds.KUBE_NODE, key, lambda it: it["spec"].update(unschedulable=is_on), REBOOTER
        )


class NodePromises:
    """Nobody is asked to reboot or to empty a Kubernetes node under a job, and none is deleted."""

    def __init__(self, world: World, deeds: Deeds) -> None:
        self.world = world
        self.deeds = deeds
        world.server.hears.append(self._heard)

    def _heard(self, kind: Kind, old: Object | None, new: Object | None, who: str) -> None:
        if kind != kinds.KUBE_NODE or who != OPERATOR or old is None:
            return
        name = old["metadata"]["name"]
        if new is None:
            self.world.broken(f"the operator deletes Kubernetes node {name}, though nobody switched that on")
            return
        for type_ in (names.MAINTENANCE, names.DEGRADED, names.DRAIN, names.REBOOT):
            if (said := (condition(new, type_), reason(new, type_))) != (
                condition(old, type_),
                reason(old, type_),
            ):
                self.world.note(f"{name}: {type_}={said[0]} ({said[1]})")
        for type_, asked in ((names.REBOOT, names.NEED_REBOOT), (names.DRAIN, names.NEED_DRAIN)):
            is_asked = condition(new, type_) == "True" and reason(new, type_) == asked
            if is_asked and condition(old, type_) != "True":
                self._check_free(name, type_)

    def _check_free(self, name: str, type_: str) -> None:
        for process in _workers_on(self.world, name):
            lifted = self.deeds.lifted.get(process.hostname, -100.0)
            is_excused = self.world.loop.time() - lifted < NEWS_SECONDS
            jobs = [
                job for job in self.world.machines.jobs_in(process.pod_uid) if self._age(job) > NEWS_SECONDS
            ]
            if jobs and not is_excused:
                told = f"job {jobs[0].job_id} on {process.pod}"
                self.world.broken(f"the operator sets {type_} of Kubernetes node {name} under {told}")

    def _age(self, job) -> float:
        began = job.started_at or self.world.clock.now()
        return (self.world.clock.now() - began).total_seconds()


def unrest(world: World) -> str | None:
    """What is still said of a Kubernetes node when nobody asks for anything any more."""
    for node in world.server.all(kinds.KUBE_NODE):
        for type_ in (names.DRAIN, names.REBOOT, names.DEGRADED, names.MAINTENANCE, names.BRAKED):
            if condition(node, type_) == "True":
                return f"Kubernetes node {node['metadata']['name']} still has {type_}: {reason(node, type_)}"
        if node["spec"].get("unschedulable"):
            return f"Kubernetes node {node['metadata']['name']} is still cordoned"
    return None


def condition(node: Object, type_: str) -> str:
    """Its status; empty where nobody says it."""
    return next((one["status"] for one in _conditions(node) if one["type"] == type_), "")


def reason(node: Object, type_: str) -> str:
    return next((one.get("reason", "") for one in _conditions(node) if one["type"] == type_), "")


def _conditions(node: Object) -> list[Object]:
    return (node.get("status") or {}).get("conditions") or []


def _workers_on(world: World, name: str) -> list[Process]:
    found = (one for one in world.machines.processes.values() if one.is_worker and one.is_up)
    return [one for one in found if one.machine == name]


def _say(world: World, name: str, type_: str, status: str, why: str, who: str) -> None:
    at = f"{world.clock.now():%Y-%m-%dT%H:%M:%SZ}"
    said = {"type": type_, "status": status, "reason": why, "message": "", "lastTransitionTime": at}
    world.server.change(kinds.KUBE_NODE, ObjectKey("", name), partial(_put, said), who)


def _put(said: Object, node: Object) -> None:
    there = _conditions(node)
    before = next((one for one in there if one["type"] == said["type"]), None)
    if before is not None and before["status"] == said["status"]:
        said = {**said, "lastTransitionTime": before.get("lastTransitionTime", said["lastTransitionTime"])}
    others = [one for one in there if one["type"] != said["type"]]
    node["status"] = {**(node.get("status") or {}), "conditions": [*others, said]}
