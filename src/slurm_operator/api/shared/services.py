"""Services and metrics endpoints in front of daemons."""

from collections.abc import Iterator
from typing import Any, ClassVar

from slurm_operator.api.schema.model import model, prop
from slurm_operator.api.schema.problems import Problem, warning
from slurm_operator.api.shared.pods import Metadata

PROMETHEUS_DURATION = (
    r"^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$"
)


@model
class KubeServiceSpec:
    """A Service, as in Kubernetes. Every field is accepted, except that `externalIPs` are dropped."""

    OPEN: ClassVar[bool] = True

    type: str = prop("ClusterIP, NodePort or LoadBalancer.", default="")
    load_balancer_class: str = prop("Which load balancer serves it.", default="")
    load_balancer_source_ranges: list[str] = prop("Who may reach the load balancer.", default=[])
    external_traffic_policy: str = prop("Cluster or Local.", default="")
    ports: list[dict[str, Any]] = prop("More ports.", default=[])


@model
class Service:
    """Laid over the Service that the operator makes."""

    metadata: Metadata = prop("Labels and annotations of the Service.", default=Metadata())
    spec: dict[str, Any] = prop("Any part of a Service.", default={}, shape=KubeServiceSpec)
    port: int | None = prop(
        "Port of the Service; absent or 0 means the daemon's own.", default=None, minimum=0, maximum=65535
    )
    node_port: int | None = prop(
        "Port on every Kubernetes node, for NodePort and LoadBalancer; absent or 0 lets Kubernetes choose.",
        default=None,
        minimum=0,
        maximum=65535,
    )

    def problems(self) -> Iterator[Problem]:
        # Whoever may set external IPs can catch other people's traffic (CVE-2020-8554).
        if self.spec.get("externalIPs"):
            yield warning("spec.externalIPs", "is dropped: it would let this Service catch traffic of others")


@model
class MetricEndpoint:
    """One path to scrape."""

    path: str = prop("Path of the metrics, such as `/metrics/jobs`.")
    interval: str = prop("How often; as for all if left out.", default="", pattern=PROMETHEUS_DURATION)
    scrape_timeout: str = prop("Time limit; as for all if left out.", default="", pattern=PROMETHEUS_DURATION)


@model
class ServiceMonitor:
    """A ServiceMonitor of the Prometheus operator; skipped where that is not installed."""

    enabled: bool = prop("Whether to make one.", default=False)
    labels: dict[str, str] = prop(
        "Labels, often needed so that Prometheus picks it up.", default={}, nullable=True
    )
    annotations: dict[str, str] = prop("Annotations.", default={}, nullable=True)
    interval: str = prop("How often to scrape.", default="", pattern=PROMETHEUS_DURATION)
    scrape_timeout: str = prop("Time limit of one scrape.", default="", pattern=PROMETHEUS_DURATION)
    endpoints: list[MetricEndpoint] = prop(
        "Paths to scrape; jobs, nodes, partitions and scheduler if left out.", default=[], nullable=True
    )


@model
class Metrics:
    """Slurm's own OpenMetrics, served by slurmctld."""

    enabled: bool = prop("Whether slurmctld serves metrics.", default=False)
    service_monitor: ServiceMonitor | None = prop("Have Prometheus scrape them.", default=None, nullable=True)
