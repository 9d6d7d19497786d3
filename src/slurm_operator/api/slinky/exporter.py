"""The exporter of one Slurm cluster, beside its slurmrestd."""

from slurm_operator.api.schema.model import Choice, model, prop
from slurm_operator.api.shared.pods import PodTemplate
from slurm_operator.api.shared.services import PROMETHEUS_DURATION


class ExporterCompat(Choice):
    """Whose names its metrics have."""

    NONE = "none", "ours: those of Soperator's exporter, without names of jobs and users."
    SOPERATOR = "soperator", "those of Soperator's exporter, with all of its labels."
    SLINKY = "slinky", "those of Slinky's slurm-exporter."


@model
class ExporterMonitor:
    """A ServiceMonitor of the Prometheus operator; skipped where that is not installed."""

    enabled: bool = prop("Whether to make one.", default=False)
    labels: dict[str, str] = prop("Labels, often needed so that Prometheus picks it up.", default={})
    interval: str = prop("How often to scrape.", default="30s", pattern=PROMETHEUS_DURATION)
    scrape_timeout: str = prop("Time limit of one scrape.", default="", pattern=PROMETHEUS_DURATION)


@model
class Exporter:
    """Shows this Slurm cluster to Prometheus, in a pod of its own."""

    enabled: bool = prop("Whether to run one.", default=False)
    image: str = prop("Its image. Left out: that of the operator.", default="")
    compat: ExporterCompat = prop("Whose names its metrics have.", default=ExporterCompat.NONE)
    args: list[str] = prop(
        "More flags, such as `--no-personal-data`; see `slurm-operator exporter --help`.",
        default=[],
        max_items=64,
    )
    template: PodTemplate = prop(
        "Laid over its pod; its container is called slurm-exporter.", default=PodTemplate()
    )
    service_monitor: ExporterMonitor = prop("Have Prometheus scrape it.", default=ExporterMonitor())
