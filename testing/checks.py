"""What tests of ActiveChecks share: a cluster with nodes, checks of it, and their Jobs in any state."""

from datetime import UTC, datetime, timedelta
from typing import Any

from slurm_operator.api.nebius import ActiveCheck, NodeSet, SlurmCluster
from slurm_operator.api.schema import codec
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Child
from slurm_operator.plan.actions import Apply, Create, PatchObject, WriteSlurm
from slurm_operator.plan.plan import Outcome, Plan
from slurm_operator.reconcilers.nebius import activecheck
from slurm_operator.reconcilers.nebius.activecheck.observe import Seen
from slurm_operator.runtime.report.reporter import full_status
from slurm_operator.slurm.jobs.ended import EndedJob
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurm.states import JobState, NodeState
from testing import children
from testing.slurmclusters import manifest, read
from testing.world import HandmadeWorld

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
CLUSTER = "smallest"
SLURM = ObjectKey("ns", CLUSTER)
DRAIN = {"drainSlurmNode": {"drainReasonPrefix": "[node_problem]"}}
RECONCILER = activecheck.RECONCILER


def check(name: str = "gpus", type_: str = "slurmJob", **spec: Any) -> dict[str, Any]:
    """A check that drains the nodes of jobs that fail, unless told otherwise."""
    container = {"image": "registry.example/slurm_check_job:1"}
    jobs = {"jobContainer": container, "mungeContainer": {"image": "m:1"}, "sbatchScript": "true\n"}
    by_type: dict[str, dict[str, Any]] = {
        "slurmJob": {"slurmJobSpec": jobs, "failureReactions": DRAIN},
        "k8sJob": {"k8sJobSpec": {"jobContainer": container, "scriptRefName": "script"}},
    }
    base = {"name": name, "slurmClusterRefName": CLUSTER, "checkType": type_, "suspend": False}
    return {
        "apiVersion": "slurm.nebius.ai/v1alpha1",
        "kind": "ActiveCheck",
        "metadata": {"name": name},
        "spec": {**base, **by_type[type_], **spec},
    }


def node(name: str, *states: str, **fields: Any) -> SlurmNode:
    return SlurmNode(name=name, state=NodeState.of(*(states or ("IDLE",))), **fields)


def world(
    *checks: dict[str, Any], workers: int = 10, phase: str = "Available", **nodes: SlurmNode
) -> HandmadeWorld:
    """A cluster that works, with a NodeSet `cpu` of so many workers."""
    cluster = codec.plain(read(manifest("SlurmCluster", CLUSTER)))
    nodeset = read(manifest("NodeSet", "cpu", spec__clusterName=CLUSTER))
    there = HandmadeWorld(
        things=[
            codec.read(SlurmCluster, {**cluster, "status": {"phase": phase}}),
            nodeset,
            *(read(one) for one in checks),
        ]
    )
    assert isinstance(nodeset, NodeSet)
    every = {f"cpu-{number}": node(f"cpu-{number}") for number in range(workers)}
    changed = {name.replace("_", "-"): record for name, record in nodes.items()}
    return with_slurm(there, {**every, **changed})


def with_slurm(there: HandmadeWorld, nodes: dict[str, SlurmNode], **facts: Any) -> HandmadeWorld:
    there.slurms[SLURM] = Snapshot(nodes=nodes, jobs={}, nodes_asked_at=NOW, jobs_asked_at=NOW, **facts)
    return there


def changed_node(there: HandmadeWorld, record: SlurmNode) -> HandmadeWorld:
    snapshot = there.slurms[SLURM]
    assert isinstance(snapshot, Snapshot)
    return with_slurm(there, {**snapshot.nodes, record.name: record}, reservations=snapshot.reservations)


def ended(job_id: int, state: str = "COMPLETED", *nodes: str, reason: str = "") -> EndedJob:
    return EndedJob(job_id=job_id, state=JobState.of(state), nodes=nodes, reason=reason)


