"""What there is of one cluster of Soperator, and what becomes of it."""

from collections.abc import Iterator
from typing import Final

from slurm_operator.api.nebius import names
from slurm_operator.api.shared import names as shared_names
from slurm_operator.insight.doctor.finding import Finding, fail, listed, note, ok, unread, warn
from slurm_operator.insight.doctor.soperator.chosen import (
    deployments_of,
    nodesets,
    of_cluster,
    stateful_sets,
    things,
    where,
    why_not_taken_over,
)
from slurm_operator.insight.doctor.soperator.facts import Found, keys_of
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.objects import Unread
from slurm_operator.reconcilers.nebius.shared.inherited import STATE_VOLUME
from slurm_operator.reconcilers.nebius.shared.takeover import COMPONENTS

_ENDED: Final = ("Succeeded", "Failed")


def findings_about_cluster(found: Found, cluster: Manifest) -> Iterator[Finding]:
    """What is there of one cluster, and what becomes of it."""
    yield from _workloads(found, cluster)
    yield from _state(found, cluster)
    yield from _root(found, cluster)
    yield from _keys(found, cluster)
    yield from _worker_claims(found, cluster)


def _workloads(found: Found, cluster: Manifest) -> Iterator[Finding]:
    check, name = "Workloads", f"SlurmCluster {where(cluster)}"
    refused = [one for one in (found.stateful_sets, found.deployments, found.pods) if isinstance(one, Unread)]
    for one in refused:
        yield unread(check, one)
    if refused:
        return
    running = [
        one["metadata"]["name"]
        for one in of_cluster(cluster, things(found.pods))
        if _is_kruises(one) and (one.get("status") or {}).get("phase") not in _ENDED
    ]
    made = [f"StatefulSet {one}" for one in stateful_sets(found, cluster)]
    made += [f"Deployment {one}" for one in deployments_of(found, cluster)]
    if not made and not running:
        yield ok(check, f"{name}: nothing of Soperator's runs it.")
        return
    yield warn(
        check,
        f"{name}: Soperator made {listed(made)}; {len(running)} pods of Kruise run. A job that runs in a "
        "worker when that is deleted is lost. Until they are gone our operator changes nothing, and its "
        "condition Ready has the reason SoperatorPodsRunning, unless it is told to take workers over.",
        "Follow the steps below. Pending jobs stay where slurmctld's volume stays.",
    )
    yield from _updates(found, cluster)
    yield from _takeover(found, cluster)


def _updates(found: Found, cluster: Manifest) -> Iterator[Finding]:
    """Workers that Soperator is replacing: it has asked slurmctld to drain and reboot them."""
    updated = [
        one["metadata"]["name"]
        for one in of_cluster(cluster, things(found.pods))
        if shared_names.UPDATE_PHASE in (one["metadata"].get("labels") or {})
    ]
    if not updated:
        return
    yield warn(
        "Updates",
        f"SlurmCluster {where(cluster)}: Soperator is replacing {listed(updated)}. slurmctld drains them for "
        "'soperator rolling update', and our operator does not lift a drain of others.",
        "Let Soperator finish the update first. Otherwise run `scontrol cancel_reboot NODE`, then `scontrol "
        "update nodename=NODE state=resume`.",
    )


def _takeover(found: Found, cluster: Manifest) -> Iterator[Finding]:
    """What happens to jobs, and what does not, when workers are taken over."""
    check, name = "Takeover", f"SlurmCluster {where(cluster)}"
    if why := why_not_taken_over(found, cluster):
        yield note(check, f"{name}: its workers cannot be taken over: {why}.", "Let running jobs end first.")
        return
    running = [one for one in of_cluster(cluster, things(found.pods)) if _is_kruises(one)]
    workers = sum(_component(one) in COMPONENTS for one in running)
    yield ok(
        check,
        f"{name}: {workers} workers can be taken over with the jobs in them. Their pods stay until what "
        "their NodeSet makes pods from changes; then each is replaced when it has no job.",
    )
    yield note(
        check,
        f"{name}: slurmctld restarts once, when you delete its StatefulSet. Running jobs go on meanwhile; "
        "nobody can submit.",
        "The operator waits for you before and after that.",
    )
    yield note(
        check,
        f"{name}: login pods stay Soperator's until you delete their StatefulSet, which ends sessions.",
        "Do that when nobody works there: `srun` and `salloc` in a session end with it.",
    )


def _is_kruises(pod: Manifest) -> bool:
    owners = pod["metadata"].get("ownerReferences") or ()
    return any(str(one.get("apiVersion", "")).startswith("apps.kruise.io/") for one in owners)


def _component(pod: Manifest) -> str:
    return str((pod["metadata"].get("labels") or {}).get(shared_names.APP_COMPONENT, ""))


