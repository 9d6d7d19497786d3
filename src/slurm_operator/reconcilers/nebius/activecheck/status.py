"""What a check says about itself: how its last run went, why it does not run, and whether the brake is on."""

from datetime import datetime
from typing import Any, Final

from slurm_operator.api.nebius.activecheck import DrainedNode, JobAndReason
from slurm_operator.api.schema import codec
from slurm_operator.api.shared.conditions import Truth
from slurm_operator.conditions import Reason
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.moments import moment
from slurm_operator.plan.actions import Action, Wait, WriteSlurm
from slurm_operator.plan.conditions import DEGRADED, READY, Condition, false, quoted, true, unknown
from slurm_operator.plan.failing import degraded
from slurm_operator.plan.plan import Outcome, Plan
from slurm_operator.plan.reconciler import StatusReport
from slurm_operator.reconcilers.nebius.activecheck import results, runs
from slurm_operator.reconcilers.nebius.activecheck.decide import (
    BRAKE_ON,
    BRAKED,
    DEPENDENCY_FAILED,
    drained_before,
    run_results,
)
from slurm_operator.reconcilers.nebius.activecheck.dependencies import Standing, dependencies
from slurm_operator.reconcilers.nebius.activecheck.observe import Seen
from slurm_operator.reconcilers.nebius.activecheck.results import Result, overall
from slurm_operator.reconcilers.nebius.activecheck.runs import Run
from slurm_operator.slurm.writes import DrainNodes, Reserve

PASSED: Final = "Passed"

# A status has room for about so many; those that failed come first.
MOST_RESULTS: Final = 1000


def status(seen: Seen, plan: Plan, outcome: Outcome) -> StatusReport:
    if seen.check.spec is None:
        return StatusReport(_without_spec(plan), {"observedGeneration": seen.meta.generation})
    fields: Manifest = {
        "observedGeneration": seen.meta.generation,
        "updateStatus": _update_status(plan, outcome),
        "reason": next((wait.message for wait in plan.waits), ""),
        "skippedBy": skipped_by(seen),
        "k8sJobsStatus": _k8s_status(seen),
        "slurmJobsStatus": _slurm_status(seen),
        "recentDrains": _recent_drains(seen, outcome),
    }
    word, text = last_word(seen, fields)
    conditions = [
        _ready(plan),
        _passed(word, text),
        _braked(plan),
        degraded(outcome, false(DEGRADED, Reason.AS_EXPECTED)),
    ]
    return StatusReport(conditions, codec.plain(fields))


def _without_spec(plan: Plan) -> list[Condition]:
    unharmed = (false(type_, Reason.AS_EXPECTED) for type_ in (BRAKED, DEGRADED))
    return [_ready(plan), unknown(PASSED, Reason.NOT_RUN), *unharmed]


def _update_status(plan: Plan, outcome: Outcome) -> str:
    """In the words of this API."""
    if outcome.failed:
        return "failed"
    return "updating" if plan.waits else "succeeded"


def skipped_by(seen: Seen) -> list[str]:
    """The checks because of which it does not run."""
    found = dependencies(seen.check, seen.others)
    return [one.name for one in found if one.standing is Standing.FAILED]


def is_skipped(seen: Seen) -> bool:
    """Whether it never ran, and does not because of others."""
    return bool(skipped_by(seen)) and not seen.has_run and seen.spec.run_after_creation


def _k8s_status(seen: Seen) -> Manifest:
    """Of a check that submits, its Jobs only say that something was submitted."""
    old = seen.check.status.k8s_jobs_status
    shown: Manifest = codec.plain(old)
    if seen.is_slurm:
        return shown
    run = seen.runs[-1] if seen.runs else None
    word = run.state if run is not None else old.last_job_status
    if run is None and is_skipped(seen):
        word = results.SKIPPED
    elif run is None and word == results.SKIPPED:
        word = ""
    cron: Manifest = (seen.cron.body.get("status") or {}) if seen.cron is not None else {}
    succeeded = [one.over_at for one in seen.runs if one.state == runs.COMPLETE and one.over_at is not None]
    since = run.over_at or run.made_at if run is not None else None
    return {
        **shown,
        "lastJobName": run.name if run is not None else old.last_job_name,
        "lastJobStatus": word,
        "lastJobScheduleTime": _time(cron.get("lastScheduleTime")) or old.last_job_schedule_time,
        "lastJobSuccessfulTime": max(succeeded) if succeeded else old.last_job_successful_time,
        "lastTransitionTime": since if word != old.last_job_status and since else old.last_transition_time,
    }


def _time(text: Any) -> datetime | None:
    return moment(str(text)) if text else None


