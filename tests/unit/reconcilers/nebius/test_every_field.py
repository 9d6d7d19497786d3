"""Every field of SlurmCluster and NodeSet counts for something, or is said to count for nothing.

A field counts when another value of it changes a part, a file or an object. All others have to be named in an
admission warning or in the condition FieldsSupported when somebody uses them.
"""

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain
from typing import Any

import pytest

from slurm_operator.api.nebius import NodeSet, SlurmCluster, names
from slurm_operator.api.nebius.nodeset import NodeSetSpec
from slurm_operator.api.nebius.slurmcluster import SlurmClusterSpec
from slurm_operator.api.schema import codec
from slurm_operator.api.schema.model import Field
from slurm_operator.api.schema.problems import References
from slurm_operator.manifests import kinds
from slurm_operator.plan.actions import Action, Apply, Create, DeleteObject, GenerateSecret, Wait
from slurm_operator.reconcilers.nebius.nodeset.unsupported import IGNORED as OF_NODESETS
from slurm_operator.reconcilers.nebius.slurmcluster.unsupported import IGNORED as OF_CLUSTERS
from slurm_operator.reconcilers.nebius.slurmcluster.unsupported import IGNORED_BY_OUR_MARIADB
from testing.children import secret as a_secret
from testing.children import with_config, with_secrets
from testing.nebius import walk
from testing.nebius.walk import Path
from testing.slurmclusters import decide, manifest, read, report, with_job, with_our_images, world

KINDS = {"SlurmCluster": SlurmCluster, "NodeSet": NodeSet}
IMAGES = {"soperator": "registry.example", "slurm-operator": "ghcr.io/slinkyproject"}
DATABASE = {"spec__slurmNodes__accounting__externalDB__enabled": False,
            "spec__slurmNodes__accounting__mariadbOperator__enabled": True}  # fmt: skip
RAW = {"configType": "custom", "rawConfig": ["PartitionName=a Nodes=ALL"]}

CLUSTERS = {
    "whole": {},
    "with a database": DATABASE,
    "with raw partitions": {"spec__partitionConfiguration": RAW},
    "with a load balancer": {"spec__slurmNodes__login__sshdServiceType": "LoadBalancer",
                             "spec__slurmNodes__login__sshdConfigMapRefName": ""},
    "without sssd.conf": {"spec__slurmNodes__controller__sssdConfSecretRefName": ""},
    "with a topology of its own": {"spec__slurmConfig__topologyPlugin": "topology/flat"},
}  # fmt: skip

# What another value has to be so that the manifest is still accepted.
VALUES: dict[str, Any] = {
    "spec.partitionConfiguration.partitions[].nodeSetRefs": ["gpu"],
    "spec.workerFeatures": [{"name": "another", "hostlistExpr": "worker-[0-3]"}],
    "spec.plugStackConfig.customPlugins": [{"path": "x.so"}],
    "spec.slurmNodes.worker.volumes.customMounts": [
        {"name": "another", "mountPath": "/a", "volumeSourceName": "jail"}
    ],
    "spec.slurmNodes.worker.volumes.jailSubMounts": [
        {"name": "another", "mountPath": "/a", "volumeSourceName": "jail"}
    ],
    "spec.slurmNodes.controller.volumes.customMounts": [
        {"name": "another", "mountPath": "/a", "volumeSourceName": "jail"}
    ],
    "spec.slurmNodes.login.volumes.jailSubMounts": [
        {"name": "another", "mountPath": "/a", "volumeSourceName": "jail"}
    ],
    "spec.slurmNodes.login.volumes.customMounts": [
        {"name": "another", "mountPath": "/a", "volumeSourceName": "scratch"}
    ],
    "spec.maintenance": "downscale",
    "spec.partitionConfiguration.configType": "default",
    "spec.partitionConfiguration.rawConfig": ["PartitionName=b Nodes=ALL"],
    "spec.slurmNodes.login.sshdServiceType": "LoadBalancer",
    "spec.slurmNodes.login.sshdServiceNodePort": 32023,
    "spec.slurmNodes.login.userIsolation.memoryHigh": "5Gi",
    "spec.slurmNodes.login.userIsolation.memoryMax": "7Gi",
    "spec.slurmNodes.accounting.slurmConfig.accountingStorageTRES": "CPU",
    "spec.sConfigController.reconfigurePollInterval": "11s",
    "spec.sConfigController.reconfigureWaitTimeout": "3m",
    "spec.volumeSources": [{"name": "another", "emptyDir": {}}],
    "spec.maxUnavailable": 7,
    "spec.nodeConfig.static": "CPUs=16",
    "spec.slurmd.volumes.jail": {"persistentVolumeClaim": {"claimName": "another"}},
    "spec.slurmd.volumes.spool": {"emptyDir": {}},
    "spec.slurmd.volumes.jailSubMounts[].volumeSource": {"emptyDir": {}},
}


