"""What there is of an installation of Soperator. Nothing is changed, and no value of a Secret is kept."""

import asyncio
from collections.abc import Coroutine, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from slurm_operator import wire
from slurm_operator.api import registry
from slurm_operator.api.nebius import SlurmCluster, names
from slurm_operator.api.shared import names as shared_names
from slurm_operator.insight.doctor.collection import tried
from slurm_operator.insight.doctor.helm_releases import Release, releases
from slurm_operator.insight.doctor.hooks import Hook, hooks, items
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import NotFound
from slurm_operator.kube.presence import IDENTITY
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.moments import moment
from slurm_operator.manifests.objects import Unread
from slurm_operator.reconcilers.nebius.shared.objects import APP

KINDS: Final = registry.ALL.on((names.GROUP,))
CHECKS_LEASE: Final = "a22156dp.nebius.ai"
KRUISE_CRD: Final = f"{kinds.KRUISE_STATEFUL_SET.plural}.{kinds.KRUISE_STATEFUL_SET.group}"

# Commands and images of the programs that Soperator runs for all clusters.
_PROGRAMS: Final = ("slurm_operator", "soperatorchecks")
# The image of ours that runs in place of its manager.
_OUR_MANAGER: Final = "slurm-operator-soperator"
_ONLY_OURS: Final = "activechecks"  # Soperator's webhook asks about Secrets, SlurmClusters and NodeSets.
_CERTIFICATES: Final = "/apis/cert-manager.io/v1"
_FLUX: Final = "/apis/helm.toolkit.fluxcd.io/v2/helmreleases"
_ON_CLUSTER: Final = {"labelSelector": f"{shared_names.APP_NAME}={APP}"}


class Lead(wire.Record):
    """A Lease by which processes elect their leader."""

    place: str
    holder: str
    is_renewed: bool

    @property
    def is_ours(self) -> bool:
        return self.holder.startswith(IDENTITY)


class Found(wire.Record):
    """What there is. `Unread` stands for what could not be asked."""

    programs: tuple[Any, ...] | Unread = ()
    leads: tuple[Lead, ...] | Unread = ()
    crds: dict[str, Any] | Unread = {}
    hooks: tuple[Hook, ...] | Unread = ()
    certificates: tuple[str, ...] | Unread = ()
    released: tuple[Release, ...] | Unread = ()
    flux: tuple[Any, ...] | Unread = ()
    objects: dict[str, list[Any]] | Unread = {}
    stateful_sets: tuple[Any, ...] | Unread = ()  # Of Kruise.
    deployments: tuple[Any, ...] | Unread = ()  # Of clusters.
    pods: tuple[Any, ...] | Unread = ()  # Of clusters.
    jobs: tuple[Any, ...] | Unread = ()  # Of clusters.
    claims: tuple[Any, ...] | Unread = ()
    secrets: dict[str, tuple[str, ...]] | Unread = {}  # By namespace and name: the names of its entries.


async def look(client: Client) -> Found:
    """Everything there is to see, in the whole cluster."""
    asked: dict[str, Coroutine[Any, Any, Any]] = {
        "programs": _programs(client),
        "leads": _leads(client),
        "crds": _crds(client),
        "hooks": hooks(client, _is_about_us, _ONLY_OURS),
        "certificates": _certificates(client),
        "released": releases(client),
        "flux": _all(client, _FLUX),
        "objects": _objects(client),
        "stateful_sets": _all(client, kinds.KRUISE_STATEFUL_SET.path()),
        "deployments": _all(client, kinds.DEPLOYMENT.path(), **_ON_CLUSTER),
        "pods": _all(client, kinds.POD.path(), **_ON_CLUSTER),
        "jobs": _all(client, kinds.JOB.path(), **_ON_CLUSTER),
    }
    async with asyncio.TaskGroup() as group:
        tasks = {name: group.create_task(tried(one)) for name, one in asked.items()}
    found: dict[str, Any] = {name: task.result() for name, task in tasks.items()}
    clusters = _clusters(found["objects"])
    claims = await tried(_claims(client, {one["metadata"]["namespace"] for one in clusters}))
    secrets = await tried(_secrets(client, clusters))
    return Found(**found, claims=claims, secrets=secrets)


async def _all(client: Client, path: str, **params: str) -> tuple[Manifest, ...]:
    """Everything of a kind; nothing where the server has no such kind."""
    try:
        return tuple(await items(client, path, **params))
    except NotFound:
        return ()


