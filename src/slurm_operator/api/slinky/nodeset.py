"""NodeSet: identical slurmd pods, each of them one Slurm node."""

import re
from collections.abc import Collection, Iterator
from typing import Any, ClassVar, Self

from slurm_operator.api.schema.cel import looks_like, matches, stays, unchanged, unchanged_list
from slurm_operator.api.schema.crd import METADATA, STATUS, Column, Definition
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.schema.model import Rule, model, prop
from slurm_operator.api.schema.problems import Problem, References, spec_problems, warning
from slurm_operator.api.shared import names
from slurm_operator.api.shared.affinity import unreadable
from slurm_operator.api.shared.children import DESCRIPTION, NodeSetChildren, NodeSetNames, children_stay
from slurm_operator.api.shared.config_source import ConfigSource
from slurm_operator.api.shared.meta import Meta
from slurm_operator.api.shared.pods import ClaimTemplate, Container
from slurm_operator.api.shared.probes import deadly_probes, other_ends
from slurm_operator.api.shared.refs import Reference
from slurm_operator.api.shared.worker_parts import (
    ClaimRetention,
    DrainPolicy,
    Partition,
    Pruning,
    Records,
    ScalingMode,
    Supervisor,
    WorkerSsh,
    WorkerTemplate,
)
from slurm_operator.api.slinky.nodeset_status import NodeSetStatus
from slurm_operator.api.slinky.nodeset_updates import UpdateStrategy

# Between them any white space; inside neither that nor a control character, which no line of Slurm can hold.
_PARAMETERS = r"^\s*([^\0- =\x7f]*=[^\0- \x7f]*(\s+|$))*$"
_READABLE = re.compile(r"[A-Za-z0-9_.]+[-*+/]?=\S+")
_CONTROLLER = "self.?controllerRef.name.orValue(self.?clusterName.orValue(''))"


