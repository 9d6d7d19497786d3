"""ActiveChecks on a real API server: what is made of them, and who runs when another one fails."""

from collections.abc import Iterator

import pytest
from kinds_rig import apply, condition, get, merge, ns, operator, owner_of, serving_kinds, wait_for

from slurm_operator.api import registry
from testing.checks import check
from testing.control_plane import Plane
from testing.managers import running_manager, until
from testing.slurmclusters import manifest

__all__ = ["ns"]

CHECKS, CLUSTERS = "activechecks.slurm.nebius.ai", "slurmclusters.slurm.nebius.ai"
AT = "2026-01-01T00:00:00Z"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    with serving_kinds(tmp_path_factory.mktemp("checks"), kinds=registry.ALL) as plane:
        yield plane


def placed(ns: str, body: dict) -> dict:
    return body | {"metadata": {**body["metadata"], "namespace": ns}}


def available(plane: Plane, ns: str) -> None:
    """Nobody looks after the cluster here, so we say that it works."""
    apply(plane, placed(ns, manifest("SlurmCluster", "smallest")))
    merge(plane, ns, CLUSTERS, "smallest", {"status": {"phase": "Available"}}, "--subresource=status")


def end(plane: Plane, ns: str, job: str, type_: str) -> None:
    """No kubelet runs here either, so we say what the Job's controller would."""
    before = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}[type_]
    told = {"lastTransitionTime": AT, "status": "True"}
    status: dict = {"startTime": AT, "conditions": [{"type": before, **told}, {"type": type_, **told}]}
    if type_ == "Complete":
        status |= {"succeeded": 1, "completionTime": AT}
    merge(plane, ns, "job", job, {"status": status}, "--subresource=status")


def status(plane: Plane, ns: str, name: str) -> dict:
    return (get(plane, ns, CHECKS, name) or {}).get("status") or {}


def test_a_check_becomes_a_cron_job_and_a_first_run(plane, ns, tmp_path):
    available(plane, ns)
    apply(plane, placed(ns, check("gpus", schedule="0 */3 * * *")))
    with running_manager(
        operator(plane, f"op-{ns}"), tmp_path / "log", "--namespaces", ns, "--leader-elect=false",
        name="soperatorchecks",
    ) as manager:  # fmt: skip
        manager.wait_ready()
        job = wait_for(plane, ns, "job", "gpus-initial-run")
        cron = wait_for(plane, ns, "cronjob", "gpus")
        wait_for(plane, ns, "configmap", "sbatch-script-gpus")
        wait_for(plane, ns, "serviceaccount", "smallest-activecheck-sa")
        until(lambda: condition(plane, ns, CHECKS, "gpus")[0] == "True", what="the check is scheduled")

        assert owner_of(cron) == owner_of(job) == ("ActiveCheck", "gpus")
        assert cron["spec"]["schedule"] == "0 */3 * * *"
        version = get(plane, ns, "cronjob", "gpus")["metadata"]["resourceVersion"]
        merge(plane, ns, CHECKS, "gpus", {"metadata": {"annotations": {"look": "again"}}})
        end(plane, ns, "gpus-initial-run", "Failed")
        until(
            lambda: status(plane, ns, "gpus").get("slurmJobsStatus", {}).get("lastRunStatus") == "Error",
            what="a Job that submitted nothing is an error",
        )
        assert get(plane, ns, "cronjob", "gpus")["metadata"]["resourceVersion"] == version, (
            "nothing to change"
        )
        until(
            lambda: (
                "soperator-checks-final-state-time"
                in get(plane, ns, "job", "gpus-initial-run")["metadata"].get("annotations", {})
                and condition(plane, ns, CHECKS, "gpus", "Passed")[:2] == ("False", "Error")
            ),
            what="it says so",
        )


def test_who_depends_on_a_failed_check_is_skipped_and_runs_when_it_passes(plane, ns, tmp_path):
    available(plane, ns)
    apply(
        plane,
        placed(ns, check("a", "k8sJob")),
        placed(ns, check("b", "k8sJob", dependsOn=["a"])),
        placed(ns, check("c", "k8sJob", dependsOn=["b"])),
    )
    with running_manager(
        operator(plane, f"op-{ns}"), tmp_path / "log", "--namespaces", ns, "--leader-elect=false",
        name="soperatorchecks",
    ) as manager:  # fmt: skip
        manager.wait_ready()
        wait_for(plane, ns, "job", "a-initial-run")
        assert get(plane, ns, "job", "b-initial-run") is None
        end(plane, ns, "a-initial-run", "Failed")
        until(lambda: status(plane, ns, "c").get("skippedBy") == ["b"], what="c is skipped because of b")
        assert status(plane, ns, "b")["k8sJobsStatus"]["lastJobStatus"] == "Skipped"
        assert status(plane, ns, "b")["skippedBy"] == ["a"]
        assert get(plane, ns, "job", "b-initial-run") is None
        assert get(plane, ns, "cronjob", "b")["spec"]["suspend"] is True

        plane.kubectl("create", "job", "-n", ns, "--from=cronjob/a", "again")
        end(plane, ns, "again", "Complete")
        wait_for(plane, ns, "job", "b-initial-run")
        end(plane, ns, "b-initial-run", "Complete")
        wait_for(plane, ns, "job", "c-initial-run")


def test_a_deleted_check_goes_at_once(plane, ns, tmp_path):
    available(plane, ns)
    body = placed(ns, check("gpus"))
    body["metadata"]["finalizers"] = ["slurm.nebius.ai/activecheck-finalizer"]
    apply(plane, body)
    with running_manager(
        operator(plane, f"op-{ns}"), tmp_path / "log", "--namespaces", ns, "--leader-elect=false",
        name="soperatorchecks",
    ) as manager:  # fmt: skip
        manager.wait_ready()
        wait_for(plane, ns, "cronjob", "gpus")
        plane.kubectl("delete", CHECKS, "-n", ns, "gpus", "--wait=false")
        until(lambda: get(plane, ns, CHECKS, "gpus") is None, what="the check is gone")
        assert get(plane, ns, "cronjob", "gpus") is None
