"""What would be left behind if Slinky's operator took over again, and how it is removed.

Slinky knows neither our finalizers nor our conditions, and nobody would be exempt from our policy: deletes
would hang, or be refused. Finalizers, annotations, conditions, policies and budgets of others stay.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from slurm_operator import wire
from slurm_operator.api import registry
from slurm_operator.api.nebius import names as nebius_names
from slurm_operator.api.registry import Registry
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared import names
from slurm_operator.api.shared.conditions import DEGRADED, PROGRESSING, READY
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.slinky.cluster import Cluster
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.insight.doctor.finding import Finding, fail, listed, note, ok, warn
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import Conflict, Invalid, KubeError, NotFound
from slurm_operator.kube.presence import IDENTITY, Installation, LeaseWatch
from slurm_operator.kube.renewals import Lease
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Manifest
from slurm_operator.operator import OUR_CHILDREN
from slurm_operator.runtime.report.protection import protects

OURS: Final = (names.IN_USE_FINALIZER, names.WORKERS_FINALIZER)

# The only condition that Slinky's operator writes, and so keeps up to date.
THEIRS: Final = frozenset({"ReservationCreated"})

# Those of ours on kinds of the second API; all others there are Soperator's own.
OURS_BESIDE_THEIRS: Final = frozenset(
    {READY, PROGRESSING, DEGRADED, "RootPopulated", "RootShared", "FieldsSupported", "WorkersAvailable"}
)

# An operator that is at work renews its Lease every other second.
RENEWED_WITHIN_SECONDS: Final = 6.0

_TRIES: Final = 3


class Part(StrEnum):
    FINALIZERS = "Finalizers"
    ANNOTATION = "Annotation"
    CONDITIONS = "Conditions"
    BUDGET = "Budgets"
    POLICY = "Policies"


class Leftover(wire.Record):
    """One thing of ours on one object. What `is_deleted` is an object of ours as a whole."""

    part: Part
    kind: Kind
    key: ObjectKey
    what: str

    @property
    def is_deleted(self) -> bool:
        return self.part in (Part.BUDGET, Part.POLICY)

    def __str__(self) -> str:
        name = f"{self.kind.kind} {self.key}" if self.key.namespace else f"{self.kind.kind} {self.key.name}"
        return f"{name} ({self.what})" if self.what else name


class Installed(wire.Record):
    """What there is of us: objects of our kinds by kind, budgets, policies, and who is at work."""

    objects: dict[Kind, list[Any]]
    budgets: list[Any] = []
    policies: list[Any] = []
    bindings: list[Any] = []
    at_work: tuple[str, ...] = ()


def leftovers(found: Installed) -> list[Leftover]:
    """Everything that would be left behind, but what is on objects that are being deleted: see `blocked`."""
    return [
        *(
            left
            for kind, things in found.objects.items()
            for thing in things
            if "deletionTimestamp" not in thing["metadata"]
            for left in _of_object(kind, thing)
        ),
        *(
            Leftover(part=Part.BUDGET, kind=kinds.DISRUPTION_BUDGET, key=_key(one), what="")
            for one in found.budgets
        ),
        *(
            Leftover(part=Part.POLICY, kind=kind, key=_key(one), what="")
            for kind, things in (
                (kinds.ADMISSION_POLICY_BINDING, found.bindings),
                (kinds.ADMISSION_POLICY, found.policies),
            )
            for one in things
        ),
    ]


def _of_object(kind: Kind, thing: Manifest) -> Iterator[Leftover]:
    meta = thing["metadata"]
    if held := [one for one in meta.get("finalizers") or () if one in OURS]:
        yield Leftover(part=Part.FINALIZERS, kind=kind, key=_key(thing), what=", ".join(held))
    if names.MANAGER in (meta.get("annotations") or {}):
        yield Leftover(part=Part.ANNOTATION, kind=kind, key=_key(thing), what=names.MANAGER)
    if stale := [one["type"] for one in _conditions(thing) if _is_stale(kind, one["type"])]:
        yield Leftover(part=Part.CONDITIONS, kind=kind, key=_key(thing), what=", ".join(stale))


def _is_stale(kind: Kind, condition: str) -> bool:
    """Whether nobody but this operator keeps such a condition up to date."""
    return condition in OURS_BESIDE_THEIRS if kind.group == nebius_names.GROUP else condition not in THEIRS


def _conditions(thing: Manifest) -> Sequence[Manifest]:
    return (thing.get("status") or {}).get("conditions") or ()


def _key(thing: Manifest) -> ObjectKey:
    return ObjectKey(thing["metadata"].get("namespace", ""), thing["metadata"]["name"])


NOTHING_LEFT: Final = ok("Way back", "Nothing of this operator would be left behind.")

_WHY: Final = {
    Part.FINALIZERS: "Slinky's operator never removes them: a deleted object would stay Terminating.",
    Part.ANNOTATION: "It names this installation as the manager.",
    Part.CONDITIONS: "Nobody would keep them up to date.",
    Part.BUDGET: "Slinky's operator makes its own, and leaves one that is there as it is.",
    Part.POLICY: "It exempts this operator alone: Slinky's could not delete a protected worker.",
}


def findings(found: Installed) -> list[Finding]:
    """What is there, and what to do about it."""
    told = [
        *blocked(found),
        *left_behind(found, _WHY, "Run `kubectl slurm doctor --to slinky --release`."),
        *_clusters(found),
    ]
    return told or [NOTHING_LEFT]


def left_behind(found: Installed, why: Mapping[Part, str], remedy: str) -> Iterator[Finding]:
    """One finding for each part of which something is there."""
    left = leftovers(found)
    for part in Part:
        if some := [one for one in left if one.part is part]:
            yield warn(part, f"{listed(some)}. {why[part]}", remedy)


def blocked(found: Installed) -> Iterator[Finding]:
    """What has to be done first, by our operator or by a person."""
    terminating = [
        f"{kind.kind} {_key(thing)}"
        for kind, things in found.objects.items()
        for thing in things
        if "deletionTimestamp" in thing["metadata"]
    ]
    if terminating:
        yield fail(
            "Deletion",
            f"{listed(terminating)}: being deleted. Without our finalizers Kubernetes would end the workers "
            "and their jobs.",
            "Let the operator finish; `kubectl slurm explain` says what it waits for.",
        )
    changing = [
        f"Controller {_key(thing)} ({step})"
        for thing in found.objects.get(Controller.KIND, ())
        if (step := ((thing.get("status") or {}).get("slurmKey") or {}).get("step"))
    ]
    if changing:
        yield fail(
            "Slurm key",
            f"{listed(changing)}: the Slurm key is being changed. A slurmctld of the other operator knows "
            "only the key in its Secret: workers that sign with the old one would be lost, with their jobs.",
            "Let the operator finish, or put the old key back; `status.slurmKey.step` is empty then.",
        )


def running(found: Installed) -> Iterator[Finding]:
    """Who would put back what is removed."""
    if found.at_work:
        yield fail(
            "Operator",
            f"{listed(found.at_work)} is renewed: the operator is running and would put everything back.",
            "Scale its Deployment to 0, wait until its pod is gone, and run this again.",
        )


def _clusters(found: Installed) -> Iterator[Finding]:
    there = [str(_key(one)) for one in found.objects.get(Cluster.KIND, ())]
    if there:
        yield note(
            "Clusters",
            f"Slinky's operator does not know the kind Cluster: {listed(there)}. Their parts go on without "
            "them. Deleting a Cluster deletes its parts, unless they are orphaned.",
            "When the finalizers are removed, run "
            "`kubectl delete clusters.slinky.slurm.net NAME -n NAMESPACE --cascade=orphan`.",
        )


async def look(client: Client, *, is_patient: bool = False, of: Registry = registry.DEFAULT) -> Installed:
    """Reads what there is. With `is_patient` it takes seconds, to see whether a Lease is renewed."""
    objects = {one.kind: await _items(client, one.kind) for one in of}
    budgets = await _items(client, kinds.DISRUPTION_BUDGET, labelSelector=OUR_CHILDREN)
    policies = [one for one in await _items(client, kinds.ADMISSION_POLICY) if protects(one)]
    called = {one["metadata"]["name"] for one in policies}
    bindings = await _items(client, kinds.ADMISSION_POLICY_BINDING)
    return Installed(
        objects=objects,
        budgets=[one for one in budgets if "minAvailable" in one["spec"]],
        policies=policies,
        bindings=[one for one in bindings if one["spec"].get("policyName") in called],
        at_work=await _at_work(client, objects) if is_patient else (),
    )


async def _items(client: Client, kind: Kind, **params: str) -> list[Manifest]:
    """All of a kind; none where the server has no such kind."""
    try:
        listed = await client.request("GET", kind.path(), params=params)
    except NotFound:
        return []
    items: list[Manifest] = listed["items"]
    return items


async def _at_work(client: Client, objects: dict[Kind, list[Manifest]]) -> tuple[str, ...]:
    """The Leases of installations of ours that are renewed."""
    marks = {
        (thing["metadata"].get("annotations") or {}).get(names.MANAGER, "")
        for things in objects.values()
        for thing in things
    }
    named = [one for mark in sorted(marks) if (one := Installation.parse(mark)) is not None]
    leases = LeaseWatch(client)
    before = {one.lease: await leases.read(one.lease) for one in named}
    if any(map(_is_held, before.values())):
        await asyncio.sleep(RENEWED_WITHIN_SECONDS)
    after = {key: await leases.read(key) for key in before}
    return tuple(f"Lease {key}" for key in before if _is_held(after[key]) and after[key] != before[key])


def _is_held(lease: object) -> bool:
    return isinstance(lease, Lease) and (lease.spec.holder_identity or "").startswith(IDENTITY)


async def release(client: Client, left: Sequence[Leftover]) -> list[Finding]:
    """Remove it, one by one; what could not be removed is told, and the rest goes on."""
    told = []
    for one in left:
        try:
            await (_deleted(client, one) if one.is_deleted else _patched(client, one))
        except NotFound:
            told.append(ok(one.part, f"{one}: gone already."))
        except KubeError as error:
            told.append(fail(one.part, f"{one}: not removed: {error}", "Run this again."))
        else:
            told.append(ok(one.part, f"{one}: removed."))
    return told


async def _deleted(client: Client, left: Leftover) -> None:
    there = await client.get(left.kind, left.key)
    await client.delete(left.kind, left.key, uid=there["metadata"]["uid"])


async def _patched(client: Client, left: Leftover) -> None:
    """Of the object as it is now; somebody else may write to it in between."""
    for tries_left in reversed(range(_TRIES)):
        there = await client.get(left.kind, left.key)
        operations, subresource = without(there, left.part, left.kind)
        if not operations or "deletionTimestamp" in there["metadata"]:
            return
        meta = there["metadata"]
        test = {"op": "test", "path": "/metadata/resourceVersion", "value": meta["resourceVersion"]}
        try:
            await client.json_patch(
                left.kind, left.key, [test, *operations], uid=meta["uid"], subresource=subresource
            )
        except (Conflict, Invalid):
            if not tries_left:
                raise
        else:
            return


def without(thing: Manifest, part: Part, kind: Kind = Controller.KIND) -> tuple[list[dict[str, Any]], str]:
    """The patch that takes this part of ours off an object, and the subresource that it is for."""
    meta = thing["metadata"]
    match part:
        case Part.FINALIZERS:
            before = meta.get("finalizers") or []
            kept = [one for one in before if one not in OURS]
            return ([_replaced("/metadata/finalizers", kept)] if kept != before else []), ""
        case Part.ANNOTATION:
            path = f"/metadata/annotations/{names.MANAGER.replace('/', '~1')}"
            is_there = names.MANAGER in (meta.get("annotations") or {})
            return ([{"op": "remove", "path": path}] if is_there else []), ""
        case _:
            conditions = list(_conditions(thing))
            kept = [one for one in conditions if not _is_stale(kind, one["type"])]
            return ([_replaced("/status/conditions", kept)] if kept != conditions else []), "status"


def _replaced(path: str, value: object) -> dict[str, Any]:
    return {"op": "replace", "path": path, "value": value}
