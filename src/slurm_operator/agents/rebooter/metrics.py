"""What Prometheus may know about one rebooter."""

from prometheus_client import CollectorRegistry, Counter, generate_latest

from slurm_operator.kube.client import Call


class Metrics:
    """Counters of one rebooter, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.evictions = Counter(
            "slurm_operator_rebooter_evictions",
            "Pods that were asked to leave, by result: accepted, refused.",
            ["result"],
            registry=self.registry,
        )
        self.reboots = Counter(
            "slurm_operator_rebooter_reboot_commands",
            "Reboot commands that were run, by result: done, failed.",
            ["result"],
            registry=self.registry,
        )
        self._kube_requests = Counter(
            "slurm_operator_rebooter_kube_requests",
            "Requests to the API server, by verb, resource and HTTP code; code 0 is no answer.",
            ["verb", "resource", "code"],
            registry=self.registry,
        )

    def called(self, call: Call) -> None:
        self._kube_requests.labels(call.verb, call.resource, str(call.code)).inc()

    def text(self) -> bytes:
        """Everything, in Prometheus' text format."""
        return generate_latest(self.registry)
