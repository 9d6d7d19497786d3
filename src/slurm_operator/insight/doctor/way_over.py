"""What moving over from Slinky would change here, which values nobody would read, and which order is safe.

Nothing is changed. What may not be looked at is said, and the rest is told all the same.
"""

import asyncio
from collections.abc import Iterator
from typing import Any, Final

from slurm_operator import wire
from slurm_operator.api import registry
from slurm_operator.api.shared import names
from slurm_operator.insight.doctor.collection import tried
from slurm_operator.insight.doctor.finding import Finding, listed, note, ok, unread, warn
from slurm_operator.insight.doctor.helm_releases import Release, releases
from slurm_operator.insight.doctor.helm_releases import unread as unread_values
from slurm_operator.insight.doctor.hooks import Hook, findings_about, hooks, items
from slurm_operator.insight.doctor.specs import about_spec
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import NotFound
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.objects import Unread

GUIDE: Final = "docs/guides/from-slinky.md"
OPERATOR, WEBHOOK = "slurm-operator", "slurm-operator-webhook"
_CERTIFICATES: Final = "/apis/cert-manager.io/v1"
_RELEASE: Final = "meta.helm.sh/release-name"
_CRDS_CHART: Final = "slurm-operator-crds"
_ONLY_OURS: Final = "clusters"  # Slinky asks about its six kinds; only we ask about these.

# For an upgrade of what somebody may have changed with kubectl before: an image, the CRDs, the policy.
_TAKING_OVER: Final = "--server-side=true --force-conflicts --take-ownership"


class Found(wire.Record):
    """What there is. `Unread` stands for what could not be asked."""

    deployments: tuple[Any, ...] | Unread = ()
    crds: dict[str, Any] | Unread = {}
    hooks: tuple[Hook, ...] | Unread = ()
    certificates: tuple[str, ...] | Unread = ()
    released: tuple[Release, ...] | Unread = ()
    objects: dict[str, list[Any]] | Unread = {}


async def look(client: Client) -> Found:
    """Everything there is to see of an installation of Slinky, in the whole cluster."""
    async with asyncio.TaskGroup() as group:
        start = group.create_task
        deployments, crds = start(tried(_deployments(client))), start(tried(_crds(client)))
        asking = start(tried(hooks(client, _is_about_slurm, _ONLY_OURS)))
        certificates = start(tried(_certificates(client)))
        released, objects = start(tried(releases(client))), start(tried(_objects(client)))
    return Found(
        deployments=deployments.result(),
        crds=crds.result(),
        hooks=asking.result(),
        certificates=certificates.result(),
        released=released.result(),
        objects=objects.result(),
    )


async def _deployments(client: Client) -> tuple[Manifest, ...]:
    selector = f"{names.APP_NAME} in ({OPERATOR},{WEBHOOK})"
    return tuple(await items(client, kinds.DEPLOYMENT.path(), labelSelector=selector))


async def _crds(client: Client) -> dict[str, Manifest]:
    found = await items(client, kinds.CUSTOM_RESOURCE_DEFINITION.path())
    return {one["metadata"]["name"]: one for one in found if one["spec"]["group"] == names.GROUP}


def _is_about_slurm(hook: Manifest) -> bool:
    return any(names.GROUP in (rule.get("apiGroups") or ()) for rule in hook.get("rules") or ()) or any(
        "pods/binding" in (rule.get("resources") or ()) and OPERATOR in hook.get("name", "")
        for rule in hook.get("rules") or ()
    )


async def _certificates(client: Client) -> tuple[str, ...]:
    """Objects of cert-manager for Slinky's webhook, as kubectl wants to hear their names."""
    found = []
    for plural in ("certificates", "issuers"):
        try:
            things = await items(client, f"{_CERTIFICATES}/{plural}")
        except NotFound:
            return ()  # No cert-manager, or none any more.
        for one in things:
            meta = one["metadata"]
            labels = meta.get("labels") or {}
            is_theirs = labels.get(names.APP_PART_OF) == OPERATOR or meta["name"].startswith(OPERATOR)
            if is_theirs:
                found.append(f"-n {meta['namespace']} {plural}.cert-manager.io/{meta['name']}")
    return tuple(sorted(found))


