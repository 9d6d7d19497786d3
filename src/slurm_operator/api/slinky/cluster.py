"""Cluster: a whole Slurm cluster in one object."""

from collections.abc import Iterator
from typing import Any, ClassVar, Self

from slurm_operator.api.schema.cel import is_list, matches, name_fits
from slurm_operator.api.schema.crd import METADATA, READY, STATUS, Column, Definition
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.schema.model import Choice, Rule, fields_of, model, prop
from slurm_operator.api.schema.problems import Problem, References, spec_problems, warning
from slurm_operator.api.shared import keys, names
from slurm_operator.api.shared.meta import Meta
from slurm_operator.api.shared.refs import ConfigMapKey, SecretKey
from slurm_operator.api.slinky.accounting import AccountingSettings, Database
from slurm_operator.api.slinky.cluster_status import ClusterStatus
from slurm_operator.api.slinky.controller import (
    NO_SPACES,
    ControllerSettings,
    Persistence,
    cluster_name_problems,
)
from slurm_operator.api.slinky.loginset import LoginSetSettings
from slurm_operator.api.slinky.nodeset import NodeSetSettings
from slurm_operator.api.slinky.restapi import RestApiSettings

PART_NAME: Any = prop(
    "Its name; the object is called <cluster>-<name>.",
    min_length=1,
    max_length=40,
    rules=[
        Rule(
            expression=matches(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"),
            message="may have lower-case letters, digits and '-', but no '-' at either end",
        )
    ],
)


class Isolation(Choice):
    """How jobs are kept within what they asked for."""

    AUTO = "auto", "cgroup where the Kubernetes nodes can do it, else process."
    PROCESS = "process", "unprivileged pods; jobs share the pod's limits."
    CGROUP = "cgroup", "privileged pods; each job has its own limits."


@model
class Images:
    """Images of the daemons; an empty one follows `image`, or the operator's default."""

    slurmctld: str = prop("Image of slurmctld.", default="")
    slurmd: str = prop("Image of slurmd.", default="")
    slurmdbd: str = prop("Image of slurmdbd.", default="")
    slurmrestd: str = prop("Image of slurmrestd.", default="")
    login: str = prop("Image of login pods.", default="")


@model
class ClusterPersistence(Persistence):
    """Where slurmctld keeps its state."""

    enabled: bool | None = prop(  # type: ignore[assignment]
        "Whether the state outlives the pod. Left out: yes, if there is a default StorageClass.",
        default=None,
        immutable=True,
    )


@model
class ClusterController(ControllerSettings):
    """slurmctld of this cluster."""

    persistence: ClusterPersistence = prop("Where slurmctld keeps its state.", default=ClusterPersistence())


@model
class ClusterAccounting(AccountingSettings):
    """slurmdbd of this cluster."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            expression="has(self.managed) != has(self.external)",
            message="say where records are kept: managed: {} for a MariaDB of its own, "
            "or external for one you have",
        ),
    )

    external: Database | None = prop("A database that exists already.", default=None)


@model
class ClusterNodeSet(NodeSetSettings):
    """Workers of this cluster."""

    name: str = PART_NAME
    replicas: int | None = prop(  # type: ignore[assignment]
        "How many workers to run. Left out: somebody else scales them, and the Cluster never writes it.",
        default=None,
        minimum=0,
    )


@model
class ClusterLogin(LoginSetSettings):
    """Login pods of this cluster."""

    name: str = PART_NAME


@model
class ClusterPartition:
    """A partition."""

    name: str = prop(
        "Name of the partition.",
        min_length=1,
        max_length=253,
        rules=[Rule(expression=matches(r"^[^\s=,]+$"), message="has no spaces, commas or '='")],
    )
    node_sets: list[str] = prop(
        "NodeSets in it, by their name here; left out means all.", default=[], max_items=64
    )
    config: str = prop(
        "More options of its line, such as `MaxTime=1-0`.",
        default="",
        max_length=16384,
        rules=[
            Rule(
                expression=r"!self.contains('\n') && !self.contains('\r')",
                message="is one line of slurm.conf; more lines belong into extraConf",
            )
        ],
    )
    default: bool = prop("Whether jobs go here that name no partition.", default=False)


@model
class ClusterToken:
    """How to log in to a Slurm elsewhere."""

    secret_ref: str = prop("Secret with a Slurm token.", min_length=1)
    key: str = prop(
        "Which entry of the Secret; left out: SLURM_JWT, auth-token, or the only one.", default=""
    )


@model
class ClusterSpec:
    """What you want of the cluster."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        *keys.KEYS_STAY,
        Rule(
            expression="has(self.server) == has(self.token)",
            message="to watch a Slurm elsewhere set both server and token; otherwise neither",
            path=".server",
        ),
        Rule(
            expression=f"!{is_list('self.partitions')} || self.partitions.all(p, !has(p.nodeSets) || "
            f"p.nodeSets.all(n, {is_list('self.nodeSets')} && n in self.nodeSets.map(s, s.name)))",
            message="a partition names a NodeSet that is not in nodeSets",
            path=".partitions",
        ),
        Rule(
            expression=f"!{is_list('self.partitions')} || self.partitions.filter(p, p.default).size() <= 1",
            message="only one partition can be the default",
            path=".partitions",
        ),
    )

    cluster_name: str = prop(
        "Slurm's ClusterName. Left out: <namespace>_<name>.",
        default="",
        immutable=True,
        max_length=names.CLUSTER_NAME_LENGTH,
        rules=[NO_SPACES],
    )
    image: str = prop("Image of all daemons. Left out: the operator's default images.", default="")
    images: Images = prop("Images of single daemons.", default=Images())
    isolation: Isolation = prop("How jobs are kept within what they asked for.", default=Isolation.AUTO)
    slurm_key_ref: SecretKey | None = keys.SLURM_KEY_REF
    jwt_key_ref: SecretKey | None = keys.JWT_KEY_REF
    jwt_hs256_key_ref: SecretKey | None = keys.JWT_HS256_KEY_REF
    jwks_key_ref: ConfigMapKey | None = keys.JWKS_KEY_REF
    controller: ClusterController = prop("slurmctld.", default=ClusterController())
    accounting: ClusterAccounting | None = prop("slurmdbd. Left out: no accounting.", default=None)
    rest_api: RestApiSettings = prop("slurmrestd.", default=RestApiSettings())
    logins: list[ClusterLogin] = prop(
        "Where people log in.", default=[], keys=["name"], max_items=64, nullable=True
    )
    node_sets: list[ClusterNodeSet] = prop("Workers.", default=[], keys=["name"], max_items=64, nullable=True)
    partitions: list[ClusterPartition] = prop(
        "Partitions. Left out: one called `all`, the default.",
        default=[],
        keys=["name"],
        max_items=64,
        nullable=True,
    )
    extra_conf: str = prop("Lines added to slurm.conf.", default="")
    server: str | None = prop(
        "URL of a slurmrestd elsewhere: that Slurm is only watched, nothing is made or changed.",
        default=None,
        max_length=2048,
        rules=[Rule(expression=matches(r"^https?://\S+$"), message="is a URL, such as http://slurm:6820")],
    )
    server_ca_bundle: str = prop(
        "Certificates in PEM that vouch for a server with https. Left out: those that the machine trusts.",
        default="",
        max_length=65536,
        rules=[
            Rule(
                expression="self == '' || self.contains('-----BEGIN CERTIFICATE-----')",
                message="is one certificate or more, in PEM",
            )
        ],
    )
    token: ClusterToken | None = prop("How to log in to that Slurm.", default=None)

    @property
    def is_adopted(self) -> bool:
        """Whether this Slurm runs elsewhere and is only watched."""
        return self.server is not None

    def problems(self, old: Self | None, refs: References) -> Iterator[Problem]:
        yield from (problem.under("controller") for problem in self.controller.problems(None, refs))
        for path, part in self._parts():
            yield from (problem.under(path) for problem in part.problems(None, refs))
        if self.is_adopted:
            yield from self._ignored()

    def _parts(self) -> Iterator[tuple[str, Any]]:
        yield "restApi", self.rest_api
        if self.accounting is not None:
            yield "accounting", self.accounting
        yield from ((f"logins[{index}]", login) for index, login in enumerate(self.logins))
        yield from ((f"nodeSets[{index}]", nodeset) for index, nodeset in enumerate(self.node_sets))

    def _ignored(self) -> Iterator[Problem]:
        for field in fields_of(ClusterSpec):
            if field.name not in ("server", "token") and getattr(self, field.attribute) != field.prop.default:
                yield warning(field.name, "makes no difference: with server set, that Slurm is only watched")


