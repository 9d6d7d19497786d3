"""What Prometheus may know about the operator. Names carry their unit; docs/reference lists them all."""

import math
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from slurm_operator.kube.client import Call

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """Counters and gauges of one operator, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._reconciles = Counter(
            "slurm_operator_reconciles",
            "Passes over one object, by how they ended: done, acted, waiting, gone, failed, error.",
            ["reconciler", "result"],
            registry=self.registry,
        )
        self._reconcile_seconds = Histogram(
            "slurm_operator_reconcile_seconds",
            "How long one pass took, writes included.",
            ["reconciler"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.queue_depth = Gauge(
            "slurm_operator_queue_depth",
            "Objects that are ready to be looked at and wait for a worker.",
            ["reconciler"],
            registry=self.registry,
        )
        requests = Counter(
            "slurm_operator_kube_requests",
            "Requests to the API server, by verb, resource and HTTP code; code 0 is no answer.",
            ["verb", "resource", "code"],
            registry=self.registry,
        )
        request_seconds = Histogram(
            "slurm_operator_kube_request_seconds",
            "How long the API server took to answer.",
            ["verb"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        # Requests come by the thousand, and finding a series by its labels is dearer than counting in it.
        self._requests_of = cache(requests.labels)
        self._seconds_of = cache(request_seconds.labels)
        self.cached_objects = Gauge(
            "slurm_operator_cached_objects", "Objects in a watch cache.", ["resource"], registry=self.registry
        )
        self.undecodable_objects = Gauge(
            "slurm_operator_undecodable_objects",
            "Objects that were passed over because they could not be read.",
            ["resource"],
            registry=self.registry,
        )
        self.watch_age_seconds = Gauge(
            "slurm_operator_watch_age_seconds",
            "Seconds since the API server last said anything on the quietest watch.",
            ["resource"],
            registry=self.registry,
        )
        self.loop_lag_seconds = Gauge(
            "slurm_operator_event_loop_lag_seconds",
            "The longest time in the last minute that something kept the event loop busy.",
            registry=self.registry,
        )
        self.snapshot_age_seconds = Gauge(
            "slurm_operator_snapshot_age_seconds",
            "Age of what we know about a Slurm cluster.",
            ["namespace", "controller"],
            registry=self.registry,
        )
        self.is_leader = Gauge(
            "slurm_operator_is_leader", "1 while this process may write, else 0.", registry=self.registry
        )
        self.workers_protected = Gauge(
            "slurm_operator_workers_protected",
            "1 while a policy keeps workers from being deleted by hand, else 0; NaN where it cannot be seen.",
            registry=self.registry,
        )
        self.workers_protected.set(math.nan)
        self.events_dropped = Gauge(
            "slurm_operator_events_dropped",
            "Events for people that were dropped because too many were waiting.",
            registry=self.registry,
        )

    def reconciled(self, reconciler: str, result: str, seconds: float) -> None:
        self._reconciles.labels(reconciler, result).inc()
        self._reconcile_seconds.labels(reconciler).observe(seconds)

    def called(self, call: Call) -> None:
        self._requests_of(call.verb, call.resource, str(call.code)).inc()
        if call.verb != "watch":
            self._seconds_of(call.verb).observe(call.seconds)

    def text(self) -> bytes:
        """Everything, in Prometheus' text format."""
        return generate_latest(self.registry)
