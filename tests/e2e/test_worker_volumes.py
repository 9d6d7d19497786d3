"""Volumes that workers have of their own: what jobs wrote there, and whom the claims outlive."""

import json

import pytest
from operator_rig import Slurm, until
from test_slurm_workers import cluster_of, operator
from worker_changes import machine_of, scale, wait_replaced

from slurm_operator.api.shared import names

__all__ = ["operator"]

pytestmark = [pytest.mark.timeout(900), pytest.mark.full]

SCRATCH = {
    "metadata": {"name": "scratch"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
CLAIMS = ["scratch-cpu-0", "scratch-cpu-1"]


def workers(slurm: Slurm) -> dict:
    """Two workers, each with a volume at /scratch."""
    made = slurm.nodeset(volumeClaimTemplates=[SCRATCH])
    made["spec"]["slurmd"]["volumeMounts"] = [
        *made["spec"]["slurmd"]["volumeMounts"],
        {"name": "scratch", "mountPath": "/scratch"},
    ]
    return made


@pytest.fixture(scope="module")
def slurm(operator):
    with cluster_of(operator, workers=workers) as made:
        yield made


def change(slurm: Slurm, **spec: object) -> None:
    slurm.kubectl("patch", "nodeset", "cpu", "--type=merge", "-p", json.dumps({"spec": spec}))


def keep(slurm: Slurm, **policy: str) -> None:
    change(slurm, persistentVolumeClaimRetentionPolicy=policy)


def claims(slurm: Slurm) -> dict[str, str]:
    """The claims of workers by name, with their uid; none that is on its way out."""
    out = slurm.kubectl("get", "pvc", "-l", "app.kubernetes.io/name=slurmd", "-o", "json")
    found = (claim["metadata"] for claim in json.loads(out)["items"])
    return {meta["name"]: meta["uid"] for meta in found if "deletionTimestamp" not in meta}


def followed(slurm: Slurm, claim: str) -> list[str]:
    """Of which kinds those are that a claim goes with."""
    owners = json.loads(slurm.kubectl("get", "pvc", claim, "-o", "json"))["metadata"].get(
        "ownerReferences", []
    )
    return [owner["kind"] for owner in owners]


def write(slurm: Slurm, text: str) -> None:
    """By a job on each worker: the text, and where it was."""
    for name in slurm.pods():
        on_worker(slurm, name, f"echo {text} on {name} > /scratch/note")


def notes(slurm: Slurm) -> list[str]:
    """What jobs on the workers find there, in order; nothing where nothing is."""
    command = "cat /scratch/note 2>/dev/null || echo nothing"
    return [on_worker(slurm, name, command).strip() for name in sorted(slurm.pods())]


def on_worker(slurm: Slurm, name: str, command: str) -> str:
    return slurm.run("srun", f"--nodelist={name}", "sh", "-c", command)


def replace_all(slurm: Slurm) -> None:
    """An update: other pods under the same names."""
    before = slurm.pods()
    change(slurm, template={"metadata": {"labels": {"made-after": before["cpu-0"]}}})
    wait_replaced(slurm, before)
    slurm.wait_idle(2)


def scale_in(slurm: Slurm) -> None:
    scale(slurm, 1)
    until(lambda: list(slurm.pods()) == ["cpu-0"], 120, lambda: f"one to go: {slurm.pods()} {slurm.states()}")


def scale_out(slurm: Slurm) -> None:
    scale(slurm, 2)
    slurm.wait_idle(2)


def wait_drained(slurm: Slurm, name: str) -> None:
    until(lambda: slurm.states().get(name) == "drained", 120, lambda: f"a drain: {slurm.states()}")


def test_what_a_job_wrote_outlives_its_pod_and_its_worker(slurm):
    write(slurm, "kept")
    before = claims(slurm)
    assert sorted(before) == CLAIMS

    replace_all(slurm)
    assert notes(slurm) == ["kept on cpu-0", "kept on cpu-1"]
    scale_in(slurm)
    assert claims(slurm) == before
    scale_out(slurm)
    assert notes(slurm) == ["kept on cpu-0", "kept on cpu-1"]
    assert claims(slurm) == before


def test_with_a_scale_in_the_volume_goes_when_the_policy_says_so_and_with_nothing_less(slurm):
    keep(slurm, whenScaled="Delete", whenDeleted="Retain")
    write(slurm, "kept")
    before = claims(slurm)

    slurm.kubectl("annotate", "pod", "cpu-1", f"{names.POD_CORDON}=true")
    wait_drained(slurm, "cpu-1")
    assert followed(slurm, "scratch-cpu-1") == []
    slurm.kubectl("annotate", "pod", "cpu-1", f"{names.POD_CORDON}-")
    slurm.wait_idle(2)
    machine = machine_of(slurm, "cpu-1")
    slurm.cluster.kubectl("cordon", machine)
    try:
        wait_drained(slurm, "cpu-1")
        assert followed(slurm, "scratch-cpu-1") == []
    finally:
        slurm.cluster.kubectl("uncordon", machine)
    slurm.wait_idle(2)
    replace_all(slurm)
    assert notes(slurm) == ["kept on cpu-0", "kept on cpu-1"]
    assert claims(slurm) == before

    scale_in(slurm)
    kept = {"scratch-cpu-0": before["scratch-cpu-0"]}
    until(lambda: claims(slurm) == kept, 120, lambda: f"one claim to go: {claims(slurm)}")
    scale_out(slurm)
    assert notes(slurm) == ["kept on cpu-0", "nothing"]


def test_with_its_nodeset_the_volumes_stay_or_go_as_the_policy_says(slurm):
    keep(slurm, whenScaled="Delete", whenDeleted="Retain")
    write(slurm, "kept")
    before = claims(slurm)

    slurm.kubectl("delete", "nodeset", "cpu", "--timeout=240s")
    assert slurm.pods() == {}
    assert claims(slurm) == before, "a deletion is no scale-in"
    slurm.apply(workers(slurm))
    slurm.wait_idle(2)
    assert notes(slurm) == ["kept on cpu-0", "kept on cpu-1"]
    assert claims(slurm) == before

    keep(slurm, whenScaled="Retain", whenDeleted="Delete")
    for claim in before:
        until(
            lambda claim=claim: followed(slurm, claim) == ["NodeSet"],
            60,
            lambda claim=claim: f"{claim} to follow",
        )
    scale_in(slurm)
    assert claims(slurm) == before
    slurm.kubectl("delete", "nodeset", "cpu", "--timeout=240s")
    until(lambda: claims(slurm) == {}, 120, lambda: f"the claims to go: {claims(slurm)}")
