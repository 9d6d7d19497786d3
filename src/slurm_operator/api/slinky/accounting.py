"""Accounting: slurmdbd and its database."""

from collections.abc import Iterator
from typing import Any, ClassVar, Self

from slurm_operator.api.schema.cel import name_fits
from slurm_operator.api.schema.crd import METADATA, READY, STATUS, Column, Definition
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.schema.model import Rule, model, prop
from slurm_operator.api.schema.openapi import Quantity
from slurm_operator.api.schema.problems import Problem, References, spec_problems, warning
from slurm_operator.api.shared import keys, names
from slurm_operator.api.shared.auth import AUTH, AUTH_STAYS, SLURM_USER, Auth, SlurmUser
from slurm_operator.api.shared.children import (
    DESCRIPTION,
    AccountingChildren,
    AccountingNames,
    children_stay,
    colliding,
    effective_names,
)
from slurm_operator.api.shared.conditions import Condition
from slurm_operator.api.shared.meta import Meta
from slurm_operator.api.shared.pods import Container, PodTemplate
from slurm_operator.api.shared.refs import Address, ConfigMapKey, SecretKey
from slurm_operator.api.shared.services import Service

DATABASE = "slurm_acct_db"


@model
class Database:
    """A MySQL or MariaDB server that exists already."""

    host: str = prop("Host name or IP address.")
    port: int = prop("TCP port.", default=names.DATABASE_PORT, minimum=0, maximum=65535)
    database: str = prop("Name of the database.", default=DATABASE)
    username: str = prop("User to log in as.", default="")
    password_key_ref: SecretKey = prop("Secret with the user's password.")


@model
class DatabaseStorage:
    """Where a MariaDB of our own keeps its data."""

    size: Quantity = prop("Size of the volume.", default="8Gi")
    storage_class_name: str | None = prop("StorageClass; absent means the default one.", default=None)
    existing_claim: str = prop("A PersistentVolumeClaim of your own to use instead.", default="")


@model
class ManagedDatabase:
    """A MariaDB that the operator runs, with a generated password."""

    storage: DatabaseStorage = prop("Where it keeps its data.", default=DatabaseStorage())
    mariadb: dict[str, Any] = prop("Laid over the MariaDB container.", default={}, shape=Container)
    template: PodTemplate = prop("Laid over the MariaDB pod.", default=PodTemplate())
    extra_conf: str = prop("Lines added to the [mysqld] section of my.cnf.", default="")


@model
class AccountingSettings:
    """What can be said about slurmdbd, wherever it is said."""

    slurmdbd: dict[str, Any] = prop("Laid over the slurmdbd container.", default={}, shape=Container)
    template: PodTemplate = prop("Laid over the slurmdbd pod.", default=PodTemplate())
    extra_conf: str = prop("Lines added to slurmdbd.conf.", default="")
    service: Service = prop("Laid over the Service that slurmctld uses.", default=Service())
    managed: ManagedDatabase | None = prop("A MariaDB that the operator runs.", default=None)

    def problems(self, old: Self | None, refs: References) -> Iterator[Problem]:
        yield from (problem.under("service") for problem in self.service.problems())


