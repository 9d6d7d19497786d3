"""What is to be done about one Controller, lane by lane: none of them waits for an unrelated one."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from slurm_operator.api.shared import names
from slurm_operator.api.shared.auth import type_of
from slurm_operator.api.shared.conditions import READY, Condition, Truth
from slurm_operator.api.shared.meta import key_of
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.conditions import Reason
from slurm_operator.manifests import kinds
from slurm_operator.manifests.compare.differences import changes
from slurm_operator.manifests.meta import Child, Manifest
from slurm_operator.plan.actions import Action, Apply, DeleteObject, Wait
from slurm_operator.plan.plan import Lane, Plan, lane, plan
from slurm_operator.plan.step import NOTHING, Step, soonest
from slurm_operator.reconcilers.controller.configuration import (
    config_state,
    delivery,
    held_sizes,
    kept_partitions,
    pipeline,
)
from slurm_operator.reconcilers.controller.configuration.files import missing, partitions_kept
from slurm_operator.reconcilers.controller.configuration.slurm_conf import slurmdbd_address
from slurm_operator.reconcilers.controller.daemon import pods, services
from slurm_operator.reconcilers.controller.daemon.workload import managed_as, stateful_set
from slurm_operator.reconcilers.controller.desired import generated_keys, named_objects, network
from slurm_operator.reconcilers.controller.keys import key_copies, rotation, signing_copies
from slurm_operator.reconcilers.controller.observe import Seen
from slurm_operator.reconcilers.shared.children import before_writing, missing_writes, surplus, taken
from slurm_operator.reconcilers.shared.deletion_hold import holding

# Fields of a StatefulSet that the API server never lets anybody change.
_FIXED = ("serviceName", "podManagementPolicy", "selector", "volumeClaimTemplates")

UNREAD_LOOK = timedelta(seconds=30)

COST_OF_FORCE = (
    "nobody can then ask Slurm which workers are free, and their NodeSets wait until they have ended or are "
    "forced as well"
)


def decide(seen: Seen, now: datetime) -> Plan:
    meta = seen.controller.metadata
    steps_ = holding(
        Controller.KIND, meta, seen.dependents, cost=COST_OF_FORCE, leaves_something=seen.keeps_keys
    )
    if meta.is_terminating and not any(isinstance(step, Wait) for step in steps_):
        return plan(lane("deletion", key_copies.removals(seen), steps_))
    files = pipeline.next_step(seen, now)
    # A configuration that is being written is delivered when it has been.
    told = NOTHING if _writes_config(seen, files) else delivery.next_step(seen, now)
    made = workload(seen)
    # A pod that is replaced before its StatefulSet has been written would have to be replaced twice.
    replaced = NOTHING if seen.controller.spec.external or made else pods.next_step(seen, now)
    ring = rotation.next_step(seen, now)
    put_back = key_copies.restored(seen, now)
    # That one of them is gone wakes nobody.
    unread = Step(look_again=UNREAD_LOOK) if seen.unread_nodesets else NOTHING
    missed = Step(look_again=key_copies.look_again(seen, now))
    leaving = NOTHING if missing(seen) else kept_partitions.next_step(partitions_kept(seen), seen.slurm)
    sizes = held_sizes.next_step(seen)
    steps = (files, told, replaced, ring, sizes, unread, missed, leaving)
    return plan(
        *held_with_copies(seen, steps_, ring),
        lane("keys", keys(seen), put_back),
        lane("network", connected(seen)),
        files.lane("config"),
        sizes.lane("sizes"),
        told.lane("delivery"),
        lane("workload", before_writing(made, seen.live), made),
        replaced.lane("pods"),
        lane("active", pods.labels(seen)),
        lane("metrics", metrics(seen)),
        lane("authentication", auth_held(seen)),
        lane("names", taken(named_objects(seen.controller), seen.live)),
        leaving.lane("partitions"),
        look_again=soonest(steps),
        waits_on=(key_of(seen.controller),) if any(one.asks_slurm for one in steps) else (),
    )


def held_with_copies(seen: Seen, held: list[Action], ring: Step) -> list[Lane]:
    """What we keep for a Controller is made only when it cannot go without us: nobody else deletes it."""
    copied = [*signing_copies.copies(seen), *key_copies.munge_copy(seen)]
    if any(step.reason == Reason.HELD for step in held) and rotation.ring(seen) is None:
        return [lane("deletion", held, copied, *ring.stages)]
    return [lane("deletion", held), lane("signing keys", copied), ring.lane("key ring")]


def _writes_config(seen: Seen, files: Step) -> bool:
    name = seen.controller.child_names.config
    actions = (action for stage in files.stages for action in stage)
    return any(isinstance(one, Apply) and one.manifest["metadata"]["name"] == name for one in actions)


def port(seen: Seen) -> int:
    """Where slurmctld listens by the files that it mounts, not by those that are still being checked."""
    files = config_state.held(seen)
    return files.port if files is not None else names.SLURMCTLD_PORT


def connected(seen: Seen) -> list[Action]:
    """Services and the budget; Services of backups that are no longer wanted go."""
    wanted = network(seen, port(seen))
    gone = surplus(kinds.SERVICE, seen.members, wanted, "there are fewer backups now")
    return [*missing_writes(wanted, seen.live), *gone]


def auth_held(seen: Seen) -> list[Action]:
    """Why the spec's authentication is not used, if it is not."""
    if seen.held_auth is not None:
        message = (
            f"spec.auth.type asks for {seen.held_auth}, and there are workers: their jobs could not report "
            "their end any more. It changes when the last worker is gone. Scale the NodeSets to 0, which "
            "waits for the jobs, or put the previous type back."
        )
        return [Wait(subject="authentication", reason=Reason.AUTH_HELD, message=message)]
    accounting, own = seen.accounting, type_of(seen.controller.spec.auth)
    if accounting is None or type_of(accounting.spec.auth) is own:
        return []
    theirs = f"Accounting {accounting.metadata.name!r} authenticates with {type_of(accounting.spec.auth)}"
    message = f"{theirs}, this Controller with {own}: neither trusts the other. Give both the same spec.auth."
    return [Wait(subject="authentication", reason=Reason.AUTH_DIFFERS, message=message)]


