"""What is missing of a SlurmCluster's parts, what has to go, and what it waits for.

Every part has a lane of its own: what is wrong with one holds up only what needs it.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final

from slurm_operator.api.nebius import names
from slurm_operator.api.nebius.jailedconfig import JailedConfig
from slurm_operator.api.nebius.slurmcluster import SlurmCluster
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.schema.problems import Problem, References, Severity
from slurm_operator.api.shared.meta import Meta, key_of
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.api.slinky.nodeset import NodeSet as WorkerPart
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.objects import ConfigMap, Secret, Unread
from slurm_operator.plan.actions import Action, Tell, Wait
from slurm_operator.plan.plan import Lane, Plan, lane, plan
from slurm_operator.plan.step import Step, soonest
from slurm_operator.reconcilers.nebius.shared import soperator_pods, takeover
from slurm_operator.reconcilers.nebius.shared.config_source import may_read_files
from slurm_operator.reconcilers.nebius.shared.inherited import INHERITED_SOON, without_owner
from slurm_operator.reconcilers.nebius.shared.profile import may_have
from slurm_operator.reconcilers.nebius.slurmcluster import (
    mariadb,
    objects,
    older_worker,
    partitions,
    parts,
    populate,
    power,
    topology,
)
from slurm_operator.reconcilers.nebius.slurmcluster.accounting import accounting
from slurm_operator.reconcilers.nebius.slurmcluster.exporter import exporter
from slurm_operator.reconcilers.nebius.slurmcluster.mariadb import MadeBy
from slurm_operator.reconcilers.nebius.slurmcluster.observe import Seen
from slurm_operator.reconcilers.shared.children import (
    among,
    before_writing,
    bindings_last,
    missing_among,
    missing_secret,
    surplus,
)
from slurm_operator.reconcilers.shared.composed import (
    FAREWELL,
    ORPHAN,
    deletion,
    next_removal_step,
    part_name,
    said_by,
)
from slurm_operator.reconcilers.shared.deletion_hold import holding
from slurm_operator.reconcilers.shared.parts import is_owned, missing_part
from slurm_operator.slurm.conf.inventory import SLURM_CONF, partition_names

SPEC_REFUSED: Final = "SpecRefused"
IGNORED_REFS: Final = "IgnoredNodeSetRefs"
MAINTENANCE: Final = "Maintenance"
REFS_RESOLVED: Final = "NodeSetRefsResolved"
STATE_UNKNOWN: Final = "StateUnknown"
EVENT_CHARACTERS: Final = 1024
NO_SPEC: Final = Problem(path="spec", message="is missing: nothing is made until there is one")

# A Controller's name is part of the names of its pods, which Slurm knows it by.
LONGEST_NAME: Final = 40

# Which lane stands still when something is wrong below these paths; anything else holds up all of them.
_LANES: Final = {
    "spec.populateJail": "populate",
    "spec.slurmNodes.login": "login",
    "spec.slurmNodes.accounting": "accounting",
    "spec.slurmNodes.rest": "rest",
    "spec.slurmNodes.exporter": "exporter",
    "spec.slurmNodes.worker": "older workers",
    "spec.sConfigController": "sconfigcontroller",
}


def decide(seen: Seen, now: datetime) -> Plan:
    held = lane("holding", _held(seen))
    if seen.meta.is_terminating:
        return plan(held, lane("farewell", farewell(seen)))
    if seen.cluster.spec is None:
        return plan(held, lane("spec", [_refusal(NO_SPEC)]))
    if (waiting := _soperators(seen)) is not None:
        return plan(held, lane("soperator", [waiting]), look_again=soperator_pods.LOOK_AGAIN)
    if isinstance(seen.keys, Unread):
        return plan(held, lane("keys", [_unread_keys(seen, seen.keys)]))
    if _inherited(seen):
        return plan(held, lane("soperator", taking_over(seen)), look_again=INHERITED_SOON)
    refused = problems(seen)
    if everywhere := [one for one in refused if _lane_of(one) is None]:
        return plan(held, lane("spec", [_refusal(one) for one in everywhere]))
    populating, network = _populate(seen, now), topology.next_step(seen, now)
    steps = (populating.lane("populate"), network.lane("topology"))
    lanes = [one for one in _lanes(seen, *steps) if one.name not in _stopped(refused)]
    stopped = [
        lane(name, [_refusal(one) for one in refused if _lane_of(one) == name])
        for name in sorted(_stopped(refused))
    ]
    return plan(
        held,
        *lanes,
        *stopped,
        *_leaving(seen),
        lane("partitions", partitions.waits(seen)),
        lane("maintenance", maintenance(seen)),
        lane("references", _ignored_refs(seen), is_note=True),
        look_again=soonest((populating, network)),
        waits_on=(key_of(seen.cluster),) if seen.is_down or partitions.leaving(seen) else (),
    )


def _unread_keys(seen: Seen, keys: Unread) -> Wait:
    """Whose images the root is used with stands beside its keys, and every part depends on that."""
    name = f"Secret {names.munge_secret(seen.name)}"
    message = f"waiting for {name}, which cannot be read: {keys.why}. Nothing is changed until then."
    return Wait(subject=name, reason="SecretUnread", message=message)


def taking_over(seen: Seen) -> list[Action]:
    """What Soperator made no longer belongs to the SlurmCluster, so that parts can have it."""
    if seen.soperator_state is None and not seen.spec.slurm_nodes.controller.volumes.spool.volume_source_name:
        message = (
            "Soperator made this cluster, and slurmctld's state may be in a PersistentVolumeClaim that it "
            "left. The operator may not list those. Nothing is changed until it may: without its state "
            "slurmctld would forget all jobs."
        )
        return [Wait(subject=f"SlurmCluster {seen.name}", reason=STATE_UNKNOWN, message=message)]
    found = ((kind, meta) for (kind, _), meta in _inherited(seen).items())
    return [*without_owner(seen.meta, found)]


def _inherited(seen: Seen) -> Mapping[tuple[Kind, str], Meta]:
    """What parts are to have now. Login pods of Soperator's that go on keep their Services."""
    if takeover.login_waits(seen.name, seen.soperator) is None:
        return seen.inherited
    kept = {names.login_service(seen.name), names.login_headless_service(seen.name)}
    return {(kind, name): meta for (kind, name), meta in seen.inherited.items() if name not in kept}


