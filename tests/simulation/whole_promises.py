"""What must hold for a whole cluster in every step: its configuration, its keys, its daemons and what is said of them."""

import base64
from collections.abc import Iterable
from datetime import datetime, timedelta

from simulation.apiserver import OPERATOR, Object
from simulation.daemons import LOGIN, SLURMCTLD, SLURMDBD, SLURMRESTD, Daemons
from simulation.jobs import Job
from simulation.machines import app_of
from simulation.promises import unrest as workers_unrest
from simulation.scenes import CONTROLLER, FILES, NAMESPACE
from simulation.whole_deeds import DAEMONS, WholeDeeds
from simulation.world import World
from slurm_operator.api import KINDS
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.cluster import Cluster
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.api.slinky.token import Token
from slurm_operator.kube.secret_values import value_digest
from slurm_operator.manifests import kinds

# How long a status may lag behind what is so: reports of kubelets and watches come late, a failed write is repeated
# after a minute at most.
TOLD_WITHIN_SECONDS = 90.0

# Slurm is asked for jobs so long, at most, before the pod of a slurmctld without a volume is deleted: an answer may be
# five seconds old, and a call takes its time. Who submits a job within it comes too late: see limits.
UNSEEN_SECONDS = 6.0

# A job may start for so long after Slurm was asked, until slurmctld reads files that cost its steps: several wishes
# to reconfigure wait for each other.
UNTOLD_SECONDS = UNSEEN_SECONDS + 12.0

QUIET_SECONDS = 20.0  # After this long, whatever people did has been seen.

WORKLOADS = (kinds.STATEFUL_SET, kinds.DEPLOYMENT)
# What is left when everything was deleted: what cannot be made again, and what people made.
CHILD_KINDS = (
    kinds.POD,
    kinds.CONFIG_MAP,
    kinds.CONTROLLER_REVISION,
    kinds.DEPLOYMENT,
    kinds.DISRUPTION_BUDGET,
    kinds.SERVICE,
    kinds.SECRET,
    kinds.STATEFUL_SET,
)


