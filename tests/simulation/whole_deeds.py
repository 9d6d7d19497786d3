"""What people and bad days do to a whole cluster: its configuration, keys, daemons and objects."""

import base64
import random
from functools import partial

from simulation.apiserver import HUMAN, Object, copied, key_of
from simulation.daemons import BAD, FATAL, LOGIN, MARIADB, SLURMCTLD, SLURMDBD, SLURMRESTD, UNLUCKY
from simulation.deeds import Deeds, Happening
from simulation.machines import app_of
from simulation.refusing import WRITES
from simulation.scenes import CLUSTER, CONTROLLER, FILES, NAMESPACE, Scene, Wish
from simulation.world import World
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.slinky.cluster import Cluster
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.manifests import kinds

DAEMONS = (SLURMCTLD, SLURMRESTD, SLURMDBD, MARIADB, LOGIN)
CHILD_KINDS = (kinds.STATEFUL_SET, kinds.DEPLOYMENT, kinds.SERVICE, kinds.CONFIG_MAP, kinds.DISRUPTION_BUDGET)

# How often each is drawn, beside what happens to workers.
WHOLE_DEEDS = {
    "edit_config": 7,
    "spoil_config": 5,
    "break_workers": 2,
    "edit_file": 4,
    "spoil_file": 3,
    "lose_file": 2,
    "rotate_slurm_key": 2,
    "rotate_signing_key": 2,
    "lose_key": 3,
    "bring_key": 2,
    "crash_daemon": 6,
    "fail_daemon": 2,
    "delete_daemon_pod": 5,
    "delete_child": 4,
    "edit_child": 3,
    "change_daemon_image": 3,
    "scale_restapi": 2,
    "delete_kind": 1,
}
GOOD_CONFIG = "SchedulerParameters=bf_interval=10\n"
SPOILT = (
    f"Bogus={BAD}",
    f"SchedulerParameters={BAD}",
    f"SchedulerParameters={UNLUCKY}",
)