@model
class AccountingSpec(AccountingSettings):
    """What you want of slurmdbd."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        *keys.KEYS_STAY,
        *AUTH_STAYS,
        *children_stay(AccountingNames),
        Rule(
            expression="!self.external || has(self.externalConfig)",
            message="externalConfig says where slurmdbd runs; external: true needs it",
            path=".externalConfig",
        ),
        Rule(
            expression="!has(self.managed) || !has(self.storageConfig)",
            message="there is one database: set either managed or storageConfig",
            path=".managed",
        ),
    )

    slurm_key_ref: SecretKey | None = keys.SLURM_KEY_REF
    jwt_key_ref: SecretKey | None = keys.JWT_KEY_REF
    jwt_hs256_key_ref: SecretKey | None = keys.JWT_HS256_KEY_REF
    jwks_key_ref: ConfigMapKey | None = keys.JWKS_KEY_REF
    external: bool = prop(
        "slurmdbd runs outside Kubernetes; then only externalConfig and the keys matter.", default=False
    )
    external_config: Address | None = prop("Where the external slurmdbd listens.", default=None)
    storage_config: Database | None = prop("A database that exists already.", default=None)
    initconf: dict[str, Any] = prop(
        "Prepared files in v1alpha1.",
        default={},
        deprecated="is ignored: no such container is needed any more",
    )
    auth: Auth | None = AUTH
    slurm_user: SlurmUser | None = SLURM_USER
    children: AccountingChildren = prop(DESCRIPTION, default=AccountingChildren())

    def problems(self, old: Self | None, refs: References) -> Iterator[Problem]:
        yield from AccountingSettings.problems(self, old, refs)
        yield from (problem.under("children") for problem in self.children.problems())
        if not self.external and self.managed is None and self.storage_config is None:
            yield warning(
                "storageConfig", "slurmdbd starts when it has a database: set storageConfig, or managed: {}"
            )


@model
class DatabaseStatus:
    """The database as slurmdbd needs it."""

    address: str = prop("host:port.", default="")
    managed: bool = prop("Whether the operator runs it.", default=False)
    reachable: bool = prop("Whether it could be reached and used at the last check.", default=False)
    version: str = prop("Version that it reports.", default="")
    message: str = prop("What is wrong with it: address, login, grants, settings.", default="")


@model
class AccountingStatus:
    """What slurmdbd is like now."""

    observed_generation: int = prop("Generation of the spec this is about.", default=0, format="int64")
    conditions: list[Condition] = prop("Ready, Progressing, Degraded.", default=[], keys=["type"])
    slurm_version: str = prop("Version of slurmdbd.", default="")
    endpoint: str = prop("host:port for slurmctld.", default="")
    replicas: int = prop("slurmdbd pods.", default=0)
    ready_replicas: int = prop("slurmdbd pods that are ready.", default=0)
    database: DatabaseStatus | None = prop("The database behind it.", default=None)
    slurm_key_secret: str = prop("Secret with the Slurm key in use.", default="")
    jwt_key_secret: str = prop("Secret with the signing key in use.", default="")
    controllers: list[str] = prop("Controllers that keep their records here.", default=[])


@model
class Accounting:
    """A slurmdbd: job records, accounts and limits of one or more clusters."""

    KIND: ClassVar[Kind] = Kind(group=names.GROUP, version="v1beta1", kind="Accounting", plural="accountings")
    CRD: ClassVar[Definition] = Definition(
        short_names=("slurmdbd",),
        columns=(
            READY,
            Column(name="VERSION", path=".status.slurmVersion", description="Version of Slurm."),
            Column(name="DATABASE", path=".status.database.address", description="Its database.", priority=1),
            STATUS,
        ),
        also_served=("v1alpha1",),
    )
    RULES: ClassVar[tuple[Rule, ...]] = (name_fits(52, unless="self.spec.external"),)

    metadata: Meta = METADATA
    spec: AccountingSpec = prop("What you want.", default=AccountingSpec())
    status: AccountingStatus = prop("How it is; written by the operator.", default=AccountingStatus())

    @property
    def user(self) -> SlurmUser:
        """Whom its daemon runs as."""
        return self.spec.slurm_user or SlurmUser()

    @property
    def child_names(self) -> AccountingNames:
        """What its children are called."""
        usual = names.accounting_workload(self.metadata.name)
        return effective_names(
            self.spec.children.names, AccountingNames(service=usual, workload=usual, config=usual)
        )

    def problems(self, old: Self | None, refs: References) -> Iterator[Problem]:
        """What a schema cannot express; the webhook and the reconciler both ask."""
        yield from spec_problems(self.spec, old.spec if old else None, refs)
        if self.spec.managed is not None:
            database = names.database_workload(self.metadata.name)
            called = self.child_names
            for role in ("service", "workload", "config"):
                found = colliding({"the managed database": database, role: getattr(called, role)})
                yield from (problem.under("spec") for problem in found)