# For information only, by their own description; and whom a NodeSet belongs to, which cannot change.
WITHOUT_EFFECT = ("spec.crVersion", "spec.clusterName")


def cluster(base: str, family: str) -> dict[str, Any]:
    if base == "older":
        body = manifest("SlurmCluster", "older", spec__maintenance="none")
    else:
        body = manifest("SlurmCluster", "whole", **CLUSTERS[base])
        body["spec"]["partitionConfiguration"]["partitions"] = body["spec"]["partitionConfiguration"].get(
            "partitions", []
        )[::-1]
    return with_our_images(body) if family == "slurm-operator" else body


def nodeset(family: str, cluster_: str = "whole") -> dict[str, Any]:
    body = manifest("NodeSet", "gpu", spec__clusterName=cluster_, spec__docker__enabled=False)
    body["spec"]["slurmd"]["livenessProbe"] = {}
    if family == "slurm-operator":
        body["spec"]["slurmd"]["image"]["repository"] = "ghcr.io/slinkyproject/slurmd"
    return body


def there_is(*bodies: dict[str, Any]):
    there = world(*bodies)
    there.served |= {kinds.POD_MONITOR}
    for name in (
        "my-sshd",
        "another",
        "supervisord",
        "worker-sshd",
        "my-sshdanother",
        "supervisordanother",
        "worker-sshdanother",
    ):
        with_config(there, name, sshd_config="Port 22\n", supervisord_conf="x\n")
    for name in ("host-keys", "host-keysanother"):
        with_secrets(there, a_secret(name, x="1"))
    with_config(there, "whole-slurm-configs-good", slurm_conf="x\n")
    return there


def later(there, name: str):
    """The same when the root is populated and has Slurm's files."""
    with_job(there, name, succeeded=1)
    done = [{"type": "FilesWritten", "status": "True", "reason": "Success", "message": ""}]
    body = {"apiVersion": "slurm.nebius.ai/v1alpha1", "kind": "JailedConfig", "metadata": {"name": names.slurm_configs(name)},
            "spec": {"configMap": {"name": "x"}, "items": []}, "status": {"conditions": done}}  # fmt: skip
    there.things.append(read(body))
    return there


def made(there, bodies: tuple[dict[str, Any], ...]) -> str:
    """Everything that is made of these, in one text."""
    plans = [decide(there, KINDS[body["kind"]], body["metadata"]["name"])[1] for body in bodies]
    return json.dumps([_content(action) for plan in plans for action in plan.actions()], default=str)


def _content(action: Action) -> Any:
    match action:
        case Apply(manifest=body) | Create(manifest=body) | GenerateSecret(manifest=body):
            return body
        case DeleteObject():
            return [action.kind.kind, action.key]
        case Wait():
            return [action.reason, action.message]
        case _:
            return type(action).__name__


def said(bodies: tuple[dict[str, Any], ...], type_: type, name: str) -> list[str]:
    """The fields that the user is told about, by admission or by a condition."""
    there = there_is(*bodies)
    warnings = [one.path for one in there.get(type_, "ns", name).problems(None, References())]
    told = report(there, type_, name).get("FieldsSupported", ("", "", ""))[2]
    paths = [*warnings, *(f"spec.{part.partition(':')[0]}" for part in told.split("; "))]
    return [re.sub(r"\[\d+\]", "[]", path) for path in paths if path != "spec."]


MODELS = {SlurmCluster: SlurmClusterSpec, NodeSet: NodeSetSpec}
Bodies = tuple[dict[str, Any], ...]