def _state(found: Found, cluster: Manifest) -> Iterator[Finding]:
    check, name = "State", f"SlurmCluster {where(cluster)}"
    source = _spool(cluster).get("volumeSourceName")
    if source:
        told = _source(cluster, source)
        if told is None or "emptyDir" in told:
            yield warn(
                check,
                f"{name}: slurmctld's volume {source!r} does not outlive its pod: pending jobs and job ids "
                "are lost when its StatefulSet is deleted.",
                "Let the queue run empty, and set FirstJobId in customSlurmConfig above the last id.",
            )
        else:
            yield ok(check, f"{name}: slurmctld goes on with its volume {source!r}, and the queue in it.")
        return
    if isinstance(found.claims, Unread):
        yield unread(check, found.claims)
        return
    there = _state_claim(found, cluster)
    if there:
        yield ok(check, f"{name}: slurmctld goes on with PersistentVolumeClaim {there}, and the queue in it.")
    else:
        yield note(
            check,
            f"{name}: there is no PersistentVolumeClaim with slurmctld's state.",
            "slurmctld starts with an empty queue.",
        )


def _spool(cluster: Manifest) -> Manifest:
    nodes = (cluster.get("spec") or {}).get("slurmNodes") or {}
    volumes = (nodes.get("controller") or {}).get("volumes") or {}
    return dict(volumes.get("spool") or {})


def _source(cluster: Manifest, name: str) -> Manifest | None:
    sources = (cluster.get("spec") or {}).get("volumeSources") or ()
    return next((one for one in sources if one.get("name") == name), None)


def _state_claim(found: Found, cluster: Manifest) -> str:
    meta = cluster["metadata"]
    there = {
        one["metadata"]["name"]: (one["metadata"].get("labels") or {}).get(
            shared_names.APP_INSTANCE, meta["name"]
        )
        for one in things(found.claims)
        if one["metadata"]["namespace"] == meta["namespace"]
    }
    wanted = (f"{STATE_VOLUME}-{workload}-0" for workload in (names.controller(meta["name"]), "controller"))
    return next((one for one in wanted if there.get(one) == meta["name"]), "")


def _root(found: Found, cluster: Manifest) -> Iterator[Finding]:
    check, name = "Shared root", f"SlurmCluster {where(cluster)}"
    if isinstance(found.jobs, Unread):
        yield unread(check, found.jobs)
        return
    job = names.populate_jail(cluster["metadata"]["name"])
    has_populated = any(
        one["metadata"]["name"] == job and (one.get("status") or {}).get("succeeded")
        for one in of_cluster(cluster, found.jobs)
    )
    spec = cluster.get("spec") or {}
    is_skipped = spec.get("maintenance") == "skipPopulateJail"
    if has_populated or is_skipped:
        yield ok(
            check, f"{name}: stays as it is. Of its files only those of Slurm in /etc/slurm are written."
        )
        return
    overwrites = (spec.get("populateJail") or {}).get("overwrite") is True
    if overwrites:
        yield fail(
            check,
            f"{name}: populateJail.overwrite is true and Job {job} has not succeeded: the root would be "
            "overwritten, with what users have put there.",
            "Set spec.populateJail.overwrite to false, or spec.maintenance to skipPopulateJail.",
        )
        return
    yield warn(
        check,
        f"{name}: Job {job} has not succeeded, or is gone: the image's own program would look at the root "
        "again before pods start.",
        "Set spec.maintenance to skipPopulateJail if the root is populated.",
    )


def _keys(found: Found, cluster: Manifest) -> Iterator[Finding]:
    check, meta = "Secrets", cluster["metadata"]
    if isinstance(found.secrets, Unread):
        yield unread(check, found.secrets)
        return
    wanted = keys_of(meta["name"], cluster)
    missing = [one for one in wanted if f"{meta['namespace']}/{one}" not in found.secrets]
    kept = [one for one in wanted if one not in missing]
    if kept:
        message = f"SlurmCluster {where(cluster)}: {', '.join(kept)} stay, and outlive the SlurmCluster."
        yield ok(check, message)
    if missing:
        yield warn(
            check,
            f"SlurmCluster {where(cluster)}: there is no {', '.join(missing)}: new keys would be made.",
            "Put the Secrets back if daemons or users have these keys.",
        )


def _worker_claims(found: Found, cluster: Manifest) -> Iterator[Finding]:
    """Kruise deletes the claims of a StatefulSet along with it, where it was told so."""
    for nodeset in nodesets(found, cluster):
        volumes = ((nodeset.get("spec") or {}).get("slurmd") or {}).get("volumes") or {}
        mounts = [*(volumes.get("jailSubMounts") or ()), *(volumes.get("customVolumeMounts") or ())]
        made = [one["name"] for one in mounts if one.get("volumeClaimTemplateSpec") is not None]
        policy = volumes.get("persistentVolumeClaimRetentionPolicy") or {}
        if made and policy.get("whenDeleted", "Delete") == "Delete":
            yield warn(
                "Volumes",
                f"NodeSet {where(nodeset)}: Kruise deletes the volumes {listed(made)} of its workers with "
                "their StatefulSet.",
                "Set spec.slurmd.volumes.persistentVolumeClaimRetentionPolicy.whenDeleted to Retain before "
                "Soperator is stopped, if their contents matter.",
            )
