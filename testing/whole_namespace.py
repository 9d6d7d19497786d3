"""A whole Slurm cluster in a namespace made by hand: every kind once, and every object that is made for them."""

from datetime import UTC, datetime
from typing import Any

from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.manifests import kinds
from slurm_operator.manifests.builders.key_ring import Ring
from slurm_operator.manifests.meta import Manifest
from slurm_operator.plan.actions import Apply, GenerateSecret
from slurm_operator.reconcilers import accounting, controller, loginset, restapi
from slurm_operator.reconcilers.controller.configuration import rehearsal
from slurm_operator.reconcilers.controller.configuration.files import wanted_files
from slurm_operator.reconcilers.controller.desired import desired, good_config_map
from slurm_operator.reconcilers.nodeset.creation import own_service, revisions
from slurm_operator.reconcilers.nodeset.creation.pod import Slot, WorkerPods
from slurm_operator.reconcilers.shared.dependencies import with_shared_keys
from testing.children import carried_out, put, read, secret, with_secrets
from testing.rings import ring_secret
from testing.world import HandmadeWorld

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
DATABASE = {"host": "db", "username": "slurm", "passwordKeyRef": {"name": "db", "key": "password"}}
REF = {"controllerRef": {"name": "slurm"}}
ROUNDS = 4


class WholeNamespace:
    """`head` and the others are added to the smallest spec of each kind."""

    def __init__(
        self,
        head: dict[str, Any] | None = None,
        books: dict[str, Any] | None = None,
        rest: dict[str, Any] | None = None,
        login: dict[str, Any] | None = None,
        gpu: dict[str, Any] | None = None,
    ) -> None:
        self.controller = read(Controller, {"accountingRef": {"name": "books"}, **(head or {})}, uid="head")
        self.accounting = read(
            Accounting, {"storageConfig": DATABASE, **(books or {})}, name="books", uid="books"
        )
        self.restapi = read(RestApi, {**REF, **(rest or {})}, name="rest", uid="rest")
        self.loginset = read(LoginSet, {**REF, **(login or {})}, name="login", uid="login")
        self.nodeset = read(NodeSet, {**REF, **(gpu or {})}, name="gpu", uid="gpu")
        things = [self.controller, self.accounting, self.restapi, self.loginset, self.nodeset]
        self.world = with_secrets(
            HandmadeWorld(things=things),
            secret("db", password="p1"),
            secret("books-auth-slurm", slurm_key="k1"),
            secret("books-auth-jwt", jwt_key="j1"),
            ring_secret("ns", "books-auth-slurm", Ring(signs="k1")),
        )

    def of_controller(self) -> list[Manifest]:
        """With the rehearsal and the files that are known to be good."""
        seen = controller.RECONCILER.observe(key_of(self.controller), self.world)
        assert seen is not None
        files = wanted_files(seen)
        held = rehearsal.config_map(seen, files)
        put(self.world, held)
        child = self.world.child(kinds.CONFIG_MAP, "ns", held["metadata"]["name"])
        assert child is not None
        return [
            *desired(seen, files),
            good_config_map(seen, files),
            held,
            rehearsal.rehearsal_pod(seen, child),
        ]

    def of_worker(self) -> Manifest:
        """The pod of the first worker."""
        head = with_shared_keys(self.controller, self.world)
        revision = revisions.current(self.nodeset, ())
        return WorkerPods(self.nodeset, head, revision).pod(Slot("gpu-0", "gpu-0", 0))

    def of_nodeset(self) -> list[Manifest]:
        revision = revisions.manifest(self.nodeset, revisions.current(self.nodeset, ()))
        service = [own_service.own_service(self.nodeset)] if self.nodeset.service else []
        return [revision, *service, self.of_worker()]

    def of_others(self) -> list[Manifest]:
        """Accounting, RestApi and LoginSet, until nothing is missing; generated Secrets among them."""
        for manifest in self.of_controller():
            if manifest["kind"] == "ConfigMap":
                put(self.world, manifest)
        found: dict[tuple[str, str], Manifest] = {}
        for _ in range(ROUNDS):
            for reconciler, name in ((accounting, "books"), (restapi, "rest"), (loginset, "login")):
                seen = reconciler.RECONCILER.observe(ObjectKey("ns", name), self.world)
                plan = reconciler.RECONCILER.decide(seen, NOW)
                for action in plan.actions():
                    if isinstance(action, Apply | GenerateSecret):
                        metadata = action.manifest["metadata"]
                        found[action.manifest["kind"], metadata["name"]] = action.manifest
                carried_out(self.world, plan)
        return list(found.values())

    def everything(self) -> list[Manifest]:
        return [*self.of_controller(), *self.of_nodeset(), *self.of_others()]
