"""Controller: slurmctld and everything that belongs to it."""

from collections.abc import Iterator
from typing import Any, ClassVar, Self

from slurm_operator.api.schema.cel import matches, name_fits, unchanged
from slurm_operator.api.schema.codec import plain
from slurm_operator.api.schema.crd import METADATA, READY, STATUS, Column, Definition
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.schema.model import Rule, cannot_change, fields_of, model, prop
from slurm_operator.api.schema.problems import Problem, References, spec_problems, warning
from slurm_operator.api.shared import keys, names, slurm_series
from slurm_operator.api.shared.auth import AUTH, AUTH_STAYS, SLURM_USER, Auth, SlurmUser
from slurm_operator.api.shared.children import (
    DESCRIPTION,
    ControllerChildren,
    ControllerNames,
    children_stay,
    colliding,
    effective_names,
)
from slurm_operator.api.shared.images import default_image
from slurm_operator.api.shared.meta import Meta
from slurm_operator.api.shared.pods import ClaimSpec, Container, PodTemplate
from slurm_operator.api.shared.refs import Address, ConfigMapKey, Reference, SecretKey
from slurm_operator.api.shared.services import Metrics, Service
from slurm_operator.api.slinky.controller_status import ControllerStatus

NO_SPACES = Rule(expression=matches(r"^\S*$"), message="is one word of slurm.conf: no spaces")


@model
class HighAvailability:
    """Backup slurmctlds that take over when the first one is gone."""

    enabled: bool = prop("Whether to run backups.", default=False)
    backups: int = prop("How many backups.", default=1, minimum=1)