def _soperators(seen: Seen) -> Wait | None:
    """What Soperator made and nothing may be changed beside; None where the cluster may go on.

    Without the part of a NodeSet slurmctld would be told nothing of its nodes, and end their jobs.
    """
    if not takeover.is_wanted(seen.cluster):
        found = seen.soperator
        return soperator_pods.held(seen.name, found) if found.are_there else None
    every = {one.metadata.name for one in seen.nodesets}
    pending = {*(every & seen.soperator.workloads), *(every - seen.workers.keys())}
    gone = partition_names(seen.soperator_files) - partition_names({SLURM_CONF: parts.extra_conf(seen)})
    return takeover.waits_for(seen.name, seen.soperator, pending, gone)


def problems(seen: Seen) -> list[Problem]:
    """What is wrong with the spec and has no remedy here."""
    found = [one for one in seen.cluster.problems(None, References()) if one.severity is Severity.ERROR]
    if len(seen.name) > LONGEST_NAME:
        message = f"has {len(seen.name)} characters; Slurm takes {LONGEST_NAME} for the name of a cluster"
        found.append(Problem(path="metadata.name", message=message))
    if parts_without_root(seen):
        there = ", ".join(sorted(seen.spec.sources)) or "none"
        message = f"has no {names.JAIL!r}, the root that all nodes share; it has: {there}"
        found.append(Problem(path="spec.volumeSources", message=message))
    return found


def parts_without_root(seen: Seen) -> bool:
    return seen.cluster.spec is not None and populate.job(seen.cluster, seen.root, ()) is None


def _lane_of(problem: Problem) -> str | None:
    return next((name for path, name in _LANES.items() if problem.path.startswith(path)), None)


def _stopped(refused: Iterable[Problem]) -> set[str]:
    return {name for one in refused if (name := _lane_of(one)) is not None}


def _refusal(problem: Problem) -> Wait:
    return Wait(subject=problem.path, reason=SPEC_REFUSED, message=f"{problem}.")


def _held(seen: Seen) -> list[Action]:
    """Keeps the SlurmCluster while it has parts, so that they go in order."""
    kept = ORPHAN in seen.meta.finalizers
    every = [*seen.workers.values(), *(part for kind in FAREWELL for part in seen.own(kind))]
    dependents = [] if kept else [part_name(part) for part in every]
    return [step for step in holding(SlurmCluster.KIND, seen.meta, dependents) if not isinstance(step, Wait)]


