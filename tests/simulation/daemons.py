"""Every daemon but slurmd: what it reads when it starts, whom it waits for, and what it then understands."""

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from simulation import mounts
from simulation.apiserver import ApiServer, Object
from simulation.machines import Machines, Process
from simulation.mounts import Files
from simulation.slurmctld import Slurmctld
from simulation.slurmrest import SimulatedRest
from simulation.weather import Weather
from simulation.world import World
from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.kube.secret_values import value_digest
from slurm_operator.manifests import kinds
from slurm_operator.reconcilers.controller.annotations import DIGEST_WORD, REHEARSAL_APP
from slurm_operator.reconcilers.controller.daemon.trial_scripts import FIRST, GOOD
from slurm_operator.slurm.conf.lines import parse
from slurm_operator.slurm.partition import Partition

SLURMCTLD, SLURMRESTD, SLURMDBD, MARIADB, LOGIN = "slurmctld", "slurmrestd", "slurmdbd", "mariadb", "login"

# Words in a file by which people ruin it: slurmctld never starts with the first, and does not take the second
# while it runs, or only now and then, though it starts with it where it is rehearsed.
BAD, UNLUCKY = "sim_bad", "sim_unlucky"
# slurmctld works with this one, and every slurmd that reads it ends.
FATAL = "sim_fatal"

REFRESH = timedelta(seconds=85)  # A kubelet looks at each pod this often; at one that was changed, at once.
DOUBT = timedelta(seconds=10)  # After this long without a word of a machine its pods count as not ready.
WITHOUT_DATABASE = "ERROR 2002 (HY000): Can't connect to MySQL server"
WRONG_PASSWORD = "ERROR 1045 (28000): Access denied for user 'slurm'"
CHECKED = "slurmdbd\t26.05.5\nversion\t11.8.3\ninnodb_snapshot_isolation\tOFF\n"


@dataclass(frozen=True)
class Keys:
    """The Slurm keys of one daemon: it signs with one, and understands all of them."""

    signs: str = ""
    accepts: frozenset[str] = frozenset()

    def understands(self, other: "Keys") -> bool:
        return other.signs in self.accepts


def keys_in(files: Files) -> Keys:
    ring = files.get(names.KEY_RING_FILE)
    if ring is None:
        only = value_digest(base64.b64decode(files.get(names.SLURM_KEY_FILE, "")))
        return Keys(only, frozenset({only}))
    found = wire.decode_any(base64.b64decode(ring))["keys"]
    signs = next(key["kid"] for key in found if key.get("use") == "default")
    return Keys(signs, frozenset(key["kid"] for key in found))


