"""What must hold in every step, whatever happens: checked against what is really so, not against what is believed."""

import math

from simulation.apiserver import OPERATOR, Object
from simulation.deeds import Deeds
from simulation.jobs import Job
from simulation.machines import PROBED, SLURMD, Process, app_of
from simulation.world import World
from slurm_operator.api.schema import codec
from slurm_operator.api.shared import names
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.kube.errors import NotFound
from slurm_operator.manifests import kinds
from slurm_operator.slurm.reasons import OurReason, is_our_reason

# A proof may be this old when it is used, and the delete takes a moment on its way: who lifts a drain by hand in
# this very time takes the fence away under our feet.
FENCE_SECONDS = 9.0
# A job or a reservation that is younger may not have been seen by whoever deletes the record it names.
NEWS_SECONDS = 9.0
# A kubelet may be so late to say that slurmd runs. Until then its pod may be asked to end, with its whole grace
# period, though a job has just come: that one then has the time it needs, and is looked at when the pod ends.
UNREPORTED_SECONDS = 4.0


class Promises:
    """Watches one NodeSet and its Slurm cluster; the first broken promise ends the story."""

    def __init__(self, world: World, deeds: Deeds) -> None:
        self.world = world
        self.deeds = deeds
        self.deleted: dict[str, float] = {}  # Pods that the operator deleted, by uid.
        self.away: dict[str, str] = {}  # Workers that were in use and are away for an update, and its cause.
        self.asked: list[tuple[float, int, int]] = [
            (0.0, *self._asked_now())
        ]  # Since when, how many, budget.
        world.server.hears.append(self._heard)
        world.on_slurm_write.append(self._slurm_write)
        world.on_end.append(self._ended)
        world.on_second.append(self._each_second)

    # ---- No worker is removed under a job

    def _heard(self, kind, old: Object | None, new: Object | None, who: str) -> None:
        self.world.steps += 1
        if kind != kinds.POD or who != OPERATOR or old is None:
            return
        if new is not None and _phase(new) == "ready" != _phase(old):
            self._check_ready(old["metadata"]["uid"], old["metadata"]["name"])
        before, after = (
            old["metadata"].get("deletionTimestamp"),
            new and new["metadata"].get("deletionTimestamp"),
        )
        if new is not None and (after is None or after == before):
            return
        uid, pod = old["metadata"]["uid"], old["metadata"]["name"]
        self.deleted[uid] = self.world.loop.time()
        newest = UNREPORTED_SECONDS if before is None and _has_its_time(new) else 0.0
        self._check_free(uid, f"the operator deletes pod {pod}", newest)

    def _ended(self, process: Process, why: str) -> None:
        jobs = self.world.machines.jobs_in(process.pod_uid)
        if why == PROBED and jobs:
            self.world.broken(f"{process.pod} is killed under job {jobs[0].job_id}: {why}")
        if process.pod_uid in self.deleted:
            self._check_free(process.pod_uid, f"pod {process.pod}, which the operator deleted, ends")

    def _check_free(self, uid: str, what: str, newest: float = 0.0) -> None:
        """No job is there; those that came within the `newest` seconds are left out."""
        process = self.world.machines.processes.get(uid)
        jobs = [job for job in self.world.machines.jobs_in(uid) if self._age(job) >= newest]
        record = self.world.ctld.records.get(process.hostname) if process is not None else None
        if record is not None and process is not None and record.pod_uid == uid and process.is_up:
            jobs += [
                job for job in self.world.ctld.jobs_on(record.name) if job not in jobs and not job.is_alive
            ]
            if self.world.ctld.has_epilog(record):
                self.world.broken(f"{what} under an epilog")
        lifted = self.deeds.lifted.get(process.hostname) if process is not None else None
        if lifted is not None and self.deleted[uid] - lifted < FENCE_SECONDS:
            jobs = [job for job in jobs if not self._let_in_by(job, lifted)]
        if jobs:
            told = ", ".join(f"job {job.job_id} ({'+'.join(job.words)})" for job in jobs)
            self.world.broken(f"{what} under {told}")

    def _check_ready(self, uid: str, pod: str) -> None:
        """What tools are told of a worker that is being updated."""
        process = self.world.machines.processes.get(uid)
        lifted = self.deeds.lifted.get(process.hostname) if process is not None else None
        jobs = self.world.machines.jobs_in(uid)
        if lifted is not None and self.world.loop.time() - lifted < FENCE_SECONDS:
            jobs = [job for job in jobs if not self._let_in_by(job, lifted)]
        if jobs:
            self.world.broken(f"pod {pod} is called ready to be replaced under job {jobs[0].job_id}")

    def _let_in_by(self, job: Job, lifted: float) -> bool:
        """It started in the seconds after somebody lifted the drain that kept jobs away."""
        after = self.world.loop.time() - self._age(job) - lifted
        return -1.0 <= after < FENCE_SECONDS

    def _age(self, job: Job) -> float:
        began = job.started_at or self.world.clock.now()
        return (self.world.clock.now() - began).total_seconds()

    # ---- Manual drains stay, and records that somebody needs

    def _slurm_write(self, attempt: str, nodes: tuple[str, ...], read_at: float) -> None:
        if attempt.startswith(("cancel job", "requeue job")):
            self._check_ended_by_others(attempt)
        is_change = attempt.startswith(("drain", "resume", "set down", "delete the node"))
        for name in nodes:
            record = self.world.ctld.records.get(name)
            said = self.deeds.drained.get(name)
            if is_change and record is not None and said is not None and record.is_drain:
                if said[1] < read_at:
                    self.world.broken(f"the operator does {attempt!r} though a human drained it: {said[0]!r}")
                else:
                    del self.deeds.drained[name]  # They came between our look and our write: see limits.
            if record is not None and attempt.startswith("delete the node"):
                self._check_needed(name)
            if record is not None and attempt.startswith("drain"):
                self._check_budget(name)

    def _check_ended_by_others(self, attempt: str) -> None:
        """Only the jobs of a pod that somebody else deleted go back into the queue, before they die with it.

        The parts of a heterogeneous job die together, so one of them has to be there.
        """
        alive = [job for job in self.world.ctld.addressed(attempt.rpartition(" ")[2]) if job.is_alive]
        wrong = [job for job in alive if not self._is_ended_by_other(job)]
        is_pack = any(job.het_job_id is not None for job in alive)
        if wrong and not (is_pack and len(wrong) < len(alive)):
            self.world.broken(f"nobody asked to {attempt}, by which job {wrong[0].job_id} ends")

    def _is_ended_by_other(self, job: Job) -> bool:
        uids = set(job.processes.values())
        pods = [pod for pod in self.world.server.all(kinds.POD) if pod["metadata"]["uid"] in uids]
        ending = [pod["metadata"]["uid"] for pod in pods if "deletionTimestamp" in pod["metadata"]]
        lifted = [at for name, at in self.deeds.lifted.items() if name in job.nodes]
        is_excused = any(self._let_in_by(job, at) for at in lifted)
        return is_excused or any(uid not in self.deleted for uid in ending)

    def _check_needed(self, name: str) -> None:
        now = self.world.clock.now()
        for job in self.world.ctld.jobs.values():
            is_old = (now - job.submitted_at).total_seconds() > NEWS_SECONDS
            if not job.is_over and is_old and name in job.required:
                self.world.broken(f"the record of {name} is deleted, on which job {job.job_id} insists")
        for reservation in self.world.ctld.reservations.values():
            is_old = (now - (reservation.start_time or now)).total_seconds() > NEWS_SECONDS
            if name in reservation.nodes and reservation.name.startswith("hers-") and is_old:
                self.world.broken(f"the record of {name} is deleted, which {reservation.name} reserves")

    # ---- Never more than the budget away

    def _check_budget(self, name: str) -> None:
        """Called right before a drain of ours takes effect."""
        record = self.world.ctld.records[name]
        was_in_use = not (record.is_drain or record.is_down or record.is_silent)
        self.world.loop.call_soon(self._count_away, name, was_in_use)

    def _count_away(self, name: str, was_in_use: bool) -> None:
        record = self.world.ctld.records.get(name)
        ours = OurReason.read(record.reason) if record is not None and record.is_drain else None
        if ours is None or ours.cause not in ("Update", "Resources") or not was_in_use:
            return
        self._forget_returned()
        self.away[name] = ours.cause
        since = self._recently()
        recent = [self._asked_now(), *((wanted, budget) for at, wanted, budget in self.asked if at >= since)]
        fewest, most = min(wanted for wanted, _ in recent), max(budget for _, budget in recent)
        if len(self.away) > most + self._surplus(fewest):
            self.world.broken(f"{sorted(self.away)} are away for an update, and only {most} may be")

    def _surplus(self, wanted: int) -> int:
        """Workers beyond the wanted number: they leave anyway."""
        is_daemon = (self._spec() or {}).get("scalingMode") == "DaemonSet"
        return 0 if is_daemon else max(0, len(self._staying()) - wanted)

    def _staying(self) -> list[Object]:
        return [pod for pod in worker_pods(self.world) if "deletionTimestamp" not in pod["metadata"]]

    def _recently(self) -> float:
        """Since when that was asked for which was in force 30 s ago: a write may cross with a new wish."""
        then = self.world.loop.time() - 30.0
        return max((at for at, _, _ in self.asked if at <= then), default=0.0)

    def _asked_now(self) -> tuple[int, int]:
        """How many workers, and the budget as people read the spec: a number, else a quarter of them, rounded up."""
        spec = self._spec() or {}
        wanted = (spec.get("updateStrategy") or {}).get("rollingUpdate", {}).get("maxUnavailable")
        is_daemon = spec.get("scalingMode") == "DaemonSet"
        workers = len(self.world.machines.machines) if is_daemon else _wanted(spec)
        return workers, max(1, wanted if wanted is not None else math.ceil(workers / 4))

    def _spec(self) -> Object | None:
        found = self.world.server.objects[NodeSet.KIND].get(self.deeds.nodeset)
        return found["spec"] if found is not None else None

    def _each_second(self) -> None:
        now, asked = self.world.loop.time(), self._asked_now()
        if asked != self.asked[-1][1:]:
            self.asked.append((now, *asked))
        self._forget_returned()
        self._check_human_drains()

    def _forget_returned(self) -> None:
        """Who was lifted a moment ago was back, even if slurmctld has refused it again since."""
        now = self.world.loop.time()
        for name in list(self.away):
            record = self.world.ctld.records.get(name)
            is_back = record is not None and not (record.is_drain or record.is_down or record.is_silent)
            is_lifted = now - self.deeds.lifted.get(name, -100.0) < NEWS_SECONDS
            if is_back or is_lifted or not self._is_wanted(name):
                del self.away[name]

    def _is_wanted(self, name: str) -> bool:
        """A pod of that name is there, or still to come."""
        spec = self._spec()
        pods = self._staying()
        is_there = any(p["metadata"]["labels"].get(names.LABEL_POD_HOSTNAME) == name for p in pods)
        return is_there or (spec is not None and len(pods) < _wanted(spec))

    def _check_human_drains(self) -> None:
        """Whatever we do, it stays drained until they lift it; slurmctld may add a reason where they gave none."""
        for name, (reason, at) in list(self.deeds.drained.items()):
            record = self.world.ctld.records.get(name)
            if record is None:
                del self.deeds.drained[name]  # Who deleted it was asked when it happened.
            elif self.world.loop.time() - at > NEWS_SECONDS and is_our_reason(record.reason):
                self.world.broken(
                    f"{name} was drained by a human for {reason!r}, and now says {record.reason!r}"
                )


