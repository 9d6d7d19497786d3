"""Whatever is there already and whatever is not yet: every kind can be decided about, and says what it waits for."""

import itertools
from datetime import UTC, datetime

import pytest

from slurm_operator.api.schema import codec
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.api.slinky.token import Token
from slurm_operator.manifests.objects import Secret
from slurm_operator.plan.actions import Apply, Create, GenerateSecret
from slurm_operator.plan.plan import Outcome
from slurm_operator.reconcilers import accounting, controller, loginset, nodeset, restapi, token
from testing.controllers import child
from testing.rings import applied_secret
from testing.world import HandmadeWorld

NS = "demo"
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
HEAD = {"controllerRef": {"name": "slurm"}}
SPECS = {
    Accounting: {"storageConfig": {"host": "db", "passwordKeyRef": {"name": "db", "key": "password"}}},
    Controller: {"accountingRef": {"name": "slurm"}, "configFileRefs": [{"name": "files"}]},
    RestApi: HEAD,
    NodeSet: {**HEAD, "replicas": 2},
    LoginSet: HEAD,
    Token: {**HEAD, "username": "robot"},
}
RECONCILERS = {
    Accounting: accounting.RECONCILER,
    Controller: controller.RECONCILER,
    RestApi: restapi.RECONCILER,
    NodeSet: nodeset.RECONCILER,
    LoginSet: loginset.RECONCILER,
    Token: token.RECONCILER,
}


def thing(kind):
    meta = {
        "name": "slurm",
        "namespace": NS,
        "uid": f"uid-{kind.__name__}",
        "generation": 1,
        "resourceVersion": "1",
    }
    return codec.read(kind, {"metadata": meta, "spec": SPECS[kind]})


def passes(world: HandmadeWorld, kinds) -> dict:
    """One pass over each; what they wrote is there for the next. Gives what each says of its readiness."""
    told = {}
    for kind in kinds:
        reconciler = RECONCILERS[kind]
        seen = reconciler.observe(ObjectKey(NS, "slurm"), world)
        plan = reconciler.decide(seen, NOW)
        report = reconciler.status(seen, plan, Outcome(done=tuple(plan.actions())))
        told[kind] = {condition.type: condition for condition in report.conditions}
        for action in plan.actions():
            carry_out(world, action)
    return told


def carry_out(world: HandmadeWorld, action) -> None:
    if isinstance(action, GenerateSecret):
        name = action.manifest["metadata"]["name"]
        entries = {action.entry or "ssh_host_ed25519_key": f"made-{name}"}
        world.named[Secret, ObjectKey(NS, name)] = Secret(
            metadata=child(action.manifest).metadata, digests=entries
        )
    elif isinstance(action, Apply) and action.manifest["kind"] == "Secret":
        manifest = {"stringData": {}, **action.manifest}
        world.named[Secret, ObjectKey(NS, manifest["metadata"]["name"])] = applied_secret(manifest)
    elif isinstance(action, Apply | Create):
        assert action.manifest["kind"] != "StatefulSet", (
            "slurmctld or slurmdbd would start with something missing"
        )


SUBSETS = [subset for count in range(1, 7) for subset in itertools.combinations(SPECS, count)]


@pytest.mark.parametrize("there", SUBSETS, ids=lambda kinds: " ".join(kind.__name__ for kind in kinds))
def test_no_pass_fails_and_nobody_is_ready_or_started_too_early(there):
    world = HandmadeWorld(things=[thing(kind) for kind in there])

    for order in (there, tuple(reversed(there)), there):
        told = passes(world, order)

    for kind, conditions in told.items():
        assert conditions["Ready"].status != "True" or kind is Token, kind
        assert conditions["Ready"].message, f"{kind.__name__} says what it waits for"