@model
class Cluster:
    """A whole Slurm cluster: controller, workers, and if you like accounting and login pods.

    It makes a Controller, a RestApi, NodeSets and so on of the same settings, and owns them.
    """

    KIND: ClassVar[Kind] = Kind(group=names.GROUP, version="v1beta1", kind="Cluster", plural="clusters")
    CRD: ClassVar[Definition] = Definition(
        short_names=("scl",),
        columns=(
            READY,
            Column(name="VERSION", path=".status.slurmVersion", description="Version of Slurm."),
            Column(name="NODES", path=".status.nodes.total", type="integer", description="Slurm nodes."),
            Column(name="RUNNING", path=".status.jobs.running", type="integer", description="Running jobs."),
            Column(name="PENDING", path=".status.jobs.pending", type="integer", description="Waiting jobs."),
            Column(
                name="IDLE", path=".status.nodes.idle", type="integer", description="Idle nodes.", priority=1
            ),
            Column(
                name="DOWN", path=".status.nodes.down", type="integer", description="Nodes down.", priority=1
            ),
            STATUS,
        ),
        also_served=("v1alpha1",),
    )
    RULES: ClassVar[tuple[Rule, ...]] = (name_fits(52),)

    metadata: Meta = METADATA
    spec: ClusterSpec = prop("What you want.", default=ClusterSpec())
    status: ClusterStatus = prop("How it is; written by the operator.", default=ClusterStatus())

    @property
    def cluster_name(self) -> str:
        return names.cluster_name(self.spec.cluster_name, self.metadata.namespace, self.metadata.name)

    def problems(self, old: Self | None, refs: References) -> Iterator[Problem]:
        """What a schema cannot express; the webhook and the reconciler both ask."""
        yield from spec_problems(self.spec, old.spec if old else None, refs)
        if not self.spec.is_adopted:
            yield from self._long_names()
            yield from cluster_name_problems(self.cluster_name, old.cluster_name if old else None, refs)

    def _long_names(self) -> Iterator[Problem]:
        """Parts whose names, with that of this Cluster before them, are longer than labels and host names."""
        spec = self.spec
        parts = [(f"nodeSets[{at}]", one.name, _last_number(one)) for at, one in enumerate(spec.node_sets)]
        parts += [(f"logins[{at}]", one.name, "") for at, one in enumerate(spec.logins)]
        for path, name, number in parts:
            whole = f"{names.cluster_part(self.metadata.name, name)}{number}"
            if len(whole) > names.LABEL_LENGTH:
                message = (
                    f"{whole} has {len(whole)} characters, and {names.LABEL_LENGTH} fit into labels and host "
                    "names; use a shorter name here or for the Cluster"
                )
                yield Problem(f"spec.{path}.name", message)


def _last_number(nodeset: ClusterNodeSet) -> str:
    """What the name of its last worker ends with."""
    return f"-{max((nodeset.replicas or 1) - 1, 0)}"