def with_run(
    there: HandmadeWorld,
    name: str = "gpus",
    *,
    state: str = "Complete",
    ids: str = "",
    run: str = "",
    made_at: datetime = NOW - timedelta(minutes=5),
    **notes: str,
) -> HandmadeWorld:
    """A Job of the check in this state, whose pod noted these Slurm jobs."""
    owner = there.get(ActiveCheck, "ns", name)
    assert owner is not None
    annotations = {"slurm-job-id": ids, "unhandled-slurm-job-id": ids} if ids else {}
    meta = {
        "name": run or f"{name}-initial-run",
        "namespace": "ns",
        "uid": f"uid-of-{run or name}",
        "resourceVersion": "3",
        "creationTimestamp": made_at.isoformat().replace("+00:00", "Z"),
        "annotations": {**annotations, **{key.replace("_", "-"): value for key, value in notes.items()}},
        "ownerReferences": [
            {
                "apiVersion": ActiveCheck.KIND.api_version,
                "kind": "ActiveCheck",
                "name": name,
                "uid": owner.metadata.uid,
                "controller": True,
            }
        ],
    }
    status: dict[str, Any] = {"active": 1}
    if state in ("Complete", "Failed", "Suspended"):
        at = made_at.isoformat().replace("+00:00", "Z")
        told = {"type": state, "status": "True", "lastTransitionTime": at}
        failure = {"reason": "BackoffLimitExceeded", "message": "it gave up"} if state == "Failed" else {}
        status = {"conditions": [{**told, **failure}]}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": {}, "status": status}
    others = [job for job in there.children_.get(kinds.JOB, []) if job.metadata.name != meta["name"]]
    there.children_[kinds.JOB] = [*others, Child(metadata=children._meta(meta), body=body)]
    return there


def decide(there: HandmadeWorld, name: str = "gpus") -> tuple[Seen, Plan]:
    seen = RECONCILER.observe(ObjectKey("ns", name), there)
    assert seen is not None
    return seen, RECONCILER.decide(seen, there.now)


def writes(plan: Plan) -> list[Any]:
    return [action.write for action in plan.actions() if isinstance(action, WriteSlurm)]


def waits(plan: Plan) -> dict[str, str]:
    return {wait.reason: wait.message for wait in plan.waits}


def patched(plan: Plan, kind: Any = kinds.JOB) -> list[dict[str, Any]]:
    """The annotations that Jobs get."""
    return [
        _object(operation["value"])
        for action in plan.actions()
        if isinstance(action, PatchObject) and action.kind == kind
        for operation in action.operations
        if operation["path"] == "/metadata/annotations"
    ]


def _object(value: object) -> dict[str, Any]:
    assert isinstance(value, dict)
    return value


def made(plan: Plan, kind: str) -> list[dict[str, Any]]:
    found = (action.manifest for action in plan.actions() if isinstance(action, Apply | Create))
    return [body for body in found if body["kind"] == kind]


def told(there: HandmadeWorld, name: str = "gpus", *, done: bool = True) -> dict[str, Any]:
    """The whole status after a pass in which everything worked, and the check with it in the world."""
    seen, plan = decide(there, name)
    outcome = Outcome(done=tuple(plan.actions()) if done else ())
    report = RECONCILER.status(seen, plan, outcome)
    old = codec.plain(seen.check.status)
    status = full_status(report, old, generation=1, now=there.now)
    there.things = [thing for thing in there.things if thing is not seen.check]
    there.things.append(codec.read(ActiveCheck, {**codec.plain(seen.check), "status": status}))
    return status


def conditions(status: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {one["type"]: (one["status"], one["reason"]) for one in status["conditions"]}


def passed(there: HandmadeWorld, name: str = "gpus") -> HandmadeWorld:
    """One pass: what was decided is done, and told."""
    _, plan = decide(there, name)
    told(there, name)
    for action in plan.actions():
        match action:
            case Create(manifest=body) if body["kind"] == "Job":
                with_run(there, name, state="Active", run=body["metadata"]["name"], made_at=there.now)
            case Apply(manifest=body):
                children.put(there, body)
            case PatchObject(kind=kind, key=key) if kind == kinds.JOB:
                _annotate(there, key[1], action.operations)
            case _:
                pass
    return there


def _annotate(there: HandmadeWorld, name: str, operations: tuple[dict[str, Any], ...]) -> None:
    [notes] = [one["value"] for one in operations if one["path"] == "/metadata/annotations"]
    job = there.child(kinds.JOB, "ns", name)
    assert job is not None
    body = {**job.body, "metadata": {**job.body["metadata"], "annotations": notes}}
    others = [one for one in there.children_[kinds.JOB] if one is not job]
    there.children_[kinds.JOB] = [*others, Child(metadata=children._meta(body["metadata"]), body=body)]