def _slurm_status(seen: Seen) -> Manifest:
    old = seen.check.status.slurm_jobs_status
    shown: Manifest = codec.plain(old)
    if not seen.is_slurm:
        return shown
    run = seen.runs[-1] if seen.runs else None
    if run is None:
        word = results.SKIPPED if is_skipped(seen) else old.last_run_status
        return {**shown, "lastRunStatus": "" if word == results.SKIPPED and not is_skipped(seen) else word}
    is_shown = old.last_run_job == run.name and old.last_run_status not in ("", results.IN_PROGRESS)
    if run.is_closed and is_shown:
        return shown
    found = _results(seen, run)
    word = overall(run, found)
    since = run.over_at or run.made_at
    return {
        "lastTransitionTime": since if word != old.last_run_status else old.last_transition_time,
        "lastRunId": str(run.ids[0]) if run.ids else results.NO_SLURM_JOB if run.is_over else "",
        "lastRunName": seen.spec.name,
        "lastRunStatus": word,
        "lastRunJob": run.name,
        "lastRunSubmitTime": run.made_at,
        "lastRunFailJobsAndReasons": _reasons(found, results.FAILED),
        "lastRunErrorJobsAndReasons": [*_reasons(found, results.ERROR), *_job_errors(run)],
        "lastRunCancelledJobs": [str(one.job_id) for one in found if one.verdict == results.CANCELLED],
        "lastRunResults": [codec.plain(one.as_job_result) for one in _worst_of(found)],
    }


def _results(seen: Seen, run: Run) -> list[Result]:
    """By what Slurm says in this moment; the same that was decided by."""
    return run_results(seen, run, seen.now)


def _worst_of(found: list[Result]) -> list[Result]:
    final = [one for one in found if one.is_final]
    worst = sorted(final, key=lambda one: (one.verdict == results.COMPLETE, one.job_id))[:MOST_RESULTS]
    return sorted(worst, key=lambda one: one.job_id)


def _reasons(found: list[Result], verdict: str) -> list[Manifest]:
    listed = (
        JobAndReason(job_id=str(one.job_id), reason=one.text) for one in found if one.verdict == verdict
    )
    return [codec.plain(one) for one in list(listed)[:MOST_RESULTS]]


def _job_errors(run: Run) -> list[Manifest]:
    """What went wrong before there was a Slurm job."""
    errors = [f"{word!r} is no id of a Slurm job" for word in run.unreadable_ids]
    if run.state == runs.FAILED:
        errors.append(run.failure)
    elif run.is_over and not run.ids and not run.skipped_because:
        errors.append("its Job ended without submitting anything")
    return [codec.plain(JobAndReason(job_id=results.NO_SLURM_JOB, reason=text)) for text in errors]


def _recent_drains(seen: Seen, outcome: Outcome) -> list[Manifest]:
    """With those of this pass. What the brake counts must outlive the node, and us."""
    since = seen.now - seen.spec.brake.window
    found = {node: at for node, at in drained_before(seen).items() if at >= since}
    for action in outcome.done:
        for node in _taken_out_by(action):
            found[node] = seen.now.replace(microsecond=0)
    return [codec.plain(DrainedNode(node=node, time=at)) for node, at in sorted(found.items())]


def _taken_out_by(action: Action) -> tuple[str, ...]:
    if isinstance(action, WriteSlurm) and isinstance(action.write, DrainNodes | Reserve):
        return action.write.nodes
    return ()


def last_word(seen: Seen, fields: Manifest) -> tuple[str, str]:
    """How the last run went, and in which words."""
    if not seen.is_slurm:
        fields_shown = fields["k8sJobsStatus"]
        run = seen.runs[-1] if seen.runs else None
        why = run.failure if run is not None and run.state == runs.FAILED else ""
        return str(fields_shown.get("lastJobStatus") or ""), why
    fields_shown = fields["slurmJobsStatus"]
    bad = [
        *(fields_shown.get("lastRunFailJobsAndReasons") or ()),
        *(fields_shown.get("lastRunErrorJobsAndReasons") or ()),
    ]
    texts = [f"{_who(one['jobID'])}: {one['reason']}" for one in bad[:3]]
    more = f" and {len(bad) - 3} more" if len(bad) > 3 else ""
    run = seen.runs[-1] if seen.runs else None
    nothing = run.skipped_because if run is not None else ""
    return str(fields_shown.get("lastRunStatus") or ""), "; ".join(texts) + more or nothing


def _who(job_id: str) -> str:
    return f"job {job_id}" if job_id.isdecimal() else job_id


def _passed(word: str, text: str) -> Condition:
    if word == results.COMPLETE:
        return quoted(PASSED, Truth.TRUE, word, "The last run found nothing.")
    if word in (results.FAILED, results.ERROR, results.CANCELLED):
        return quoted(PASSED, Truth.FALSE, word, f"The last run ended as {word}. {text}".strip())
    return quoted(PASSED, Truth.UNKNOWN, word or Reason.NOT_RUN, text)


def _ready(plan: Plan) -> Condition:
    """Whether it runs when it is due."""
    waits = [wait for wait in plan.waits if wait.reason != BRAKE_ON] or plan.waits
    if not waits:
        return true(READY, Reason.SCHEDULED)
    first = next((wait for wait in waits if wait.reason == DEPENDENCY_FAILED), waits[0])
    return false(READY, first.reason, _all(waits, first))


def _all(waits: list[Wait], first: Wait) -> str:
    others = [wait.message for wait in waits if wait is not first]
    return " ".join([first.message, *others])


def _braked(plan: Plan) -> Condition:
    found = next((wait for wait in plan.waits if wait.reason == BRAKE_ON), None)
    return (
        true(BRAKED, found.reason, found.message) if found is not None else false(BRAKED, Reason.AS_EXPECTED)
    )
