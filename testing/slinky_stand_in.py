"""A stand-in for Slinky's operator: what it does to the objects of a NodeSet and a Controller, and no more.

It is not Slinky's operator. It follows the description of it (revisions, their hash and equality, the merge of
children), and its hash is checked against one that was recorded and others that Go code wrote. It keeps pods
that have the label of the newest revision and counts the others as outdated, as a rolling update of it does.
"""

import copy
import json
from dataclasses import dataclass
from typing import Any

from slurm_operator.api.schema import codec
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.reconcilers.nodeset.creation.slinky_hash import patch, their_hash
from testing import slinky
from testing.control_plane import Plane

HASH_LABEL = "controller.kubernetes.io/hash"
SELECTED = ("app.kubernetes.io/instance", "app.kubernetes.io/name")


@dataclass
class SlinkyStandIn:
    """One pass over one namespace whenever it is asked."""

    plane: Plane
    namespace: str

    def reconcile(self) -> list[str]:
        """What Slinky writes when it starts here; gives the workers that it takes for outdated."""
        self._stateful_set()
        self._shared()
        newest = self._newest_revision()
        pods = [pod for pod in self._list("pods") if self._is_worker(pod)]
        return sorted(
            pod["metadata"]["name"] for pod in pods if pod["metadata"]["labels"].get(HASH_LABEL) != newest
        )

    def _newest_revision(self) -> str:
        """It looks for revisions by the labels of workers, and so does not see those that it made itself."""
        [live] = self._list("nodesets")
        nodeset = codec.read(NodeSet, live)
        selector = {SELECTED[0]: live["metadata"]["name"], SELECTED[1]: "slurmd"}
        data, hash_ = patch(nodeset.spec), their_hash(nodeset)
        known = [
            one
            for one in self._list("controllerrevisions")
            if selector.items() <= one["metadata"].get("labels", {}).items()
        ]
        for one in known:
            if HASH_LABEL not in one["metadata"]["labels"]:
                self._label("controllerrevision", one, {HASH_LABEL: one["metadata"]["name"]})
            if one["data"] == data:
                return str(one["metadata"]["labels"][HASH_LABEL])
        name = f"{live['metadata']['name']}-{hash_}"
        there = next((o for o in self._list("controllerrevisions") if o["metadata"]["name"] == name), None)
        assert there is None or there["data"] == data, "a collision: Slinky counts it and takes another hash"
        if there is None:
            self._create(
                self._revision(live, name, hash_, data, 1 + max((o["revision"] for o in known), default=0))
            )
        for one in known:  # The history is limited to none: revisions that it sees and does not need.
            self.plane.kubectl("delete", "controllerrevision", one["metadata"]["name"], "-n", self.namespace)
        return hash_

    def _revision(self, owner: Any, name: str, hash_: str, data: Any, number: int) -> slinky.Object:
        reference = {
            "apiVersion": owner["apiVersion"], "kind": "NodeSet", "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True,
        }  # fmt: skip
        labels = {
            **owner["spec"].get("template", {}).get("metadata", {}).get("labels", {}),
            HASH_LABEL: hash_,
        }
        return {
            "apiVersion": "apps/v1", "kind": "ControllerRevision", "data": data, "revision": number,
            "metadata": {
                "name": name, "namespace": self.namespace, "labels": labels, "ownerReferences": [reference],
            },
        }  # fmt: skip

    def _stateful_set(self) -> None:
        """The template that it builds for the spec as it is; where that is there already, nothing is sent."""
        [controller] = self._list("controllers")
        existing = bool(controller["spec"]["persistence"].get("existingClaim"))
        whole = slinky.recorded(self.namespace, existing_claim=existing)
        built = copy.deepcopy(slinky.named(whole, "StatefulSet", "slurm-controller")["spec"]["template"])
        built["spec"]["containers"][0]["image"] = controller["spec"]["slurmctld"]["image"]
        there = next(
            one for one in self._list("statefulsets") if one["metadata"]["name"] == "slurm-controller"
        )
        spec = {
            "template": built,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        }
        for field, value in spec.items():
            if there["spec"].get(field) != value:
                operation = [{"op": "replace", "path": f"/spec/{field}", "value": value}]
                self._patch("statefulset", "slurm-controller", "json", operation)

    def _shared(self) -> None:
        """The Service and the budget of workers: only their owners are refreshed."""
        [live] = self._list("nodesets")
        owner = {
            "apiVersion": live["apiVersion"], "kind": "NodeSet", "name": live["metadata"]["name"],
            "uid": live["metadata"]["uid"], "blockOwnerDeletion": True,
        }  # fmt: skip
        for kind, name in (("service", "slurm-workers-slurm"), ("pdb", "slurm-workers-pdb-slurm")):
            self._patch(kind, name, "merge", {"metadata": {"ownerReferences": [owner]}})

    def _is_worker(self, pod: Any) -> bool:
        return any(owner["kind"] == "NodeSet" for owner in pod["metadata"].get("ownerReferences", ()))

    def _list(self, kind: str) -> list[Any]:
        found: list[Any] = json.loads(self.plane.kubectl("get", kind, "-n", self.namespace, "-o", "json"))[
            "items"
        ]
        return found

    def _create(self, thing: slinky.Object) -> None:
        self.plane.kubectl("create", f"--field-manager={slinky.MANAGER}", "-f", "-", stdin=json.dumps(thing))

    def _label(self, kind: str, thing: Any, labels: dict[str, str]) -> None:
        self._patch(kind, thing["metadata"]["name"], "merge", {"metadata": {"labels": labels}})

    def _patch(self, kind: str, name: str, type_: str, patch_: Any) -> None:
        self.plane.kubectl(
            "patch", kind, name, "-n", self.namespace, f"--type={type_}", "-p", json.dumps(patch_),
            f"--field-manager={slinky.MANAGER}",
        )  # fmt: skip
