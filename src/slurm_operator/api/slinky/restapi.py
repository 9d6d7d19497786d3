"""RestApi: slurmrestd, through which programs, and this operator, talk to Slurm."""

from collections.abc import Iterator
from typing import Any, ClassVar, Self

from slurm_operator.api.schema.cel import name_fits
from slurm_operator.api.schema.crd import METADATA, READY, STATUS, Column, Definition
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.schema.model import Rule, model, prop
from slurm_operator.api.schema.problems import Problem, References, spec_problems, warning
from slurm_operator.api.shared import names
from slurm_operator.api.shared.children import (
    DESCRIPTION,
    RestApiChildren,
    RestApiNames,
    children_stay,
    effective_names,
)
from slurm_operator.api.shared.conditions import Condition
from slurm_operator.api.shared.meta import Meta
from slurm_operator.api.shared.pods import Container, PodTemplate
from slurm_operator.api.shared.refs import Reference
from slurm_operator.api.shared.services import Service
from slurm_operator.api.slinky.exporter import Exporter


@model
class RestApiSettings:
    """What can be said about slurmrestd, wherever it is said."""

    replicas: int = prop("How many slurmrestd pods to run.", default=1, minimum=0)
    slurmrestd: dict[str, Any] = prop("Laid over the slurmrestd container.", default={}, shape=Container)
    template: PodTemplate = prop("Laid over the slurmrestd pods.", default=PodTemplate())
    service: Service = prop("Laid over the Service in front of slurmrestd.", default=Service())
    exporter: Exporter = prop("Shows this Slurm cluster to Prometheus.", default=Exporter())

    def problems(self, old: Self | None, refs: References) -> Iterator[Problem]:
        yield from (problem.under("service") for problem in self.service.problems())


@model
class RestApiSpec(RestApiSettings):
    """What you want of slurmrestd."""

    RULES: ClassVar[tuple[Rule, ...]] = children_stay(RestApiNames)

    controller_ref: Reference = prop("The Controller that slurmrestd serves.")
    children: RestApiChildren = prop(DESCRIPTION, default=RestApiChildren())

    def problems(self, old: Self | None, refs: References) -> Iterator[Problem]:
        yield from RestApiSettings.problems(self, old, refs)
        yield from (problem.under("children") for problem in self.children.problems())
        if not self.controller_ref.name:
            yield warning("controllerRef.name", "is empty: slurmrestd starts when it names a Controller")


@model
class RestApiStatus:
    """What slurmrestd is like now."""

    observed_generation: int = prop("Generation of the spec this is about.", default=0, format="int64")
    conditions: list[Condition] = prop("Ready, Progressing, Degraded.", default=[], keys=["type"])
    replicas: int = prop("slurmrestd pods.", default=0)
    ready_replicas: int = prop("slurmrestd pods that are ready.", default=0)
    selector: str = prop("Finds the slurmrestd pods.", default="")
    url: str = prop("Where clients reach it.", default="")
    slurm_version: str = prop("Version of slurmrestd.", default="")
    api_versions: list[str] = prop("API versions that it speaks, such as v0.0.44.", default=[])
    in_use: bool = prop("Whether the operator itself talks to Slurm through it.", default=False)


@model
class RestApi:
    """A slurmrestd: Slurm's REST interface."""

    KIND: ClassVar[Kind] = Kind(group=names.GROUP, version="v1beta1", kind="RestApi", plural="restapis")
    CRD: ClassVar[Definition] = Definition(
        short_names=("slurmrestd",),
        columns=(
            READY,
            Column(name="URL", path=".status.url", description="Where clients reach it.", priority=1),
            STATUS,
        ),
        also_served=("v1alpha1",),
    )
    RULES: ClassVar[tuple[Rule, ...]] = (name_fits(55),)

    metadata: Meta = METADATA
    spec: RestApiSpec = prop("What you want.")
    status: RestApiStatus = prop("How it is; written by the operator.", default=RestApiStatus())

    @property
    def child_names(self) -> RestApiNames:
        """What its children are called."""
        usual = names.restapi_workload(self.metadata.name)
        return effective_names(self.spec.children.names, RestApiNames(service=usual, workload=usual))

    def problems(self, old: Self | None, refs: References) -> Iterator[Problem]:
        """What a schema cannot express; the webhook and the reconciler both ask."""
        yield from spec_problems(self.spec, old.spec if old else None, refs)
