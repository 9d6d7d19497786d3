"""Webhooks of another operator: what they stand in front of, and whether anybody answers for them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from slurm_operator import wire
from slurm_operator.insight.doctor.finding import Finding, fail, note, warn
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import NotFound
from slurm_operator.manifests.meta import Manifest

_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"

IsAbout = Callable[[Manifest], bool]


class Hook(wire.Record):
    """A webhook configuration about our kinds, and whether there is a Service behind it."""

    plural: str
    name: str
    is_blocking: bool
    service: str
    is_served: bool
    is_ours: bool

    @property
    def deletion(self) -> str:
        return f"`kubectl delete {self.plural.removesuffix('s')} {self.name}`"


async def items(client: Client, path: str, **params: str) -> list[Manifest]:
    found: list[Manifest] = (await client.request("GET", path, params=params))["items"]
    return found


async def hooks(client: Client, is_about: IsAbout, only_ours: str) -> tuple[Hook, ...]:
    """The configurations with such webhooks. Those that ask about the resource `only_ours` are our own."""
    found = []
    for plural in ("validatingwebhookconfigurations", "mutatingwebhookconfigurations"):
        for configuration in await items(client, f"{_ADMISSION}/{plural}"):
            about = [hook for hook in configuration.get("webhooks") or () if is_about(hook)]
            if about:
                is_ours = only_ours in _resources(about)
                found.append(await _hook(client, plural, configuration, about, is_ours=is_ours))
    return tuple(found)


async def _hook(
    client: Client, plural: str, configuration: Manifest, about: Sequence[Manifest], *, is_ours: bool
) -> Hook:
    service = about[0]["clientConfig"].get("service") or {}
    place, name = service.get("namespace", ""), service.get("name", "")
    return Hook(
        plural=plural,
        name=configuration["metadata"]["name"],
        is_blocking=any(hook.get("failurePolicy", "Fail") == "Fail" for hook in about),
        service=f"{place}/{name}",
        is_served=bool(name) and await _is_served(client, place, name),
        is_ours=is_ours,
    )


async def _is_served(client: Client, namespace: str, service: str) -> bool:
    """Whether a pod answers behind it."""
    path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
    try:
        slices = await items(client, path, labelSelector=f"kubernetes.io/service-name={service}")
    except NotFound:
        return False
    points = [point for one in slices for point in one.get("endpoints") or ()]
    return any((point.get("conditions") or {}).get("ready") is not False for point in points)


def _resources(about: Iterable[Manifest]) -> set[str]:
    rules = (rule for hook in about for rule in hook.get("rules") or ())
    return {resource for rule in rules for resource in rule.get("resources") or ()}


def findings_about(check: str, found: Iterable[Hook]) -> Iterator[Finding]:
    for hook in found:
        if hook.is_ours:
            continue
        if hook.is_served:
            yield note(
                check,
                f"{hook.name} asks {hook.service}, which answers.",
                f"It is removed with the release. If it is there afterwards: {hook.deletion}.",
            )
        elif hook.is_blocking:
            yield fail(
                check,
                f"{hook.name} has failurePolicy Fail, and nobody answers at {hook.service}: objects of Slurm "
                "cannot be changed, by our operator either.",
                f"Run {hook.deletion}.",
            )
        else:
            message = f"{hook.name} was left behind; nobody answers at {hook.service}."
            yield warn(check, message, f"Run {hook.deletion}.")