class WholeDeeds(Deeds):
    """`wishes` come one after the other, in any order. `is_leaving`: something was deleted that others need."""

    refusable = tuple({kind for _, kind in WRITES})

    def __init__(self, world: World, scene: Scene, seed: int) -> None:
        super().__init__(world, scene.worker_set)
        self.scene = scene
        self.wishes: dict[tuple[Kind, ObjectKey], Object] = {}
        self.excuses: set[str] = set(DAEMONS)  # Whose pods may be replaced, for something that was asked for.
        self.kept: dict[ObjectKey, Object] = {}  # Copies of Secrets that somebody deleted.
        self.is_leaving = False
        self.last_at = 0.0  # When something last happened.
        self.pods_deleted_at = -100.0  # When somebody last deleted a pod of slurmctld, or what keeps it.
        self.edits = 0
        self._ask(scene.wishes(), random.Random(seed))

    def _ask(self, wishes: list[Wish], chance: random.Random) -> None:
        for kind, manifest in wishes:
            self.wishes[kind, key_of(manifest)] = manifest
            delay = chance.choice([0.0, 0.0, 3.0, 20.0]) * chance.random()
            self.world.loop.call_later(delay, self._create, kind, manifest)

    def _create(self, kind: Kind, manifest: Object) -> None:
        if not self.is_leaving and key_of(manifest) not in self.world.server.objects[kind]:
            self.world.server.create(kind, manifest, HUMAN)
            self.world.note(f"-- somebody asks for {kind.kind} {manifest['metadata']['name']}")

    async def do(self, happening: Happening) -> None:
        self.last_at = self.world.loop.time()
        await super().do(happening)

    # ---- What is asked for

    def _edit(self, **spec) -> None:
        """In front of a Cluster, workers are asked for there."""
        if self.scene.name != CLUSTER:
            super()._edit(**spec)
        else:
            self._change(Cluster.KIND, lambda it: it["spec"]["nodeSets"][0].update(spec))

    def _workers_asked_for(self) -> Object:
        """In the Cluster: its NodeSet has it only when the operator has passed it on."""
        if self.scene.name != CLUSTER:
            return super()._workers_asked_for()
        found = self.world.server.objects[Cluster.KIND].get(CONTROLLER)
        return found["spec"]["nodeSets"][0] if found is not None else {}

    def _edit_head(self, **spec) -> None:
        kind = Cluster.KIND if self.scene.name == CLUSTER else Controller.KIND
        self._change(kind, lambda it: it["spec"].update(spec))

    def _change(self, kind: Kind, edit) -> None:
        found = self.world.server.objects[kind].get(CONTROLLER)
        if found is not None and "deletionTimestamp" not in found["metadata"]:
            self.world.server.change(kind, CONTROLLER, edit, HUMAN)

    def delete_nodeset(self, pick: int, amount: int) -> None:
        self.delete_kind(pick, amount)

    def delete_kind(self, pick: int, amount: int) -> None:
        there = [wish for wish in self._asked() if wish[1] in self.world.server.objects[wish[0]]]
        for kind, key in self._one(there, pick):
            self.is_leaving = True
            self.world.server.delete(kind, key, HUMAN)

    def _asked(self) -> list[tuple[Kind, ObjectKey]]:
        return sorted(self.wishes, key=lambda wish: (wish[0].kind, wish[1]))

    def submit(self, pick: int, amount: int) -> None:
        """Into a partition that takes jobs, when there is one."""
        for partition in self._one(self._open_partitions(), pick):
            self.world.ctld.submit(3 + amount % 40, 1 + (pick % 4 == 0), partition=partition)

    def submit_array(self, pick: int, amount: int) -> None:
        for _ in range(2 + pick % 3):
            self.submit(1, amount % 20)

    def insist(self, pick: int, amount: int) -> None:
        for partition in self._one(self._open_partitions(), pick):
            for record in self._one(sorted(self.world.ctld.records), pick):
                self.named.add(record)
                self.world.ctld.submit(3 + amount % 20, required=(record,), partition=partition)

    def preempt(self, pick: int, amount: int) -> None:
        for partition in self._one(self._open_partitions(), pick):
            urgent = {"priority": 1, "is_exclusive": pick % 2 == 0}
            self.world.ctld.submit(3 + amount % 20, partition=partition, **urgent)

    def _open_partitions(self) -> list[str]:
        partitions = sorted(self.world.ctld.partitions.items())
        return [name for name, partition in partitions if partition.takes_jobs]

    # ---- Configuration

    def edit_config(self, pick: int, amount: int) -> None:
        self._edit_head(extraConf=GOOD_CONFIG.replace("10", str(10 + amount)))

    def spoil_config(self, pick: int, amount: int) -> None:
        self._edit_head(extraConf=f"# {amount}\n{SPOILT[pick % len(SPOILT)]}\n")

    def break_workers(self, pick: int, amount: int) -> None:
        """A configuration that slurmctld takes and no slurmd can live with. It would cost running steps, too."""
        self._edit_head(extraConf=f"SlurmdSpoolDir=/{FATAL}/{amount}\n")

    def edit_file(self, pick: int, amount: int) -> None:
        self._put_file(f"# {amount}\n")

    def spoil_file(self, pick: int, amount: int) -> None:
        self._put_file(f"# {amount} {BAD}\n")

    def lose_file(self, pick: int, amount: int) -> None:
        self.world.server.remove(kinds.CONFIG_MAP, FILES, HUMAN)

    def _put_file(self, text: str) -> None:
        manifest = {"metadata": {"name": FILES.name, "namespace": NAMESPACE}, "data": {"gres.conf": text}}
        if FILES in self.world.server.objects[kinds.CONFIG_MAP]:
            self.world.server.change(
                kinds.CONFIG_MAP, FILES, lambda it: it.update(data=manifest["data"]), HUMAN
            )
        else:
            self.world.server.create(kinds.CONFIG_MAP, manifest, HUMAN)

    # ---- Keys

    def rotate_slurm_key(self, pick: int, amount: int) -> None:
        self._rotate(names.auth_slurm_secret(self.scene.keys_of))
        self.excuses |= {SLURMRESTD, SLURMDBD, LOGIN}

    def rotate_signing_key(self, pick: int, amount: int) -> None:
        self._rotate(names.auth_jwt_secret(self.scene.keys_of))
        self.excuses |= {SLURMCTLD, SLURMDBD}

    def _rotate(self, name: str) -> None:
        key = ObjectKey(NAMESPACE, name)
        self.edits += 1
        value = base64.b64encode(f"hers-{self.edits}".encode()).decode()
        if key in self.world.server.objects[kinds.SECRET]:
            self.world.server.change(
                kinds.SECRET, key, lambda it: it.update(data=dict.fromkeys(it["data"], value)), HUMAN
            )

    def _key_secrets(self) -> list[ObjectKey]:
        of = self.scene.keys_of
        made = (names.auth_slurm_secret(of), names.auth_jwt_secret(of), names.database_workload(of))
        found = [ObjectKey(NAMESPACE, name) for name in made]
        return [key for key in found if key in self.world.server.objects[kinds.SECRET]]

    def lose_key(self, pick: int, amount: int) -> None:
        """Not while what was started with it is away: without that, everybody starts over, as they say."""
        there = self.world.server.objects[kinds.STATEFUL_SET]
        if not self._spared() <= {key.name for key in there}:
            return
        for key in self._one(self._key_secrets(), pick):
            self.kept[key] = copied(self.world.server.get(kinds.SECRET, key))
            self.world.server.remove(kinds.SECRET, key, HUMAN)

    def bring_key(self, pick: int, amount: int) -> None:
        """From a copy; a key that was made meanwhile is left alone."""
        for key in self._one(sorted(self.kept), pick):
            old = self.kept.pop(key)
            if key not in self.world.server.objects[kinds.SECRET]:
                manifest = {"metadata": {"name": key.name, "namespace": key.namespace}, "data": old["data"]}
                self.world.server.create(kinds.SECRET, manifest, HUMAN)

    # ---- Daemons

    def _daemons(self) -> list:
        return [process for app in DAEMONS for process in self.world.machines.running(app)]

    def crash_daemon(self, pick: int, amount: int) -> None:
        for process in self._one(self._daemons(), pick):
            self.world.machines.crash(process)

    def fail_daemon(self, pick: int, amount: int) -> None:
        for process in self._one([p for p in self._daemons() if p.app in (SLURMRESTD, LOGIN)], pick):
            self.world.machines.fail(process)

    def restart_slurmctld(self, pick: int, amount: int) -> None:
        for process in self.world.machines.running(SLURMCTLD):
            self.world.machines.crash(process)

    def lose_state(self, pick: int, amount: int) -> None:
        if self.world.ctld.is_up:
            super().lose_state(pick, amount)
            self.restart_slurmctld(pick, amount)

    def delete_daemon_pod(self, pick: int, amount: int) -> None:
        found = [pod for pod in self._pods() if app_of(pod) in DAEMONS]
        for pod in self._one(found, pick):
            self.pods_deleted_at = self.world.loop.time()
            self.world.server.delete(kinds.POD, key_of(pod), HUMAN)

    def delete_pod(self, pick: int, amount: int) -> None:
        self.pods_deleted_at = self.world.loop.time()
        super().delete_pod(pick, amount)

    def change_daemon_image(self, pick: int, amount: int) -> None:
        self.excuses.add(SLURMCTLD)
        image = {"slurmctld": {"image": f"slurmctld:{amount % 9}"}}
        if self.scene.name == CLUSTER:
            self._change(Cluster.KIND, lambda it: it["spec"]["controller"].update(image))
        else:
            self._edit_head(**image)

    def scale_restapi(self, pick: int, amount: int) -> None:
        if self.scene.name == CLUSTER:
            self._change(Cluster.KIND, lambda it: it["spec"].update(restApi={"replicas": 1 + amount % 2}))
        else:
            self._change(RestApi.KIND, lambda it: it["spec"].update(replicas=1 + amount % 2))

    # ---- Objects that are ours

    def _children(self) -> list[tuple[Kind, ObjectKey]]:
        server = self.world.server
        return [
            (kind, key_of(found))
            for kind in CHILD_KINDS
            for found in server.all(kind)
            if found["metadata"].get("ownerReferences") and "deletionTimestamp" not in found["metadata"]
        ]

    def _spared(self) -> set[str]:
        """Workloads that are the proof of a lost key having been in use."""
        of = CONTROLLER.name
        database = {names.database_workload(of)} if self.scene.accounting == "managed" else set()
        records = {names.accounting_workload(of)} if self.scene.accounting else set()
        return {names.controller_workload(of)} | records | database

    def delete_child(self, pick: int, amount: int) -> None:
        """It comes back; pods that go with it come back, too."""
        spared = self._spared() if self.kept else set()
        for kind, key in self._one([one for one in self._children() if one[1].name not in spared], pick):
            self.excuses |= set(DAEMONS)
            self.pods_deleted_at = self.world.loop.time()
            self.world.server.delete(kind, key, HUMAN)

    def edit_child(self, pick: int, amount: int) -> None:
        """Somebody changes what is not theirs."""
        found = [child for child in self._children() if child[0] in (kinds.DEPLOYMENT, kinds.SERVICE)]
        for kind, key in self._one(found, pick):
            spoil = {"replicas": 3} if kind == kinds.DEPLOYMENT else {"selector": {"app": "hers"}}
            self.world.server.change(kind, key, lambda it, spoil=spoil: it["spec"].update(spoil), HUMAN)

    # ---- The end of all trouble

    async def make_good(self) -> None:
        self.last_at = self.world.loop.time()
        await super().make_good()
        self.world.ctld.is_up = bool(self.world.machines.running(SLURMCTLD))
        while self.kept:
            self.bring_key(0, 0)
        for (kind, _), manifest in self.wishes.items():
            self._create(kind, manifest)
        self._put_file("# good\n")
        self.edit_config(0, 0)
        self._edit_leaving_head()

    def _edit_leaving_head(self) -> None:
        """Without a slurmctld nobody can say which workers are free, so whoever deletes it repairs it first."""
        objects = self.world.server.objects
        head, whole = objects[Controller.KIND].get(CONTROLLER), objects[Cluster.KIND].get(CONTROLLER)
        leaving = [one for one in (head, whole) if one is not None and "deletionTimestamp" in one["metadata"]]
        if head is not None and leaving:
            good = {"extraConf": GOOD_CONFIG}
            self.world.server.change(Controller.KIND, CONTROLLER, lambda it: it["spec"].update(good), HUMAN)

    async def delete_everything(self, seed: int) -> None:
        """Kinds, Secrets and ConfigMaps in any order, one after the other; the operator or its policy may be away."""
        chance = random.Random(seed)
        self.is_leaving = True
        is_every = chance.random() < 0.3  # Then only the operator knows a key, and only while it runs.
        if is_every:
            await self.world.pass_seconds(60)  # No daemon has to start again for anything that was asked for.
        steps = [partial(self._delete, kind, key) for kind, key in self._asked()]
        for step in steps:
            self.world.loop.call_later(chance.uniform(0, 15), step)
        if chance.random() < 0.8:
            self.world.loop.call_later(chance.uniform(0, 15), self.delete_secrets, is_every)
        if chance.random() < 0.5:
            self.world.loop.call_later(chance.uniform(0, 15), self.delete_config_maps, is_every)
        if chance.random() < 0.3 and not is_every:  # One that is killed needs its Secrets to start again.
            self.world.loop.call_later(chance.uniform(5, 25), self.delete_daemon_pod, chance.randrange(12), 0)
        if chance.random() < 0.2:
            self.world.server.protects = False
            self.world.loop.call_later(20, setattr, self.world.server, "protects", True)
        if chance.random() < 0.4 and not is_every:
            await self.world.pass_seconds(chance.uniform(0, 15))
            await self.world.crash_operator()
            await self.world.pass_seconds(chance.uniform(0, 20))
            await self.world.start_operator()

    def delete_secrets(self, is_every: bool) -> None:
        """Those of a release, as Helm does first of all; or `--all` of them, with whatever others made."""
        everything = [key_of(found) for found in self.world.server.all(kinds.SECRET)]
        for key in sorted(everything) if is_every else self._key_secrets():
            self.world.server.remove(kinds.SECRET, key, HUMAN)

    def delete_config_maps(self, is_every: bool) -> None:
        everything = [key_of(found) for found in self.world.server.all(kinds.CONFIG_MAP)]
        for key in sorted(everything) if is_every else [FILES]:
            self.world.server.remove(kinds.CONFIG_MAP, key, HUMAN)

    def _delete(self, kind: Kind, key: ObjectKey) -> None:
        if key in self.world.server.objects[kind]:
            self.world.server.delete(kind, key, HUMAN)

    def send_home(self) -> None:
        """Whoever waits for workers that do not come any more."""
        for job in self._jobs("PENDING", "SUSPENDED"):
            self.world.ctld.cancel(job)
        if CONTROLLER not in self.world.server.objects[Controller.KIND]:
            self._force_nodesets()

    def _force_nodesets(self) -> None:
        """Their Controller was deleted before anybody could hold it: nobody can be asked, as the status says."""
        force = {names.FORCE_DELETION: "true"}
        for found in self.world.server.all(NodeSet.KIND):
            if "deletionTimestamp" in found["metadata"] and not found["metadata"].get("annotations"):
                self.world.server.change(
                    NodeSet.KIND, key_of(found), lambda it: it["metadata"].update(annotations=force), HUMAN
                )
