"""When a check runs, what becomes of its Slurm jobs, and what is done about their nodes."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from slurm_operator.api.nebius import names
from slurm_operator.api.nebius.activecheck import ActiveCheck
from slurm_operator.api.nebius.slurmcluster import SlurmCluster
from slurm_operator.api.schema.problems import Problem, References, Severity
from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.conditions import Reason
from slurm_operator.manifests import kinds
from slurm_operator.manifests.builders.owners import owner_reference
from slurm_operator.manifests.meta import Child
from slurm_operator.plan.actions import Action, Create, DeleteObject, PatchObject, Wait
from slurm_operator.plan.plan import Lane, Plan, lane, plan
from slurm_operator.reconcilers.nebius.activecheck import desired, reactions
from slurm_operator.reconcilers.nebius.activecheck.dependencies import (
    Dependency,
    Standing,
    cycle,
    dependencies,
)
from slurm_operator.reconcilers.nebius.activecheck.observe import Seen
from slurm_operator.reconcilers.nebius.activecheck.reactions import Reaction
from slurm_operator.reconcilers.nebius.activecheck.results import Result, remembered, result
from slurm_operator.reconcilers.nebius.activecheck.runs import Run
from slurm_operator.reconcilers.nebius.shared.brake import Excess
from slurm_operator.reconcilers.shared.children import bindings_last, missing_among
from slurm_operator.slurm.snapshot import Snapshot

SPEC_REFUSED: Final = Reason.SPEC_REFUSED
CLUSTER_NOT_FOUND: Final = Reason.CLUSTER_NOT_FOUND
WAITING_FOR_CLUSTER: Final = Reason.WAITING_FOR_CLUSTER
WAITING_FOR_CHECKS: Final = Reason.WAITING_FOR_CHECKS
DEPENDENCY_FAILED: Final = Reason.DEPENDENCY_FAILED
TEMPLATE_NOT_FOUND: Final = Reason.POD_TEMPLATE_NOT_FOUND
SLURM_UNREACHABLE: Final = Reason.SLURM_UNREACHABLE
BRAKE_ON: Final = Reason.BRAKE_ON
BRAKED: Final = "Braked"  # The condition.

# How often is looked whether a Slurm job has ended whose end did not wake us.
_LOOK: Final = timedelta(seconds=10)


def decide(seen: Seen, now: datetime) -> Plan:
    if seen.meta.is_terminating:
        return plan(lane("farewell", *_farewell(seen)))
    if refused := problems(seen):
        waits = [Wait(subject=one.path, reason=SPEC_REFUSED, message=f"{one}.") for one in refused]
        return plan(lane("spec", waits))
    if (absent := _without_cluster(seen)) is not None:
        return plan(lane("cluster", [absent]))
    judged = judge(seen, now)
    gate = waits_of(seen)
    has_failed = any(wait.reason == DEPENDENCY_FAILED for wait in gate)
    brake = _brake(seen, judged)
    is_held = bool(brake) or has_failed or seen.is_in_maintenance
    script = desired.script(seen)
    cron = desired.cron_job(seen, is_held=is_held)
    return plan(
        lane("account", *bindings_last(missing_among(desired.account(seen), seen.children))),
        lane("script", _adopted(seen), missing_among([script] if script else [], seen.children)),
        lane("schedule", missing_among([cron], seen.children)),
        lane("first run", gate or _first_run(seen)),
        *_run_lanes(seen, judged, now),
        lane("brake", brake),
        look_again=_LOOK if _is_awaited(seen) else None,
    )


def problems(seen: Seen) -> list[Problem]:
    """What is wrong with the spec and has no remedy here."""
    if seen.check.spec is None:
        return [Problem(path="spec", message="is missing: nothing is checked until there is one")]
    found = [one for one in seen.check.problems(None, References()) if one.severity is Severity.ERROR]
    if way := cycle(seen.check, seen.others):
        message = f"leads in a circle, so none of these can ever run: {' -> '.join(way)}"
        found.append(Problem(path="spec.dependsOn", message=message))
    if seen.container is None or not seen.container.image:
        kind = "slurmJobSpec" if seen.is_slurm else "k8sJobSpec"
        message = f"is missing: a check of type {seen.spec.check_type} runs in this image"
        found.append(Problem(path=f"spec.{kind}.jobContainer.image", message=message))
    jobs = seen.spec.slurm_job_spec
    if seen.is_slurm and jobs is not None and not (jobs.sbatch_script or jobs.sbatch_script_ref_name):
        message = "is missing, and so is sbatchScriptRefName: there is no script to submit"
        found.append(Problem(path="spec.slurmJobSpec.sbatchScript", message=message))
    return found


def _without_cluster(seen: Seen) -> Wait | None:
    if seen.cluster is not None and seen.cluster.spec is not None:
        return None
    there = ", ".join(seen.clusters) or "none"
    message = (
        f"There is no SlurmCluster {seen.spec.slurm_cluster_ref_name!r} in namespace "
        f"{seen.meta.namespace!r}, which has: {there}. The check runs as soon as there is one."
    )
    return Wait(subject="spec.slurmClusterRefName", reason=CLUSTER_NOT_FOUND, message=message)


# ---- When it runs


def waits_of(seen: Seen) -> list[Action]:
    """Why it may not run now."""
    found: list[Action] = []
    if not seen.is_cluster_up:
        name = seen.spec.slurm_cluster_ref_name
        message = f"SlurmCluster {name} is not available. The check runs when it is."
        found.append(Wait(subject=name, reason=WAITING_FOR_CLUSTER, message=message))
    if seen.spec.pod_template_name_ref and seen.template is None:
        name = seen.spec.pod_template_name_ref
        message = f"There is no PodTemplate {name!r} (spec.podTemplateNameRef). The check waits for it."
        found.append(Wait(subject=name, reason=TEMPLATE_NOT_FOUND, message=message))
    standing = dependencies(seen.check, seen.others)
    if failed := [one for one in standing if one.standing is Standing.FAILED]:
        found.append(_wait_for(failed, DEPENDENCY_FAILED, "It is skipped until they pass"))
    elif not seen.has_run and (waiting := [one for one in standing if one.standing is Standing.WAITING]):
        found.append(_wait_for(waiting, WAITING_FOR_CHECKS, "It runs when they have passed"))
    return found


def _wait_for(found: list[Dependency], reason: Reason, then: str) -> Wait:
    told = "; ".join(f"{one.name} {one.text}" for one in found)
    return Wait(
        subject=found[0].name, reason=reason, message=f"This check depends on others: {told}. {then}."
    )


def _first_run(seen: Seen) -> list[Action]:
    if not seen.spec.run_after_creation or seen.has_run:
        return []
    wanted = desired.first_run(seen)
    message = f"started the first run as Job {wanted['metadata']['name']}"
    return [Create(manifest=wanted, reason=Reason.FIRST_RUN, message=message, may_exist=True)]


# ---- What was made by Soperator


def _adopted(seen: Seen) -> list[Action]:
    """Soperator's CronJob and script belong to the SlurmCluster. They belong to the check from now on."""
    return [
        PatchObject(
            kind=kind,
            key=key_of(child),
            uid=child.metadata.uid,
            operations=(
                {
                    "op": "add",
                    "path": "/metadata/ownerReferences",
                    "value": [owner_reference(ActiveCheck.KIND, seen.meta)],
                },
            ),
            reason=Reason.ADOPTED,
            message=f"{kind.kind} {child.metadata.name} belongs to ActiveCheck {seen.name} now",
        )
        for kind, child in _own(seen)
        if child.metadata.owner is not None and child.metadata.owner.is_a(SlurmCluster.KIND)
    ]


