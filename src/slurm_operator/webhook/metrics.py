"""What Prometheus may know about the webhook."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from slurm_operator.kube.client import Call

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """Counters of one webhook, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._reviews = Counter(
            "slurm_operator_admission_reviews",
            "Questions of the API server, by answer: allowed, warned, refused, malformed, unchecked.",
            ["path", "answer"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "slurm_operator_admission_review_seconds",
            "How long an answer took, lookups included.",
            ["path"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._kube_requests = Counter(
            "slurm_operator_webhook_kube_requests",
            "Requests to the API server, by verb, resource and HTTP code; code 0 is no answer.",
            ["verb", "resource", "code"],
            registry=self.registry,
        )
        self.certificate_expires_seconds = Gauge(
            "slurm_operator_webhook_certificate_expires_seconds",
            "Unix time at which the certificate in use runs out; 0 while there is none.",
            registry=self.registry,
        )

    def answered(self, path: str, answer: str, seconds: float) -> None:
        self._reviews.labels(path, answer).inc()
        self._seconds.labels(path).observe(seconds)

    def called(self, call: Call) -> None:
        self._kube_requests.labels(call.verb, call.resource, str(call.code)).inc()

    def text(self) -> bytes:
        """Everything, in Prometheus' text format."""
        return generate_latest(self.registry)
