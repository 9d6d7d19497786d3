"""A SlurmCluster and its NodeSet in front of the workers: what people ask of them, who acts on the stage, and what must hold.

Workers and their Slurm are those of the other stories. slurmctld is there and stays: the Controller that the SlurmCluster
made is on the stage, and nobody changes slurmctld with it. Jobs that populate the root and login pods are played here.
"""

from datetime import datetime, timedelta

from simulation.apiserver import HUMAN, OPERATOR, ApiServer, Object
from simulation.kube_nodes import NODE_DEEDS, NodeDeeds
from simulation.kube_nodes import unrest as node_unrest
from simulation.machines import BAD_IMAGE, SLURMD, app_of
from simulation.promises import unrest as workers_unrest
from simulation.promises import worker_pods
from simulation.weather import Weather
from simulation.world import World
from slurm_operator.api.nebius import JailedConfig, SlurmCluster, names
from slurm_operator.api.nebius import NodeSet as Front
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.manifests import kinds

NAMESPACE, NAME = "ns", "slurm"
CLUSTER = ObjectKey(NAMESPACE, NAME)
MANAGER = "controller manager"
OVERWRITE = "downscaleAndOverwritePopulateJail"
MODES = ("downscale", OVERWRITE, "downscaleAndDeletePopulateJail", "skipPopulateJail", "none")
OURS = {names.IMAGES: "slurm-operator"}
WRITER = {
    "container": {"image": "writer:1"},
    "serviceAccountName": "w",
    "node": {"k8sNodeFilterName": "all", "size": 1},
}

# How often each is drawn, beside what happens to workers.
FRONT_DEEDS = {
    "maintain": 6,
    "end_maintenance": 8,
    "lose_map": 3,
    "lose_job": 2,
    "add_writer": 2,
    "remove_writer": 2,
    "rename_images": 2,
    "change_cluster_name": 1,
    **NODE_DEEDS,
}


def cluster() -> Object:
    volume = {"volumeSourceName": "jail"}
    container = {"image": "slurm:1"}
    return {
        "metadata": {"name": NAME, "namespace": NAMESPACE, "annotations": OURS},
        "spec": {
            "populateJail": {"image": "root:1", "k8sNodeFilterName": "all"},
            "k8sNodeFilters": [{"name": "all"}],
            "volumeSources": [{"name": "jail", "persistentVolumeClaim": {"claimName": "jail"}}],
            "secrets": {},
            "slurmNodes": {
                "accounting": {"k8sNodeFilterName": ""},
                "controller": {
                    "k8sNodeFilterName": "all",
                    "slurmctld": container,
                    "munge": container,
                    "volumes": {"spool": volume, "jail": volume},
                },
                "login": {
                    "k8sNodeFilterName": "all",
                    "size": 1,
                    "sshd": container,
                    "munge": container,
                    "sshdServiceType": "LoadBalancer",
                    "sshRootPublicKeys": [],
                    "volumes": {"jail": volume},
                },
                "exporter": {"k8sNodeFilterName": ""},
                "rest": {"k8sNodeFilterName": ""},
            },
        },
    }


def nodeset(name: str, replicas: int) -> Object:
    resources = {"cpu": 2, "memory": "2Gi"}
    return {
        "metadata": {"name": name, "namespace": NAMESPACE, "annotations": OURS},
        "spec": {
            "clusterName": NAME,
            "replicas": replicas,
            "maxUnavailable": 1,
            "slurmd": {
                "image": {"repository": "slurmd", "tag": "1"},
                "resources": resources,
                "volumes": {
                    "spool": {"emptyDir": {}},
                    "jail": {"persistentVolumeClaim": {"claimName": "jail"}},
                },
            },
            "munge": {"image": {"repository": "munge"}, "resources": resources},
        },
    }


class Stagehands:
    """Jobs that take a while, login pods that are counted, and files that are written."""

    def __init__(self, server: ApiServer, weather: Weather) -> None:
        self.server = server
        self.weather = weather
        self.due: dict[str, datetime] = {}

    def tick(self) -> None:
        now = self.server.clock.now()
        for job in self.server.all(kinds.JOB):
            uid = job["metadata"]["uid"]
            seconds = 5 + self.weather.seconds(f"populate {len(self.due)}", 20.0)
            due = self.due.setdefault(uid, now + timedelta(seconds=seconds))
            if due <= now and not (job.get("status") or {}).get("succeeded"):
                self._tell(kinds.JOB, job, {"succeeded": 1})
        for login in self.server.all(LoginSet.KIND):
            wanted = login["spec"].get("replicas", 1)
            counts = dict.fromkeys(
                ("replicas", "readyReplicas", "updatedReplicas", "availableReplicas"), wanted
            )
            told = {"observedGeneration": login["metadata"]["generation"], **counts}
            if login.get("status") != told:
                self._tell(LoginSet.KIND, login, told)
        for files in self.server.all(JailedConfig.KIND):
            done = [{"type": "FilesWritten", "status": "True", "reason": "Success", "message": ""}]
            if (files.get("status") or {}).get("conditions") != done:
                self._tell(JailedConfig.KIND, files, {"conditions": done})

    def _tell(self, kind: Kind, found: Object, status: Object) -> None:
        key = ObjectKey(found["metadata"]["namespace"], found["metadata"]["name"])
        self.server.change(kind, key, lambda it: it.update(status=status), MANAGER)


