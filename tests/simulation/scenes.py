"""What stands on the stage when a story begins, and what people are about to ask for."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from simulation import shared_root
from simulation.apiserver import HUMAN, ApiServer, Object
from slurm_operator import operator
from slurm_operator.api.nebius import SlurmCluster
from slurm_operator.api.nebius import names as nebius_names
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.cluster import Cluster
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.api.slinky.token import Token
from slurm_operator.manifests import kinds
from slurm_operator.manifests.secrets import SecretHandle
from slurm_operator.plan.reconciler import SlurmServer
from slurm_operator.reconcilers.nebius.kubenode.options import NodeOptions
from slurm_operator.reconcilers.nebius.shared.brake import Limit
from slurm_operator.runtime.manager import Program
from slurm_operator.runtime.settings import Settings

NAMESPACE = "ns"
CONTROLLER = ObjectKey(NAMESPACE, "slurm")
FILES = ObjectKey(NAMESPACE, "files")
DATABASE = ObjectKey(NAMESPACE, "database")
PASSWORD = "c2VjcmV0"

WORKERS, PARTS, CLUSTER = "workers", "parts", "cluster"
# A SlurmCluster and its NodeSet before workers; drawn only where somebody asks for it, so that seeds tell what they told.
SLURMCLUSTER = "slurmcluster"
# Workers and two operators, to whom more happens; on request, too.
WIDE = "wide"

# How often each is drawn. Jobs are lost with workers, if anywhere, and a story of all kinds takes six times as long.
SHARES = {WORKERS: 18, PARTS: 1, CLUSTER: 1}

WHOLE = operator.program(Settings())
# What a NodeSet looks at is watched as the operator watches it; the Controller is there, and nobody changes it.
WORKERS_ONLY = replace(
    WHOLE,
    reconcilers=tuple(found for found in WHOLE.reconcilers if found.name == "nodeset"),
    slurm_servers=lambda world: {
        CONTROLLER: SlurmServer(
            ("http://simulated",), SecretHandle(namespace=NAMESPACE, name="jwt", key="key")
        )
    },
)

# The same with the second API in front of the NodeSet.
# The brake is wide: what it holds up waits for an hour, and no story does.
_NODES = NodeOptions(brake=Limit(max_percent=100))
_BOTH = operator.program(Settings(groups=(names.GROUP, nebius_names.GROUP), nodes=_NODES))
WORKERS_ON_A_ROOT = replace(
    _BOTH,
    reconcilers=tuple(
        found
        for found in _BOTH.reconcilers
        if found.name in ("kubenode", "nodeset", "nodesetpowerstate", "slurmcluster", "slurmcluster-nodeset")
    ),
    slurm_servers=WORKERS_ONLY.slurm_servers,
)

# Fields of a NodeSet of the second API that a story may begin with.
OF_THE_SECOND_API = ("ephemeralNodes", "initialNumberEphemeralNodes", "updateStrategy")

Wish = tuple[Kind, Object]


@dataclass(frozen=True)
class Scene:
    """`nodeset` says what is asked of the workers, the rest what is there besides them."""

    name: str = WORKERS
    nodeset: tuple[tuple[str, object], ...] = (("replicas", 2),)
    accounting: str = ""  # "managed" or "elsewhere"; empty is none.
    is_persistent: bool = True
    has_login: bool = True
    has_token: bool = True

    @classmethod
    def of(cls, chance: random.Random, name: str = "") -> "Scene":
        nodeset: list[tuple[str, object]] = [("replicas", chance.randint(1, 4))]
        [drawn] = chance.choices(list(SHARES), list(SHARES.values()))
        if chance.random() < 0.2:
            nodeset.append(("scalingMode", "DaemonSet"))
        return cls(
            name or drawn,
            tuple(nodeset),
            chance.choice(["", "", "managed", "elsewhere"]),
            chance.random() < 0.8,
            chance.random() < 0.6,
            chance.random() < 0.5,
        )

    @property
    def is_whole(self) -> bool:
        return self.name not in (WORKERS, WIDE, SLURMCLUSTER)

    @property
    def operators(self) -> int:
        return 2 if self.name == WIDE else 1

    @property
    def program(self) -> Program:
        if self.name == SLURMCLUSTER:
            return WORKERS_ON_A_ROOT
        return WHOLE if self.is_whole else WORKERS_ONLY

    @property
    def worker_set(self) -> ObjectKey:
        return ObjectKey(NAMESPACE, "slurm-gpu" if self.name == CLUSTER else "gpu")

    @property
    def keys_of(self) -> str:
        """After whom generated keys are called."""
        return CONTROLLER.name

    def set(self, server: ApiServer) -> None:
        """What is there before anybody asks for anything."""
        server.create(kinds.NAMESPACE, {"metadata": {"name": NAMESPACE}}, HUMAN)
        if self.name == SLURMCLUSTER:
            self._set_root(server)
        elif not self.is_whole:
            server.create(Controller.KIND, _named("slurm", {}), HUMAN)
            server.create(kinds.SECRET, {**_meta("jwt"), "data": {"key": PASSWORD}}, HUMAN)
            spec = {"controllerRef": {"name": "slurm"}, "slurmd": {"image": "slurmd:1"}, **dict(self.nodeset)}
            server.create(NodeSet.KIND, _named("gpu", spec), HUMAN)
            return
        server.create(kinds.CONFIG_MAP, {**_meta(FILES.name), "data": {"gres.conf": "# 0\n"}}, HUMAN)
        server.create(kinds.SECRET, {**_meta(DATABASE.name), "data": {"password": PASSWORD}}, HUMAN)

    def _set_root(self, server: ApiServer) -> None:
        """The SlurmCluster has a Controller already, whose slurmctld runs."""
        owner = server.create(SlurmCluster.KIND, shared_root.cluster(), HUMAN)
        reference = {
            "apiVersion": SlurmCluster.KIND.api_version,
            "kind": SlurmCluster.KIND.kind,
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "controller": True,
        }
        meta = {"name": "slurm", "namespace": NAMESPACE, "ownerReferences": [reference]}
        server.create(Controller.KIND, {"metadata": meta, "spec": {}}, HUMAN)
        server.create(kinds.SECRET, {**_meta("jwt"), "data": {"key": PASSWORD}}, HUMAN)
        wanted = shared_root.nodeset("gpu", int(str(dict(self.nodeset)["replicas"])))
        more = {name: value for name, value in self.nodeset if name in OF_THE_SECOND_API}
        wanted["spec"] |= more
        server.create(shared_root.Front.KIND, wanted, HUMAN)

    def wishes(self) -> list[Wish]:
        """What people ask for, in the order of the manual; they rarely keep to it."""
        made = self._cluster() if self.name == CLUSTER else self._parts()
        return [*made, *self._token()]

    def _parts(self) -> Iterator[Wish]:
        reference = {"controllerRef": {"name": "slurm"}}
        if self.accounting:
            yield Accounting.KIND, _named("slurm", self._database("storageConfig"))
        yield Controller.KIND, _named("slurm", {**self._head(), **self._accounting_ref(), "extraConf": ""})
        yield RestApi.KIND, _named("slurm", {**reference, "slurmrestd": {"image": "slurmrestd:1"}})
        partition = {"partition": {"enabled": True}}
        yield (
            NodeSet.KIND,
            _named("gpu", {**reference, "slurmd": {"image": "slurmd:1"}, **dict(self.nodeset), **partition}),
        )
        if self.has_login:
            yield LoginSet.KIND, _named("login", {**reference, "login": {"image": "login:1"}})

    def _cluster(self) -> Iterator[Wish]:
        spec: Object = {
            "controller": self._head(),
            "nodeSets": [{"name": "gpu", "slurmd": {"image": "slurmd:1"}, **dict(self.nodeset)}],
            "extraConf": "",
        }
        if self.accounting:
            spec["accounting"] = self._database("external")
        if self.has_login:
            spec["logins"] = [{"name": "login"}]
        yield Cluster.KIND, _named("slurm", spec)

    def _token(self) -> Iterator[Wish]:
        if self.has_token:
            spec = {"controllerRef": {"name": "slurm"}, "username": "ada", "lifetime": "24h"}
            yield Token.KIND, _named("ada", spec)

    def _head(self) -> Object:
        return {
            "slurmctld": {"image": "slurmctld:1"},
            "persistence": {"enabled": self.is_persistent},
            "configFileRefs": [{"name": FILES.name}],
        }

    def _accounting_ref(self) -> Object:
        return {"accountingRef": {"name": "slurm"}} if self.accounting else {}

    def _database(self, elsewhere: str) -> Object:
        if self.accounting == "managed":
            return {"managed": {}}
        ref = {"name": DATABASE.name, "key": "password"}
        return {elsewhere: {"host": "db", "username": "slurm", "passwordKeyRef": ref}}


def _meta(name: str) -> Object:
    return {"metadata": {"name": name, "namespace": NAMESPACE}}


def _named(name: str, spec: Object) -> Object:
    return {**_meta(name), "spec": spec}