async def _objects(client: Client) -> dict[str, list[Manifest]]:
    found = {}
    for one in registry.DEFAULT:
        try:
            found[one.kind.kind] = await items(client, one.kind.path())
        except NotFound:
            found[one.kind.kind] = []
    return found


def findings(found: Found) -> list[Finding]:
    """In the order in which people need them; the steps last."""
    return [
        *_installation(found),
        *_definitions(found),
        *_admission(found),
        *_leftover_certificates(found),
        *_values(found),
        *_specs(found),
        *_steps(found),
    ]


def _operators(found: Found) -> list[Manifest]:
    if isinstance(found.deployments, Unread):
        return []
    return [one for one in found.deployments if one["metadata"]["labels"].get(names.APP_NAME) == OPERATOR]


def _is_slinky(deployment: Manifest) -> bool:
    """By the name of its container: ours is called `manager`."""
    containers = deployment["spec"]["template"]["spec"]["containers"]
    return any(one["name"] == OPERATOR for one in containers)


def _installation(found: Found) -> Iterator[Finding]:
    check = "Slinky"
    if isinstance(found.deployments, Unread):
        yield unread(check, found.deployments)
        return
    theirs = [one for one in _operators(found) if _is_slinky(one)]
    for one in theirs:
        meta, pod = one["metadata"], one["spec"]["template"]["spec"]
        chart = (meta.get("labels") or {}).get("helm.sh/chart", "no chart")
        wanted = one["spec"].get("replicas", 1)
        yield ok(
            check,
            f"Deployment {meta['namespace']}/{meta['name']}: {pod['containers'][0]['image']}, {chart}, "
            f"{wanted} replica(s).",
        )
    if not theirs:
        yield note(check, "No operator of Slinky is installed.", "What follows is about what it left behind.")
    for one in _operators(found):
        if not _is_slinky(one):
            where = f"{one['metadata']['namespace']}/{one['metadata']['name']}"
            message = f"Our operator is installed as well, as {where}."
            yield (
                warn(check, message, "Only one of them may run: scale the other to 0.")
                if theirs
                else ok(check, message)
            )


def _definitions(found: Found) -> Iterator[Finding]:
    check = "CRDs"
    if isinstance(found.crds, Unread):
        yield unread(check, found.crds)
        return
    if not found.crds:
        yield note(check, "None of Slinky's kinds is installed.", "There is nothing to move.")
        return
    missing = [one.plural for one in registry.DEFAULT if f"{one.plural}.{one.group}" not in found.crds]
    owner = _crd_release(found)
    made = f"by Helm release {owner}" if owner else "not by Helm"
    yield ok(check, f"{len(found.crds)} kinds are installed, {made}.")
    if missing:
        yield note(
            check,
            f"Would be added: {listed(missing)}. Fields that only we have would be added to the others.",
            "See the steps below. No object changes.",
        )


def _crd_release(found: Found) -> str:
    """The release that Helm would delete them with; empty when there is none."""
    crds = found.crds if isinstance(found.crds, dict) else {}
    owners = {(one["metadata"].get("annotations") or {}).get(_RELEASE, "") for one in crds.values()}
    return max(owners, default="")


def _admission(found: Found) -> Iterator[Finding]:
    check = "Webhooks"
    if isinstance(found.hooks, Unread):
        yield unread(check, found.hooks)
        return
    yield from findings_about(check, found.hooks)