def keys(seen: Seen) -> list[Action]:
    """Keys that are ours to make, and a word about those that are not there."""
    if seen.controller.spec.accounting and seen.accounting is None:
        return []  # It may bring them; that it is not there is said where the configuration needs it.
    every = (seen.slurm_key, seen.signing_key, *([seen.munge_key] if seen.munge_key is not None else []))
    lacking = [key for key in every if key.trouble and not key.is_ours_to_make]
    waits = [
        Wait(subject=f"Secret {key.ref.name}", reason=Reason.KEY_MISSING, message=key.trouble)
        for key in lacking
    ]
    # Workers that are still to leave have the key that was lost: it is put back, if need be.
    is_to_be_put_back = seen.is_going and bool(key_copies.lost(seen))
    return [*([] if is_to_be_put_back else generated_keys(seen)), *waits]


def workload(seen: Seen) -> list[Action]:
    """The StatefulSet, once everything is there that slurmctld needs to start."""
    if seen.controller.spec.external:
        return []
    if config_state.held(seen) is None or not (seen.slurm_key.digest and seen.signing_key.digest):
        return []  # The lanes for these say why.
    if seen.workload is None and not config_state.is_of_ours(seen):
        return []  # On files of another operator slurmctld would look for its state elsewhere, and find none.
    if seen.munge_key is not None and not seen.munge_key.digest:
        return []  # So does that of the keys.
    if seen.workload is None and rotation.ring(seen) is None:
        return []  # It is on its way.
    if not signing_copies.is_copied(seen):
        return []  # So is this.
    if is_renamed(seen):
        return []  # Its state is kept under the old name; the configuration says so.
    there = seen.workload
    wanted = managed_as(there, stateful_set(seen, port(seen)))
    if there is None and (waiting := why_not_start(seen)):
        return [waiting]
    if there is not None and (fields := fixed_differences(wanted, there)):
        return [_made_anew(seen, there, fields)] if not there.metadata.is_terminating else []
    return [*missing_writes([wanted], seen.live)]


def is_renamed(seen: Seen) -> bool:
    before = seen.controller.status.cluster_name
    return bool(before) and before != seen.controller.cluster_name


def why_not_start(seen: Seen) -> Wait | None:
    """slurmctld's first start needs slurmdbd: it would wait for nothing, and look as if it crashed."""
    accounting = seen.accounting
    if accounting is None or accounting.spec.external:
        return None
    ready = next((c for c in accounting.status.conditions if c.type == READY), None)
    if ready is not None and ready.status is Truth.TRUE:
        return None
    return Wait(
        subject=f"Accounting {accounting.metadata.name}",
        reason=Reason.ACCOUNTING_NOT_READY,
        message=_unanswered(accounting, ready),
    )


def _unanswered(accounting: Accounting, ready: Condition | None) -> str:
    """For people: who does not answer, where, since when, and what it says of itself."""
    host, port = slurmdbd_address(accounting)
    changed_at = ready.last_transition_time if ready is not None else None
    since = changed_at or accounting.metadata.creation_timestamp
    for_long = f" since {since:%H:%M:%S} UTC" if since is not None else ""
    why = f" {ready.message}" if ready is not None and ready.message else ""
    answer = f"waiting for slurmdbd: no answer on {host}:{port}{for_long}."
    return f"{answer} slurmctld starts as soon as there is one.{why}"


def fixed_differences(wanted: Manifest, there: Child) -> list[str]:
    """What differs in a StatefulSet and cannot be changed in place."""
    spec = {key: wanted["spec"].get(key) for key in _FIXED}
    return [field for field in changes({"spec": spec}, there) if field]


def _made_anew(seen: Seen, there: Child, fields: Iterable[str]) -> DeleteObject:
    return DeleteObject(
        kind=kinds.STATEFUL_SET,
        key=key_of(there),
        uid=there.metadata.uid,
        reason=Reason.MADE_ANEW,
        message=f"recreated StatefulSet {there.metadata.name} and kept its pods: {', '.join(fields)} changed",
        keeps_dependents=True,
    )


def metrics(seen: Seen) -> list[Action]:
    """The ServiceMonitor, where there are any."""
    if not seen.has_service_monitors:
        return []
    monitor = services.service_monitor(seen.controller)
    wanted = [monitor] if monitor is not None else []
    there = [child for (kind, _), child in seen.children.items() if kind == kinds.SERVICE_MONITOR]
    gone = surplus(kinds.SERVICE_MONITOR, there, wanted, "metrics are not wanted")
    return [*missing_writes(wanted, seen.live), *gone]