class WholePromises:
    """The first broken promise ends the story."""

    def __init__(self, world: World, deeds: WholeDeeds, daemons: Daemons) -> None:
        self.world = world
        self.deeds = deeds
        self.daemons = daemons
        self.false_since: dict[str, float] = {}
        self.replaced_at: datetime | None = None  # When the operator last deleted a pod of slurmctld.
        world.server.hears.append(self._heard)
        world.on_second.append(self._each_second)
        world.loses_memory = self._loses_memory
        world.ctld.cuts_off = self._cuts_off
        daemons.costs_steps = self._costs_steps

    # ---- Nothing restarts without a reason

    def _heard(self, kind: Kind, old: Object | None, new: Object | None, who: str) -> None:
        if who != OPERATOR:
            return
        if self.world.client.carried_out_late.startswith(("apply", "create Secret")):
            # It brings back what was right when it was sent, as if somebody had asked for that.
            self.deeds.excuses |= set(DAEMONS)
            self.deeds.last_at = self.world.loop.time()
            return
        if kind in WORKLOADS and old is not None and new is not None:
            self._check_template(old, new)
        is_slurmctld = kind == kinds.POD and app_of(old or new or {"metadata": {}}) == SLURMCTLD
        if (
            is_slurmctld and _is_leaving(new) and not _is_leaving(old)
        ):  # A note on one that leaves ends nothing.
            self._check_excuse(SLURMCTLD, "deletes the pod of slurmctld")
            self.replaced_at = self.world.clock.now()
        if kind == kinds.SECRET and names.KEY_RING_FILE not in ((new or old or {}).get("data") or {}):
            self._check_key(old, new)

    def _check_template(self, old: Object, new: Object) -> None:
        if old["spec"]["template"] != new["spec"]["template"]:
            app = new["spec"]["template"]["metadata"]["labels"][names.APP_NAME]
            self._check_excuse(app, f"changes the pods of {new['metadata']['name']}")

    def _check_excuse(self, app: str, what: str) -> None:
        if app not in self.deeds.excuses:
            self.world.broken(f"the operator {what}, and nobody asked for anything of the kind")

    def _forget_excuses(self) -> None:
        """Where all is as it was asked for a while ago, nothing that was asked for is still to come."""
        is_long_ago = self.world.loop.time() - self.deeds.last_at > QUIET_SECONDS
        if is_long_ago and self.deeds.excuses and self.world.weather.roughness == 0.0:
            there = all(key in self.world.server.objects[kind] for kind, key in self.deeds.wishes)
            ours = (found for resource in KINDS for found in self.world.server.all(resource.KIND))
            if there and all(_unsettled(NodeSet.KIND, found) is None for found in ours):
                self.deeds.excuses.clear()

    # ---- A key is never lost, and never made twice

    def _check_key(self, old: Object | None, new: Object | None) -> None:
        name = ((new or old) or {})["metadata"]["name"]
        if name not in self._key_names():
            return
        if new is None:
            self.world.broken(f"the operator deletes the key in Secret {name}")
        elif old is not None and old.get("data") != new.get("data"):
            self.world.broken(f"the operator changes the key in Secret {name}")
        elif old is None and (user := self._user_of_another(name, new)):
            self.world.broken(
                f"the operator makes the key in Secret {name} again, though {user} has another one"
            )

    def _key_names(self) -> tuple[str, ...]:
        of = self.deeds.scene.keys_of
        return names.auth_slurm_secret(of), names.auth_jwt_secret(of), names.database_workload(of)

    def _user_of_another(self, name: str, new: Object) -> str:
        """A daemon, or a disk, that knows the previous value. Workers and login pods follow the ring."""
        before = self.deeds.kept.get(ObjectKey(NAMESPACE, name))
        if before is None:
            return ""
        values = set(before["data"].values()) - set(new["data"].values())
        for uid, files in self.daemons.files.items():
            process = self.world.machines.processes.get(uid)
            if process is not None and process.app in (SLURMCTLD, SLURMDBD) and values & set(files.values()):
                return process.pod
        return "the database" if values & set(self.daemons.databases.values()) else ""

    # ---- Jobs

    def _cuts_off(self, job: Job) -> None:
        self.world.broken(f"job {job.job_id} ends because partition {job.partition} is no longer configured")

    def _costs_steps(self) -> None:
        """slurmd is about to lose the steps that run."""
        now = self.world.clock.now()
        alive = (job for job in self.world.ctld.jobs.values() if job.is_alive and job.started_at is not None)
        hurt = [job.job_id for job in alive if (now - job.started_at).total_seconds() > UNTOLD_SECONDS]
        if hurt:
            self.world.broken(f"a change of configuration costs the steps of the running jobs {hurt}")

    def _loses_memory(self, pod: Object) -> None:
        """A new slurmctld begins without the state of the previous one."""
        lost = forgotten(self.world.ctld.jobs.values(), self.replaced_at)
        if lost and self.world.loop.time() - self.deeds.pods_deleted_at > 30:
            self.world.broken(f"slurmctld is replaced and forgets the jobs {lost}")

    # ---- The status tells the truth

    def _each_second(self) -> None:
        if self.world.operator is None or self.world.client.is_away:
            self.false_since.clear()
            return
        self._forget_excuses()
        seen: set[str] = set()
        for kind, key, found in self._ours():
            for lie in self._lies(kind, key, found):
                seen.add(lie)
                since = self.false_since.setdefault(lie, self.world.loop.time())
                if self.world.loop.time() - since > TOLD_WITHIN_SECONDS:
                    self.world.broken(lie)
        self.false_since = {lie: since for lie, since in self.false_since.items() if lie in seen}

    def _ours(self):
        for resource in KINDS:
            for key, found in list(self.world.server.objects[resource.KIND].items()):
                if "deletionTimestamp" not in found["metadata"]:
                    yield resource.KIND, key, found

    def _lies(self, kind: Kind, key: ObjectKey, found: Object):
        name, told = f"{kind.kind} {key.name}", conditions(found)
        if told.get("Ready", ("", ""))[0] == "True" and not self._serves(kind, found):
            yield f"{name} says that it is ready, and its daemon is away"
        missing, words = list(self._missing(kind, found)), " ".join(message for _, message in told.values())
        # One trouble is told at a time, so another one may stand before it.
        is_silent = {told.get(type_, ("", ""))[0] for type_ in ("Ready", "Degraded")} == {"False"}
        if missing and is_silent and not any(thing in words for thing in missing):
            yield f"{name} does not say that {missing[0]} is missing"

    def _serves(self, kind: Kind, found: Object) -> bool:
        up = self.world.machines.running
        match kind:
            case Controller.KIND:
                return self.daemons.head is not None
            case RestApi.KIND:
                return bool(up(SLURMRESTD)) or found["spec"].get("replicas", 1) == 0
            case Accounting.KIND:
                return any(self.daemons.is_ready(one) for one in up(SLURMDBD))
            case LoginSet.KIND:
                return bool(up(LOGIN))
            case Token.KIND:
                return _token_secret(found) in self.world.server.objects[kinds.SECRET]
            case Cluster.KIND:
                return self.daemons.head is not None and bool(up(SLURMRESTD))
            case _:
                return True

    def _missing(self, kind: Kind, found: Object):
        server = self.world.server
        ref = (found["spec"].get("controllerRef") or {}).get("name")
        if ref and CONTROLLER not in server.objects[Controller.KIND]:
            yield ref
        if kind == Controller.KIND and FILES not in server.objects[kinds.CONFIG_MAP]:
            yield FILES.name
        if kind == Controller.KIND:
            for name in self._key_names()[:2]:
                key = ObjectKey(NAMESPACE, name)
                if key in self.deeds.kept and key not in server.objects[kinds.SECRET]:
                    yield name


