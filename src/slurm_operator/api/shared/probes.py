"""Settings by which Kubernetes ends a slurmd, and every job in its pod, although the jobs are well."""

from collections.abc import Iterator, Mapping
from typing import Any

from slurm_operator.api.schema.problems import Problem, warning

# What a kubelet kills a container for. A readiness probe kills nobody.
DEADLY = ("livenessProbe", "startupProbe")

# What a probe can ask; one without any of them is no probe.
HANDLERS = frozenset({"exec", "grpc", "httpGet", "tcpSocket"})

_SLURMD = "slurmd"


def deadly_probes(slurmd: Mapping[str, Any], pod_spec: Mapping[str, Any]) -> Iterator[Problem]:
    """Warnings about probes that the user gives slurmd, in either of the two places."""
    yield from _of_container("slurmd", slurmd)
    for index, container in enumerate(pod_spec.get("containers") or ()):
        if isinstance(container, Mapping) and container.get("name") == _SLURMD:
            yield from _of_container(f"template.spec.containers[{index}]", container)


def _of_container(path: str, container: Mapping[str, Any]) -> Iterator[Problem]:
    for name in DEADLY:
        probe = container.get(name)
        if not isinstance(probe, Mapping) or not probe:
            continue
        if HANDLERS.isdisjoint(key for key, value in probe.items() if value is not None):
            message = "is ignored: it says nothing to ask, and slurmd has no such probe that it could adjust"
        else:
            message = (
                "when it fails, the kubelet kills slurmd and every job there, while Slurm would wait for "
                "SlurmdTimeout. Remove it: the operator drains a slurmd that is not ready and ends none"
            )
        yield warning(f"{path}.{name}", message)


def other_ends(pod_spec: Mapping[str, Any]) -> Iterator[Problem]:
    """Warnings about what else ends a worker while its jobs run."""
    if pod_spec.get("activeDeadlineSeconds") is not None:
        yield warning(
            "template.spec.activeDeadlineSeconds",
            "the kubelet ends every worker after this time, with the jobs that run there then",
        )
