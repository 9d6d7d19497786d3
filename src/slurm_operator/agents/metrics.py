"""What Prometheus may know about a process in a pod: what all of them count, in a registry of their own."""

from prometheus_client import CollectorRegistry, Counter, generate_latest

from slurm_operator.kube.client import Call


class AgentMetrics:
    """Counters whose names begin with `slurm_operator_NAME_`."""

    def __init__(self, name: str) -> None:
        self.registry = CollectorRegistry()
        self._kube_requests = Counter(
            f"slurm_operator_{name}_kube_requests",
            "Requests to the API server, by verb, resource and HTTP code; code 0 is no answer.",
            ["verb", "resource", "code"],
            registry=self.registry,
        )

    def called(self, call: Call) -> None:
        self._kube_requests.labels(call.verb, call.resource, str(call.code)).inc()

    def text(self) -> bytes:
        """Everything, in Prometheus' text format."""
        return generate_latest(self.registry)