def forgotten(jobs: Iterable[Job], replaced_at: datetime | None) -> list[int]:
    """Unfinished jobs that were there to be seen before slurmctld was replaced; all of them if nobody did that."""
    seen_at = replaced_at - timedelta(seconds=UNSEEN_SECONDS) if replaced_at is not None else None
    lost = (job for job in jobs if not job.is_over)
    return [job.job_id for job in lost if seen_at is None or job.submitted_at <= seen_at]


def _is_leaving(pod: Object | None) -> bool:
    return pod is None or "deletionTimestamp" in pod["metadata"]


def _token_secret(token: Object) -> ObjectKey:
    name = names.token_secret(token["metadata"]["name"], token["spec"]["username"])
    return ObjectKey(token["metadata"]["namespace"], name)


def conditions(found: Object) -> dict[str, tuple[str, str]]:
    told = (found.get("status") or {}).get("conditions") or ()
    return {c["type"]: (c["status"], c.get("message", "")) for c in told}


# ---- What is so when everything has come to rest


def unrest(world: World, deeds: WholeDeeds, daemons: Daemons) -> str | None:
    """What is not yet as people asked for, or not as the status says; None when all is well."""
    for resource in KINDS:
        for found in world.server.all(resource.KIND):
            if (why := _unsettled(resource.KIND, found)) is not None:
                return why
    for kind, key in deeds.wishes:
        if key not in world.server.objects[kind]:
            return f"there is no {kind.kind} {key.name}"
    return _untrue_head(world, daemons) or workers_unrest(world, deeds)


def _unsettled(kind: Kind, found: Object) -> str | None:
    name, told = f"{kind.kind} {found['metadata']['name']}", conditions(found)
    if "deletionTimestamp" in found["metadata"]:
        return f"{name} is still being deleted"
    if (found.get("status") or {}).get("observedGeneration") != found["metadata"]["generation"]:
        return f"the status of {name} is about an older spec"
    expected = {"Ready": "True", "Progressing": "False", "Degraded": "False"}
    if kind == NodeSet.KIND or (kind == Cluster.KIND and "CPUs" in told.get("Degraded", ("", ""))[1]):
        del expected["Degraded"]  # A record that could not be replaced in time; the status says so.
    for type_, truth in expected.items():
        if told.get(type_, ("", ""))[0] != truth:
            return f"the condition {type_} of {name} is not {truth}: {told.get(type_)}"
    return None


def _untrue_head(world: World, daemons: Daemons) -> str | None:
    """slurmctld runs with the files and the keys that were asked for last, and so does everybody else."""
    if daemons.head is None:
        return "slurmctld does not run"
    held = world.server.get(kinds.CONFIG_MAP, ObjectKey(NAMESPACE, names.controller_config("slurm")))["data"]
    wish = world.server.get(Controller.KIND, CONTROLLER)["spec"].get("extraConf", "")
    if not all(line in held["slurm.conf"] for line in wish.splitlines()):
        return "the configuration that was asked for is not in place"
    if daemons.files[daemons.head[0]]["slurm.conf"] != held["slurm.conf"]:
        return "slurmctld runs with other files"
    secret = world.server.get(kinds.SECRET, ObjectKey(NAMESPACE, names.auth_slurm_secret("slurm")))
    wanted = value_digest(base64.b64decode(secret["data"][names.SLURM_KEY_FILE]))
    for process in world.machines.processes.values():
        keys = daemons.read.get(process.pod_uid)
        if process.app in ("slurmd", SLURMCTLD, SLURMDBD, LOGIN) and keys and keys.signs != wanted:
            return f"{process.pod} signs with another key than the one that was asked for"
    return None


def leftovers(world: World, deeds: WholeDeeds) -> str | None:
    """After everything was deleted: only what cannot be made again, and what people made."""
    deeds.send_home()
    for resource in KINDS:
        for found in world.server.all(resource.KIND):
            told = conditions(found).get("Progressing", ("", ""))[1]
            return f"{resource.KIND.kind} {found['metadata']['name']} is still there: {told}"
    of = deeds.scene.keys_of
    staying = {FILES.name, "database", names.auth_slurm_secret(of), names.auth_jwt_secret(of)}
    staying |= {names.database_workload(of)}
    for kind in CHILD_KINDS:
        left = [found["metadata"]["name"] for found in world.server.all(kind)]
        if strange := [
            name for name in left if kind not in (kinds.SECRET, kinds.CONFIG_MAP) or name not in staying
        ]:
            return f"{kind.plural} {strange} are left behind"
    return None
