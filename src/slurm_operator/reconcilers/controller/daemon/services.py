"""What makes a cluster reachable: Services of slurmctld and the workers, their budget, metrics."""

from collections.abc import Iterable

from slurm_operator.api.shared import names
from slurm_operator.api.shared.services import MetricEndpoint, ServiceMonitor
from slurm_operator.api.slinky.controller import Controller, controller_pod
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.manifests.builders.parts import Owner
from slurm_operator.manifests.meta import Manifest
from slurm_operator.reconcilers.controller.annotations import MEMBER, SERVICE_ROLE
from slurm_operator.reconcilers.controller.daemon.readiness import is_behind_service
from slurm_operator.reconcilers.controller.observe import replicas

PORT_NAME = "slurmctld"
POD_NAME = "statefulset.kubernetes.io/pod-name"  # A label that Kubernetes puts on every pod of a StatefulSet.
METRIC_PATHS = ("/metrics/jobs", "/metrics/nodes", "/metrics/partitions", "/metrics/scheduler")

# More than there can ever be, so that an eviction is never within the budget. A percentage or maxUnavailable
# would be counted from the owner's scale, which is wrong in DaemonSet mode.
MORE_THAN_ANY_COUNT = 1_000_000


def owner(controller: Controller) -> Owner:
    return Owner(
        Controller.KIND, controller.metadata, "slurmctld", "controller", controller.spec.children.labels
    )


def client_service(controller: Controller, port: int, *, by_label: bool = False) -> Manifest:
    """For clients and workers. Selects by the pod template's labels, so it needs no operator to go on.

    Of several slurmctlds only the one in charge is ready, and so only that one is behind the Service. Daemons
    find it on the usual port and on the one that slurm.conf tells them, whatever port the user wants besides.

    `by_label` is for pods that are all ready: then it is the one that the operator labels, and without an
    operator nobody does that when another one takes over.

    A single slurmctld stays behind the Service when a container that the user put beside it is broken.
    """
    name = controller.child_names.service
    manifest = owner(controller).service(name, controller.spec.service, PORT_NAME, names.SLURMCTLD_PORT)
    manifest["metadata"]["labels"][SERVICE_ROLE] = "client"
    if is_behind_service(controller):
        manifest["spec"]["publishNotReadyAddresses"] = True
    if by_label:
        manifest["spec"]["selector"] = {**manifest["spec"]["selector"], names.LABEL_ACTIVE: "true"}
    return _on_every_port(manifest, port)


def internal_service(controller: Controller, port: int) -> Manifest:
    name = controller.child_names.internal_service
    return owner(controller).headless_service(name, PORT_NAME, port)


def member_services(controller: Controller, port: int) -> list[Manifest]:
    """Of several slurmctlds, an address for each that stays while its pod is away.

    Without one its name does not exist then, and all who read slurm.conf ask for it ten times in ten seconds
    before each message that they send, however well the others are.
    """
    return [_member_service(controller, name, port) for name in members(controller)]


def members(controller: Controller) -> list[str]:
    """The Services of the slurmctlds of a cluster with backups; they are called like the pods."""
    if controller.spec.external or not controller.spec.ha.enabled:
        return []
    return [controller_pod(controller, index) for index in range(replicas(controller))]


def _member_service(controller: Controller, pod: str, port: int) -> Manifest:
    head = owner(controller)
    metadata = head.metadata(pod)
    metadata["labels"][SERVICE_ROLE] = MEMBER
    ours = {"name": PORT_NAME, "port": names.SLURMCTLD_PORT, "protocol": "TCP", "targetPort": PORT_NAME}
    manifest: Manifest = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {
            "publishNotReadyAddresses": True,  # A standby is never ready.
            "selector": {**head.selector, POD_NAME: pod},
            "ports": [ours],
        },
    }
    return _on_every_port(manifest, port)


def _on_every_port(manifest: Manifest, port: int) -> Manifest:
    """The same on the usual port and on the one that slurm.conf tells."""
    ports = manifest["spec"]["ports"]
    for number in sorted({names.SLURMCTLD_PORT, port} - {one.get("port") for one in ports}):
        ports.append(
            {"name": f"{PORT_NAME}-{number}", "port": number, "protocol": "TCP", "targetPort": PORT_NAME}
        )
    return manifest


def worker_service(controller: Controller, nodesets: Iterable[NodeSet] = ()) -> Manifest:
    """Names for all workers of the cluster, whatever their NodeSet, and whatever their NodeSet calls them."""
    workers = _worker_owner(controller)
    manifest = workers.headless_service(controller.child_names.workers, "slurmd", names.SLURMD_PORT)
    manifest["metadata"]["labels"][names.LABEL_CLUSTER] = controller.metadata.name
    labels = [controller.spec.children.labels, *(nodeset.spec.children.labels for nodeset in nodesets)]
    is_renamed = any(names.APP_NAME in wanted for wanted in labels)
    manifest["spec"]["selector"] = {
        **({} if is_renamed else {names.APP_NAME: "slurmd"}),
        names.LABEL_CLUSTER: controller.metadata.name,  # Only workers have it.
    }
    return manifest


def worker_budget(controller: Controller) -> Manifest:
    """Refuses every eviction of a worker that is protected; a proof of the gate takes the protection away."""
    metadata = _worker_owner(controller).metadata(controller.child_names.budget)
    metadata["labels"][names.LABEL_CLUSTER] = controller.metadata.name
    protected = {names.LABEL_POD_PROTECT: "true", names.LABEL_CLUSTER: controller.metadata.name}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata,
        "spec": {
            "minAvailable": MORE_THAN_ANY_COUNT,
            "maxUnavailable": None,  # Of the Slinky operator: it cannot stand beside ours.
            "unhealthyPodEvictionPolicy": "IfHealthyBudget",
            "selector": {"matchLabels": protected},
        },
    }


def service_monitor(controller: Controller) -> Manifest | None:
    """Has Prometheus scrape slurmctld, through the client Service alone; None when it is not wanted."""
    metrics = controller.spec.metrics
    monitor = metrics.service_monitor
    if controller.spec.external or not metrics.enabled or monitor is None or not monitor.enabled:
        return None
    head = owner(controller)
    metadata = head.metadata(controller.child_names.workload)
    metadata["labels"] = {**metadata["labels"], **monitor.labels, **head.labels}
    metadata["annotations"] |= monitor.annotations
    endpoints = monitor.endpoints or [MetricEndpoint(path=path) for path in METRIC_PATHS]
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": metadata,
        "spec": {
            "selector": {"matchLabels": {**head.selector, SERVICE_ROLE: "client"}},
            "namespaceSelector": {"matchNames": [controller.metadata.namespace]},
            "endpoints": [_endpoint(endpoint, monitor) for endpoint in endpoints],
        },
    }


def _endpoint(endpoint: MetricEndpoint, monitor: ServiceMonitor) -> Manifest:
    times = {
        "interval": endpoint.interval or monitor.interval,
        "scrapeTimeout": endpoint.scrape_timeout or monitor.scrape_timeout,
    }
    said = {key: value for key, value in times.items() if value}
    return {"path": endpoint.path, "port": PORT_NAME, "scheme": "http", **said}


def _worker_owner(controller: Controller) -> Owner:
    """The Controller as the owner of what its workers share."""
    return Owner(Controller.KIND, controller.metadata, "slurmd", "worker", controller.spec.children.labels)
