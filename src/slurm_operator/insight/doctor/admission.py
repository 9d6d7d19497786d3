"""What stands between a request and our kinds: webhooks, and the policy about CRDs."""

from collections.abc import Iterable

from slurm_operator import wire
from slurm_operator.api import registry
from slurm_operator.api.registry import Registry
from slurm_operator.api.shared import names
from slurm_operator.api.slinky.cluster import Cluster
from slurm_operator.insight.doctor.facts import Webhook
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import KubeError
from slurm_operator.kube.request import Request
from slurm_operator.manifests.kinds import (
    CUSTOM_RESOURCE_DEFINITION,
)
from slurm_operator.manifests.meta import Manifest
from slurm_operator.runtime.report.protection import bound_policies

_ADMISSION = "/apis/admissionregistration.k8s.io/v1"


async def webhooks(client: Client, namespace: str, ours: Registry = registry.DEFAULT) -> tuple[Webhook, ...]:
    found = []
    for plural in ("validatingwebhookconfigurations", "mutatingwebhookconfigurations"):
        listed = await client.request("GET", f"{_ADMISSION}/{plural}")
        found += [
            (config["metadata"]["name"], hook)
            for config in listed["items"]
            for hook in _about(config, ours.groups)
        ]
    trouble = await _trouble(client, namespace) if found else ""
    return tuple(
        Webhook(
            configuration=name,
            service=_service(hook),
            is_blocking=hook.get("failurePolicy", "Fail") == "Fail",
            trouble=trouble,
        )
        for name, hook in found
    )


async def _trouble(client: Client, namespace: str) -> str:
    """What a rehearsal says: an object that is checked by everybody, and never stored."""
    wanted = {
        "apiVersion": Cluster.KIND.api_version,
        "kind": Cluster.KIND.kind,
        "metadata": {"name": "doctor", "namespace": namespace},
        "spec": {},
    }
    rehearsal = Request(
        verb="create",
        method="POST",
        path=Cluster.KIND.path(namespace),
        params={"dryRun": "All"},
        body=wire.encode(wanted),
        is_question=True,
    )
    try:
        await client.send(rehearsal)
    except KubeError as error:
        said = str(error)
        return said if "webhook" in said and "failed calling" in said else ""
    return ""


async def are_crds_protected(client: Client) -> bool:
    """Whether a policy about deleting our CRDs is there and bound. Raises KubeError."""
    return any(map(_keeps_crds, await bound_policies(client)))


def _keeps_crds(policy: Manifest) -> bool:
    spec = policy["spec"]
    rules = (spec.get("matchConstraints") or {}).get("resourceRules") or ()
    is_about_crds = any(
        "DELETE" in rule.get("operations", ())
        and CUSTOM_RESOURCE_DEFINITION.plural in rule.get("resources", ())
        for rule in rules
    )
    return is_about_crds and names.GROUP.encode() in wire.encode(spec.get("matchConditions") or [])


def _about(configuration: Manifest, groups: tuple[str, ...]) -> Iterable[Manifest]:
    """The webhooks of a configuration that are about our kinds."""
    for hook in configuration.get("webhooks") or ():
        if any({*groups} & {*(rule.get("apiGroups") or ())} for rule in hook.get("rules") or ()):
            yield hook


def _service(hook: Manifest) -> str:
    service = hook["clientConfig"].get("service") or {}
    return f"{service.get('namespace', '?')}/{service.get('name', '?')}"
