"""The parts that a Cluster should have, with just what the user said and what holds them together."""

from slurm_operator.api.schema.explicit_fields import explicit_fields
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared import names
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.cluster import ClusterLogin, ClusterNodeSet
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.manifests import kinds
from slurm_operator.manifests.builders.owners import owner_reference
from slurm_operator.manifests.meta import Manifest
from slurm_operator.reconcilers.cluster import isolation, partitions
from slurm_operator.reconcilers.cluster.isolation import Chosen
from slurm_operator.reconcilers.cluster.observe import Seen


def desired(seen: Seen) -> list[Manifest]:
    """Every object of one Cluster. Same facts in, same bytes out."""
    files = [] if seen.has_own_cgroup_conf else [cgroup_conf(seen)]
    records = [accounting(seen)] if seen.cluster.spec.accounting is not None else []
    return [
        *files,
        *records,
        controller(seen),
        restapi(seen),
        *(login(seen, one) for one in seen.cluster.spec.logins),
        *(nodeset(seen, one) for one in seen.cluster.spec.node_sets),
    ]


def chosen_isolation(seen: Seen) -> Chosen:
    return isolation.choose(seen.cluster.spec.isolation, seen.cluster.status.isolation, seen.against_cgroup)


def cgroup_conf(seen: Seen) -> Manifest:
    """The file that goes with the chosen isolation."""
    name = isolation.config_map_name(seen.meta.name)
    data = {isolation.CGROUP_CONF: chosen_isolation(seen).file}
    return _object(seen, kinds.CONFIG_MAP, name) | {"data": data}


def accounting(seen: Seen) -> Manifest:
    given = seen.cluster.spec.accounting
    assert given is not None
    database = {"storageConfig": explicit_fields(given.external)} if given.external is not None else {}
    spec = {**explicit_fields(given, without=("external",)), **database, **_keys(seen)}
    return _part(seen, Accounting.KIND, seen.meta.name, _with_image(seen, "slurmdbd", spec))


def controller(seen: Seen) -> Manifest:
    given = seen.cluster.spec
    spec: Manifest = {
        **explicit_fields(given.controller, without=("persistence", "config_file_refs")),
        **({"clusterName": given.cluster_name} if given.cluster_name else {}),
        **_keys(seen),
        **({"accountingRef": {"name": seen.meta.name}} if given.accounting is not None else {}),
        "persistence": {**explicit_fields(given.controller.persistence), "enabled": is_persistent(seen)},
        "configFileRefs": _files(seen),
        "extraConf": extra_conf(seen),
    }
    return _part(seen, Controller.KIND, seen.meta.name, _with_image(seen, "slurmctld", spec))


def is_persistent(seen: Seen) -> bool:
    """Whether slurmctld's state gets a volume. Decided once: the Controller cannot change it.

    Where StorageClasses cannot be read it does: a pod that waits says so, a lost state does not.
    """
    given = seen.cluster.spec.controller.persistence
    if given.enabled is not None:
        return given.enabled
    if seen.controller is not None:
        return seen.controller.spec.persistence.enabled
    return bool(explicit_fields(given)) or seen.has_default_storage is not False


def extra_conf(seen: Seen) -> str:
    """Our lines, then the user's: Slurm uses the last line of a key."""
    theirs = seen.cluster.spec.extra_conf
    lines = [
        *chosen_isolation(seen).lines(theirs),
        partitions.BEGIN,
        *partitions.lines(seen),
        partitions.END,
    ]
    return "".join(f"{line}\n" for line in lines) + (theirs.rstrip("\n") + "\n" if theirs else "")


def restapi(seen: Seen) -> Manifest:
    given = seen.cluster.spec.rest_api
    spec = {**explicit_fields(given), "replicas": given.replicas, **_controller_ref(seen)}
    return _part(seen, RestApi.KIND, seen.meta.name, _with_image(seen, "slurmrestd", spec))


def login(seen: Seen, given: ClusterLogin) -> Manifest:
    spec = {**explicit_fields(given, without=("name",)), "replicas": given.replicas, **_controller_ref(seen)}
    name = names.cluster_part(seen.meta.name, given.name)
    return _part(seen, LoginSet.KIND, name, _with_image(seen, "login", spec))


def nodeset(seen: Seen, given: ClusterNodeSet) -> Manifest:
    """Without `replicas`: those are written apart, or not at all."""
    spec = {**explicit_fields(given, without=("name", "replicas")), **_controller_ref(seen)}
    slurmd = chosen_isolation(seen).slurmd(spec.get("slurmd", {}), has_ssh=given.ssh.enabled)
    if slurmd:
        spec["slurmd"] = slurmd
    name = names.cluster_part(seen.meta.name, given.name)
    return _part(seen, NodeSet.KIND, name, _with_image(seen, "slurmd", spec))


def _files(seen: Seen) -> list[Manifest]:
    theirs = [explicit_fields(ref) for ref in seen.cluster.spec.controller.config_file_refs]
    ours = [] if seen.has_own_cgroup_conf else [{"name": isolation.config_map_name(seen.meta.name)}]
    return [*theirs, *ours]


def _keys(seen: Seen) -> Manifest:
    """Keys that the user named, for everybody who needs them."""
    spec = seen.cluster.spec
    given = {
        "slurmKeyRef": spec.slurm_key_ref,
        "jwtKeyRef": spec.jwt_key_ref or spec.jwt_hs256_key_ref,
        "jwksKeyRef": spec.jwks_key_ref,
    }
    return {field: explicit_fields(ref) for field, ref in given.items() if ref is not None}


def _with_image(seen: Seen, daemon: str, spec: Manifest) -> Manifest:
    """The image that was named for this daemon, unless its container has one already."""
    given = seen.cluster.spec
    image = getattr(given.images, daemon) or given.image
    wishes = spec.get(daemon, {})
    if not image or wishes.get("image"):
        return spec
    return {**spec, daemon: {**wishes, "image": image}}


def _controller_ref(seen: Seen) -> Manifest:
    return {"controllerRef": {"name": seen.meta.name}}


def _part(seen: Seen, kind: Kind, name: str, spec: Manifest) -> Manifest:
    return _object(seen, kind, name) | {"spec": spec}


def _object(seen: Seen, kind: Kind, name: str) -> Manifest:
    """Without the Cluster's own labels and annotations: they would end up on pods, and replace them."""
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {
            "name": name,
            "namespace": seen.meta.namespace,
            "labels": {names.LABEL_CLUSTER: seen.meta.name},
            "ownerReferences": [owner_reference(seen.cluster.KIND, seen.meta)],
        },
    }
