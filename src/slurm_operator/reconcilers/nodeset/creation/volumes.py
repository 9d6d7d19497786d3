"""Volumes that each worker has of its own: what they are called, when they come, and whom they follow."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import OwnerReference, key_of
from slurm_operator.api.shared.worker_parts import Retention, ScalingMode
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.conditions import Reason
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Child, Manifest
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.actions import Create, PatchObject, Wait
from slurm_operator.reconcilers.nodeset import identity
from slurm_operator.reconcilers.nodeset.worker.drain_causes import Cause, Leaving
from slurm_operator.reconcilers.nodeset.worker.removal import GRACE_SECONDS
from slurm_operator.reconcilers.nodeset.workers import Worker

Claims = Mapping[str, Child]

VOLUME_TERMINATING = Reason.VOLUME_TERMINATING

# A worker that goes for one of these does not come back, which is what `whenScaled` is about; one that goes
# for a cordon or an update does.
SCALED = {Leaving.SCALE_IN, Leaving.MODE_SWITCH, Leaving.NODE_UNFIT, Leaving.HOSTNAME}


def is_scaled_in(worker: Worker, cause: Cause | None, nodeset: NodeSet, *, is_going: bool) -> bool:
    """Whether a worker leaves and does not come back.

    One that ended, or that somebody deleted, comes back under its number, unless nobody wants that one.
    Who deleted it does not wait for us, so that is settled while its pod ends.
    """
    if cause is None:
        return False
    if cause.kind in (Leaving.ENDED, Leaving.TERMINATING):
        return _is_numbered(worker, nodeset) and (worker.ordinal or 0) not in nodeset.spec.numbers
    return is_going and cause.kind in SCALED


def _is_numbered(worker: Worker, nodeset: NodeSet) -> bool:
    """It has a number, in a NodeSet whose workers have."""
    return worker.ordinal is not None and worker.mode is nodeset.spec.scaling_mode


def claim_names(nodeset: NodeSet, whose: str) -> dict[str, str]:
    """Template to claim; `whose` is a padded number, or a host name in DaemonSet mode."""
    set_name = nodeset.metadata.name
    return {name: names.worker_claim(name, set_name, whose) for name in nodeset.spec.claim_templates}


def whose(pod: Pod) -> str:
    """What the claims of a worker are called after, by the time it was made."""
    is_numbered = identity.mode_of(pod) is ScalingMode.STATEFUL_SET
    return pod.metadata.labels.get(names.LABEL_POD_INDEX if is_numbered else names.LABEL_POD_HOSTNAME, "")


def all_claim_names(nodeset: NodeSet, ordinals: Iterable[int]) -> Iterator[str]:
    """Every claim that workers of these numbers may have."""
    for ordinal in ordinals:
        yield from claim_names(nodeset, identity.padded(ordinal, nodeset)).values()


def mounted(spec: Manifest, nodeset: NodeSet, whose: str) -> Manifest:
    """The pod with its own claims as volumes; one of the same name in the template gives way."""
    claims = claim_names(nodeset, whose)
    if not claims:
        return spec
    others = [volume for volume in spec.get("volumes") or () if volume["name"] not in claims]
    ours = [{"name": name, "persistentVolumeClaim": {"claimName": claim}} for name, claim in claims.items()]
    return {**spec, "volumes": [*others, *ours]}


def missing_claims(nodeset: NodeSet, whose: str, pod_name: str, there: Claims) -> list[Create | Wait]:
    """What must be there before the pod. A claim that exists is taken as it is, whoever made it."""
    templates = nodeset.spec.claim_templates
    steps: list[Create | Wait] = []
    for template, name in claim_names(nodeset, whose).items():
        found = there.get(name)
        if found is None:
            steps.append(_creation(nodeset, name, templates[template]))
        elif found.metadata.is_terminating or _goes_with_former(found, pod_name):
            message = f"PersistentVolumeClaim {name} is being deleted; the worker is created when it is gone"
            steps.append(Wait(subject=name, reason=VOLUME_TERMINATING, message=message))
    return steps


def lost_claims(worker: Worker, nodeset: NodeSet, there: Claims) -> list[Create]:
    """Claims that somebody deleted before the pod had a machine: the scheduler waits until they are back.

    It says which. Others that we do not see may be there all the same, made by somebody without our labels.
    """
    templates = nodeset.spec.claim_templates
    if not templates or worker.pod.spec.node_name or worker.is_terminating:
        return []
    scheduled = worker.pod.status.condition("PodScheduled")
    said = scheduled.message if scheduled is not None else ""
    return [
        _creation(nodeset, name, templates[template])
        for template, name in claim_names(nodeset, whose(worker.pod)).items()
        if name not in there and f'persistentvolumeclaim "{name}" not found' in said
    ]


def _creation(nodeset: NodeSet, name: str, template: Mapping[str, Any]) -> Create:
    message = f"created PersistentVolumeClaim {name}"
    manifest = _claim(nodeset, name, template)
    return Create(manifest=manifest, reason=Reason.SCALING_UP, message=message, may_exist=True)


def _goes_with_former(claim: Child, pod_name: str) -> bool:
    """It follows an earlier pod of this name, which is gone. So Kubernetes deletes it, at its own pace.

    A new pod would lose it before it starts, and wait for ever, or with all that it has written by then.
    """
    refs = claim.metadata.owner_references
    return bool(refs) and all(ref.kind == "Pod" and ref.name == pod_name for ref in refs)


def _claim(nodeset: NodeSet, name: str, template: Mapping[str, Any]) -> Manifest:
    meta = template.get("metadata") or {}
    labels = identity.owner(nodeset).bare_labels
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name,
            "namespace": nodeset.metadata.namespace,
            "labels": {**(meta.get("labels") or {}), **labels},
            "annotations": dict(meta.get("annotations") or {}),
            "ownerReferences": _follows_nodeset(nodeset),
        },
        "spec": dict(template.get("spec") or {}),
    }


def retention(worker: Worker, nodeset: NodeSet, there: Claims, *, is_scaled: bool) -> list[PatchObject]:
    """Makes the claims of a worker follow whom the policy says: the NodeSet, the pod that goes, or nobody.

    That was settled before we retired the worker or asked its pod to end; by then nobody can tell any more
    that it was a scale-in.
    """
    if not there or worker.is_retired or _is_settled(worker, nodeset):
        return []
    claims = (there.get(name) for name in claim_names(nodeset, whose(worker.pod)).values())
    steps = (_retained(claim, worker, nodeset, is_scaled=is_scaled) for claim in claims if claim is not None)
    return [step for step in steps if step is not None]


def _is_settled(worker: Worker, nodeset: NodeSet) -> bool:
    """Its pod ends: soon, as we ask for it, or it is one that we cannot tell about by its number."""
    is_ours = worker.ends_within(GRACE_SECONDS) or not _is_numbered(worker, nodeset)
    return worker.is_terminating and is_ours


def _retained(claim: Child, worker: Worker, nodeset: NodeSet, *, is_scaled: bool) -> PatchObject | None:
    refs = claim.metadata.owner_references
    pods = [ref for ref in refs if ref.kind == "Pod" and ref.name == worker.name]
    if claim.metadata.is_terminating or any(ref.uid != worker.uid for ref in pods):
        return None  # It follows a previous pod into its grave; a new one is made then.
    others = [ref for ref in refs if ref not in pods and ref.uid != nodeset.metadata.uid]
    wanted = [] if any(ref.controller for ref in others) else _owners(worker, nodeset, is_scaled=is_scaled)
    ours = {ref.uid for ref in refs if ref not in others}
    return _follows(claim, others, wanted) if ours != {ref["uid"] for ref in wanted} else None


def left_behind(nodeset: NodeSet, workers: Iterable[Worker], followers: Iterable[Child]) -> list[PatchObject]:
    """Makes claims stay that no worker has, and that would still go with the NodeSet against its policy.

    `followers` are all claims that would. Those of workers are settled with them.
    """
    uid, policy = nodeset.metadata.uid, nodeset.spec.persistent_volume_claim_retention_policy
    loose = [claim for claim in followers if not claim.metadata.is_terminating]
    if not loose or policy.when_deleted is Retention.DELETE:
        return []
    in_use = {name for worker in workers for name in claim_names(nodeset, whose(worker.pod)).values()}
    return [
        _follows(claim, [ref for ref in claim.metadata.owner_references if ref.uid != uid], [])
        for claim in loose
        if claim.metadata.name not in in_use
    ]


def _follows(claim: Child, others: list[OwnerReference], wanted: list[Manifest]) -> PatchObject:
    return PatchObject(
        kind=kinds.PERSISTENT_VOLUME_CLAIM,
        key=key_of(claim),
        uid=claim.metadata.uid,
        operations=(
            # The whole list is written, so it must still be the one that we have seen.
            {"op": "test", "path": "/metadata/resourceVersion", "value": claim.metadata.resource_version},
            {"op": "add", "path": "/metadata/ownerReferences", "value": [*map(_plain, others), *wanted]},
        ),
        reason=Reason.VOLUME_RETENTION,
        message=_owner_text(claim, wanted),
    )


def _owners(worker: Worker, nodeset: NodeSet, *, is_scaled: bool) -> list[Manifest]:
    policy = nodeset.spec.persistent_volume_claim_retention_policy
    if is_scaled and policy.when_scaled is Retention.DELETE:
        return [{"apiVersion": "v1", "kind": "Pod", "name": worker.name, "uid": worker.uid}]
    return _follows_nodeset(nodeset)


def _follows_nodeset(nodeset: NodeSet) -> list[Manifest]:
    meta, policy = nodeset.metadata, nodeset.spec.persistent_volume_claim_retention_policy
    if policy.when_deleted is not Retention.DELETE:
        return []
    return [
        {
            "apiVersion": nodeset.KIND.api_version,
            "kind": nodeset.KIND.kind,
            "name": meta.name,
            "uid": meta.uid,
        }
    ]


def _plain(ref: OwnerReference) -> Manifest:
    return {
        "apiVersion": ref.api_version,
        "kind": ref.kind,
        "name": ref.name,
        "uid": ref.uid,
        "controller": ref.controller,
        "blockOwnerDeletion": ref.block_owner_deletion,
    }


def _owner_text(claim: Child, wanted: list[Manifest]) -> str:
    whom = " and ".join(f"{ref['kind']} {ref['name']}" for ref in wanted)
    return f"PersistentVolumeClaim {claim.metadata.name} " + (f"is deleted with {whom}" if whom else "stays")
