"""NodeSetPowerState: which ephemeral workers of a NodeSet should run."""

from collections.abc import Iterator
from datetime import datetime
from typing import ClassVar, Self

from slurm_operator.api.nebius import names
from slurm_operator.api.schema.crd import METADATA, READY_PATH, Column, Definition
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.schema.model import Choice, model, prop
from slurm_operator.api.schema.problems import Problem, References, spec_problems, warning
from slurm_operator.api.shared.conditions import Condition
from slurm_operator.api.shared.meta import Meta


class PodPhase(Choice):
    """How far the pod of a worker is."""

    PENDING = "Pending", "it does not run yet."
    RUNNING = "Running", "it runs."
    SUCCEEDED = "Succeeded", "it ended without an error."
    FAILED = "Failed", "it ended with an error."
    UNKNOWN = "Unknown", "nobody can tell right now."


@model
class NodeSetPowerStateSpec:
    """Which workers should run."""

    node_set_ref: str = prop("The NodeSet; this object has the same name.", min_length=1)
    active_nodes: list[int] = prop(
        "Ordinals of the workers that should run, such as [0, 3].", default=[], list_type="set"
    )

    def problems(self, old: Self | None, refs: References) -> Iterator[Problem]:
        for index, ordinal in enumerate(self.active_nodes):
            if ordinal < 0:
                yield warning(f"activeNodes[{index}]", f"{ordinal} is no ordinal, and is ignored")


@model
class NodePowerState:
    """One worker."""

    phase: PodPhase | None = prop("How far its pod is.", default=None)
    pod_name: str = prop("Its pod.", default="")
    slurm_state: str = prop("Its state in Slurm, such as IDLE or POWER_UP.", default="")
    last_transition_time: datetime | None = prop("When the phase last changed.", default=None)
    message: str = prop("What is wrong with it, if anything.", default="")


@model
class NodeSetPowerStateStatus:
    """Which workers run."""

    observed_generation: int = prop("Generation of the spec this is about.", default=0, format="int64")
    active_count: int = prop("How many workers run.", default=0)
    node_states: dict[str, NodePowerState] = prop("The workers, by ordinal.", default={}, nullable=True)
    conditions: list[Condition] = prop("Ready, ScalingInProgress.", default=[], keys=["type"])


@model
class NodeSetPowerState:
    """Which ephemeral workers of a NodeSet should run. The operator makes one for each such NodeSet."""

    KIND: ClassVar[Kind] = Kind(
        group=names.GROUP, version="v1alpha1", kind="NodeSetPowerState", plural="nodesetpowerstates"
    )
    CRD: ClassVar[Definition] = Definition(
        columns=(
            Column(name="NodeSet", path=".spec.nodeSetRef", description="The NodeSet it is about."),
            Column(
                name="Active", path=".status.activeCount", type="integer", description="Workers that run."
            ),
            Column(name="Ready", path=READY_PATH, description="Whether the right workers run."),
        ),
    )

    metadata: Meta = METADATA
    spec: NodeSetPowerStateSpec | None = prop("What you want.", default=None, nullable=True)
    status: NodeSetPowerStateStatus = prop(
        "How it is; written by the operator.", default=NodeSetPowerStateStatus()
    )

    def problems(self, old: Self | None, refs: References) -> Iterator[Problem]:
        """What a schema cannot express; the webhook and the reconciler both ask."""
        if self.spec is None:
            yield warning("spec", "is missing: nothing is done until there is one")
            return
        yield from spec_problems(self.spec, old.spec if old else None, refs)
        if self.spec.node_set_ref != self.metadata.name:
            message = f"is ignored: only the object called {self.spec.node_set_ref!r} counts for that NodeSet"
            yield warning("spec.nodeSetRef", message)
