"""LoginSet: where people log in and submit jobs."""

from collections.abc import Iterator
from typing import Any, ClassVar, Self

from slurm_operator.api.schema.cel import name_fits, stays, unchanged
from slurm_operator.api.schema.crd import METADATA, STATUS, Column, Definition
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.schema.model import Rule, model, prop
from slurm_operator.api.schema.problems import Problem, References, spec_problems, warning
from slurm_operator.api.shared import names
from slurm_operator.api.shared.children import (
    DESCRIPTION,
    LoginSetChildren,
    LoginSetNames,
    children_stay,
    colliding,
    effective_names,
)
from slurm_operator.api.shared.conditions import Condition
from slurm_operator.api.shared.config_source import ConfigSource
from slurm_operator.api.shared.meta import Meta
from slurm_operator.api.shared.pods import Container, PodTemplate
from slurm_operator.api.shared.refs import Reference, SecretKey
from slurm_operator.api.shared.services import Service


@model
class DeploymentStrategy:
    """How pods are replaced, as in a Deployment."""

    OPEN: ClassVar[bool] = True

    type: str = prop("RollingUpdate or Recreate.", default="")
    rolling_update: dict[str, Any] = prop("maxSurge and maxUnavailable.", default={})


@model
class LoginSetSettings:
    """What can be said about login pods, wherever it is said."""

    replicas: int = prop("How many login pods to run.", default=1, minimum=0)
    ordered: bool = prop(
        "Whether login pods have numbers and names that stay (a StatefulSet behind a headless Service). If "
        "not, they are a Deployment.",
        default=False,
        rules=[
            Rule(
                expression="self == oldSelf",
                message="ordered cannot change: it would end every session at once; make a new LoginSet",
                holds=stays(lambda ordered: ordered),
            )
        ],
    )
    config_source: ConfigSource = prop(
        "Where login pods read Slurm's configuration.", default=ConfigSource.CONFIGLESS
    )
    login: dict[str, Any] = prop(
        "Laid over the login container. A port named `login` is where sshd listens.",
        default={},
        shape=Container,
    )
    initconf: dict[str, Any] = prop(
        "Laid over the container that prepares files.", default={}, shape=Container
    )
    template: PodTemplate = prop("Laid over the login pods.", default=PodTemplate())
    root_ssh_authorized_keys: str = prop("Public keys that may log in as root, one per line.", default="")
    extra_sshd_config: str = prop("Lines added to sshd_config.", default="")
    sssd_conf_ref: SecretKey | None = prop(
        "Secret with sssd.conf, which says where users come from. Left out: users of the image.",
        default=None,
        rules=[
            Rule(
                expression="self.?name.orValue('') != ''",
                message="sssdConfRef.name says which Secret holds sssd.conf; it is needed, "
                "or leave sssdConfRef out",
                holds=lambda ref, old: ref.name != "",
            )
        ],
    )
    ssh_host_keys_ref: Reference | None = prop(
        "Secret with host keys of your own (ssh_host_ed25519_key and so on). Left out: made once and kept.",
        default=None,
    )
    strategy: dict[str, Any] = prop("How login pods are replaced.", default={}, shape=DeploymentStrategy)
    service: Service = prop("Laid over the Service in front of sshd.", default=Service())

    def problems(self, old: Self | None, refs: References) -> Iterator[Problem]:
        yield from (problem.under("service") for problem in self.service.problems())
        if self.ordered and self.strategy:
            yield warning(
                "strategy", "makes no difference to ordered login pods: they are replaced one after the other"
            )


@model
class LoginSetSpec(LoginSetSettings):
    """What you want of these login pods."""

    RULES: ClassVar[tuple[Rule, ...]] = children_stay(LoginSetNames)

    controller_ref: Reference = prop(
        "The Controller whose cluster people use here.",
        rules=[
            Rule(
                expression="self.?name.orValue('') != ''",
                message="controllerRef.name says which cluster people use here; it is needed",
                holds=lambda ref, old: ref.name != "",
            ),
            Rule(
                expression=unchanged("self.?name.orValue('')"),
                message="controllerRef cannot change; make a new LoginSet for another cluster",
                holds=stays(lambda ref: ref.name),
            ),
        ],
    )
    children: LoginSetChildren = prop(DESCRIPTION, default=LoginSetChildren())

    def problems(self, old: Self | None, refs: References) -> Iterator[Problem]:
        yield from LoginSetSettings.problems(self, old, refs)
        yield from (problem.under("children") for problem in self.children.problems())


@model
class LoginSetStatus:
    """What the login pods are like now."""

    observed_generation: int = prop("Generation of the spec this is about.", default=0, format="int64")
    conditions: list[Condition] = prop("Ready, Progressing, Degraded.", default=[], keys=["type"])
    replicas: int = prop("Login pods.", default=0)
    updated_replicas: int = prop("Login pods of the newest revision.", default=0)
    ready_replicas: int = prop("Login pods that are ready.", default=0)
    available_replicas: int = prop("Login pods that are available.", default=0)
    selector: str = prop("Finds the login pods; for autoscalers.", default="")
    endpoint: str = prop("Where to point ssh, once it is known.", default="")
    host_key_fingerprints: list[str] = prop("Fingerprints to compare at the first login.", default=[])


@model
class LoginSet:
    """Login pods: sshd with Slurm's commands, one host key for all of them."""

    KIND: ClassVar[Kind] = Kind(group=names.GROUP, version="v1beta1", kind="LoginSet", plural="loginsets")
    CRD: ClassVar[Definition] = Definition(
        short_names=("loginsets", "lss", "sackd"),
        columns=(
            Column(name="REPLICAS", path=".status.replicas", type="integer", description="Login pods."),
            Column(
                name="READY", path=".status.readyReplicas", type="integer", description="Ready login pods."
            ),
            Column(name="ENDPOINT", path=".status.endpoint", description="Where to point ssh.", priority=1),
            STATUS,
        ),
        has_scale=True,
        also_served=("v1alpha1",),
    )
    RULES: ClassVar[tuple[Rule, ...]] = (
        name_fits(63),
        # Room for `-headless`.
        name_fits(54, unless="!self.spec.?ordered.orValue(false)"),
    )

    metadata: Meta = METADATA
    spec: LoginSetSpec = prop("What you want.")
    status: LoginSetStatus = prop("How it is; written by the operator.", default=LoginSetStatus())

    @property
    def child_names(self) -> LoginSetNames:
        """What its children are called."""
        name = self.metadata.name
        usual = LoginSetNames(
            service=names.login_workload(name),
            headless_service=names.login_headless_service(name),
            workload=names.login_workload(name),
            ssh_config=names.ssh_config(name),
        )
        return effective_names(self.spec.children.names, usual)

    def problems(self, old: Self | None, refs: References) -> Iterator[Problem]:
        """What a schema cannot express; the webhook and the reconciler both ask."""
        yield from spec_problems(self.spec, old.spec if old else None, refs)
        services = {"service": self.child_names.service, "headlessService": self.child_names.headless_service}
        yield from (problem.under("spec") for problem in colliding(services))