def farewell(seen: Seen) -> list[Action]:
    """Workers first, which their NodeSets let go; then one kind after the other."""
    if ORPHAN in seen.meta.finalizers:
        return []
    if seen.workers:
        return [
            Wait(
                subject=part_name(part),
                reason="Leaving",
                message=f"waiting for the workers of {part_name(part)} to be gone: {said_by(part)}",
            )
            for part in seen.workers.values()
        ]
    for kind in FAREWELL:
        if found := seen.own(kind):
            return [next_removal_step(part, SlurmCluster.KIND) for part in found]
    return []


def _leaving(seen: Seen) -> Iterator[Lane]:
    """Parts that were ours and are not wanted. An Accounting stays as long as the Controller names it."""
    nodes = seen.spec.slurm_nodes
    unwanted = {
        ("RestApi", seen.name): not nodes.rest.enabled,
        ("Accounting", seen.name): not nodes.accounting.enabled
        and not (seen.controller is not None and seen.controller.spec.accounting),
    }
    for key, part in sorted(seen.parts.items()):
        if unwanted.get(key) and is_owned(part, seen.meta):
            yield lane(f"leaving {part_name(part)}", [next_removal_step(part, SlurmCluster.KIND)])
    yield lane("leaving database", _leaving_database(seen))


def _leaving_database(seen: Seen) -> list[Action]:
    """The objects of the MariaDB operator leave after slurmdbd, as with Soperator; the volume is theirs."""
    if seen.spec.slurm_nodes.accounting.enabled or seen.own("Accounting"):
        return []
    there = [
        (kind, child)
        for (kind, _), child in seen.children.items()
        if kind in (kinds.MARIADB_GRANT, kinds.MARIADB) and is_owned(child, seen.meta)
    ]
    return [
        deletion(kind, child, SlurmCluster.KIND) for kind, child in there if not child.metadata.is_terminating
    ]


def _lanes(seen: Seen, populating: Lane, network: Lane) -> Iterator[Lane]:
    nodes = seen.spec.slurm_nodes
    yield lane("keys", objects.generated_keys(seen), _sssd_secret(seen), _family_note(seen))
    yield populating
    yield network
    yield lane(
        "controller",
        *bindings_last(
            [
                *_maps(seen, objects.controller_maps(seen)),
                *_maps(seen, power.rights(seen, parts.maker(seen))),
            ]
        ),
        _part(seen, parts.controller(seen)),
    )
    if nodes.accounting.enabled:
        yield lane("accounting", *_database(seen), _part(seen, accounting(seen)))
    yield lane("operator rest", _part(seen, parts.operator_rest(seen)))
    if nodes.rest.enabled:
        yield lane("rest", _part(seen, parts.rest(seen)))
    yield lane("exporter", *bindings_last(exporter(seen)))
    yield lane("profile", _profile(seen))
    yield lane("worker files", _maps(seen, objects.worker_maps(seen)))
    yield lane("login", *_login(seen))
    yield lane("older workers", _older(seen))
    yield lane("files in the root", _jailed(seen))
    yield lane("mount points", *_mount_points(seen))
    yield lane("sconfigcontroller", *_writer(seen))


def _database(seen: Seen) -> Iterator[list[Action]]:
    """What the MariaDB operator makes a database from, where there is one."""
    if mariadb.made_by(seen) is MadeBy.MARIADB_OPERATOR:
        yield [*mariadb.passwords(seen)]
        # Where the kinds cannot be seen at the moment, what there is goes on.
        wanted = mariadb.objects(seen) if seen.has_mariadb_operator else []
        yield [*missing_among(wanted, seen.children)]


def _profile(seen: Seen) -> list[Action]:
    """The AppArmor profile; one that is not wanted is deleted after the last pod that was made with it."""
    if seen.spec.use_default_app_armor_profile:
        return _maps(seen, [objects.profile(seen)]) if seen.has_profiles else []
    there = seen.profile
    if there is None or not is_owned(there, seen.meta):
        return []
    if any(may_have(one, there.metadata.name) for one in _on_root(seen)):
        return []
    return [*surplus(kinds.APP_ARMOR_PROFILE, [there], [], "spec.useDefaultAppArmorProfile is off")]


def _populate(seen: Seen, now: datetime) -> Step:
    wanted = populate.job(seen.cluster, seen.root, mount_points(seen))
    assert wanted is not None
    return populate.next_step(seen.root, wanted, now)


