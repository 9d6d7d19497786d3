"""Asks a Kubernetes cluster everything that `doctor` judges. Nothing is made or changed.

What cannot be asked is a fact too: one missing right must not hide everything else.
"""

import asyncio
import re
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from slurm_operator import wire
from slurm_operator.api import registry
from slurm_operator.api.registry import Registry
from slurm_operator.api.schema import codec
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import Meta, ObjectKey
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.insight.doctor.admission import are_crds_protected, webhooks
from slurm_operator.insight.doctor.facts import Facts, Kubelet, Machine, Operator, Serving
from slurm_operator.insight.doctor.rights import missing, needed_rights, operators_needs, user_name
from slurm_operator.kube.client import Client
from slurm_operator.kube.discovery import Discovery
from slurm_operator.kube.errors import Forbidden, KubeError, NotFound
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.objects import Pod, Unread
from slurm_operator.manifests.platform import Namespace, StorageClass
from slurm_operator.operator import OUR_CHILDREN
from slurm_operator.plan.order import is_forced
from slurm_operator.runtime.report.protection import is_protected

T = TypeVar("T")

# Every kubelet tells the same; of a large cluster a few are asked.
_MOST_KUBELETS = 8
_CGROUP_VERSION = re.compile(rb"^kubelet_cgroup_version(?:\{[^}]*\})? (\d+)", re.MULTILINE)


async def collect_facts(client: Client, namespace: str, ours: Registry = registry.DEFAULT) -> Facts:
    """Everything there is to know; takes a second or two."""
    look = _Look(client, namespace, ours)
    async with asyncio.TaskGroup() as group:
        start = group.create_task
        machines, accountings = start(look.machines()), start(look.accountings())
        version, user = start(tried(look.version())), start(tried(user_name(client)))
        lacking = start(tried(missing(client, needed_rights(namespace, ours))))
        operators = start(tried(look.operators()))
        storage, home = start(tried(look.storage_classes())), start(tried(look.home()))
        crds, hooks = start(tried(look.crds())), start(tried(webhooks(client, namespace, ours)))
        protected = start(tried(is_protected(client)))
        crds_protected = start(tried(are_crds_protected(client)))
        monitoring = start(tried(Discovery(client).serves(kinds.SERVICE_MONITOR)))
        dns, pods = start(tried(look.dns())), start(tried(look.pods()))
        forced, network = start(tried(look.forced())), start(tried(look.network_policies()))
        cgroups, kubelets = start(look.cgroups(await machines)), start(look.kubelets(await machines))
        cgroup_files = start(look.cgroup_files())
        databases = start(look.databases(await accountings))
    return Facts(
        namespace=namespace,
        version=version.result(),
        user=user.result(),
        machines=machines.result(),
        cgroups=cgroups.result(),
        missing_rights=lacking.result(),
        storage_classes=storage.result(),
        home=home.result(),
        crds=crds.result(),
        operators=operators.result(),
        webhooks=hooks.result(),
        is_protected=protected.result(),
        are_crds_protected=crds_protected.result(),
        has_monitoring=monitoring.result(),
        dns=dns.result(),
        accountings=accountings.result(),
        databases=databases.result(),
        pods=pods.result(),
        network_policies=network.result(),
        forced=forced.result(),
        kubelets=kubelets.result(),
        cgroup_files=cgroup_files.result(),
        ours=ours,
    )


async def tried(asked: Coroutine[Any, Any, T]) -> T | Unread:
    try:
        return await asked
    except Forbidden as error:
        return Unread(why=f"{error.attempted} is not allowed to you")
    except (KubeError, wire.DecodeError) as error:
        return Unread(why=str(error))


def has_plain_metrics(arguments: Sequence[str]) -> bool:
    """Whether everybody can read an operator's metrics. With settings in files nobody can tell from here."""
    said = dict(one.partition("=")[::2] for one in arguments)
    is_off = said.get("--metrics-addr") == "0"
    is_secure = "--metrics-secure" in said and said["--metrics-secure"] != "false"
    return not (is_off or is_secure or "--config" in said)


