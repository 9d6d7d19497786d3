"""What a LoginSet says about itself: how to get in, and how many pods let one in."""

from slurm_operator.api.shared import names
from slurm_operator.manifests import kinds
from slurm_operator.manifests.builders.workloads import Rollout
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.objects import Secret
from slurm_operator.manifests.secrets import SSH_FINGERPRINTS
from slurm_operator.plan.plan import Outcome, Plan
from slurm_operator.plan.reconciler import StatusReport
from slurm_operator.reconcilers.loginset.desired import owner
from slurm_operator.reconcilers.loginset.observe import APP, Seen
from slurm_operator.reconcilers.shared.daemon_conditions import Standing


def status(seen: Seen, plan: Plan, outcome: Outcome) -> StatusReport:
    standing = Standing(
        daemon=APP,
        serving=_way_in(seen),
        rollout=seen.rollout,
        needs=seen.needs,
        troubles=seen.troubles,
        replicas=seen.loginset.spec.replicas,
    )
    return StatusReport(conditions=standing.conditions(plan, outcome), fields=status_fields(seen))


def status_fields(seen: Seen) -> Manifest:
    meta = seen.loginset.metadata
    rollout = seen.rollout or Rollout(wanted=0)
    return {
        "observedGeneration": meta.generation,
        "selector": owner(seen.loginset).selector_text,
        "endpoint": endpoint(seen),
        "replicas": rollout.replicas,
        "updatedReplicas": rollout.updated,
        "readyReplicas": rollout.ready,
        "availableReplicas": rollout.available,
        "hostKeyFingerprints": fingerprints(seen),
    }


def fingerprints(seen: Seen) -> list[str]:
    """Of host keys that we made, as noted then. Of given ones we never see more than digests."""
    if not isinstance(seen.host_keys, Secret):
        return []
    noted = seen.host_keys.metadata.annotations.get(SSH_FINGERPRINTS, "")
    return noted.split(", ") if noted else []


def endpoint(seen: Seen) -> str:
    """host:port for ssh: what a load balancer was given, else the Service inside the cluster."""
    meta = seen.loginset.metadata
    port = seen.loginset.spec.service.port or names.SSH_PORT
    for ingress in (_service(seen).get("status") or {}).get("loadBalancer", {}).get("ingress") or ():
        return f"{ingress.get('hostname') or ingress.get('ip')}:{port}"
    return f"{seen.loginset.child_names.service}.{meta.namespace}:{port}"


def _way_in(seen: Seen) -> str:
    spec = _service(seen).get("spec") or {}
    open_ports = [port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")]
    if spec.get("type") == "NodePort" and open_ports:
        return (
            f"Log in with ssh at port {open_ports[0]} of any Kubernetes node, or inside at {endpoint(seen)}."
        )
    return f"Log in with ssh at {endpoint(seen)}."


def _service(seen: Seen) -> Manifest:
    service = seen.children.get((kinds.SERVICE, seen.loginset.child_names.service))
    return service.body if service is not None else {}