class FrontDeeds(NodeDeeds):
    """Workers are asked for in the NodeSet of slurm.nebius.ai."""

    refusable = (kinds.POD, kinds.CONTROLLER_REVISION)

    def _spec(self) -> Object:
        return self.world.server.objects[Front.KIND].get(self.nodeset, {}).get("spec", {})

    def _edit(self, **spec) -> None:
        if self.nodeset in self.world.server.objects[Front.KIND]:
            self.world.server.change(Front.KIND, self.nodeset, lambda it: it["spec"].update(spec), HUMAN)

    def _edit_cluster(self, **spec) -> None:
        if CLUSTER in self.world.server.objects[SlurmCluster.KIND]:
            self.world.server.change(SlurmCluster.KIND, CLUSTER, lambda it: it["spec"].update(spec), HUMAN)

    def _workers_asked_for(self) -> Object:
        image = self._spec().get("slurmd", {}).get("image", {})
        return {"slurmd": {"image": f"{image.get('repository')}:{image.get('tag')}"}} if image else {}

    def _image(self, tag: str) -> None:
        slurmd = self._spec().get("slurmd", {})
        self._edit(slurmd={**slurmd, "image": {"repository": "slurmd", "tag": tag}})

    def scale(self, pick: int, amount: int) -> None:
        self._edit(replicas=amount % 5)

    def change_image(self, pick: int, amount: int) -> None:
        self._image(str(amount % 9))

    def break_image(self, pick: int, amount: int) -> None:
        self._image(BAD_IMAGE.partition(":")[2])

    def change_resources(self, pick: int, amount: int) -> None:
        self._edit(nodeConfig={"static": f"CPUs={1 + amount % 8}"})  # Machines have 8.

    def switch_mode(self, pick: int, amount: int) -> None:
        """Workers of this API have numbers."""

    def widen_budget(self, pick: int, amount: int) -> None:
        self._edit(maxUnavailable=1 + amount % 3)

    def delete_nodeset(self, pick: int, amount: int) -> None:
        if self.nodeset in self.world.server.objects[Front.KIND]:
            self.world.server.delete(Front.KIND, self.nodeset, HUMAN)

    # ---- What only this API has

    def maintain(self, pick: int, amount: int) -> None:
        self._edit_cluster(maintenance=MODES[pick % len(MODES)])

    def end_maintenance(self, pick: int, amount: int) -> None:
        self._edit_cluster(maintenance="none")

    def lose_map(self, pick: int, amount: int) -> None:
        """What supervisord and sshd of workers read; it is made again."""
        made = (names.supervisord(NAME), names.worker_ssh_configs(NAME))
        key = ObjectKey(NAMESPACE, made[pick % 2])
        if key in self.world.server.objects[kinds.CONFIG_MAP]:
            self.world.server.remove(kinds.CONFIG_MAP, key, HUMAN)

    def lose_job(self, pick: int, amount: int) -> None:
        key = ObjectKey(NAMESPACE, names.populate_jail(NAME))
        if key in self.world.server.objects[kinds.JOB]:
            self.world.server.remove(kinds.JOB, key, HUMAN)

    def add_writer(self, pick: int, amount: int) -> None:
        self._edit_cluster(sConfigController=WRITER)

    def remove_writer(self, pick: int, amount: int) -> None:
        self._edit_cluster(sConfigController=None)

    def rename_images(self, pick: int, amount: int) -> None:
        """By their names they would be somebody else's; those that run are not."""
        said = {} if amount % 2 else OURS
        for kind, key in ((SlurmCluster.KIND, CLUSTER), (Front.KIND, self.nodeset)):
            if key in self.world.server.objects[kind]:
                self.world.server.change(kind, key, lambda it: it["metadata"].update(annotations=said), HUMAN)

    def change_cluster_name(self, pick: int, amount: int) -> None:
        self._edit(clusterName="another")

    async def make_good(self) -> None:
        if self._workers_asked_for().get("slurmd", {}).get("image") == BAD_IMAGE:
            self._image("good")
        await super().make_good()
        self._edit_cluster(maintenance="none", sConfigController=None)
        self._edit(clusterName=NAME)
        self.rename_images(0, 0)


class RootPromises:
    """Nobody writes to the root under a worker."""

    def __init__(self, world: World) -> None:
        self.world = world
        world.server.hears.append(self._heard)

    def _heard(self, kind: Kind, old: Object | None, new: Object | None, who: str) -> None:
        if who != OPERATOR or old is not None or new is None:
            return
        running = sorted(
            process.pod for process in self.world.machines.processes.values() if process.is_worker
        )
        if kind == kinds.JOB and running:
            self.world.broken(f"the root is populated while workers run on it: {running}")
        jobs = [
            job for job in self.world.server.all(kinds.JOB) if not (job.get("status") or {}).get("succeeded")
        ]
        if kind == kinds.POD and jobs and app_of(new) == SLURMD and not running:
            self.world.broken(f"worker {new['metadata']['name']} is made while the root is populated")


def unrest(world: World, deeds: FrontDeeds) -> str | None:
    """What is not yet as people asked for; None when all is well."""
    found = world.server.objects[Front.KIND].get(deeds.nodeset)
    if found is None:
        return node_unrest(world) or workers_unrest(world, deeds)
    if "deletionTimestamp" in found["metadata"]:
        return "the NodeSet is still being deleted"
    wanted, there = found["spec"].get("replicas", 1), len(worker_pods(world))
    if wanted != there:
        return f"there are {there} workers, and {wanted} are asked for"
    status = found.get("status") or {}
    if (
        status.get("observedGeneration") != found["metadata"]["generation"]
        or status.get("replicas") != wanted
    ):
        return f"the status of the NodeSet says {status}"
    if status.get("phase") != "Ready":
        return f"the phase of the NodeSet is {status.get('phase')}: {status.get('conditions')}"
    return node_unrest(world) or workers_unrest(world, deeds)
