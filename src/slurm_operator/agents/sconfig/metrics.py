"""What Prometheus may know about the writer."""

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from slurm_operator.kube.client import Call


class Metrics:
    """Counters of one writer, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.files = Counter(
            "slurm_operator_sconfig_files",
            "Files of the shared root in passes that wrote, by what became of them.",
            ["fate"],
            registry=self.registry,
        )
        self.reconfigures = Counter(
            "slurm_operator_sconfig_reconfigures",
            "Times that Slurm was asked to read its files, by result: done, failed.",
            ["result"],
            registry=self.registry,
        )
        self.held_groups = Gauge(
            "slurm_operator_sconfig_held_groups",
            "Groups of JailedConfigs that are not written, because a member or the root is not in order.",
            registry=self.registry,
        )
        self._kube_requests = Counter(
            "slurm_operator_sconfig_kube_requests",
            "Requests to the API server, by verb, resource and HTTP code; code 0 is no answer.",
            ["verb", "resource", "code"],
            registry=self.registry,
        )

    def called(self, call: Call) -> None:
        self._kube_requests.labels(call.verb, call.resource, str(call.code)).inc()

    def text(self) -> bytes:
        """Everything, in Prometheus' text format."""
        return generate_latest(self.registry)