def mount_points(seen: Seen) -> Iterator[str]:
    """Directories of the root that pods mount something on: made once, before any pod starts."""
    mounts = [one.mount_path for one in seen.spec.slurm_nodes.login.volumes.jail_sub_mounts]
    for nodeset in seen.nodesets:
        if nodeset.spec is not None:
            mounts += [one.mount_path for one in nodeset.spec.slurmd.volumes.jail_sub_mounts]
    yield from (f"/{path.strip('/')}" for path in mounts)


def may_start(seen: Seen) -> bool:
    """Whether pods that need the root may start on it."""
    return seen.root.is_usable and (parts.config_source(seen) != "files" or seen.has_files)


def login_replicas(seen: Seen) -> int:
    """None before the root is whole. Once they run, only maintenance takes them away."""
    has_started = seen.login is not None and seen.login.spec.replicas > 0
    is_wanted = not seen.is_down and (has_started or may_start(seen))
    return seen.spec.slurm_nodes.login.size if is_wanted else 0


def writer_replicas(seen: Seen) -> int:
    wished = seen.spec.s_config_controller
    size = 1 if wished is None or wished.node is None else wished.node.size
    return size if not seen.is_down and seen.root.is_usable else 0


def _maps(seen: Seen, wanted: list[Manifest]) -> list[Action]:
    return [*missing_among(wanted, seen.children)]


def _part(seen: Seen, manifest: Manifest) -> list[Action]:
    there = seen.parts.get((manifest["kind"], manifest["metadata"]["name"]))
    step = missing_part(manifest, there, seen.meta)
    return [step] if step is not None else []


def _sssd_secret(seen: Seen) -> list[Action]:
    wanted = objects.sssd_secret(seen)
    step = missing_secret(wanted, seen.secrets.get(names.sssd_secret(seen.name))) if wanted else None
    return [step] if step is not None else []


def _family_note(seen: Seen) -> list[Action]:
    step = objects.family_note(seen)
    return [step] if step is not None else []


def _login(seen: Seen) -> Iterator[list[Action]]:
    if (theirs := takeover.login_waits(seen.name, seen.soperator)) is not None:
        yield [theirs]
        return
    yield _maps(seen, objects.login_maps(seen))
    if waiting := [*_absent(seen)]:
        yield [*waiting]
    else:
        yield _part(seen, parts.login(seen, login_replicas(seen)))
        yield [*_held_back(seen)]


def _absent(seen: Seen) -> Iterator[Wait]:
    """What the user named for login pods and is not there."""
    secret = seen.spec.secrets.sshd_keys_name
    if secret and not isinstance(seen.secrets.get(secret), Secret):
        yield _named(f"Secret {secret}", "spec.secrets.sshdKeysName", seen.secrets.get(secret))
    config = seen.spec.slurm_nodes.login.sshd_config_map_ref_name
    if config and not isinstance(seen.sshd_config, ConfigMap):
        field = "spec.slurmNodes.login.sshdConfigMapRefName"
        yield _named(f"ConfigMap {config}", field, seen.sshd_config)


def _named(what: str, field: str, found: object) -> Wait:
    kind = what.partition(" ")[0]
    if isinstance(found, Unread):
        message = f"waiting for {what}, which cannot be read: {found.why}."
        return Wait(subject=what, reason=f"{kind}Unread", message=message)
    message = f"waiting for {what}, which {field} names: there is none yet."
    return Wait(subject=what, reason=f"{kind}NotFound", message=message)


def _held_back(seen: Seen) -> Iterator[Wait]:
    """Why login pods have not started."""
    if seen.is_down or login_replicas(seen) == seen.spec.slurm_nodes.login.size:
        return
    if not seen.root.is_usable:
        message = "Login pods start when the shared root is populated."
    else:
        message = "Login pods start when Slurm's files are in the shared root."
    yield Wait(subject=f"LoginSet {names.login(seen.name)}", reason="WaitingForRoot", message=message)


def _older(seen: Seen) -> list[Action]:
    wanted = older_worker.nodeset(seen.cluster)
    step = missing_part(wanted, seen.older, seen.meta) if wanted is not None else None
    return [step] if step is not None else []


