"""What Slurm and Kubernetes tell each other about a worker, with real daemons on both sides."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from operator_rig import Slurm, until
from test_slurm_workers import operator, slurm

__all__ = ["operator", "slurm"]

pytestmark = [pytest.mark.timeout(600), pytest.mark.full]


def pod(slurm: Slurm, name: str) -> dict:
    return json.loads(slurm.cluster.kubectl("get", "pod", name, "-n", slurm.namespace, "-o", "json"))


def conditions(slurm: Slurm, name: str) -> dict[str, str]:
    return {c["type"]: c.get("message", "") for c in pod(slurm, name)["status"]["conditions"]}


def shown(slurm: Slurm, name: str) -> str:
    return slurm.run("scontrol", "show", "node", name)


def status(slurm: Slurm) -> dict:
    out = slurm.cluster.kubectl("get", "nodeset", "cpu", "-n", slurm.namespace, "-o", "json")
    return json.loads(out).get("status", {})


def annotate(slurm: Slurm, machine: str, text: str) -> None:
    slurm.cluster.kubectl(
        "annotate", "node", machine, f"features.slinky.slurm.net/spec={text}", "--overwrite"
    )


def test_pods_show_what_slurm_says_and_slurm_shows_the_machine_and_the_pod(slurm):
    before = slurm.pods()
    slurm.apply(slurm.nodeset(podInfoInComment=True))
    until(lambda: "SlurmNodeStateIdle" in conditions(slurm, "cpu-0"), 30, lambda: conditions(slurm, "cpu-0"))
    until(lambda: '"podName":"cpu-0"' in shown(slurm, "cpu-0"), 30, lambda: shown(slurm, "cpu-0"))
    assert slurm.pods() == before, "to say so replaces nobody"

    slurm.run("scontrol", "update", "nodename=cpu-1", "state=drain", "reason=bad disk")
    until(lambda: conditions(slurm, "cpu-1").get("SlurmNodeStateDrain") == "bad disk", 30)
    assert "Ready" in conditions(slurm, "cpu-1")

    machine = pod(slurm, "cpu-0")["spec"]["nodeName"]
    annotate(slurm, machine, "nvlink")
    try:
        until(lambda: "k8s/nvlink" in shown(slurm, "cpu-0"), 30, lambda: shown(slurm, "cpu-0"))
        assert "ActiveFeatures=cpu,k8s/nvlink" in shown(slurm, "cpu-0")
    finally:
        slurm.cluster.kubectl("annotate", "node", machine, "features.slinky.slurm.net/spec-")
    until(lambda: "k8s/nvlink" not in shown(slurm, "cpu-0"), 30, lambda: shown(slurm, "cpu-0"))


def test_a_worker_with_other_resources_gets_a_record_that_has_them(slurm):
    before = slurm.pods()

    slurm.apply(slurm.nodeset(extraConf="Weight=7"))

    until(
        lambda: set(slurm.pods()) == set(before) and not set(slurm.pods().values()) & set(before.values()),
        what=lambda: f"both replaced: {slurm.pods()} {slurm.states()}",
    )
    slurm.wait_idle(2)
    assert all("Weight=7" in shown(slurm, name) for name in before), (
        "the old record would have kept the old one"
    )


def reservation(slurm: Slurm) -> str:
    return slurm.run("scontrol", "show", "reservation", "--oneliner")


def test_a_maintenance_window_replaces_workers_and_comes_again_the_next_day(slurm):
    before = slurm.pods()
    until(lambda: status(slurm).get("registeredReplicas") == 2, what=lambda: status(slurm))
    soon = datetime.now(UTC) + timedelta(seconds=30)
    window = {"startTime": f"{soon:%Y-%m-%dT%H:%M:%SZ}", "duration": "2m", "flags": ["DAILY"]}
    strategy = {"type": "ScheduledUpdate", "scheduledUpdate": window}
    slurm.apply(slurm.nodeset(updateStrategy=strategy, labels={"changed": "yes"}))

    until(lambda: "SlurmOperatorMaint-cpu" in reservation(slurm), what=lambda: status(slurm))
    assert "DAILY" in reservation(slurm)
    until(
        lambda: set(slurm.pods()) == set(before) and not set(slurm.pods().values()) & set(before.values()),
        what=lambda: f"both replaced: {slurm.pods()} {slurm.states()}",
    )
    tomorrow = f"StartTime={soon + timedelta(days=1):%Y-%m-%dT%H:%M:%S}"
    until(lambda: tomorrow in reservation(slurm), 300, lambda: reservation(slurm))

    # What changes now waits for that.
    slurm.wait_idle(2)
    after = slurm.pods()
    slurm.apply(slurm.nodeset(updateStrategy=strategy, labels={"changed": "again"}))
    until(lambda: status(slurm).get("updatedReplicas") == 0, what=lambda: status(slurm))
    assert tomorrow in reservation(slurm), "Slurm moved it on, and that stands"
    assert slurm.pods() == after

    slurm.apply(slurm.nodeset(labels={"changed": "yes"}))
    until(lambda: "SlurmOperatorMaint-cpu" not in reservation(slurm), 60)
    slurm.wait_idle(2)