def in_cluster_service(host: str, namespace: str) -> ObjectKey | None:
    """The Service that a host name stands for, when it can only be one of this Kubernetes cluster."""
    parts = host.rstrip(".").split(".")
    if len(parts) == 1:
        return ObjectKey(namespace, parts[0])
    if len(parts) == 2 or parts[2] == "svc":
        return ObjectKey(parts[1], parts[0])
    return None


class _Look:
    def __init__(self, client: Client, namespace: str, ours: Registry) -> None:
        self._client = client
        self._namespace = namespace
        self._ours = ours

    async def version(self) -> str:
        return str((await self._client.request("GET", "/version"))["gitVersion"])

    async def machines(self) -> tuple[Machine, ...] | Unread:
        return await tried(self._items(kinds.KUBE_NODE.path(), Machine))

    async def cgroups(self, machines: tuple[Machine, ...] | Unread) -> dict[str, int] | Unread:
        """The version on each node; those that do not tell are left out."""
        if isinstance(machines, Unread):
            return machines
        asked = [one.metadata.name for one in machines if one.is_ready][:_MOST_KUBELETS]
        found = {name: await tried(self._cgroup_version(name)) for name in asked}
        refusal = next((one for one in found.values() if isinstance(one, Unread)), None)
        told = {name: version for name, version in found.items() if isinstance(version, int) and version}
        return refusal if refusal is not None and not told else told

    async def _cgroup_version(self, machine: str) -> int:
        """As the kubelet's metrics tell; 0 when it is too old to say so."""
        path = kinds.KUBE_NODE.path(name=machine, subresource="proxy/metrics")
        matched = _CGROUP_VERSION.search(await self._client.text(path))
        return int(matched[1]) if matched else 0

    async def kubelets(self, machines: tuple[Machine, ...] | Unread) -> dict[str, Kubelet]:
        """Their configuration. What the check about cgroup versions could not ask, it has said."""
        ready = (
            [] if isinstance(machines, Unread) else [one.metadata.name for one in machines if one.is_ready]
        )
        found = {name: await tried(self._kubelet(name)) for name in ready[:_MOST_KUBELETS]}
        return {name: one for name, one in found.items() if isinstance(one, Kubelet)}

    async def _kubelet(self, machine: str) -> Kubelet:
        path = kinds.KUBE_NODE.path(name=machine, subresource="proxy/configz")
        answer = await self._client.request("GET", path)
        return wire.convert(answer.get("kubeletconfig") or {}, Kubelet)

    async def cgroup_files(self) -> dict[str, str]:
        """cgroup.conf as slurmctld hands it out, by Controller; not of those whose files cannot be read."""
        path = Controller.KIND.path(self._namespace)
        controllers = await tried(self._read(path, lambda one: codec.read(Controller, one)))
        found: dict[str, str] = {}
        for one in () if isinstance(controllers, Unread) else controllers:
            key = ObjectKey(self._namespace, one.child_names.config)
            file = await tried(self._client.get(kinds.CONFIG_MAP, key))
            if not isinstance(file, Unread):
                found[one.metadata.name] = (file.get("data") or {}).get("cgroup.conf", "")
        return found

    async def storage_classes(self) -> tuple[StorageClass, ...]:
        return await self._items(kinds.STORAGE_CLASS.path(), StorageClass)

    async def home(self) -> Namespace | None:
        try:
            found = await self._client.get(kinds.NAMESPACE, ObjectKey("", self._namespace))
        except NotFound:
            return None
        return wire.convert(found, Namespace)

    async def crds(self) -> dict[str, Manifest]:
        listed = await self._client.request("GET", kinds.CUSTOM_RESOURCE_DEFINITION.path())
        ours = (one for one in listed["items"] if one["spec"]["group"] in self._ours.groups)
        return {one["metadata"]["name"]: one for one in ours}

    async def operators(self) -> tuple[Operator, ...]:
        selector = {"labelSelector": f"{names.APP_NAME}=slurm-operator"}
        listed = await self._client.request("GET", kinds.DEPLOYMENT.path(), params=selector)
        return tuple([await self._operator(one) for one in listed["items"]])

    async def _operator(self, deployment: Manifest) -> Operator:
        meta, pod = deployment["metadata"], deployment["spec"]["template"]["spec"]
        account = pod.get("serviceAccountName", "default")
        user = f"system:serviceaccount:{meta['namespace']}:{account}"
        return Operator(
            namespace=meta["namespace"],
            name=meta["name"],
            image=pod["containers"][0]["image"],
            account=f"{meta['namespace']}/{account}",
            wanted=deployment["spec"].get("replicas", 1),
            ready=deployment.get("status", {}).get("readyReplicas", 0),
            missing=await tried(missing(self._client, operators_needs(self._namespace, self._ours), user)),
            has_plain_metrics=has_plain_metrics(pod["containers"][0].get("args") or ()),
        )

    async def dns(self) -> tuple[Serving, ...]:
        params = {"labelSelector": "k8s-app=kube-dns"}
        listed = await self._client.request("GET", kinds.SERVICE.path(), params=params)
        keys = [ObjectKey(one["metadata"]["namespace"], one["metadata"]["name"]) for one in listed["items"]]
        found = await asyncio.gather(*map(self._serving, keys))
        return tuple(found)

    async def accountings(self) -> tuple[Accounting, ...] | Unread:
        path = Accounting.KIND.path(self._namespace)
        return await tried(self._read(path, lambda one: codec.read(Accounting, one)))

    async def databases(
        self, accountings: tuple[Accounting, ...] | Unread
    ) -> dict[str, Serving | Unread | None]:
        """The Services behind the databases that Accountings name; None for those outside of Kubernetes."""
        found: dict[str, Serving | Unread | None] = {}
        for accounting in accountings if isinstance(accountings, tuple) else ():
            given = accounting.spec.storage_config
            key = in_cluster_service(given.host, self._namespace) if given is not None else None
            found[accounting.metadata.name] = await tried(self._serving(key)) if key is not None else None
        return found

    async def _serving(self, key: ObjectKey) -> Serving:
        path = f"/apis/discovery.k8s.io/v1/namespaces/{key.namespace}/endpointslices"
        params = {"labelSelector": f"kubernetes.io/service-name={key.name}"}
        listed = await self._client.request("GET", path, params=params)
        endpoints = [point for one in listed["items"] for point in one.get("endpoints") or ()]
        ready = sum(1 for point in endpoints if point.get("conditions", {}).get("ready") is not False)
        return Serving(namespace=key.namespace, name=key.name, ready=ready)

    async def pods(self) -> tuple[Pod, ...]:
        return await self._items(kinds.POD.path(self._namespace), Pod, labelSelector=OUR_CHILDREN)

    async def network_policies(self) -> tuple[Manifest, ...]:
        listed = await self._client.request("GET", kinds.NETWORK_POLICY.path(self._namespace))
        return tuple(listed["items"])

    async def forced(self) -> tuple[str, ...]:
        """Of our kinds that are there; what is being deleted already is what somebody wanted."""
        kinds_there = [one for one in self._ours if one.kind.namespaced]
        listed = await asyncio.gather(*(self._metadata(one.kind) for one in kinds_there))
        return tuple(
            f"{one.kind.plural}.{one.kind.group}/{meta.name}"
            for one, metas in zip(kinds_there, listed, strict=True)
            for meta in metas
            if is_forced(meta) and not meta.is_terminating
        )

    async def _metadata(self, kind: Kind) -> list[Meta]:
        try:
            listed = await self._client.request("GET", kind.path(self._namespace))
        except NotFound:
            return []  # Its definition is not installed.
        return [codec.read(Meta, one["metadata"]) for one in listed["items"]]

    async def _items(self, path: str, type_: type[T], **params: str) -> tuple[T, ...]:
        return await self._read(path, lambda one: wire.convert(one, type_), **params)

    async def _read(self, path: str, read: Callable[[Any], T], **params: str) -> tuple[T, ...]:
        listed = await self._client.request("GET", path, params=params)
        return tuple(read(one) for one in listed["items"])