def _own(seen: Seen) -> Iterator[tuple[kinds.Kind, Child]]:
    for (kind, _), child in sorted(seen.children.items(), key=lambda item: str(item[0])):
        if kind in (kinds.CRON_JOB, kinds.CONFIG_MAP):
            yield kind, child


def _farewell(seen: Seen) -> tuple[list[Action], ...]:
    """What belongs to the check goes with it, by Kubernetes' own hand; what it submitted runs to its end.

    Soperator keeps a finalizer on it, which nobody else would take away.
    """
    if names.ACTIVE_CHECK_FINALIZER not in seen.meta.finalizers:
        return ()
    left: list[Action] = [
        DeleteObject(
            kind=kind,
            key=key_of(child),
            uid=child.metadata.uid,
            reason=Reason.DELETED,
            message=f"deleted {kind.kind} {child.metadata.name}: its ActiveCheck is deleted",
        )
        for kind, child in _own(seen)
        if not child.metadata.is_terminating
    ]
    kept = [one for one in seen.meta.finalizers if one != names.ACTIVE_CHECK_FINALIZER]
    released = PatchObject(
        kind=ActiveCheck.KIND,
        key=ObjectKey(seen.meta.namespace, seen.name),
        uid=seen.meta.uid,
        operations=(
            {"op": "test", "path": "/metadata/resourceVersion", "value": seen.meta.resource_version},
            {"op": "add", "path": "/metadata/finalizers", "value": kept},
        ),
        reason=Reason.RELEASED,
        message=f"ActiveCheck {seen.name} may be deleted: nothing of it is left",
    )
    return left, [released]


