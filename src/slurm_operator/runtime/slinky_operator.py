"""Whether Slinky's operator still runs beside us. It deletes workers without a proof, and undoes our drains.

It is found by its Deployment, and known to act by the Lease beside it: held by somebody who is none of us.
Where there is no Lease, or we may not look, a Deployment with a ready pod counts.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import Forbidden, KubeError
from slurm_operator.kube.presence import IDENTITY, LeaseWatch, Presence
from slurm_operator.kube.renewals import EVERYWHERE
from slurm_operator.manifests.kinds import DEPLOYMENT
from slurm_operator.manifests.meta import Manifest

_LABEL: Final = f"{names.APP_NAME}=slurm-operator"
_LEASE: Final = "slurm-operator"


class Acting(wire.Record):
    """Another operator that acts, where it was seen, and on which namespaces; none named is all."""

    deployment: ObjectKey
    seen_by: str
    namespaces: tuple[str, ...] = ()

    def covers(self, namespace: str) -> bool:
        return not self.namespaces or namespace in self.namespaces


class SlinkyOperator:
    """Looks for it wherever we may look; not in our own namespace, where the Lease decides."""

    def __init__(self, client: Client, leases: LeaseWatch, home: str, namespaces: Sequence[str] = ()) -> None:
        self._client = client
        self._leases = leases
        self._home = home
        self._places = [EVERYWHERE, *sorted({*namespaces} - {EVERYWHERE})]
        self._is_confined = False

    async def find(self) -> tuple[Acting, ...]:
        """Those that act now, or may. Raises KubeError when nobody can tell."""
        found = [one for one in await self._deployments() if one["metadata"]["namespace"] != self._home]
        acting = [await self._acting(one) for one in found if _may_run(one)]
        return tuple(one for one in acting if one is not None)

    async def _deployments(self) -> list[Manifest]:
        if not self._is_confined:
            try:
                return await self._in(EVERYWHERE)
            except Forbidden:
                self._is_confined = True
        found = []
        for place in self._places[1:]:
            try:
                found += await self._in(place)
            except Forbidden:
                continue
        return found

    async def _in(self, namespace: str) -> list[Manifest]:
        selector = {"labelSelector": _LABEL}
        listed = await self._client.request("GET", DEPLOYMENT.path(namespace), params=selector)
        items: list[Manifest] = listed["items"]
        return items

    async def _acting(self, deployment: Manifest) -> Acting | None:
        meta = deployment["metadata"]
        settings = dict(_settings(deployment))
        where = settings.get("leader-elect-namespace") or meta["namespace"]
        key = ObjectKey(where, settings.get("leader-elect-id") or _LEASE)
        lease = await self._leases.read(key)
        if lease is Presence.UNKNOWN:
            raise KubeError(f"Lease {key} cannot be read")
        if isinstance(lease, Presence):
            is_acting, seen_by = _is_ready(deployment), "has a ready pod"
        else:
            holder = lease.spec.holder_identity or ""
            is_foreign = bool(holder) and not holder.startswith(IDENTITY)
            is_acting, seen_by = is_foreign and not self._leases.is_silent(key), f"renews Lease {key}"
        if not is_acting:
            return None
        return Acting(
            deployment=ObjectKey(meta["namespace"], meta["name"]),
            seen_by=seen_by,
            namespaces=tuple(sorted({*settings.get("namespaces", "").split(",")} - {""})),
        )


def _may_run(deployment: Manifest) -> bool:
    """Whether it has a pod, or is to have one."""
    return bool(deployment["spec"].get("replicas", 1) or deployment.get("status", {}).get("replicas"))


def _is_ready(deployment: Manifest) -> bool:
    return bool(deployment.get("status", {}).get("readyReplicas"))


_ENVIRONMENT: Final = {"WATCH_NAMESPACE": "namespaces", "LEADER_ELECTION_ID": "leader-elect-id"}


def _settings(deployment: Manifest) -> Iterator[tuple[str, str]]:
    """What it is started with, as far as it matters here: flags count more than the environment."""
    containers: list[dict[str, Any]] = deployment["spec"]["template"]["spec"].get("containers") or []
    for container in containers:
        for variable in container.get("env") or ():
            if variable.get("name") in _ENVIRONMENT:
                yield _ENVIRONMENT[variable["name"]], variable.get("value") or ""
    for container in containers:
        words = [str(word) for word in (*(container.get("command") or ()), *(container.get("args") or ()))]
        for word, following in zip(words, [*words[1:], ""], strict=False):
            name, equals, value = word.lstrip("-").partition("=")
            if word.startswith("-"):
                yield name, value if equals else following
