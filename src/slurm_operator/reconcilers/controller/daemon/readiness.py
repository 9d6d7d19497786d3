"""Whether the slurmctld in a pod works, whatever the containers beside it do."""

from slurm_operator.api.slinky.controller import Controller
from slurm_operator.manifests.builders import munge
from slurm_operator.manifests.objects import Pod

CONTAINER = "slurmctld"
OUR_CONTAINERS = [CONTAINER, "logfile", "reconfigure", munge.NAME]


def brings_containers(controller: Controller) -> bool:
    """Whether the user has containers beside slurmctld. While one of them is broken, the pod is not ready."""
    pod = controller.spec.template.spec
    sidecars = [one for one in pod.get("initContainers") or () if one.get("restartPolicy") == "Always"]
    return any(one.get("name") not in OUR_CONTAINERS for one in [*(pod.get("containers") or ()), *sidecars])


def is_behind_service(controller: Controller) -> bool:
    """A single slurmctld is behind its Service even while its pod is not ready.

    Of several the Service finds the one in charge by its readiness.
    """
    return brings_containers(controller) and not controller.spec.ha.enabled


def is_ready(controller: Controller, pod: Pod) -> bool:
    """slurmctld answers, and clients reach it."""
    if pod.is_ready or pod.status.phase != "Running" or not is_behind_service(controller):
        return pod.is_ready
    # Of a kubelet that is silent the containers stay as they were last reported; only `Ready` changes then.
    containers = pod.status.condition("ContainersReady")
    is_reported = containers is not None and containers.status == "False"
    return is_reported and any(one.ready for one in pod.status.container_statuses if one.name == CONTAINER)
