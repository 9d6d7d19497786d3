"""Machines: a scheduler that places pods, and kubelets that start, report and end them."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from simulation.apiserver import KUBELET, ApiServer, Object, key_of, text
from simulation.mounts import unbound
from simulation.slurmctld import Slurmctld
from simulation.weather import Weather
from slurm_operator.api.shared import belonging, names
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.manifests import kinds
from slurm_operator.reconcilers.nodeset.creation.supervisor import OPTIONS

SLURMD = "slurmd"
SURE_AFTER_SECONDS = 30.0  # A worker that slurmctld has forgotten looks twice, this far apart, at least.
SILENCE = timedelta(seconds=30)  # After this long without an answer of slurmctld a free worker ends anyway.
BAD_IMAGE = "slurmd:broken"
PROBED = "its liveness probe failed"


@dataclass
class Process:
    """The main container of one pod, as it really is."""

    pod_uid: str
    pod: str
    machine: str
    app: str
    hostname: str
    address: str
    cpus: int
    features: tuple[str, ...]
    started_at: datetime
    registers_at: datetime
    is_up: bool = True
    restarts: int = 0
    restarts_at: datetime | None = None
    has_failed: bool = False
    is_leaving: bool = False
    unheard_since: datetime | None = None
    last_words: str = ""
    exit_code: int | None = None  # It has ended for good, as a rehearsal does.
    has_registered: bool = False
    forgotten_until: datetime | None = None
    hangs_since: datetime | None = None  # It is stopped: its jobs go on, and it answers no probe.

    @property
    def is_worker(self) -> bool:
        return self.app == SLURMD


@dataclass
class Machine:
    name: str
    is_lost: bool = False  # No power: nothing runs there.
    is_cut_off: bool = False  # Everything runs on, but nobody hears of it.


@dataclass
class Machines:
    server: ApiServer
    ctld: Slurmctld
    weather: Weather
    ends: Callable[[Process, str], None]  # Told right before processes of a pod are killed, and why.
    tells: Callable[[str], None]
    machines: dict[str, Machine] = field(default_factory=dict)
    processes: dict[str, Process] = field(default_factory=dict)
    starts_at: dict[str, datetime] = field(default_factory=dict)
    reports_at: dict[str, datetime] = field(default_factory=dict)
    addresses: int = 0
    has_ipv6: bool = False
    daemons: Any = None  # What knows of daemons other than slurmd, where there are any.

    @property
    def now(self) -> datetime:
        return self.server.clock.now()

    def add(self, name: str) -> None:
        self.machines[name] = Machine(name)
        ready = [{"type": "Ready", "status": "True"}]
        self.server.create(
            kinds.KUBE_NODE,
            {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}, "spec": {}, "status": {"conditions": ready}},
            KUBELET,
        )  # fmt: skip

    def living(self) -> set[str]:
        """Uids of pods whose slurmd runs and can be heard."""
        return {p.pod_uid for p in self.processes.values() if p.is_up and not self._of(p).is_cut_off}

    def running(self, app: str) -> list[Process]:
        """The daemons of one kind that run and can be heard, by name."""
        found = (p for p in self.processes.values() if p.app == app and p.is_up and not self.is_unheard(p))
        return sorted(found, key=lambda process: process.pod)

    def is_unheard(self, process: Process) -> bool:
        return self._of(process).is_cut_off

    def _of(self, process: Process) -> Machine:
        return self.machines.get(process.machine) or Machine(process.machine, is_lost=True)

    # ---- A second passes

    def tick(self) -> None:
        pods = self.server.all(kinds.POD)
        self._place(pods)
        for pod in self.server.all(kinds.POD):
            machine = self.machines.get(pod["spec"].get("nodeName", ""))
            if machine is not None and not machine.is_lost and not machine.is_cut_off:
                self._keep(pod)
            elif pod["spec"].get("nodeName") and machine is None:
                self._forget(pod)  # The collector of pods on nodes that are no more.
        uids = {pod["metadata"]["uid"] for pod in self.server.all(kinds.POD)}
        for uid, process in list(self.processes.items()):
            if uid not in uids and not self._of(process).is_cut_off:
                self.kill(process, "its pod is no more")
        for process in self.processes.values():
            self._register(process)

    def _place(self, pods: list[Object]) -> None:
        workers = {pod["spec"].get("nodeName") for pod in pods if app_of(pod) == SLURMD}
        for pod in pods:
            if pod["spec"].get("nodeName") or "deletionTimestamp" in pod["metadata"]:
                continue
            if self.daemons is not None and unbound(self.server, pod):
                continue
            name = next(self._fitting(pod, workers), None)
            if name is not None:
                self.server.change(kinds.POD, key_of(pod), partial(_put_on, name), KUBELET)
                if app_of(pod) == SLURMD:
                    workers.add(name)

    def _fitting(self, pod: Object, workers: set[str]) -> Iterator[str]:
        pinned = pinned_to(pod)
        for machine in self.machines.values():
            node = self.server.objects[kinds.KUBE_NODE].get(ObjectKey("", machine.name))
            if node is None or machine.is_lost or machine.is_cut_off or pinned not in ("", machine.name):
                continue
            if app_of(pod) == SLURMD and machine.name in workers:
                continue
            if node["spec"].get("unschedulable") and not pinned:
                continue
            if any(
                taint["effect"] in ("NoSchedule", "NoExecute") for taint in node["spec"].get("taints") or ()
            ):
                continue
            yield machine.name

    def _keep(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        process = self.processes.get(uid)
        if "deletionTimestamp" in pod["metadata"]:
            self._end(pod, process)
        elif process is None:
            self._start(pod)
        elif process.restarts_at is not None and process.restarts_at <= self.now:
            self._restart(process)
        process = self.processes.get(uid)
        if process is not None:
            self._probe(pod, process)
        if process is not None and self.reports_at.get(uid, self.now) <= self.now:
            self._report(pod, process)

    # ---- Starting

    def _start(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        container = pod["spec"]["containers"][0]
        if pod["status"].get("phase") in ("Failed", "Succeeded"):
            return
        if container.get("image") == BAD_IMAGE:
            self._report_waiting(pod, container["name"], "ErrImagePull")
            return
        if self.daemons is not None and self.daemons.lacks(pod):
            return
        due = self.starts_at.setdefault(
            uid,
            self.now + timedelta(seconds=self.weather.seconds(f"start of {pod['metadata']['name']}", 6.0)),
        )
        if due > self.now:
            return
        self.addresses += 1
        conf = _said_to_slurmd(container)
        cpus, features = re.search(r"CPUs=(\d+)", conf), re.search(r"Features=(\S+)", conf)
        self.processes[uid] = Process(
            pod_uid=uid,
            pod=pod["metadata"]["name"],
            machine=pod["spec"]["nodeName"],
            app=app_of(pod),
            hostname=pod["metadata"]["labels"].get(names.LABEL_POD_HOSTNAME, pod["metadata"]["name"]),
            address=self._address(),
            cpus=int(cpus[1]) if cpus else 8,
            features=tuple(features[1].strip("'\"").split(",")) if features else (),
            started_at=self.now,
            registers_at=self._soon(uid),
        )
        self.reports_at[uid] = self.now + timedelta(seconds=self.weather.seconds("kubelet's report", 3.0))
        if self.daemons is not None:
            self.daemons.begins(self.processes[uid], pod)
        self.tells(f"{pod['metadata']['name']} starts on {pod['spec']['nodeName']}")

    def _soon(self, uid: str) -> datetime:
        return self.now + timedelta(seconds=self.weather.seconds("registration", 4.0, 0.5))

    def _restart(self, process: Process) -> None:
        process.is_up, process.restarts_at = True, None
        process.started_at, process.registers_at = self.now, self._soon(process.pod_uid)
        process.has_registered = False
        if self.daemons is not None:
            self.daemons.restarts(process)
        self.tells(f"{process.pod} is up again")

    def _register(self, process: Process) -> None:
        """A new slurmd registers once; one that was forgotten notices after a while, when no job runs there."""
        if not (process.is_worker and process.is_up) or process.is_leaving or process.registers_at > self.now:
            return
        if not self.ctld.is_up or self.ctld.is_hung or self._of(process).is_cut_off:
            return
        record = self.ctld.records.get(process.hostname)
        if process.has_registered and record is not None:
            process.forgotten_until = None
        elif process.has_registered and process.forgotten_until is None:
            later = SURE_AFTER_SECONDS + self.weather.seconds("notices that it was forgotten", 10.0)
            process.forgotten_until = self.now + timedelta(seconds=later)
        elif not process.has_registered or self._comes_back(process):
            process.has_registered, process.forgotten_until = True, None
            self.ctld.register(
                process.hostname,
                process.pod_uid,
                process.address,
                process.cpus,
                process.features,
                process.started_at,
            )

    def _comes_back(self, process: Process) -> bool:
        is_sure = process.forgotten_until is not None and process.forgotten_until <= self.now
        return is_sure and not self.jobs_in(process.pod_uid)

    def _probe(self, pod: Object, process: Process) -> None:
        """A kubelet kills what does not answer its liveness probe for long enough."""
        probe = pod["spec"]["containers"][0].get("livenessProbe")
        if probe is None or process.hangs_since is None or not process.is_up:
            return
        patience = probe.get("periodSeconds", 10) * probe.get("failureThreshold", 3)
        if self.now - process.hangs_since >= timedelta(seconds=patience):
            self.ends(process, PROBED)
            self.crash(process, PROBED)

    # ---- Reporting

    def _report(self, pod: Object, process: Process) -> None:
        running = {"running": {"startedAt": text(process.started_at)}}
        down: Object = {"waiting": {"reason": "CrashLoopBackOff"}}
        phase = "Failed" if process.has_failed else "Running"
        if process.exit_code is not None:
            down = {"terminated": {"exitCode": process.exit_code, "message": process.last_words}}
            phase = "Failed" if process.exit_code else "Succeeded"
        is_ready = process.is_up and not process.has_failed and process.hangs_since is None
        if self.daemons is not None:
            is_ready = is_ready and self.daemons.is_ready(process)
        status: Object = {"name": container_of(pod), "ready": is_ready, "restartCount": process.restarts}
        status["state"] = running if process.is_up else down
        if process.restarts:
            ended = {"exitCode": 1, "message": process.last_words, "startedAt": text(process.started_at)}
            status["lastState"] = {"terminated": ended}
        if self.daemons is not None and self.daemons.is_held_up(process):
            phase, status["state"] = "Pending", {"waiting": {"reason": "PodInitializing"}}
        first = self.daemons.init_statuses(process) if self.daemons is not None else []
        self._write_status(pod, phase, status, is_ready, process.address, first)

    def _address(self) -> str:
        count = self.addresses
        if self.has_ipv6:
            return f"fd00::{count:x}"
        return f"10.{count // 62500 % 250}.{count // 250 % 250}.{count % 250 + 1}"

    def _report_waiting(self, pod: Object, name: str, reason: str) -> None:
        waiting = {"name": name, "ready": False, "restartCount": 0, "state": {"waiting": {"reason": reason}}}
        self._write_status(pod, "Pending", waiting, False, "")

    def doubt(self, pod: Object) -> None:
        """Nobody hears from its machine any more."""
        ready = next((c for c in pod["status"]["conditions"] if c["type"] == "Ready"), None)
        if ready is not None and ready["status"] == "True":
            other = [c for c in pod["status"]["conditions"] if c is not ready]
            doubted = {"type": "Ready", "status": "False", "lastTransitionTime": text(self.now)}
            new = {**pod["status"], "conditions": [doubted, *other]}
            self.server.change(kinds.POD, key_of(pod), lambda it: it.update(status=new), KUBELET)

    def _write_status(
        self,
        pod: Object,
        phase: str,
        container: Object,
        is_ready: bool,
        address: str,
        first: Sequence[Object] = (),
    ) -> None:
        old = pod["status"]
        before = next((c for c in old["conditions"] if c["type"] == "Ready"), None)
        same = before is not None and before["status"] == str(is_ready)
        ready = (
            before
            if same
            else {"type": "Ready", "status": str(is_ready), "lastTransitionTime": text(self.now)}
        )
        others = [c for c in old["conditions"] if c["type"] != "Ready"]
        new = {**old, "phase": phase, "containerStatuses": [container], "conditions": [ready, *others]}
        new |= {"podIP": address} if address else {}
        new |= {"initContainerStatuses": list(first)} if first else {}
        if new != old:
            self.server.change(kinds.POD, key_of(pod), lambda it: it.update(status=new), KUBELET)

    # ---- Ending

    def _end(self, pod: Object, process: Process | None) -> None:
        """A worker drains itself and waits for its jobs and epilogs, for as long as its grace period lets it."""
        is_over = text(self.now) >= pod["metadata"]["deletionTimestamp"]
        if process is not None and process.is_worker and process.is_up and not is_over:
            process.is_leaving = True
            if not self._may_leave(process):
                return
        if process is not None:
            self.kill(process, "its time is over" if is_over else "it was asked to end")
        self.server.remove(kinds.POD, key_of(pod), KUBELET)

    def _may_leave(self, process: Process) -> bool:
        has_jobs = bool(self.jobs_in(process.pod_uid))
        if not self.ctld.is_up or self.ctld.is_hung:
            process.unheard_since = process.unheard_since or self.now
            return not has_jobs and self.now - process.unheard_since > SILENCE
        process.unheard_since = None
        record = self.ctld.records.get(process.hostname)
        if record is not None and not record.is_drain:
            reason = f"slurm-operator: PodTerminating: the pod is asked to end (pod {process.pod_uid})"
            self.ctld.drain(process.hostname, reason, "root")
        is_busy = self.ctld.jobs_on(process.hostname) or (record is not None and self.ctld.has_epilog(record))
        return not has_jobs and not is_busy

    def jobs_in(self, uid: str) -> list:
        """Jobs with a process in this pod, whether slurmctld knows of them or not."""
        jobs = [*self.ctld.jobs.values(), *self.ctld.orphans]
        return [job for job in jobs if job.is_alive and uid in job.processes.values()]

    def kill(self, process: Process, why: str) -> None:
        self.ends(process, why)
        self._kill_jobs(process.pod_uid)
        del self.processes[process.pod_uid]
        self.tells(f"{process.pod} ends: {why}")

    def _kill_jobs(self, uid: str) -> None:
        for job in self.jobs_in(uid):
            job.processes = {node: where for node, where in job.processes.items() if where != uid}

    def _forget(self, pod: Object) -> None:
        self.server.remove(kinds.POD, key_of(pod), KUBELET)

    # ---- Bad days

    def crash(self, process: Process, last_words: str = "") -> None:
        """The daemon dies and takes every process of its container along."""
        self._kill_jobs(process.pod_uid)
        process.is_up, process.restarts, process.last_words = False, process.restarts + 1, last_words
        process.hangs_since = None
        process.restarts_at = self.now + timedelta(seconds=3 + self.weather.seconds("back-off", 10.0))
        self.tells(f"{process.pod} crashes")

    def hang(self, process: Process) -> None:
        """It stops answering. slurmctld waits for it, as the real one does for five minutes."""
        process.hangs_since = process.hangs_since or self.now
        self.tells(f"{process.pod} hangs")

    def wake(self, process: Process) -> None:
        if process.hangs_since is not None:
            process.hangs_since = None
            self.tells(f"{process.pod} answers again")

    def end_well(self, process: Process, last_words: str, exit_code: int) -> None:
        """It has done what it was made for."""
        process.is_up, process.last_words, process.exit_code = False, last_words, exit_code
        self.tells(f"{process.pod} ends with {exit_code}")

    def fail(self, process: Process) -> None:
        """All containers end for good, as when a kubelet evicts."""
        self._kill_jobs(process.pod_uid)
        process.is_up, process.has_failed = False, True
        self.tells(f"{process.pod} fails")

    def lose(self, machine: Machine) -> None:
        machine.is_lost = True
        for process in [p for p in self.processes.values() if p.machine == machine.name]:
            self._kill_jobs(process.pod_uid)
            del self.processes[process.pod_uid]
            self.starts_at[process.pod_uid] = self.now
        self.tells(f"{machine.name} is lost")

    def bring_back(self, machine: Machine) -> None:
        machine.is_lost = machine.is_cut_off = False
        self.tells(f"{machine.name} is back")


def _put_on(machine: str, pod: Object) -> None:
    pod["spec"]["nodeName"] = machine


def app_of(pod: Object) -> str:
    return belonging.daemon_of(pod["metadata"].get("labels", {}))


def container_of(pod: Object) -> str:
    return pod["spec"]["containers"][0]["name"]


def pinned_to(pod: Object) -> str:
    """The machine that a pod's affinity names; empty when any will do."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for rule in term.get("matchFields") or ():
            return rule["values"][0]
    return ""


def _said_to_slurmd(container: Object) -> str:
    """Its arguments; under a supervisor it has them in a variable."""
    supervised = (one.get("value", "") for one in container.get("env") or () if one["name"] == OPTIONS)
    return " ".join([*(container.get("args") or ()), *supervised])