@dataclass
class Daemons:
    """Looks at all processes once a second, and makes of slurmctld and slurmrestd what their pods allow."""

    world: World
    files: dict[str, Files] = field(default_factory=dict)  # In each pod that runs, by its uid.
    read: dict[str, Keys] = field(default_factory=dict)  # The keys that the daemon in it has read.
    databases: dict[str, str] = field(default_factory=dict)  # The password that each disk knows.
    database_elsewhere: str = ""  # The password of a database that nobody here runs.
    troubles: dict[str, str] = field(default_factory=dict)  # What slurmdbd's own check says.
    head: tuple[str, datetime] | None = None  # The slurmctld that is in charge, and since when it runs.
    booted: int = 0
    spool: str = ""  # Where slurmds look for their steps: they find none again after a change of it.
    costs_steps: Callable[[], None] = lambda: None  # Told right before that happens.
    state: str = ""  # The disk that has slurmctld's memory.
    disks: set[str] = field(default_factory=set)  # All that ever had it.
    trials: dict[str, str] = field(default_factory=dict)  # What was said to the files before a first start.
    has_met_slurmdbd: bool = False
    _looks_at: dict[str, tuple[object, datetime]] = field(default_factory=dict)
    _unheard: dict[str, datetime] = field(default_factory=dict)

    def __post_init__(self) -> None:
        world = self.world
        world.machines.daemons = self
        world.ctld.is_up = False
        world.ctld.reread = self._reread
        world.rest.serves = lambda: bool(self._up(SLURMRESTD))

    @property
    def server(self) -> ApiServer:
        return self.world.server

    @property
    def machines(self) -> Machines:
        return self.world.machines

    @property
    def ctld(self) -> Slurmctld:
        return self.world.ctld

    @property
    def rest(self) -> SimulatedRest:
        return self.world.rest

    @property
    def weather(self) -> Weather:
        return self.world.weather

    @property
    def now(self) -> datetime:
        return self.server.clock.now()

    # ---- What machines ask

    def lacks(self, pod: Object) -> str:
        """What a pod needs and is not there; empty when it can start."""
        found = mounts.files(self.server, pod)
        return found if isinstance(found, str) else ""

    def begins(self, process: Process, pod: Object) -> None:
        """A pod starts: it has the files of this moment."""
        found = mounts.files(self.server, pod)
        assert not isinstance(found, str)
        self.files[process.pod_uid] = found
        self.read[process.pod_uid] = keys_in(found)

    def restarts(self, process: Process) -> None:
        self.read[process.pod_uid] = keys_in(self.files[process.pod_uid])

    def is_ready(self, process: Process) -> bool:
        match process.app:
            case "slurmctld":
                return self.head == (process.pod_uid, process.started_at)
            case "slurmdbd":
                return not self.troubles.get(process.pod_uid)
            case _:
                return True

    def init_statuses(self, process: Process) -> list[Object]:
        """The check of the database, which runs before slurmdbd, and the trial before slurmctld."""
        if process.app == SLURMCTLD and process.pod_uid in self.trials:
            return [init_status(FIRST, self.trials[process.pod_uid], GOOD)]
        if process.app != SLURMDBD:
            return []
        return [init_status("check-database", self.troubles.get(process.pod_uid, ""), CHECKED)]

    def is_held_up(self, process: Process) -> bool:
        """Its daemon has not been started: what comes before it has not ended well."""
        return process.app == SLURMCTLD and bool(self.trials.get(process.pod_uid))

    # ---- A second passes

    def tick(self) -> None:
        pods = {pod["metadata"]["uid"]: pod for pod in self.server.all(kinds.POD)}
        self._bring_files(pods)
        self._doubt(pods)
        self._follow_databases(pods)
        self._rehearse()
        self._follow_slurmctld(pods)
        self._follow_slurmd()
        self._check_understanding()

    def _bring_files(self, pods: dict[str, Object]) -> None:
        for uid in [uid for uid in self.files if uid not in self.machines.processes]:
            del self.files[uid]
        for uid, process in self.machines.processes.items():
            pod = pods.get(uid)
            if pod is None or self.machines.is_unheard(process):
                continue
            notes = pod["metadata"].get("annotations")
            before, due = self._looks_at.get(uid, (notes, self.now + REFRESH))
            if notes == before and due > self.now:
                self._looks_at[uid] = (before, due)
                continue
            self._looks_at[uid] = (notes, self.now + REFRESH * self.weather.share("a kubelet's round"))
            found = mounts.files(self.server, pod)
            if not isinstance(found, str):  # What is gone stays in the pods that have it.
                self.files[uid] = found

    def _doubt(self, pods: dict[str, Object]) -> None:
        """Pods on a machine that nobody hears from are no longer called ready."""
        for name, machine in self.machines.machines.items():
            if not (machine.is_lost or machine.is_cut_off):
                self._unheard.pop(name, None)
                continue
            if self.now - self._unheard.setdefault(name, self.now) >= DOUBT:
                for pod in pods.values():
                    if pod["spec"].get("nodeName") == name:
                        self.machines.doubt(pod)

    # ---- Databases

    def _follow_databases(self, pods: dict[str, Object]) -> None:
        for process in self._up(MARIADB):
            disk = mounts.state_of(self.server, pods[process.pod_uid], "data")
            self.databases.setdefault(disk, self.files[process.pod_uid].get("env MARIADB_PASSWORD", ""))
        for process in self._up(SLURMDBD):
            self.troubles[process.pod_uid] = self._trouble(process, pods)

    def _trouble(self, process: Process, pods: dict[str, Object]) -> str:
        password = self.files[process.pod_uid].get("env MYSQL_PWD", "")
        if self.database_elsewhere:
            return "" if password == self.database_elsewhere else WRONG_PASSWORD
        running = self._up(MARIADB)
        if not running:
            # Once it runs it bridges an absence of its database.
            return WITHOUT_DATABASE if self.troubles.get(process.pod_uid, "new") else ""
        disk = mounts.state_of(self.server, pods[running[0].pod_uid], "data")
        return "" if self.databases[disk] == password else WRONG_PASSWORD

    # ---- slurmctld

    def _rehearse(self) -> None:
        for process in self._up(REHEARSAL_APP):
            if self.now - process.started_at < timedelta(seconds=1):
                continue
            bad = is_spoilt(self.files[process.pod_uid], BAD)
            words = f"slurmctld: error: {bad}: line 3: {BAD}" if bad else GOOD
            self.machines.end_well(process, words, exit_code=1 if bad else 0)

    def _follow_slurmctld(self, pods: dict[str, Object]) -> None:
        running = [one for one in self._up(SLURMCTLD) if self._is_tried_out(one, pods[one.pod_uid])]
        if not any((process.pod_uid, process.started_at) == self.head for process in running):
            self.head, self.ctld.is_up = None, False
        if self.head is None and running:
            self._boot(running[0], pods[running[0].pod_uid])

    def _is_tried_out(self, process: Process, pod: Object) -> bool:
        """Before its first start slurmctld tries out its files, again and again, until it takes them."""
        first = [one["name"] for one in pod["spec"].get("initContainers") or ()]
        if FIRST not in first or self.trials.get(process.pod_uid) == "":
            return True
        files = self.files[process.pod_uid]
        bad = (
            is_spoilt(files, BAD) if mounts.state_of(self.server, pod, "statesave") not in self.disks else ""
        )
        digest = re.search(rf"{DIGEST_WORD}[0-9a-f]+", files["slurm.conf"])
        words = f"{digest[0] if digest else ''}\nslurmctld: error: {bad}: line 3: {BAD}"
        self.trials[process.pod_uid] = words if bad else ""
        return not bad

    def _follow_slurmd(self) -> None:
        if self.head is not None and FATAL in self.spool:
            for process in self._up("slurmd"):
                self.machines.crash(process, f"fatal: mkdir({self.spool}): Permission denied")

    def _boot(self, process: Process, pod: Object) -> None:
        files = self.files[process.pod_uid]
        conf = files["slurm.conf"]
        if "accounting_storage/slurmdbd" in conf and not self.has_met_slurmdbd:
            self.has_met_slurmdbd = any(self.is_ready(one) for one in self._up(SLURMDBD))
            if not self.has_met_slurmdbd:
                return  # It waits, and does not answer meanwhile.
        if self._refuses(process, files):
            return
        if is_spoilt(files, UNLUCKY):
            self.machines.crash(process, f"fatal: {UNLUCKY}")
            return
        disk = mounts.state_of(self.server, pod, "statesave")
        if self.state not in ("", disk):
            self.world.loses_memory(pod)
            self.ctld.lose_state()
        self.state = disk
        self.disks.add(disk)
        self.head, self.ctld.is_up = (process.pod_uid, process.started_at), True
        self.booted += 1
        self._take(process, files)

    def _reread(self) -> None:
        """slurmctld is told to read its files again; everybody else then reads theirs."""
        process = self.machines.processes.get(self.head[0]) if self.head is not None else None
        if process is None:
            return
        files = self.files[process.pod_uid]
        if not self._refuses(process, files) and not is_spoilt(files, UNLUCKY):
            if spool_of(files) != self.spool:
                self.costs_steps()
            self._take(process, files)

    def _refuses(self, process: Process, files: Files) -> bool:
        """Nobody may ever have given it such files."""
        bad = is_spoilt(files, BAD)
        if bad:
            self.world.broken(f"a configuration that was refused has reached slurmctld: {bad}")
            self.machines.crash(process, f"fatal: {BAD}")
        return bool(bad)

    def _take(self, process: Process, files: Files) -> None:
        conf = parse(files["slurm.conf"], "")
        self.spool = spool_of(files)
        self.read[process.pod_uid] = keys_in(files)
        self.rest.key = base64.b64decode(files[names.JWT_KEY_FILE])
        self.ctld.parameters = tuple((conf.last("SlurmctldParameters") or "").split(","))
        partitions = [
            {pair.key.lower(): pair.value for pair in line.pairs} for line in conf.all("PartitionName")
        ]
        self.ctld.configure(
            {
                line["partitionname"]: Partition(
                    name=line["partitionname"], state=frozenset({line.get("state", "UP").upper()})
                )
                for line in partitions
            }
        )
        for worker in self._up("slurmd"):
            self.read[worker.pod_uid] = keys_in(self.files[worker.pod_uid])

    # ---- Keys

    def _check_understanding(self) -> None:
        """Daemons that both run understand each other: whatever is rotated, nobody is locked out."""
        if self.head is None:
            return
        head = self.read[self.head[0]]
        for process in (*self._up("slurmd"), *self._up(SLURMDBD), *self._up(LOGIN)):
            other = self.read[process.pod_uid]
            if not (head.understands(other) and other.understands(head)):
                self.world.broken(
                    f"slurmctld and {process.pod} no longer understand each other: {head} and {other}"
                )

    def _up(self, app: str) -> list[Process]:
        return self.machines.running(app)


def init_status(name: str, trouble: str, good: str) -> Object:
    """Of a container that checks something before the daemon starts."""
    ended = {"terminated": {"exitCode": 1 if trouble else 0, "message": trouble or good}}
    if not trouble:
        return {"name": name, "state": ended}
    return {"name": name, "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": ended}


def spool_of(files: Files) -> str:
    return parse(files["slurm.conf"], "").last("SlurmdSpoolDir") or ""


def is_spoilt(files: Files, word: str) -> str:
    """The first file with that word; empty when there is none."""
    return next((name for name, text in sorted(files.items()) if name.endswith(".conf") and word in text), "")
