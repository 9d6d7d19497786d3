"""The parts that a description of workers is made of."""

import re
from datetime import timedelta
from typing import Any, ClassVar

from slurm_operator.api.schema.cel import as_duration, looks_like, matches
from slurm_operator.api.schema.model import Choice, Rule, model, prop
from slurm_operator.api.shared.pods import Metadata, PodSpec
from slurm_operator.api.shared.refs import Reference, SecretKey

_HOSTNAME_PREFIX = r"^(([a-z0-9]([-a-z0-9]*[a-z0-9])?\.)*[a-z0-9][-a-z0-9]*)?$"


class ScalingMode(Choice):
    """How the number of workers is decided."""

    STATEFUL_SET = "StatefulSet", "`replicas` workers, numbered from 0."
    DAEMON_SET = (
        "DaemonSet",
        "one worker on every Kubernetes node that the template fits; replicas is ignored.",
    )


class DrainType(Choice):
    """What happens to jobs on a worker that has to go."""

    WAIT = "Wait", "they finish, however long that takes."
    REQUEUE = "Requeue", "after the deadline, jobs that may be requeued are; the others finish."
    CANCEL = "Cancel", "after the deadline, jobs are requeued where allowed and cancelled where not."


class Retention(Choice):
    """What becomes of a volume that is no longer used."""

    RETAIN = "Retain", "it stays."
    DELETE = "Delete", "it is deleted, with its data."


class Pruning(Choice):
    """Which records of vanished workers are removed from Slurm."""

    NEVER = "Never", "only those that the operator retired itself."
    NODE_NOT_FOUND = "NodeNotFound", "also those whose Kubernetes node is gone."


class Records(Choice):
    """Who makes the records of workers in Slurm, and how long they last."""

    REGISTERED = "registered", "slurmd makes its own; it is removed when its worker leaves for good."
    CREATED = (
        "created",
        "the operator makes them before the pods, so that Slurm knows each worker before it starts. They "
        "stay while no pod is there, and go with their numbers. Beside `ordinals`, numbers below `replicas` "
        "have one too: workers that are switched off.",
    )
    STATIC = "static", "NodeName lines of slurm.conf, for images that do not start slurmd with -Z."


@model
class Supervisor:
    """slurmd and sshd as programs of one supervisord."""

    config_map_ref: Reference = prop(
        "ConfigMap whose key supervisord.conf says which programs run.",
        rules=[
            Rule(
                expression="self.?name.orValue('') != ''",
                message="configMapRef.name says which ConfigMap holds supervisord.conf; it is needed",
                holds=lambda ref, old: ref.name != "",
            )
        ],
    )


@model
class DrainPolicy:
    """What happens to jobs on a worker that has to go: scale-in, update, deletion."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            expression="self.type == 'Wait' || has(self.deadline)",
            message="Requeue and Cancel end jobs, so they need a deadline that says when",
            path=".deadline",
        ),
    )

    type: DrainType = prop("Whether jobs may be ended for it.", default=DrainType.WAIT)
    deadline: timedelta | None = prop(
        "How long jobs may hold up a worker, counted from its drain, such as 2h. With Wait it ends nothing; "
        "the NodeSet is only reported as Degraded.",
        default=None,
        rules=[
            Rule(expression=as_duration("duration(self) >= duration('0s')"), message="cannot be negative")
        ],
    )
    message: str = prop(
        "Shown to the owners of jobs that are about to be ended.", default="", max_length=1024
    )


@model
class WorkerSsh:
    """ssh into workers, for users who have a job there (pam_slurm_adopt)."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            expression="!self.enabled || !has(self.sssdConfRef) || self.sssdConfRef.?name.orValue('') != ''",
            message="ssh needs to know its users: sssdConfRef.name says which Secret holds sssd.conf, "
            "or leave sssdConfRef out",
            path=".sssdConfRef",
            holds=lambda ssh, old: (
                not ssh.enabled or ssh.sssd_conf_ref is None or ssh.sssd_conf_ref.name != ""
            ),
        ),
    )

    enabled: bool = prop(
        "Whether workers run sshd, on port 22; with hostNetwork on that of the machine.", default=False
    )
    extra_sshd_config: str = prop("Lines added to sshd_config.", default="")
    sssd_conf_ref: SecretKey | None = prop(
        "Secret with sssd.conf, which says where users come from. Left out: users of the image.", default=None
    )

    @property
    def has_port(self) -> bool:
        """Whether the added lines name a port."""
        return re.search(r"^\s*port[\s=]", self.extra_sshd_config, re.IGNORECASE | re.MULTILINE) is not None


@model
class Partition:
    """A partition that is exactly this NodeSet."""

    enabled: bool = prop("Whether there is one.", default=False)
    config: str = prop(
        "Options of its line, such as `Default=YES MaxTime=1-0`.",
        default="",
        max_length=16384,
        rules=[
            Rule(
                expression=r"!self.contains('\n') && !self.contains('\r')",
                message="is one line of slurm.conf; more lines belong into the Controller's extraConf",
            )
        ],
    )


@model
class ClaimRetention:
    """What becomes of the workers' volumes."""

    when_deleted: Retention = prop("When the NodeSet is deleted.", default=Retention.RETAIN)
    when_scaled: Retention = prop("When a worker leaves for good.", default=Retention.RETAIN)


@model
class WorkerPodSpec(PodSpec):
    """A worker pod, as in Kubernetes. Every field is accepted."""

    # A name goes into slurm.conf, so what could break out of a line must not get through.
    hostname: str = prop(
        "Prefix of host names and so of Slurm node names: `gpu-` gives gpu-0, gpu-1. Slurm knows the set and "
        "its partition by it.",
        default="",
        max_length=253,
        rules=[
            Rule(
                expression=matches(_HOSTNAME_PREFIX),
                message="starts host names, so it may have lower-case letters, digits, '-' and '.' only",
                holds=looks_like(_HOSTNAME_PREFIX),
            )
        ],
    )


@model
class WorkerTemplate:
    """Laid over the worker pods."""

    metadata: Metadata = prop("Labels and annotations of the pods.", default=Metadata())
    spec: dict[str, Any] = prop("Any part of a pod.", default={}, shape=WorkerPodSpec)