def _wanted(spec: Object) -> int:
    """How many numbered workers are asked for."""
    listed = spec.get("ordinals")
    return int(spec.get("replicas", 1)) if listed is None else len(listed)


def _phase(pod: Object) -> str:
    return str((pod["metadata"].get("labels") or {}).get(names.UPDATE_PHASE, ""))


def _has_its_time(pod: Object | None) -> bool:
    """It is asked to end, and may take as long for that as whoever asked for it wrote into its spec."""
    if pod is None:
        return False
    wanted = pod["spec"].get("terminationGracePeriodSeconds", 30)
    return pod["metadata"].get("deletionGracePeriodSeconds") == wanted


# ---- What is so when everything has come to rest


def unrest(world: World, deeds: Deeds) -> str | None:
    """What is not yet as the spec asks for, or not as the status says; None when all is well."""
    try:
        found = world.server.get(NodeSet.KIND, deeds.nodeset)
    except NotFound:
        return _leftovers(world, deeds)
    if "deletionTimestamp" in found["metadata"]:
        return "the NodeSet is still being deleted"
    typed = codec.read(NodeSet, found)
    pods = worker_pods(world)
    wanted = (
        len(world.machines.machines) if typed.spec.scaling_mode == "DaemonSet" else len(typed.spec.numbers)
    )
    if len(pods) != wanted:
        return f"there are {len(pods)} workers, and {wanted} are wanted"
    for pod in pods:
        if (why := _not_serving(world, pod)) is not None:
            return why
    revisions = {pod["metadata"]["labels"][names.LABEL_REVISION] for pod in pods}
    if len(revisions) > 1 or (pods and revisions != {typed.status.node_set_hash}):
        return f"workers have the revisions {sorted(revisions)}, and {typed.status.node_set_hash} is wanted"
    stray = set(world.ctld.records) - {_hostname(pod) for pod in pods} - deeds.named
    if stray:
        return f"Slurm has records of {sorted(stray)}, who are gone"
    return _false_status(typed, wanted)


