"""StatefulSets, Deployments and volume claims, as kube-controller-manager keeps them: late, and one step at a time."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from simulation.apiserver import ApiServer, Object, key_of
from simulation.weather import Weather
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.manifests import kinds
from slurm_operator.manifests.digests import digest

MANAGER = "controller manager"
KINDS = (kinds.STATEFUL_SET, kinds.DEPLOYMENT)


@dataclass
class Workloads:
    """`tick` is one look at everything; each workload is looked at when its turn has come."""

    server: ApiServer
    weather: Weather
    looks_at: dict[str, datetime] = field(default_factory=dict)
    binds_at: dict[str, datetime] = field(default_factory=dict)
    made: int = 0

    @property
    def now(self) -> datetime:
        return self.server.clock.now()

    def tick(self) -> None:
        self._bind_claims()
        for kind in KINDS:
            for workload in self.server.all(kind):
                uid = workload["metadata"]["uid"]
                if self.looks_at.get(uid, self.now) > self.now:
                    continue
                late = self.weather.seconds(f"look at {workload['metadata']['name']}", 3.0)
                self.looks_at[uid] = self.now + timedelta(seconds=late)
                if "deletionTimestamp" not in workload["metadata"]:
                    self._keep(kind, workload)

    def _bind_claims(self) -> None:
        for claim in self.server.all(kinds.PERSISTENT_VOLUME_CLAIM):
            meta = claim["metadata"]
            due = self.binds_at.setdefault(
                meta["uid"], self.now + timedelta(seconds=self.weather.seconds(f"bind {meta['name']}", 12.0))
            )
            if due <= self.now and (claim.get("status") or {}).get("phase") != "Bound":
                self.server.change(
                    kinds.PERSISTENT_VOLUME_CLAIM, key_of(claim), lambda it: it.update(status={"phase": "Bound"}), MANAGER
                )  # fmt: skip

    def _keep(self, kind: Kind, workload: Object) -> None:
        pods = self._pods_of(workload)
        newest = digest(workload["spec"]["template"])[:10]
        if kind == kinds.STATEFUL_SET:
            self._keep_set(workload, pods, newest)
        else:
            self._keep_deployment(workload, pods, newest)
        self._tell(kind, workload, newest)

    # ---- StatefulSets

    def _keep_set(self, workload: Object, pods: list[Object], newest: str) -> None:
        spec, name = workload["spec"], workload["metadata"]["name"]
        there = {pod["metadata"]["name"]: pod for pod in pods}
        wanted = [f"{name}-{index}" for index in range(spec.get("replicas", 1))]
        for pod in wanted:
            if pod not in there:
                self._claim(workload, pod)
                self._make(kinds.STATEFUL_SET, workload, pod, newest)
        strategy = (spec.get("updateStrategy") or {}).get("type", "RollingUpdate")
        for pod in pods:
            is_old = strategy == "RollingUpdate" and revision_of(pod) != newest
            if (pod["metadata"]["name"] not in wanted or is_old) and not is_leaving(pod):
                self.server.delete(kinds.POD, key_of(pod), MANAGER)

    def _claim(self, workload: Object, pod: str) -> None:
        for template in workload["spec"].get("volumeClaimTemplates") or ():
            key = ObjectKey(workload["metadata"]["namespace"], f"{template['metadata']['name']}-{pod}")
            if key not in self.server.objects[kinds.PERSISTENT_VOLUME_CLAIM]:
                meta = {"name": key.name, "namespace": key.namespace}
                self.server.create(
                    kinds.PERSISTENT_VOLUME_CLAIM, {"metadata": meta, "spec": template["spec"]}, MANAGER
                )

    # ---- Deployments

    def _keep_deployment(self, workload: Object, pods: list[Object], newest: str) -> None:
        """One more than wanted while pods are replaced; an old one goes when a new one is ready."""
        staying = [pod for pod in pods if not is_leaving(pod)]
        for pod in [pod for pod in staying if pod["status"].get("phase") in ("Failed", "Succeeded")]:
            self.server.delete(kinds.POD, key_of(pod), MANAGER)
            staying.remove(pod)
        new = [pod for pod in staying if revision_of(pod) == newest]
        old = [pod for pod in staying if revision_of(pod) != newest]
        wanted = workload["spec"].get("replicas", 1)
        if len(new) < wanted and len(staying) <= wanted:
            self.made += 1
            name = f"{workload['metadata']['name']}-{newest[:4]}-{self.made}"
            self._make(kinds.DEPLOYMENT, workload, name, newest)
        ready = [pod for pod in staying if is_ready(pod)]
        for pod in sorted(old, key=is_ready):
            if not is_ready(pod) or len(ready) > wanted:
                self.server.delete(kinds.POD, key_of(pod), MANAGER)
                return
        for pod in sorted(new, key=is_ready)[: max(0, len(new) - wanted)]:
            self.server.delete(kinds.POD, key_of(pod), MANAGER)

    # ---- Both

    def _pods_of(self, workload: Object) -> list[Object]:
        """Those that it owns, and those that wait for an owner of its kind."""
        meta, found = workload["metadata"], []
        wanted = workload["spec"]["selector"]["matchLabels"].items()
        for pod in self.server.all(kinds.POD):
            owners = [owner["uid"] for owner in pod["metadata"].get("ownerReferences") or ()]
            if not owners and wanted <= pod["metadata"].get("labels", {}).items():
                self.server.change(kinds.POD, key_of(pod), lambda it: it["metadata"].update(ownerReferences=[owner_of(workload)]), MANAGER)  # fmt: skip
                found.append(self.server.get(kinds.POD, key_of(pod)))
            elif meta["uid"] in owners:
                found.append(pod)
        return found

    def _make(self, kind: Kind, workload: Object, name: str, newest: str) -> None:
        template = workload["spec"]["template"]
        meta = template.get("metadata") or {}
        key = ObjectKey(workload["metadata"]["namespace"], name)
        if key in self.server.objects[kinds.POD]:
            return
        self.server.create(
            kinds.POD,
            {
                "metadata": {
                    "name": key.name,
                    "namespace": key.namespace,
                    "labels": {**(meta.get("labels") or {}), names.LABEL_REVISION: newest},
                    "annotations": dict(meta.get("annotations") or {}),
                    "ownerReferences": [owner_of(workload)],
                },
                "spec": {**template["spec"], "volumes": list(volumes(workload, name)), "hostname": name},
            },
            MANAGER,
        )

    def _tell(self, kind: Kind, workload: Object, newest: str) -> None:
        pods = [pod for pod in self._pods_of(workload) if not is_leaving(pod)]
        ready = [pod for pod in pods if is_ready(pod)]
        status = {
            "observedGeneration": workload["metadata"]["generation"],
            "replicas": len(pods),
            "readyReplicas": len(ready),
            "availableReplicas": len(ready),
            "updatedReplicas": sum(revision_of(pod) == newest for pod in pods),
            "updateRevision": newest,
        }
        key = key_of(workload)
        if workload.get("status") != status and key in self.server.objects[kind]:
            self.server.change(kind, key, lambda it: it.update(status=status), MANAGER)


def volumes(workload: Object, pod: str) -> Iterator[Object]:
    """Those of the template, and one for each claim that the StatefulSet makes for the pod."""
    yield from workload["spec"]["template"]["spec"].get("volumes") or ()
    for template in workload["spec"].get("volumeClaimTemplates") or ():
        name = template["metadata"]["name"]
        yield {"name": name, "persistentVolumeClaim": {"claimName": f"{name}-{pod}"}}


def owner_of(workload: Object) -> Object:
    meta = workload["metadata"]
    return {"apiVersion": "apps/v1", "kind": workload["kind"], "name": meta["name"], "uid": meta["uid"], "controller": True}  # fmt: skip


def revision_of(pod: Object) -> str:
    return pod["metadata"]["labels"].get(names.LABEL_REVISION, "")


def is_leaving(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def is_ready(pod: Object) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"]["conditions"])