def _jailed(seen: Seen) -> list[Action]:
    if seen.spec.s_config_controller is None:
        return []  # Nobody would write them.
    if not isinstance(seen.tested, ConfigMap):
        return []  # What slurmctld does not run with yet does not reach the root; its part says why.
    steps = [missing_part(objects.jailed_config(seen, seen.tested), seen.jailed, seen.meta)]
    wanted, there = objects.jailed_topology(seen, seen.tested), seen.jailed_topology
    if wanted is not None:
        steps.append(missing_part(wanted, there, seen.meta))
    elif there is not None and is_owned(there, seen.meta) and not there.metadata.is_terminating:
        steps.append(deletion(JailedConfig.KIND, there, SlurmCluster.KIND))
    return [step for step in steps if step is not None]


def _mount_points(seen: Seen) -> Iterator[list[Action]]:
    """Directories that the Job did not know of: sub mounts that were added after it."""
    there = seen.jailed_mount_points
    if paths := seen.mount_points.left_to_writer(mount_points(seen)):
        yield _maps(seen, [objects.mount_points_map(seen)])
        step = missing_part(objects.jailed_mount_points(seen, paths), there, seen.meta)
        yield [step] if step is not None else []
    elif there is not None and is_owned(there, seen.meta) and not there.metadata.is_terminating:
        yield [deletion(JailedConfig.KIND, there, SlurmCluster.KIND)]


def _writer(seen: Seen) -> Iterator[list[Action]]:
    wished = seen.spec.s_config_controller
    wanted = objects.writer(seen, writer_replicas(seen))
    if wanted is not None:
        yield from bindings_last(_maps(seen, objects.writer_account(seen)))
        writes = missing_among([wanted], seen.children)
        yield [*before_writing(writes, among(seen.children))]
        yield [*writes]
    elif wished is not None:
        message = "spec.sConfigController.container has no image: nothing writes Slurm's files into the root."
        yield [Wait(subject="sconfigcontroller", reason="NoImage", message=message)]
    else:
        yield _without_writer(seen)


def _without_writer(seen: Seen) -> list[Action]:
    """The writer was taken out of the spec: it is deleted after the last pod that reads what it writes."""
    kind, name = kinds.DEPLOYMENT, names.sconfigcontroller(seen.name)
    found, jailed = seen.children.get((kind, name)), seen.jailed
    writer = found if found is not None and is_owned(found, seen.meta) else None
    reading = [part_name(one) for one in _on_root(seen) if may_read_files(one)]
    if (writer is not None or jailed is not None) and reading:
        message = (
            "spec.sConfigController was removed. Slurm's files in the shared root are kept up to date until "
            f"no pod reads them; these may: {', '.join(reading)}."
        )
        return [Wait(subject=f"Deployment {name}", reason="StillRead", message=message)]
    if writer is not None:
        return [] if writer.metadata.is_terminating else [deletion(kind, writer, SlurmCluster.KIND)]
    return [
        deletion(JailedConfig.KIND, one, SlurmCluster.KIND)
        for one in (jailed, seen.jailed_topology)
        if one is not None and is_owned(one, seen.meta) and not one.metadata.is_terminating
    ]


def _on_root(seen: Seen) -> list[LoginSet | WorkerPart]:
    return [*([seen.login] if seen.login is not None else []), *seen.workers.values()]


def maintenance(seen: Seen) -> list[Wait]:
    """Who is still there in a maintenance mode, and which jobs hold them up."""
    if not seen.is_down:
        return []
    found = [
        Wait(
            subject=part_name(part),
            reason=MAINTENANCE,
            message=f"Maintenance {seen.spec.maintenance}: {part_name(part)} still has "
            f"{part.status.replicas} workers. {said_by(part)}".rstrip(),
        )
        for part in seen.workers.values()
        if part.status.replicas > 0
    ]
    login = seen.login
    if login is not None and login.status.replicas > 0:
        message = f"Maintenance {seen.spec.maintenance}: {login.status.replicas} login pods are ending."
        found.append(Wait(subject=part_name(login), reason=MAINTENANCE, message=message))
    return found


def _ignored_refs(seen: Seen) -> list[Tell]:
    """One event for each change of what is ignored."""
    text = partitions.unresolved_text(seen, EVENT_CHARACTERS)
    told = next((one.message for one in seen.cluster.status.conditions if one.type == REFS_RESOLVED), "")
    if not text or told.startswith(text[: EVENT_CHARACTERS // 2]):
        return []
    return [Tell(subject=f"SlurmCluster {seen.name}", reason=IGNORED_REFS, message=text, warning=True)]
