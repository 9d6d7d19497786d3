"""Flags about Kubernetes nodes with workers, which several commands have."""

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import click

from slurm_operator.api.nebius import node_conditions
from slurm_operator.api.nebius.names import GROUP
from slurm_operator.api.schema import durations
from slurm_operator.cli.flags import Decorator, switch
from slurm_operator.reconcilers.nebius.kubenode.options import NodeOptions
from slurm_operator.reconcilers.nebius.shared.brake import Limit
from slurm_operator.runtime.kubelets import KubeletSettings
from slurm_operator.runtime.settings import Settings, SettingsProblem

_OPTIONS: Final[tuple[Decorator, ...]] = (
    click.option(
        "--brake-max-percent",
        type=click.IntRange(0, 100),
        default=20,
        show_default=True,
        envvar="SLURM_OPERATOR_BRAKE_MAX_PERCENT",
        help="How much of a NodeSet node controllers may take out of service before they ask a person.",
    ),
    click.option(
        "--brake-window",
        default="1h",
        show_default=True,
        envvar="SLURM_OPERATOR_BRAKE_WINDOW",
        help="Within this time.",
    ),
    click.option(
        "--maintenance-condition-type",
        default=node_conditions.MAINTENANCE_SCHEDULED,
        show_default=True,
        help="The condition by which the provider of a Kubernetes node calls for maintenance.",
    ),
    click.option(
        "--maintenance-ignore-node-labels",
        default="",
        envvar="MAINTENANCE_IGNORE_NODE_LABELS",
        help="Kubernetes nodes with one of these labels (key=value, comma-separated) are not emptied.",
    ),
    click.option(
        "--ephemeral-storage-threshold",
        type=click.FloatRange(0, 100),
        default=85.0,
        show_default=True,
        help="Workers that use more percent of their limit of local storage are drained,",
    ),
    click.option(
        "--ephemeral-storage-resume-threshold",
        type=click.FloatRange(0, 100),
        default=80.0,
        show_default=True,
        help="and resumed below this one.",
    ),
    click.option(
        "--requeue-after-pod-ephemeral-storage-check",
        default="1m",
        show_default=True,
        help="How often kubelets are asked for the local storage of workers.",
    ),
    click.option(
        "--pod-ephemeral-max-concurrent-reconciles",
        type=click.IntRange(min=1),
        default=50,
        show_default=True,
        help="How many kubelets are asked at once.",
    ),
    click.option("--kubelet-port", type=click.IntRange(1, 65535), default=10250, show_default=True),
    click.option("--kubelet-request-timeout", default="10s", show_default=True),
    click.option(
        "--kubelet-ca-file",
        type=click.Path(path_type=Path),
        help="The authority of kubelets' certificates; without one, the API server's.",
    ),
    click.option("--kubelet-tls-server-name", default="", help="The name on kubelets' certificates."),
    switch(
        "--kubelet-insecure-skip-tls-verify",
        "Give our token to kubelets whose certificates nobody vouches for, where no authority is named.",
    ),
    switch(
        "--enable-node-replacement", "Call hardware broken where a health check does, so that it is replaced."
    ),
    switch("--delete-drained-nodes", "Delete a Node that is empty for maintenance."),
    switch("--delete-not-ready-nodes", "Delete a Node that is not ready, once Slurm has no job there."),
    click.option(
        "--not-ready-timeout",
        default="15m",
        show_default=True,
        help="For how long it must not have been ready.",
    ),
)


def node_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def node_settings(flags: Mapping[str, Any], **more: Any) -> NodeOptions:
    """What these flags ask for. Raises SettingsProblem."""
    if flags["ephemeral_storage_resume_threshold"] > flags["ephemeral_storage_threshold"]:
        raise SettingsProblem(
            "--ephemeral-storage-resume-threshold: workers would be resumed and drained in turns; use a "
            f"value below --ephemeral-storage-threshold ({flags['ephemeral_storage_threshold']:g})."
        )
    return NodeOptions(
        maintenance_condition=flags["maintenance_condition_type"],
        ignored_labels=_labels(flags["maintenance_ignore_node_labels"]),
        storage_threshold=flags["ephemeral_storage_threshold"],
        storage_resume_threshold=flags["ephemeral_storage_resume_threshold"],
        replaces=flags["enable_node_replacement"],
        deletes_drained=flags["delete_drained_nodes"],
        deletes_not_ready=flags["delete_not_ready_nodes"],
        not_ready_timeout=_duration(flags, "not_ready_timeout"),
        brake=Limit(flags["brake_max_percent"], _duration(flags, "brake_window")),
        **more,
    )


def node_notes(settings: Settings) -> Iterator[str]:
    """Why nothing is done about Kubernetes nodes, where that was asked for."""
    if settings.nodes is not None and settings.namespaces and GROUP in settings.groups:
        yield (
            "node controllers are off: with --namespaces nobody can tell what else a Kubernetes node runs. "
            "Its conditions are neither read nor set"
        )


def kubelet_settings(flags: Mapping[str, Any]) -> KubeletSettings:
    """How kubelets are asked. Raises SettingsProblem."""
    authority: Path | None = flags["kubelet_ca_file"]
    return KubeletSettings(
        port=flags["kubelet_port"],
        timeout_seconds=_duration(flags, "kubelet_request_timeout").total_seconds(),
        authority=authority,
        insecure=flags["kubelet_insecure_skip_tls_verify"] and authority is None,
        server_name=flags["kubelet_tls_server_name"],
        every_seconds=_duration(flags, "requeue_after_pod_ephemeral_storage_check").total_seconds(),
        at_once=flags["pod_ephemeral_max_concurrent_reconciles"],
    )


def _duration(flags: Mapping[str, Any], name: str) -> timedelta:
    flag = f"--{name.replace('_', '-')}"
    try:
        found = durations.parse(flags[name])
    except ValueError as error:
        raise SettingsProblem(f"{flag}: {error}.") from error
    if found <= timedelta(0):
        raise SettingsProblem(f"{flag}: {flags[name]!r} is no time; use one such as 15m.")
    return found


def _labels(text: str) -> dict[str, str]:
    found = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise SettingsProblem(
                f"--maintenance-ignore-node-labels: {part!r} is no label; write key=value, such as "
                "slurm.nebius.ai/nodeset=nfs."
            )
        found[key.strip()] = value.strip()
    return found
