"""LoginSet: where people log in and submit jobs."""

from collections.abc import Iterator
from typing import Any, ClassVar, Self

from slurm_operator.api import names
from slurm_operator.api.cel import name_fits, stays, unchanged
from slurm_operator.api.conditions import Condition
from slurm_operator.api.crd import METADATA, STATUS, Column, Definition
from slurm_operator.api.kind import Kind
from slurm_operator.api.meta import Meta
from slurm_operator.api.model import Rule, model, prop
from slurm_operator.api.pods import Container, PodTemplate
from slurm_operator.api.problems import Problem, References, spec_problems
from slurm_operator.api.refs import Reference, SecretKey
from slurm_operator.api.services import Service


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


@model
class LoginSetSpec(LoginSetSettings):
    """What you want of these login pods."""

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
    RULES: ClassVar[tuple[Rule, ...]] = (name_fits(63),)

    metadata: Meta = METADATA
    spec: LoginSetSpec = prop("What you want.")
    status: LoginSetStatus = prop("How it is; written by the operator.", default=LoginSetStatus())

    def problems(self, old: Self | None, refs: References) -> Iterator[Problem]:
        """What a schema cannot express; the webhook and the reconciler both ask."""
        yield from spec_problems(self.spec, old.spec if old else None, refs)