@model
class Persistence(ClaimSpec):
    """Where slurmctld keeps its state. The fields of a PersistentVolumeClaim stand beside these two."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            expression="!self.?enabled.orValue(true) || !oldSelf.?enabled.orValue(true) || "
            + unchanged("self.?existingClaim.orValue('')"),
            message="existingClaim cannot change: slurmctld would lose its state and forget all jobs",
            path=".existingClaim",
            holds=lambda new, old: (
                old is None or False in (new.enabled, old.enabled) or new.existing_claim == old.existing_claim
            ),
        ),
    )

    enabled: bool = prop(
        "Whether the state outlives the pod. Without it a restart forgets all jobs.",
        default=True,
        immutable=True,
    )
    existing_claim: str = prop("A PersistentVolumeClaim of your own to use.", default="", max_length=253)

    @property
    def claim(self) -> dict[str, Any]:
        """The spec of a PersistentVolumeClaim, with just what the user said."""
        said = ((field, getattr(self, field.attribute)) for field in fields_of(ClaimSpec))
        return {field.name: plain(value) for field, value in said if value != field.prop.default}


@model
class ControllerSettings:
    """What can be said about slurmctld, wherever it is said."""

    slurmctld: dict[str, Any] = prop("Laid over the slurmctld container.", default={}, shape=Container)
    reconfigure: dict[str, Any] = prop(
        "Laid over the sidecar that notices changed files; only with inplaceReconfigure.",
        default={},
        shape=Container,
    )
    logfile: dict[str, Any] = prop("Laid over the sidecar that prints the log.", default={}, shape=Container)
    inplace_reconfigure: bool = prop(
        "Whether even a change that asks for a restart is only reconfigured. Changes that Slurm takes while "
        "running never restart slurmctld, whatever stands here.",
        default=False,
    )
    template: PodTemplate = prop("Laid over the slurmctld pods.", default=PodTemplate())
    ha: HighAvailability = prop("Backup controllers.", default=HighAvailability())
    persistence: Persistence = prop("Where slurmctld keeps its state.", default=Persistence())
    config_file_refs: list[Reference] = prop(
        "ConfigMaps whose entries become files in /etc/slurm, such as gres.conf.", default=[], nullable=True
    )
    prolog_script_refs: list[Reference] = prop(
        "ConfigMaps with scripts for Prolog.", default=[], nullable=True
    )
    epilog_script_refs: list[Reference] = prop(
        "ConfigMaps with scripts for Epilog.", default=[], nullable=True
    )
    prolog_slurmctld_script_refs: list[Reference] = prop(
        "ConfigMaps with scripts for PrologSlurmctld.", default=[], nullable=True
    )
    epilog_slurmctld_script_refs: list[Reference] = prop(
        "ConfigMaps with scripts for EpilogSlurmctld.", default=[], nullable=True
    )
    service: Service = prop("Laid over the Service that clients use.", default=Service())
    metrics: Metrics = prop("Metrics of jobs, nodes, partitions and the scheduler.", default=Metrics())

    @property
    def slurmctld_image(self) -> str:
        given = self.slurmctld.get("image")
        return str(given) if given else default_image("slurmctld")

    def problems(self, old: Self | None, refs: References) -> Iterator[Problem]:
        yield from (problem.under("service") for problem in self.service.problems())
        yield from (
            problem.under("slurmctld.image") for problem in slurm_series.problems(self.slurmctld_image)
        )
        if old is not None and old.persistence.enabled != self.persistence.enabled:
            yield Problem(path="persistence.enabled", message=cannot_change("enabled"))
        for index, ref in enumerate(self.config_file_refs):
            for problem in _config_file_problems(ref.name, refs):
                yield problem.under(f"configFileRefs[{index}].name")
        yield from self._claim_problems(refs)

    def _claim_problems(self, refs: References) -> Iterator[Problem]:
        claim = self.persistence.existing_claim
        modes = refs.claims.get(claim)
        if self.ha.enabled and modes is not None and "ReadWriteMany" not in modes:
            yield Problem(
                path="persistence.existingClaim",
                message=f"PersistentVolumeClaim {claim!r} cannot be mounted by several pods at once; with "
                "ha.enabled its accessModes must contain ReadWriteMany",
            )


def _config_file_problems(config_map: str, refs: References) -> Iterator[Problem]:
    if config_map not in refs.config_maps:
        return
    keys = refs.config_maps[config_map]
    if keys is None:
        yield warning("", f"there is no ConfigMap {config_map!r} yet; its files are added when there is")
    for key in sorted(keys or ()):
        if key in names.RESERVED_FILES:
            yield Problem(
                path="",
                message=f"ConfigMap {config_map!r} has {key}, which the operator writes; use extraConf",
            )
        elif key not in names.CONFIG_FILES:
            yield warning(
                "",
                f"ConfigMap {config_map!r} has {key}, which Slurm reads only when another file includes it",
            )


@model
class ControllerSpec(ControllerSettings):
    """What you want of slurmctld."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        *keys.KEYS_STAY,
        *AUTH_STAYS,
        *children_stay(ControllerNames),
        Rule(
            expression="!self.external || has(self.externalConfig)",
            message="externalConfig says where slurmctld runs; external: true needs it",
            path=".externalConfig",
        ),
        Rule(
            expression="self.external || !self.ha.enabled || "
            "(self.persistence.enabled && self.persistence.?existingClaim.orValue('') != '')",
            message="backups take over from the state on a shared volume: "
            "ha.enabled needs persistence.enabled and persistence.existingClaim",
            path=".ha",
        ),
    )

    cluster_name: str = prop(
        "Slurm's ClusterName. Left out: <namespace>_<name>.",
        default="",
        immutable=True,
        max_length=names.CLUSTER_NAME_LENGTH,
        rules=[NO_SPACES],
    )
    slurm_key_ref: SecretKey | None = keys.SLURM_KEY_REF
    jwt_key_ref: SecretKey | None = keys.JWT_KEY_REF
    jwt_hs256_key_ref: SecretKey | None = keys.JWT_HS256_KEY_REF
    jwks_key_ref: ConfigMapKey | None = keys.JWKS_KEY_REF
    accounting_ref: Reference | None = prop("The Accounting that keeps this cluster's records.", default=None)
    external: bool = prop(
        "slurmctld runs outside Kubernetes; then only externalConfig, the keys and accountingRef matter.",
        default=False,
    )
    external_config: Address | None = prop("Where the external slurmctld listens.", default=None)
    extra_conf: str = prop("Lines added to slurm.conf.", default="")
    auth: Auth | None = AUTH
    slurm_user: SlurmUser | None = SLURM_USER
    children: ControllerChildren = prop(DESCRIPTION, default=ControllerChildren())

    @property
    def accounting(self) -> str:
        """The name of the Accounting, or the empty string."""
        return self.accounting_ref.name if self.accounting_ref is not None else ""

    def problems(self, old: Self | None, refs: References) -> Iterator[Problem]:
        yield from ControllerSettings.problems(self, old, refs)
        yield from (problem.under("children") for problem in self.children.problems())
        if self.external and (self.slurm_key_ref is None or keys.signing_key(self) is None):
            yield warning(
                "slurmKeyRef" if self.slurm_key_ref is None else "jwtKeyRef",
                "an external slurmctld has its own keys; without them nothing here can talk to it",
            )


