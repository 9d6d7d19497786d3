"""The same Slurm cluster in words that every operator of this API knows, so that two can be compared.

Its database and its keys are there before it, and each worker has a machine of its own. References say their
namespace, since earlier versions of the API want to know it.
"""

import secrets
from typing import Any

import foreign_database
from operator_rig import Slurm

from chaos.impact import WORKERS
from chaos.kube import Kube, Named
from chaos.manifests import EXTRA_CONF, STATE, STRATEGY, Manifest
from slurm_local.image.images import slurm_image
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.manifests import kinds

_KEYS, _PASSWORD = "keys", "password"
_COUNTS = ("replicas", "updatedReplicas", "readyReplicas")

# What stands behind a component, and how many pods that should have.
_WORKLOADS = {
    RestApi.KIND: Named(kinds.DEPLOYMENT, "slurm-restapi"),
    Controller.KIND: Named(kinds.STATEFUL_SET, "slurm-controller"),
}


def surroundings(namespace: str) -> list[Manifest]:
    """Keys and a database. To be made once: the keys are new each time."""
    keys = {name: secrets.token_hex(32) for name in ("slurm.key", "jwt.key")}
    return [
        foreign_database.secret(namespace, _KEYS, **keys),
        foreign_database.secret(namespace, _PASSWORD, password=foreign_database.PASSWORD),
        *foreign_database.manifests(namespace),
    ]


def components(slurm: Slurm) -> list[Manifest]:
    """Accounting, Controller, RestApi and NodeSet, in the order in which they can be made."""
    keys = {"slurmKeyRef": _key("slurm.key"), "jwtKeyRef": _key("jwt.key")}
    here = {"name": "slurm", "namespace": slurm.namespace}
    books = {"slurmdbd": _image("slurmdbd"), "storageConfig": foreign_database.storage(_PASSWORD), **keys}
    nodeset = slurm.nodeset(
        replicas=WORKERS, scalingMode="StatefulSet", updateStrategy=STRATEGY, controllerRef=here
    )
    del nodeset["spec"]["oversubscribeNode"]
    restapi = slurm.restapi()
    restapi["spec"]["controllerRef"] = here
    return [
        slurm.kind("Accounting", "slurm", books),
        slurm.controller(
            accountingRef=here,
            extraConf=EXTRA_CONF,
            persistence={"enabled": True, "existingClaim": STATE},
            reconfigure=_image("slurmctld"),
            **keys,
        ),
        restapi,
        nodeset,
    ]


def sorrow(kube: Kube, kind: Kind, found: dict[str, Any]) -> str:
    """What its counts and those of the workload behind it lack; not every operator writes conditions."""
    if kind not in _WORKLOADS:
        return lack(found, WORKERS)
    return lack(kube.get(_WORKLOADS[kind]), 1)


def lack(found: dict[str, Any], count: int) -> str:
    """Empty when as many pods as this are there, Ready and of the latest revision, by its status."""
    status: dict[str, Any] = found.get("status", {})
    counts = {name: status.get(name, 0) for name in _COUNTS}
    is_seen = status.get("observedGeneration") == found["metadata"]["generation"]
    if is_seen and set(counts.values()) == {count}:
        return ""
    return f"{found['metadata']['name']} has {counts}, not {count} each" if is_seen else "not seen yet"


def _key(name: str) -> Manifest:
    return {"name": _KEYS, "key": name}


def _image(daemon: str) -> Manifest:
    return {"image": slurm_image(daemon), "imagePullPolicy": "Never"}