def worker_pods(world: World) -> list[Object]:
    return [pod for pod in world.server.all(kinds.POD) if app_of(pod) == SLURMD]


def _hostname(pod: Object) -> str:
    return pod["metadata"]["labels"].get(names.LABEL_POD_HOSTNAME, "")


def _not_serving(world: World, pod: Object) -> str | None:
    name = pod["metadata"]["name"]
    record = world.ctld.records.get(_hostname(pod))
    if "deletionTimestamp" in pod["metadata"]:
        return f"{name} is still ending"
    if record is None or record.pod_uid != pod["metadata"]["uid"]:
        return f"{name} is not registered"
    if record.is_drain or record.is_down or record.is_silent:
        return f"{name} takes no jobs: {record}"
    if names.LABEL_POD_PROTECT not in pod["metadata"]["labels"]:
        return f"{name} is not protected"
    return None


def _false_status(nodeset: NodeSet, wanted: int) -> str | None:
    status = nodeset.status
    told = {
        "desired": status.desired,
        "replicas": status.replicas,
        "readyReplicas": status.ready_replicas,
        "availableReplicas": status.available_replicas,
        "updatedReplicas": status.updated_replicas,
        "registeredReplicas": status.registered_replicas,
    }
    wrong = {name: count for name, count in told.items() if count != wanted}
    if wrong:
        return f"the status says {wrong}, and there are {wanted}"
    conditions = {condition.type: condition for condition in status.conditions}
    expected = {"Ready": "True", "Progressing": "False", "Degraded": "False"}
    if "Degraded" in conditions and conditions["Degraded"].reason == "Mismatch":
        del expected["Degraded"]  # A record that could not be replaced in time; the status says so.
    for type_, truth in expected.items():
        if type_ not in conditions or conditions[type_].status != truth:
            return f"the condition {type_} is not {truth}: {conditions.get(type_)}"
    return None


def _leftovers(world: World, deeds: Deeds) -> str | None:
    """After the NodeSet: no pod, no revision, and nothing that Slurm would send a job to."""
    left = [pod["metadata"]["name"] for pod in worker_pods(world)]
    left += [found["metadata"]["name"] for found in world.server.all(kinds.CONTROLLER_REVISION)]
    if left:
        return f"{left} are left behind"
    ours = sorted(name for name, record in world.ctld.records.items() if not record.is_down)
    if ours:
        return f"Slurm has records of {ours}, whose workers are gone"
    return None