@model
class NodeSetSettings:
    """What can be said about workers, wherever it is said."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            expression=unchanged_list("self.?volumeClaimTemplates.orValue([])"),
            message="volumeClaimTemplates cannot change: the volumes exist; make a new NodeSet for others",
            path=".volumeClaimTemplates",
            holds=stays(lambda spec: spec.volume_claim_templates),
        ),
        Rule(
            expression=unchanged("(self.?records.orValue('registered') in ['static'])"),
            message="records cannot change to or from static: a line of slurm.conf and a record of its own "
            "exclude each other; make a new NodeSet",
            path=".records",
            holds=stays(lambda spec: spec.records is Records.STATIC),
        ),
        Rule(
            expression="!(self.?records.orValue('registered') in ['created', 'static']) "
            "|| !(self.?scalingMode.orValue('StatefulSet') in ['DaemonSet'])",
            message="created and static records are for numbered workers; use scalingMode: StatefulSet",
            path=".records",
            holds=lambda spec, old: (
                spec.records is Records.REGISTERED or spec.scaling_mode is not ScalingMode.DAEMON_SET
            ),
        ),
    )

    replicas: int = prop("How many workers to run in StatefulSet mode.", default=1, minimum=0)
    ordinals: list[int] | None = prop(
        "Which workers to run in StatefulSet mode, by their numbers; replicas is ignored then. Left out: "
        "`replicas` of them, the lowest numbers first. An empty list is none.",
        default=None,
        max_items=10000,
        list_type="set",
        rules=[
            Rule(
                expression="self.all(ordinal, ordinal >= 0)",
                message="numbers of workers start at 0",
                holds=lambda ordinals, old: all(ordinal >= 0 for ordinal in ordinals),
            )
        ],
    )
    scaling_mode: ScalingMode = prop(
        "How the number of workers is decided.", default=ScalingMode.STATEFUL_SET
    )
    records: Records = prop(
        "Who makes the records of these workers in Slurm. registered and created may change into each other.",
        default=Records.REGISTERED,
    )
    config_source: ConfigSource = prop(
        "Where slurmd reads its configuration.", default=ConfigSource.CONFIGLESS
    )
    supervisor: Supervisor | None = prop(
        "Runs slurmd and sshd as programs of supervisord in the slurmd container. Left out: slurmd alone.",
        default=None,
    )
    slurmd: dict[str, Any] = prop("Laid over the slurmd container.", default={}, shape=Container)
    logfile: dict[str, Any] = prop("Laid over the sidecar that prints the log.", default={}, shape=Container)
    template: WorkerTemplate = prop("Laid over the worker pods.", default=WorkerTemplate())
    extra_conf: str = prop(
        "Parameters of the Slurm nodes, such as `Gres=gpu:2 Weight=10`; handed to slurmd --conf.",
        default="",
        max_length=32768,
        rules=[
            Rule(
                expression=matches(_PARAMETERS),
                message="is a list of Key=Value, with spaces between them and neither spaces nor control "
                "characters inside",
                holds=looks_like(_PARAMETERS),
            )
        ],
    )
    partition: Partition = prop("A partition that is exactly this NodeSet.", default=Partition())
    ssh: WorkerSsh = prop("ssh into workers, for users with a job there.", default=WorkerSsh())
    drain_policy: DrainPolicy = prop(
        "What happens to jobs on a worker that has to go. By default it waits for them.",
        default=DrainPolicy(),
    )
    termination_grace_period_seconds: int = prop(
        "How long a worker that somebody else deletes may wait for its jobs. Workers get it when they are "
        "made: a change replaces none of them, unlike one of template.spec.terminationGracePeriodSeconds, "
        "which wins.",
        default=3600,
        minimum=0,
    )
    update_strategy: UpdateStrategy = prop(
        "How workers are replaced when the template changes.", default=UpdateStrategy()
    )
    revision_history_limit: int = prop(
        "How many previous revisions to keep for rollbacks.", default=0, minimum=0
    )
    volume_claim_templates: list[dict[str, Any]] = prop(
        "Volumes that each worker has of its own.",
        default=[],
        shape=ClaimTemplate,
        max_items=64,
        nullable=True,
    )
    persistent_volume_claim_retention_policy: ClaimRetention = prop(
        "What becomes of these volumes.", default=ClaimRetention()
    )
    min_ready_seconds: int = prop(
        "How long a worker must be ready to count as available.", default=0, minimum=0
    )
    ordinal_padding: int = prop(
        "Digits of the ordinals: 3 gives cpu-007. StatefulSet mode only.", default=0, minimum=0, maximum=60
    )
    pin_to_node: bool = prop(
        "Whether a worker always starts on the Kubernetes node of its first start. StatefulSet mode only.",
        default=False,
    )
    workload_disruption_protection: bool = prop(
        "Whether evictions and deletions by others are refused while a job may run there.", default=True
    )
    prune_slurm_node_records: Pruning = prop(
        "Which records of vanished workers are removed from Slurm.", default=Pruning.NEVER
    )
    oversubscribe_node: bool = prop(
        "Whether several workers may share a Kubernetes node. For trying things out.", default=False
    )
    pod_info_in_comment: bool = prop(
        "Whether Slurm nodes say in their comment which pod they are; costs one more write for each worker. "
        "A comment of somebody else is never touched.",
        default=False,
    )

    @property
    def numbers(self) -> Collection[int]:
        """The numbers of the workers that are wanted in StatefulSet mode, the lowest first."""
        return range(self.replicas) if self.ordinals is None else sorted(set(self.ordinals))

    @property
    def known_numbers(self) -> Collection[int]:
        """The numbers that Slurm knows, also while no worker has them.

        Where `ordinals` say which workers run, those below `replicas` are switched off, and known as well.
        """
        return self.numbers if self.ordinals is None else sorted({*self.ordinals, *range(self.replicas)})

    @property
    def has_fixed_numbers(self) -> bool:
        """Whether it is said which workers run, not only how many: by a list, or by lines of slurm.conf."""
        return self.ordinals is not None or self.records is Records.STATIC

    @property
    def hostname_prefix(self) -> str:
        return str(self.template.spec.get("hostname") or "")

    @property
    def claim_templates(self) -> dict[str, dict[str, Any]]:
        """By name. Of two with one name the last counts; one without a name makes no volume."""
        named = ((_name_of(template), template) for template in self.volume_claim_templates)
        return {name: template for name, template in named if name}

    def problems(self, old: Self | None, refs: References) -> Iterator[Problem]:
        budget = self.update_strategy.rolling_update.max_unavailable
        if isinstance(budget, str) and not budget.removesuffix("%").isdecimal():
            yield warning(
                "updateStrategy.rollingUpdate.maxUnavailable",
                f"{budget!r} is neither a number nor a percentage such as 25%; 1 is used",
            )
        yield from _claim_problems(self.volume_claim_templates)
        for word in self.extra_conf.split():
            if not _READABLE.fullmatch(word):
                yield warning("extraConf", f"{word!r} is no Key=Value that Slurm could read, and is left out")
        yield from self._affinity_problems()
        yield from self.probe_problems()
        yield from other_ends(self.template.spec)
        if self.template.spec.get("hostNetwork") and self.ssh.enabled and not self.ssh.has_port:
            yield warning(
                "ssh.enabled",
                "with hostNetwork sshd wants port 22 of the machine, which may have an sshd of its own "
                "there; `Port 2222` in extraSshdConfig gives it another one",
            )
        if self.records is not Records.REGISTERED and self.template.spec.get("hostNetwork"):
            yield Problem(
                path="records",
                message=f"{self.records} records have the numbers of workers for names, and with hostNetwork "
                "workers are called like their machines; use records: registered",
            )
        if self.scaling_mode is ScalingMode.DAEMON_SET and self.ordinals is not None:
            yield warning("ordinals", "makes no difference in DaemonSet mode: there workers have no numbers")
        if self.scaling_mode is ScalingMode.DAEMON_SET and self.pin_to_node:
            yield warning(
                "pinToNode", "makes no difference in DaemonSet mode: there workers belong to their node"
            )

    def probe_problems(self) -> Iterator[Problem]:
        """Warnings about probes with which a kubelet kills slurmd."""
        yield from deadly_probes(self.slurmd, self.template.spec)

    def _affinity_problems(self) -> Iterator[Problem]:
        """Errors where we read it ourselves: nothing is done by guesswork. Elsewhere Kubernetes says so."""
        is_ours_to_read = self.scaling_mode is ScalingMode.DAEMON_SET or self.pin_to_node
        for problem in unreadable(self.template.spec.get("affinity") or {}):
            found = problem.under("template.spec.affinity")
            yield found if is_ours_to_read else warning(found.path, found.message)


def _name_of(template: dict[str, Any]) -> str:
    return str((template.get("metadata") or {}).get("name") or "")


def _claim_problems(templates: list[dict[str, Any]]) -> Iterator[Problem]:
    """Warnings, for they cannot change any more: workers of a NodeSet that has them must come and go."""
    given = [_name_of(template) for template in templates]
    for index, name in enumerate(given):
        path = f"volumeClaimTemplates[{index}].metadata.name"
        if not name:
            yield warning(path, "is missing, so no worker gets this volume")
        elif name in given[index + 1 :]:
            yield warning(path, f"{name!r} is there again below, and the last one counts")


@model
class NodeSetSpec(NodeSetSettings):
    """What you want of these workers."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        *NodeSetSettings.RULES,
        *children_stay(NodeSetNames),
        Rule(
            expression=f"{_CONTROLLER} != ''",
            message="controllerRef.name says which Controller these workers register with; it is needed",
            path=".controllerRef",
            holds=lambda spec, old: spec.controller != "",
        ),
        Rule(
            expression=unchanged(_CONTROLLER),
            message="controllerRef cannot change: running jobs belong to the old cluster; make a new NodeSet",
            path=".controllerRef",
            holds=stays(lambda spec: spec.controller),
        ),
    )

    controller_ref: Reference = prop("The Controller these workers register with.", default=Reference())
    cluster_name: str = prop(
        "Named the Cluster in v1alpha1.",
        default="",
        max_length=253,
        deprecated="use controllerRef.name; it is read as that",
    )
    selector: dict[str, Any] = prop(
        "Selected pods in v1alpha1.", default={}, deprecated="is ignored: workers are found by fixed labels"
    )
    service_name: str = prop(
        "Named the Service in v1alpha1.",
        default="",
        deprecated="is ignored: the workers of a Controller share one Service, slurm-workers-<controller>",
    )

    taint_kube_nodes: bool = prop(
        "Tainted the Kubernetes nodes of workers in versions 1.0 and 1.1 of Slinky.",
        default=False,
        deprecated="is ignored: taint the nodes yourself; workers tolerate nodeset.slinky.slurm.net/worker",
    )

    children: NodeSetChildren = prop(DESCRIPTION, default=NodeSetChildren())

    def problems(self, old: Self | None, refs: References) -> Iterator[Problem]:
        yield from NodeSetSettings.problems(self, old, refs)
        yield from (problem.under("children") for problem in self.children.problems())

    @property
    def controller(self) -> str:
        """The name of the Controller; a manifest of v1alpha1 may say it in `clusterName`."""
        return self.controller_ref.name or self.cluster_name