async def _programs(client: Client) -> tuple[Manifest, ...]:
    return tuple(one for one in await items(client, kinds.DEPLOYMENT.path()) if _program(one))


def _program(deployment: Manifest) -> bool:
    """Whether it is Soperator's manager or its checks: by the command, or by the image."""
    for one in deployment["spec"]["template"]["spec"]["containers"]:
        image = _last(str(one.get("image", "")).partition("@")[0]).partition(":")[0]
        command = _last(str((one.get("command") or [""])[0]))
        if image != _OUR_MANAGER and not {image, command}.isdisjoint(_PROGRAMS):
            return True
    return False


def _last(path: str) -> str:
    return path.rpartition("/")[2]


async def _leads(client: Client) -> tuple[Lead, ...]:
    found = []
    for name in (names.SOPERATOR_LEASE, CHECKS_LEASE):
        leases = await items(client, kinds.LEASE.path(), fieldSelector=f"metadata.name={name}")
        found += [_lead(one, datetime.now(UTC)) for one in leases]
    return tuple(found)


def _lead(lease: Manifest, now: datetime) -> Lead:
    meta, spec = lease["metadata"], lease.get("spec") or {}
    renewed, holder = spec.get("renewTime"), spec.get("holderIdentity") or ""
    patience = timedelta(seconds=int(spec.get("leaseDurationSeconds") or 0))
    since = moment(renewed) if renewed else None
    is_renewed = bool(holder) and since is not None and now <= since + patience
    return Lead(place=f"{meta['namespace']}/{meta['name']}", holder=holder, is_renewed=is_renewed)


async def _crds(client: Client) -> dict[str, Manifest]:
    """Of both groups, and that of Kruise's StatefulSets."""
    found = await items(client, kinds.CUSTOM_RESOURCE_DEFINITION.path())
    known = {one["metadata"]["name"]: one for one in found}
    return {
        name: one
        for name, one in known.items()
        if one["spec"]["group"] in registry.GROUPS or name == KRUISE_CRD
    }


def _is_about_us(hook: Manifest) -> bool:
    """About kinds of this group, or about guarded Secrets."""
    guarded = names.GUARD_LABEL in ((hook.get("objectSelector") or {}).get("matchLabels") or {})
    return guarded or any(names.GROUP in (rule.get("apiGroups") or ()) for rule in hook.get("rules") or ())


async def _certificates(client: Client) -> tuple[str, ...]:
    """Objects of cert-manager for Soperator's webhook, as kubectl wants to hear their names."""
    found = []
    for plural in ("certificates", "issuers"):
        for one in await _all(client, f"{_CERTIFICATES}/{plural}"):
            meta = one["metadata"]
            labels = " ".join((meta.get("labels") or {}).values())
            if "soperator" in f"{meta['name']} {meta['namespace']} {labels}":
                found.append(f"-n {meta['namespace']} {plural}.cert-manager.io/{meta['name']}")
    return tuple(sorted(found))


async def _objects(client: Client) -> dict[str, list[Manifest]]:
    return {one.kind.kind: list(await _all(client, one.kind.path())) for one in KINDS}


def _clusters(objects: Any) -> list[Manifest]:
    return [] if isinstance(objects, Unread) else list(objects.get(SlurmCluster.KIND.kind, ()))


async def _claims(client: Client, namespaces: Iterable[str]) -> tuple[Manifest, ...]:
    found: list[Manifest] = []
    for namespace in sorted(namespaces):
        found += await items(client, kinds.PERSISTENT_VOLUME_CLAIM.path(namespace))
    return tuple(found)


async def _secrets(client: Client, clusters: Iterable[Manifest]) -> dict[str, tuple[str, ...]]:
    """Which of the keys of each cluster there are. What they contain is dropped at once."""
    found = {}
    for cluster in clusters:
        namespace, name = cluster["metadata"]["namespace"], cluster["metadata"]["name"]
        for secret in keys_of(name, cluster):
            try:
                one = await client.request("GET", kinds.SECRET.path(namespace, secret))
            except NotFound:
                continue
            found[f"{namespace}/{secret}"] = tuple(sorted(one.get("data") or {}))
    return found


def keys_of(cluster: str, manifest: Manifest) -> tuple[str, ...]:
    """The Secrets that a cluster has for life."""
    said = ((manifest.get("spec") or {}).get("secrets") or {}).get("sshdKeysName")
    return (
        names.munge_secret(cluster),
        names.rest_jwt_secret(cluster),
        said or names.sshd_keys_secret(cluster),
    )
