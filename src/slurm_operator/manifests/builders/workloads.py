"""Deployments and StatefulSets: what their template was made from, and how far they have come."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from slurm_operator import wire
from slurm_operator.api.schema import codec
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.pods import PodTemplate
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.manifests import kinds
from slurm_operator.manifests.compare.differences import INPUT_DIGEST, INPUT_DIGEST_AS_WRITTEN
from slurm_operator.manifests.compare.meaning import meant
from slurm_operator.manifests.digests import digest
from slurm_operator.manifests.meta import Child, Manifest


def login_kind(loginset: LoginSet) -> Kind:
    """What the pods of a LoginSet belong to."""
    return kinds.STATEFUL_SET if loginset.spec.ordered else kinds.DEPLOYMENT


@dataclass(frozen=True)
class Wish:
    """What a user laid over a container or a pod of ours."""

    value: Mapping[str, Any] | PodTemplate

    @property
    def as_written(self) -> Any:
        return codec.plain(self.value)

    @property
    def meant(self) -> Any:
        if isinstance(self.value, PodTemplate):
            return {**self.as_written, "spec": meant(codec.plain(self.value.spec))}
        return meant(self.as_written)


def with_input(workload: Manifest, *inputs: object) -> Manifest:
    """The workload with a note of what its pod template follows from: only a change of that replaces pods."""
    metadata = workload["metadata"]
    annotations = {**metadata["annotations"], **input_notes(inputs)}
    return workload | {"metadata": {**metadata, "annotations": annotations}}


def input_notes(inputs: object) -> dict[str, str]:
    """The digest of what was meant. Earlier versions noted that of what was written: theirs counts, too."""
    now = digest(_with_wishes(inputs, lambda wish: wish.meant))
    before = digest(_with_wishes(inputs, lambda wish: wish.as_written))
    return {INPUT_DIGEST: now} if now == before else {INPUT_DIGEST: now, INPUT_DIGEST_AS_WRITTEN: before}


def _with_wishes(inputs: object, told: Callable[[Wish], Any]) -> Any:
    if isinstance(inputs, Wish):
        return told(inputs)
    if isinstance(inputs, Mapping):
        return {key: _with_wishes(value, told) for key, value in inputs.items()}
    if isinstance(inputs, list | tuple):
        return [_with_wishes(value, told) for value in inputs]
    return inputs


class Rollout(wire.Record):
    """How many pods there should be, and how many there are of each sort. `stuck` says why no more come."""

    wanted: int
    replicas: int = 0
    updated: int = 0
    ready: int = 0
    available: int = 0
    is_observed: bool = False
    stuck: str = ""

    @property
    def works(self) -> bool:
        """As many pods serve as were asked for, of whatever revision."""
        return self.is_observed and self.available >= self.wanted

    @property
    def is_done(self) -> bool:
        """And all of them are of the newest revision."""
        return self.works and self.updated >= self.wanted and self.replicas <= self.wanted


def rollout(workload: Child | None) -> Rollout | None:
    """What a workload says about itself; None when there is none."""
    if workload is None:
        return None
    status = workload.body.get("status") or {}
    return Rollout(
        wanted=workload.body["spec"].get("replicas", 1),
        replicas=status.get("replicas", 0),
        updated=status.get("updatedReplicas", 0),
        ready=status.get("readyReplicas", 0),
        available=status.get("availableReplicas", 0),
        is_observed=status.get("observedGeneration", 0) >= workload.metadata.generation,
        stuck=_stuck(status),
    )


def _stuck(status: Manifest) -> str:
    for condition in status.get("conditions") or ():
        kind, value = condition.get("type"), condition.get("status")
        if (kind, value) in (("Progressing", "False"), ("ReplicaFailure", "True")):
            return str(condition.get("message", ""))
    return ""