# ---- What became of its Slurm jobs


@dataclass(frozen=True)
class Judged:
    """One pass over the runs that are not closed: results, reactions, and what the brake holds back."""

    results: dict[str, list[Result]]  # By the name of the run.
    reactions: dict[str, list[Reaction]]  # Of jobs that nothing was done about yet.
    excesses: list[Excess]
    held: dict[str, list[Reaction]]  # By run: what waits for a person.
    dismissed: str = ""

    def results_of(self, run: Run) -> list[Result]:
        return self.results.get(run.name, [])

    def due(self, run: Run) -> list[Reaction]:
        """What is done now."""
        held = self.held.get(run.name, [])
        return [one for one in self.reactions.get(run.name, []) if one not in held]


def judge(seen: Seen, now: datetime) -> Judged:
    """Nothing is done while a run submits: its pod notes all jobs again, and the brake must see them all."""
    found = {run.name: run_results(seen, run, now) for run in seen.open_runs}
    slurm = seen.slurm
    if not isinstance(slurm, Snapshot):
        return Judged(found, {}, [], {})
    todo = {
        run.name: [
            reactions.reaction(seen.spec, one, slurm)
            for one in found[run.name]
            if run.is_over and one.is_final and one.job_id in run.unhandled
        ]
        for run in seen.open_runs
    }
    notes = seen.meta.annotations
    released, dismissed = notes.get(names.BRAKE_RELEASE, ""), notes.get(names.BRAKE_DISMISS, "")
    asked = {
        node
        for run, each in todo.items()
        if run not in (released, dismissed)
        for one in each
        for node in one.takes_out
    }
    before = reactions.recent(seen.spec, drained_before(seen), slurm, now)
    over = reactions.too_many(seen.spec, asked, before, slurm, seen.nodesets)
    stopped = {node for one in over for node in one.wanted}
    held = {
        run: waiting
        for run, each in todo.items()
        if run not in (released, dismissed)
        and (waiting := [one for one in each if not stopped.isdisjoint(one.takes_out)])
    }
    return Judged(found, todo, over, held, dismissed)


def run_results(seen: Seen, run: Run, now: datetime) -> list[Result]:
    """How each job of a run ended, as far as that is known."""
    known = remembered(seen.check, run)
    return [
        known.get(job_id) or result(job_id, seen.ends.get(job_id, ()), run, now) for job_id in sorted(run.ids)
    ]