@model
class Controller:
    """A slurmctld: the head of one Slurm cluster.

    NodeSets, LoginSets and RestApis name it in their controllerRef.
    """

    KIND: ClassVar[Kind] = Kind(group=names.GROUP, version="v1beta1", kind="Controller", plural="controllers")
    CRD: ClassVar[Definition] = Definition(
        short_names=("slurmctld",),
        columns=(
            READY,
            Column(name="VERSION", path=".status.slurmVersion", description="Version of Slurm."),
            Column(name="ACTIVE", path=".status.active", description="Pod in charge.", priority=1),
            STATUS,
        ),
        also_served=("v1alpha1",),
    )
    RULES: ClassVar[tuple[Rule, ...]] = (name_fits(52),)

    metadata: Meta = METADATA
    spec: ControllerSpec = prop("What you want.", default=ControllerSpec())
    status: ControllerStatus = prop("How it is; written by the operator.", default=ControllerStatus())

    @property
    def cluster_name(self) -> str:
        return names.cluster_name(self.spec.cluster_name, self.metadata.namespace, self.metadata.name)

    @property
    def user(self) -> SlurmUser:
        """Whom its daemon runs as."""
        return self.spec.slurm_user or SlurmUser()

    @property
    def child_names(self) -> ControllerNames:
        """What its children are called."""
        name = self.metadata.name
        usual = ControllerNames(
            service=names.controller_service(name),
            internal_service=names.controller_internal_service(name),
            workload=names.controller_workload(name),
            config=names.controller_config(name),
            workers=names.worker_service(name),
            budget=names.worker_budget(name),
        )
        return effective_names(self.spec.children.names, usual)

    def problems(self, old: Self | None, refs: References) -> Iterator[Problem]:
        """What a schema cannot express; the webhook and the reconciler both ask."""
        yield from spec_problems(self.spec, old.spec if old else None, refs)
        called = self.child_names
        services = {
            "service": called.service,
            "internalService": called.internal_service,
            "workers": called.workers,
        }
        yield from (problem.under("spec") for problem in colliding(services))
        yield from cluster_name_problems(self.cluster_name, old.cluster_name if old else None, refs)


def controller_pod(controller: Controller, index: int) -> str:
    """One slurmctld of a Controller, by its place."""
    return f"{controller.child_names.workload}-{index}"


def good_config(controller: Controller) -> str:
    """The ConfigMap with the last files that slurmctld is known to run with."""
    return f"{controller.child_names.config}-good"


def cluster_name_problems(name: str, old: str | None, refs: References) -> Iterator[Problem]:
    """What is wrong with the name that Slurm is going to see; CEL cannot tell, as it knows no namespace."""
    path = "spec.clusterName"
    if old is not None and old != name:
        yield Problem(
            path=path,
            message=f"cannot change from {old!r} to {name!r}: "
            "state and accounting records are kept under the old name",
        )
    elif old is None and len(name) > names.CLUSTER_NAME_LENGTH:
        yield Problem(
            path=path,
            message=f"Slurm would know this cluster as {name!r}, which is longer than "
            f"{names.CLUSTER_NAME_LENGTH} characters; give it a shorter clusterName",
        )
    for other in refs.cluster_names.get(name, ()):
        yield Problem(
            path=path, message=f"Controller {other!r} is already known as {name!r} to the same Accounting"
        )