@cache
def bases(type_: type, family: str) -> list[Bodies]:
    """Manifests to change fields in: the object itself first."""
    if type_ is NodeSet:
        return [(nodeset(family), cluster("whole", family))]
    return [(cluster(base, family), nodeset(family)) for base in (*CLUSTERS, "older")]


@cache
def plain(type_: type, family: str, index: int) -> dict[str, Any]:
    """The manifest with all defaults."""
    return {"spec": codec.plain(read(bases(type_, family)[index][0]).spec)}


def every_field(type_: type, family: str) -> dict[Path, Field]:
    found: dict[Path, Field] = {}
    for index in range(len(bases(type_, family))):
        found |= dict(walk.leaves(MODELS[type_], plain(type_, family, index)["spec"], ("spec",)))
    return found


def changed_bodies(type_: type, family: str, path: Path, field: Field) -> Iterator[tuple[int, Bodies]]:
    """Every manifest with another value of this field, where the object around the field is there."""
    for index, (main, *others) in enumerate(bases(type_, family)):
        there = plain(type_, family, index)
        if walk.value_at(there, path[:-1]) is not None:
            value = VALUES.get(walk.text(path), walk.another(field, walk.value_at(there, path)))
            yield index, (walk.with_value(main, path, value), *others)


@cache
def base_output(type_: type, family: str, index: int, when: Callable[[Bodies], Any]) -> str:
    bodies = bases(type_, family)[index]
    return made(when(bodies), bodies)


def at_first(bodies: Bodies):
    return there_is(*bodies)


def populated(bodies: Bodies):
    of = next(body["metadata"]["name"] for body in bodies if body["kind"] == "SlurmCluster")
    there = later(there_is(*bodies), of)
    owner = [
        {
            "apiVersion": "slurm.nebius.ai/v1alpha1",
            "kind": "NodeSet",
            "name": "gpu",
            "uid": "uid-gpu",
            "controller": True,
        }
    ]
    part = {
        "apiVersion": "slinky.slurm.net/v1beta1",
        "kind": "NodeSet",
        "spec": {"controllerRef": {"name": of}},
    }
    there.things.append(read({**part, "metadata": {"name": "gpu", "ownerReferences": owner}}))
    return there


def counts(type_: type, family: str, path: Path, field: Field) -> bool:
    """Whether another value of the field makes another part, file or object."""
    return any(
        made(when(new), new) != base_output(type_, family, index, when)
        for index, new in changed_bodies(type_, family, path, field)
        for when in (at_first, populated)
    )


def is_told(type_: type, family: str, path: Path, field: Field) -> bool:
    """When a manifest uses the field, the user reads its name, or that of what it belongs to."""
    wanted = walk.text(path)
    manifests = (new for _, new in changed_bodies(type_, family, path, field))
    told = (one for new in manifests for one in said(new, type_, new[0]["metadata"]["name"]))
    # The manifest that was changed may be the one that uses it.
    return any(
        wanted == one or wanted.startswith((f"{one}.", f"{one}["))
        for one in chain(base_said(type_, family), told)
    )


@cache
def base_said(type_: type, family: str) -> set[str]:
    every = bases(type_, family)
    return {one for bodies in every for one in said(bodies, type_, bodies[0]["metadata"]["name"])}


def is_listed(type_: type, family: str, path: Path) -> bool:
    """Whether the list of what is ignored has this field."""
    table = (*OF_CLUSTERS, *IGNORED_BY_OUR_MARIADB) if type_ is SlurmCluster else OF_NODESETS
    wanted = walk.text(path)
    listed = [f"spec.{one.path}" for one in table if one.family in (None, family)]
    return any(wanted == one or wanted.startswith(f"{one}.") for one in listed)


@pytest.mark.parametrize("family", list(IMAGES))
@pytest.mark.parametrize("type_", [SlurmCluster, NodeSet], ids=["SlurmCluster", "NodeSet"])
def test_every_field_counts_or_is_said_not_to(type_, family):
    silent = []
    for path, field in every_field(type_, family).items():
        if walk.text(path) in WITHOUT_EFFECT:
            continue
        has_effect = not is_listed(type_, family, path) and counts(type_, family, path, field)
        if not has_effect and not is_told(type_, family, path, field):
            silent.append(walk.text(path))

    assert silent == []
