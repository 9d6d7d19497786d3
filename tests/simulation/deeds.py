"""What people and bad days do to a cluster. Each deed picks whom it meets by a number, so stories can be told again."""

from collections.abc import Iterator
from dataclasses import astuple, dataclass
from datetime import timedelta
from functools import partial

from simulation.apiserver import HUMAN, Object, key_of
from simulation.machines import BAD_IMAGE
from simulation.refusing import ANSWERS, WRITES
from simulation.world import World
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.kube import errors
from slurm_operator.manifests import kinds
from slurm_operator.slurm.reasons import is_our_reason
from slurm_operator.slurm.reservation import Reservation

DEPARTING = {"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}
REASONS = ("bad disk, ask Ada", "", "slurm is slow here")


@dataclass(frozen=True)
class Happening:
    """So many seconds after the last one, this deed, to the one with this number."""

    after: float
    deed: str
    pick: int = 0
    amount: int = 0

    def __str__(self) -> str:
        return f"Happening{astuple(self)}"


class Deeds:
    """One method for each thing that can happen. One that meets nobody does nothing."""

    refusable = (kinds.POD, kinds.CONTROLLER_REVISION)

    def __init__(self, world: World, nodeset: ObjectKey) -> None:
        self.world = world
        self.nodeset = nodeset
        self.drained: dict[str, tuple[str, float]] = {}  # By a human: the reason, and when.
        self.lifted: dict[str, float] = {}
        self.cordoned: set[str] = set()
        self.named: set[str] = set()  # Slurm nodes that somebody drained, reserved or insisted on.

    async def do(self, happening: Happening) -> None:
        done = getattr(self, happening.deed)(happening.pick, happening.amount)
        if done is not None:
            await done
        self.world.note(f"-- {happening.deed} {happening.pick} {happening.amount}")

    # ---- Jobs

    def submit(self, pick: int, amount: int) -> None:
        self.world.ctld.submit(3 + amount % 40, 1 + (pick % 4 == 0))

    def submit_array(self, pick: int, amount: int) -> None:
        """Its last task has the id of all of them."""
        head, tasks = self.world.ctld.made + 1, 2 + pick % 3
        for task in (tasks - 1, *range(tasks - 1)):
            self.world.ctld.submit(3 + amount % 20, array_job_id=head, array_task_id=task)

    def insist(self, pick: int, amount: int) -> None:
        for record in self._one(sorted(self.world.ctld.records), pick):
            self.named.add(record)
            self.world.ctld.submit(3 + amount % 20, required=(record,))

    def suspend(self, pick: int, amount: int) -> None:
        for job in self._one(self._jobs("RUNNING"), pick):
            self.world.ctld.suspend(job)

    def wake(self, pick: int, amount: int) -> None:
        for job in self._one(self._jobs("SUSPENDED"), pick):
            self.world.ctld.wake(job)

    def requeue(self, pick: int, amount: int) -> None:
        for job in self._one(self._jobs("RUNNING"), pick):
            self.world.ctld.requeue(job, "its owner asked")

    def cancel(self, pick: int, amount: int) -> None:
        for job in self._one(self._jobs("RUNNING", "SUSPENDED", "PENDING"), pick):
            self.world.ctld.cancel(job)

    def preempt(self, pick: int, amount: int) -> None:
        """A job comes that is more urgent than all others."""
        self.world.ctld.submit(3 + amount % 20, priority=1, is_exclusive=pick % 2 == 0)

    # ---- slurmctld

    def drain(self, pick: int, amount: int) -> None:
        ctld = self.world.ctld
        free = [
            name for name, record in sorted(ctld.records.items()) if not record.is_drain and not record.reason
        ]
        for name in self._one(free, pick):
            reason = REASONS[amount % len(REASONS)]
            ctld.drain(name, reason, "ada")
            self._remember(name, reason)

    def drain_over(self, pick: int, amount: int) -> None:
        """A human says their own reason where we had drained: from then on it is theirs."""
        ctld = self.world.ctld
        ours = [
            name
            for name, record in sorted(ctld.records.items())
            if record.is_drain and is_our_reason(record.reason)
        ]
        for name in self._one(ours, pick):
            ctld.drain(name, REASONS[0], "ada")
            self._remember(name, REASONS[0])

    def _remember(self, name: str, reason: str) -> None:
        self.drained[name] = (reason, self.world.loop.time())
        self.named.add(name)

    def lift(self, pick: int, amount: int) -> None:
        for name in self._one(sorted(self.drained), pick):
            del self.drained[name]
            if name in self.world.ctld.records:
                self.world.ctld.resume(name, "ada")
                self.lifted[name] = self.world.loop.time()

    def restart_slurmctld(self, pick: int, amount: int) -> None:
        ctld, loop = self.world.ctld, self.world.loop
        ctld.is_up = False
        loop.call_later(1 + amount % 12, lambda: setattr(ctld, "is_up", True))

    def hang_slurmctld(self, pick: int, amount: int) -> None:
        world = self.world

        def wake_up() -> None:
            world.ctld.is_hung = False
            world.rest.wake_up()

        if not world.ctld.is_hung:
            world.ctld.is_hung = True
            world.loop.call_later(2 + amount % 12, wake_up)

    def lose_state(self, pick: int, amount: int) -> None:
        self.world.ctld.lose_state()
        self.drained.clear()

    def set_back_clock(self, pick: int, amount: int) -> None:
        """slurmctld's own, as when a backup takes over whose clock is behind."""
        self.world.ctld.behind += timedelta(seconds=30 + amount)

    def lose_slurmrestd(self, pick: int, amount: int) -> None:
        rest = self.world.rest
        rest.is_away = True
        self.world.loop.call_later(2 + amount % 40, lambda: setattr(rest, "is_away", False))

    def slow_slurmrestd(self, pick: int, amount: int) -> None:
        """For good. So many tenths of a second for each call: reading takes four of them."""
        self.world.rest.slow_seconds = amount / 10

    def reconfigure(self, pick: int, amount: int) -> None:
        if self.world.ctld.is_up and not self.world.ctld.is_hung:
            self.world.ctld.reconfigure()

    def reserve(self, pick: int, amount: int) -> None:
        for name in self._one(sorted(self.world.ctld.records), pick):
            start = self.world.clock.now()
            self.named.add(name)
            self.world.ctld.reserve(Reservation(name=f"hers-{name}", nodes=(name,), start_time=start))

    def unreserve(self, pick: int, amount: int) -> None:
        theirs = [name for name in sorted(self.world.ctld.reservations) if name.startswith("hers-")]
        for name in self._one(theirs, pick):
            self.world.ctld.unreserve(name)

    # ---- Machines

    def crash_worker(self, pick: int, amount: int) -> None:
        for process in self._one(self._workers(), pick):
            self.world.machines.crash(process)

    def hang_worker(self, pick: int, amount: int) -> None:
        """For up to two minutes."""
        for process in self._one(self._workers(), pick):
            self.world.machines.hang(process)
            self.world.loop.call_later(5 + 2 * amount, partial(self.world.machines.wake, process))

    def fail_worker(self, pick: int, amount: int) -> None:
        for process in self._one(self._workers(), pick):
            self.world.machines.fail(process)

    def lose_machine(self, pick: int, amount: int) -> None:
        for machine in self._one(self._machines(), pick):
            self.world.machines.lose(machine)
            self.world.loop.call_later(5 + amount % 40, partial(self.world.machines.bring_back, machine))

    def cut_off_machine(self, pick: int, amount: int) -> None:
        for machine in self._one(self._machines(), pick):
            machine.is_cut_off = True
            self.world.loop.call_later(5 + amount % 40, partial(self.world.machines.bring_back, machine))

    def cordon(self, pick: int, amount: int) -> None:
        for machine in self._one(self._machines(), pick):
            self.cordoned.add(machine.name)
            self._edit_machine(machine.name, lambda spec: spec.update(unschedulable=True))

    def uncordon(self, pick: int, amount: int) -> None:
        for name in self._one(sorted(self.cordoned), pick):
            self.cordoned.discard(name)
            self._edit_machine(name, lambda spec: spec.clear())

    def taint(self, pick: int, amount: int) -> None:
        for machine in self._one(self._machines(), pick):
            self.cordoned.add(machine.name)
            self._edit_machine(machine.name, lambda spec: spec.update(taints=[DEPARTING]))

    # ---- Objects

    def delete_pod(self, pick: int, amount: int) -> None:
        """By hand: refused while the worker is protected."""
        for pod in self._one(self._pods(), pick):
            try:
                self.world.server.delete(kinds.POD, key_of(pod), HUMAN)
            except errors.Forbidden:
                self.world.note(f"{pod['metadata']['name']} may not be deleted")

    def policy_off(self, pick: int, amount: int) -> None:
        self.world.server.protects = False

    def cordon_pod(self, pick: int, amount: int) -> None:
        for pod in self._one(self._pods(), pick):
            self._annotate(pod, names.POD_CORDON, "true")

    def uncordon_pod(self, pick: int, amount: int) -> None:
        cordoned = [p for p in self._pods() if p["metadata"].get("annotations", {}).get(names.POD_CORDON)]
        for pod in self._one(cordoned, pick):
            self._annotate(pod, names.POD_CORDON, "false")

    def scale(self, pick: int, amount: int) -> None:
        found = self.world.server.objects[NodeSet.KIND].get(self.nodeset)
        if found is not None and "ordinals" in found["spec"]:
            self._edit(ordinals=sorted({(pick + step) % 7 for step in range(amount % 5)}))
        else:
            self._edit(replicas=amount % 5)

    def change_image(self, pick: int, amount: int) -> None:
        self._edit(slurmd={"image": f"slurmd:{amount % 9}"})

    def break_image(self, pick: int, amount: int) -> None:
        self._edit(slurmd={"image": BAD_IMAGE})

    def change_resources(self, pick: int, amount: int) -> None:
        self._edit(extraConf=f"CPUs={1 + amount % 9}")

    def switch_mode(self, pick: int, amount: int) -> None:
        self._edit(scalingMode="DaemonSet" if amount % 2 else "StatefulSet")

    def widen_budget(self, pick: int, amount: int) -> None:
        self._edit(
            updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1 + amount % 3}}
        )

    def delete_nodeset(self, pick: int, amount: int) -> None:
        if self.nodeset in self.world.server.objects[NodeSet.KIND]:
            self.world.server.delete(NodeSet.KIND, self.nodeset, HUMAN)

    # ---- The operator

    async def crash_operator(self, pick: int, amount: int) -> None:
        await self.world.crash_operator()
        await self.world.start_operator()

    async def stop_operator(self, pick: int, amount: int) -> None:
        """Away for a while: everything goes on without it."""
        await self.world.crash_operator()
        await self.world.pass_seconds(1 + amount % 25)
        await self.world.start_operator()

    def step_clock(self, pick: int, amount: int) -> None:
        """That of the operator's machine is set, by 2 to 60 s, back or forth. Nobody else's is."""
        seconds = 2 + amount % 59
        self.world.operator_clock.ahead += timedelta(seconds=-seconds if pick % 3 else seconds)

    def lose_apiserver(self, pick: int, amount: int) -> None:
        client = self.world.client
        client.is_away = True
        self.world.loop.call_later(1 + amount % 15, lambda: setattr(client, "is_away", False))

    def calm(self, pick: int, amount: int) -> None:
        pass

    # ---- Whom it meets

    @staticmethod
    def _one(among: list, pick: int) -> Iterator:
        if among:
            yield among[pick % len(among)]

    def _jobs(self, *states: str) -> list:
        return [job for job in self.world.ctld.jobs.values() if job.state in states]

    def _workers(self) -> list:
        found = (p for p in self.world.machines.processes.values() if p.is_worker and p.is_up)
        return sorted(found, key=lambda process: process.pod)

    def _machines(self) -> list:
        return [m for m in self.world.machines.machines.values() if not m.is_lost and not m.is_cut_off]

    def _pods(self) -> list[Object]:
        return [pod for pod in self.world.server.all(kinds.POD) if "deletionTimestamp" not in pod["metadata"]]

    def _annotate(self, pod: Object, key: str, value: str) -> None:
        def edit(it: Object) -> None:
            it["metadata"].setdefault("annotations", {})[key] = value

        self.world.server.change(kinds.POD, key_of(pod), edit, HUMAN)

    def _edit(self, **spec) -> None:
        if self.nodeset in self.world.server.objects[NodeSet.KIND]:
            self.world.server.change(NodeSet.KIND, self.nodeset, lambda it: it["spec"].update(spec), HUMAN)

    def _workers_asked_for(self) -> Object:
        """The settings that `_edit` changes; empty when nobody asks for workers."""
        return self.world.server.objects[NodeSet.KIND].get(self.nodeset, {}).get("spec", {})

    def _edit_machine(self, name: str, edit) -> None:
        self.world.server.change(kinds.KUBE_NODE, ObjectKey("", name), lambda it: edit(it["spec"]), HUMAN)

    # ---- The end of all trouble

    def _lift_pod_cordons(self) -> None:
        for pod in self._pods():
            if pod["metadata"].get("annotations", {}).get(names.POD_CORDON) == "true":
                self._annotate(pod, names.POD_CORDON, "false")

    # ---- The API server says no

    def refuse_writes(self, pick: int, amount: int) -> None:
        """A quota, a policy, a missing right: for good, until somebody does something about it."""
        found = [write for write in WRITES if write[1] in self.refusable]
        self.world.refusing.refuses[found[pick % len(found)]] = ANSWERS[amount % len(ANSWERS)]

    def allow_writes(self, pick: int, amount: int) -> None:
        self.world.refusing.refuses.clear()

    async def make_good(self) -> None:
        """Nothing is held back any more, and the wishes are ones that can be met."""
        world = self.world
        self.allow_writes(0, 0)
        world.weather.roughness = world.weather.late = 0.0
        world.operator_clock.ahead = timedelta(0)
        world.ctld.is_up, world.rest.is_away, world.client.is_away = True, False, False
        if world.ctld.is_hung:
            world.ctld.is_hung = False
            world.rest.wake_up()
        for machine in world.machines.machines.values():
            world.machines.bring_back(machine)
        for process in world.machines.processes.values():
            world.machines.wake(process)
        while self.cordoned:
            self.uncordon(0, 0)
        for name in sorted(world.ctld.reservations):
            if name.startswith("hers-"):
                world.ctld.unreserve(name)
        for job in [*self._jobs("SUSPENDED"), *world.ctld.orphans]:
            world.ctld.wake(job)
        for job in self._jobs("PENDING"):
            if job.required or job.width > 1:
                world.ctld.cancel(job)
        self._lift_pod_cordons()
        world.on_second.append(self._lift_pod_cordons)  # One that is on its way has it from the one before.
        while self.drained:
            self.lift(0, 0)
        if self._workers_asked_for().get("slurmd", {}).get("image") == BAD_IMAGE:
            self._edit(slurmd={"image": "slurmd:good"})
        if world.operator is None:
            await world.start_operator()