def _leftover_certificates(found: Found) -> Iterator[Finding]:
    check = "Certificates"
    if isinstance(found.certificates, Unread):
        yield unread(check, found.certificates)
        return
    is_left = not any(_is_slinky(one) for one in _operators(found))
    for one in found.certificates:
        if is_left:
            yield warn(
                check,
                f"{one.rpartition(' ')[2]} was left behind: cert-manager renews it for nobody.",
                f"Run `kubectl delete {one}`.",
            )
    if found.certificates and not is_left:
        yield note(
            check,
            f"cert-manager keeps {len(found.certificates)} object(s) for Slinky's webhook. Ours makes its "
            "own certificate unless certManager.enabled is true.",
            "They go with the release. If they are there afterwards, this command names them.",
        )


def _values(found: Found) -> Iterator[Finding]:
    check = "Values"
    if isinstance(found.released, Unread):
        yield unread(check, found.released)
        return
    for release in found.released:
        if release.chart not in (OPERATOR, "slurm"):
            continue
        where = f"Release {release.name} -n {release.namespace} ({release.chart} {release.version})"
        outdated = unread_values(release)
        for path, text in outdated.items():
            yield note(
                check, f"{where}: {path} {text}.", "Change it before the upgrade, or leave it: nothing stops."
            )
        if not outdated:
            yield ok(check, f"{where}: every value has the same meaning in our chart.")


def _specs(found: Found) -> Iterator[Finding]:
    check = "Objects"
    if isinstance(found.objects, Unread):
        yield unread(check, found.objects)
        return
    for one in registry.DEFAULT:
        for thing in found.objects.get(one.kind.kind, ()):
            yield from about_spec(check, one, thing)
    counts = {kind: len(things) for kind, things in found.objects.items() if things}
    told = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())) or "none"
    yield ok(check, f"{told}. Their pods, volumes, Services and Secrets stay as they are.")


def _steps(found: Found) -> Iterator[Finding]:
    """The way that is safe here, by who has the CRDs."""
    theirs = [one for one in _operators(found) if _is_slinky(one)]
    if not theirs:
        return
    namespace = theirs[0]["metadata"]["namespace"]
    release = (theirs[0]["metadata"].get("annotations") or {}).get(_RELEASE, "")
    crds = _crd_release(found)
    yield note(
        "Order",
        "Never uninstall a release that contains the CRDs: every Slurm cluster is deleted with them.",
        f"See {GUIDE}.",
    )
    steps = _image_steps(theirs[0]) if not release else _chart_steps(release, namespace, crds, found)
    for number, step in enumerate(steps, start=1):
        yield note("Order", f"Step {number}", step)


def _image_steps(deployment: Manifest) -> list[str]:
    meta = deployment["metadata"]
    return [
        "`slurm-operator crds | kubectl apply --server-side --force-conflicts -f -`",
        f"`kubectl -n {meta['namespace']} set image deployment/{meta['name']} {OPERATOR}=IMAGE`",
        f"`slurm-operator manifests --only-protection --namespace {meta['namespace']} | kubectl apply -f -`",
    ]


def _chart_steps(release: str, namespace: str, crds: str, found: Found) -> list[str]:
    upgrade = f"`helm upgrade {release} charts/slurm-operator -n {namespace} -f values.yaml {_TAKING_OVER}`"
    if crds == _CRDS_CHART:
        own = f"`helm upgrade {crds} charts/{_CRDS_CHART} {_TAKING_OVER}`"
        return [own, upgrade]
    if crds == release:
        every = " ".join(sorted(found.crds)) if isinstance(found.crds, dict) else ""
        return [
            f"`kubectl annotate --overwrite crd {every} helm.sh/resource-policy=keep`",
            upgrade.replace("-f values.yaml", "-f values.yaml --set crds.enabled=false"),
            f"`helm install {_CRDS_CHART} charts/{_CRDS_CHART} --take-ownership --force-conflicts`",
        ]
    return ["`slurm-operator crds | kubectl apply --server-side --force-conflicts -f -`", upgrade]