@model
class NodeSet:
    """Identical slurmd pods; each pod is one Slurm node."""

    KIND: ClassVar[Kind] = Kind(group=names.GROUP, version="v1beta1", kind="NodeSet", plural="nodesets")
    CRD: ClassVar[Definition] = Definition(
        short_names=("nodesets", "nss", "slurmd"),
        columns=(
            Column(name="DESIRED", path=".status.desired", type="integer", description="Workers wanted."),
            Column(name="REPLICAS", path=".status.replicas", type="integer", description="Worker pods."),
            Column(
                name="UPDATED",
                path=".status.updatedReplicas",
                type="integer",
                description="Of the newest revision.",
            ),
            Column(name="READY", path=".status.readyReplicas", type="integer", description="Ready workers."),
            Column(
                name="IDLE",
                path=".status.slurmIdle",
                type="integer",
                description="Without a job.",
            ),
            Column(
                name="ALLOCATED",
                path=".status.slurmAllocated",
                type="integer",
                description="With jobs.",
            ),
            Column(
                name="DOWN",
                path=".status.slurmDown",
                type="integer",
                description="Down in Slurm.",
            ),
            Column(
                name="DRAIN",
                path=".status.slurmDrain",
                type="integer",
                description="Taking no new jobs.",
            ),
            STATUS,
        ),
        has_scale=True,
        also_served=("v1alpha1",),
        # There a NodeSet with a word on its partition had one, unless it said otherwise.
        older_defaults={"spec.partition.enabled": True},
    )

    metadata: Meta = METADATA
    spec: NodeSetSpec = prop("What you want.")
    status: NodeSetStatus = prop("How it is; written by the operator.", default=NodeSetStatus())

    @property
    def service(self) -> str:
        """The Service of these workers alone; empty when there is none."""
        called = self.spec.children.names
        return called.service if called is not None else ""

    @property
    def slurm_name(self) -> str:
        """What slurm.conf calls this NodeSet."""
        return names.slurm_node_set(self.spec.hostname_prefix, self.metadata.name)

    def host_name(self, ordinal: int) -> str:
        """The host name, and so the name in Slurm, of a numbered worker."""
        prefix = self.spec.hostname_prefix or f"{self.metadata.name}-"
        return f"{prefix}{str(ordinal).zfill(self.spec.ordinal_padding)}"

    def problems(self, old: Self | None, refs: References) -> Iterator[Problem]:
        """What a schema cannot express; the webhook and the reconciler both ask."""
        yield from spec_problems(self.spec, old.spec if old else None, refs)
        for other in refs.node_set_names.get(self.slurm_name, ()):
            yield Problem(
                path="spec.template.spec.hostname",
                message=f"NodeSet {other!r} is already known as {self.slurm_name!r} to the same Controller; "
                "use another hostname prefix",
            )