def drained_before(seen: Seen) -> dict[str, datetime]:
    """What the status remembers of nodes that this check took out of service."""
    return {one.node: one.time for one in seen.check.status.recent_drains if one.time is not None}


def _run_lanes(seen: Seen, judged: Judged, now: datetime) -> Iterator[Lane]:
    """One for each run: what is done about the nodes of its jobs, then a note that it was done.

    A run that submitted nothing is closed without Slurm.
    """
    slurm = seen.slurm
    if not isinstance(slurm, Snapshot) and any(run.unhandled for run in seen.open_runs):
        why = slurm.why if slurm is not None else "not read yet"
        message = f"Slurm does not answer ({why}), so nobody can tell how the jobs of this check ended."
        yield lane("slurm", [Wait(subject=seen.controller.name, reason=SLURM_UNREACHABLE, message=message)])
    before: set[str] = set()
    for run in seen.open_runs:
        due, done = judged.due(run), list[Action]()
        if isinstance(slurm, Snapshot) and run.name != judged.dismissed:
            for one in due:
                done += reactions.actions(one, slurm, seen.controller, run, now, before)
                before.update(one.takes_out)
        yield lane(f"run {run.name}", done, _noted(seen, judged, run, due, now))


def _noted(seen: Seen, judged: Judged, run: Run, due: list[Reaction], now: datetime) -> Iterator[PatchObject]:
    handled = {one.result.job_id for one in due}
    left = sorted(run.unhandled - handled)
    found = judged.results_of(run)
    is_closed = run.is_over and not left and all(one.is_final for one in found)
    if not handled and not is_closed:
        return
    notes = {names.UNHANDLED_JOB_IDS: ",".join(map(str, left))} if handled else {}
    if is_closed:
        notes[names.FINAL_STATE_TIME] = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    annotations = {**run.job.metadata.annotations, **notes}
    yield PatchObject(
        kind=kinds.JOB,
        key=key_of(run.job),
        uid=run.job.metadata.uid,
        operations=(
            {"op": "test", "path": "/metadata/resourceVersion", "value": run.job.metadata.resource_version},
            {"op": "add", "path": "/metadata/annotations", "value": annotations},
        ),
        reason=Reason.JOBS_HANDLED,
        message=f"noted on Job {run.name} that {len(handled)} Slurm jobs were handled, {len(left)} were not",
        is_housekeeping=True,
    )


# ---- The brake


def _brake(seen: Seen, judged: Judged) -> list[Action]:
    text = brake_text(seen, judged) if judged.held else _brake_before(seen)
    return [Wait(subject=seen.name, reason=BRAKE_ON, message=text)] if text else []


def _brake_before(seen: Seen) -> str:
    """What the brake said last. It stays on while Slurm is away: nobody can tell whether it would be off."""
    if isinstance(seen.slurm, Snapshot) or not any(run.unhandled for run in seen.open_runs):
        return ""
    is_on = (one for one in seen.check.status.conditions if (one.type, one.reason) == (BRAKED, BRAKE_ON))
    return next((one.message for one in is_on), "")


def brake_text(seen: Seen, judged: Judged) -> str:
    """Whom it would take out of service, and what a person can answer."""
    would = "; ".join(one.text(seen.spec.brake.window) for one in judged.excesses)
    run = min(judged.held)
    jobs = ", ".join(str(one.result.job_id) for one in judged.held[run][:5])
    kind = f"activecheck.{names.GROUP}"
    return (
        f"The brake is on: this check would take out of service {would}. Nothing was done about them, and "
        f"no scheduled run starts. Look at Slurm jobs {jobs} of Job {run}. To do it all the same: "
        f"kubectl annotate {kind} {seen.name} {names.BRAKE_RELEASE}={run}. To leave the nodes alone: "
        f"kubectl annotate {kind} {seen.name} {names.BRAKE_DISMISS}={run}."
    )


def _is_awaited(seen: Seen) -> bool:
    return any(not run.is_over for run in seen.runs) or bool(seen.open_runs)
