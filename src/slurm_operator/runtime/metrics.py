"""What Prometheus may know about the operator. Names carry their unit; docs/reference lists them all."""

import math
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from slurm_operator.api.registry import DEFAULT, Registry
from slurm_operator.kube.client import Call
from slurm_operator.runtime.object_metrics import Objects, collectors

# As programs that are built with controller-runtime name how a pass ended.
_RESULTS = {"waiting": "requeue_after", "failed": "error", "error": "error"}
_METHODS = {
    "create": "POST",
    "delete": "DELETE",
    "deletecollection": "DELETE",
    "update": "PUT",
    "patch": "PATCH",
    "apply": "PATCH",
}
_NO_ANSWER = "<error>"

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """Counters and gauges of one operator, in a registry of its own."""

    def __init__(
        self, kinds: Registry = DEFAULT, *, host: str = "", lease: str = "", objects: Objects = lambda: ()
    ) -> None:
        """`host` is the API server, `lease` what the leader holds, `objects` gives all of our kinds."""
        self.registry = CollectorRegistry()
        for collector in collectors(objects):
            self.registry.register(collector)
        self._host, self._lease = host, lease
        self._add_generic()
        self._reconciles = Counter(
            "slurm_operator_reconciles",
            "Passes over one object, by how they ended: done, acted, waiting, gone, ignored, failed, error.",
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
        self._requests_of = cache(
            lambda verb, group, resource, code: requests.labels(verb, kinds.resource(group, resource), code)
        )
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

    def _add_generic(self) -> None:
        """Those of controller-runtime that dashboards for any operator use."""
        passes = Counter(
            "controller_runtime_reconcile",
            "Passes over one object, by how they ended: success, error, requeue_after.",
            ["controller", "result"],
            registry=self.registry,
        )
        errors = Counter(
            "controller_runtime_reconcile_errors",
            "Passes over one object that failed.",
            ["controller"],
            registry=self.registry,
        )
        seconds = Histogram(
            "controller_runtime_reconcile_time_seconds",
            "How long one pass took, writes included.",
            ["controller"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._workqueue_depth = Gauge(
            "workqueue_depth",
            "Objects that are ready to be looked at and wait for a worker.",
            ["name", "controller"],
            registry=self.registry,
        )
        requests = Counter(
            "rest_client_requests",
            "Requests to the API server, by HTTP code, host and method.",
            ["code", "host", "method"],
            registry=self.registry,
        )
        self._master_status = Gauge(
            "leader_election_master_status",
            "1 while this process holds the Lease of this name, else 0.",
            ["name"],
            registry=self.registry,
        )
        self._passes_of, self._errors_of, self._time_of = (
            cache(passes.labels),
            cache(errors.labels),
            cache(seconds.labels),
        )
        self._rest_requests_of = cache(requests.labels)

    def reconciled(self, reconciler: str, result: str, seconds: float) -> None:
        self._reconciles.labels(reconciler, result).inc()
        self._reconcile_seconds.labels(reconciler).observe(seconds)
        generic = _RESULTS.get(result, "success")
        self._passes_of(reconciler, generic).inc()
        # A series that is not there until the first failure would hide that one from `rate`.
        self._errors_of(reconciler).inc(generic == "error")
        self._time_of(reconciler).observe(seconds)

    def called(self, call: Call) -> None:
        self._requests_of(call.verb, call.group, call.resource, str(call.code)).inc()
        code = str(call.code) if call.code else _NO_ANSWER
        self._rest_requests_of(code, self._host, _METHODS.get(call.verb, "GET")).inc()
        if call.verb != "watch":
            self._seconds_of(call.verb).observe(call.seconds)

    def queued(self, reconciler: str, depth: int) -> None:
        self.queue_depth.labels(reconciler).set(depth)
        self._workqueue_depth.labels(reconciler, reconciler).set(depth)

    def leads(self, is_leader: bool) -> None:
        self.is_leader.set(is_leader)
        if self._lease:
            self._master_status.labels(self._lease).set(is_leader)

    def text(self) -> bytes:
        """Everything, in Prometheus' text format."""
        return generate_latest(self.registry)
