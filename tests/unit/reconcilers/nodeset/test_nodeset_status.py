"""What a NodeSet says of its workers: what differs, where each belongs, how often hashes met."""

from datetime import timedelta

import pytest

from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.manifests.meta import Child
from slurm_operator.manifests.objects import Pod, PodCondition
from slurm_operator.plan.plan import Outcome
from slurm_operator.reconcilers.nodeset import RECONCILER
from slurm_operator.reconcilers.nodeset.creation import revisions
from slurm_operator.safety.gate import Shut, gate
from slurm_operator.slurm.snapshot import Unreachable
from testing.workers import (
    CONTROLLER,
    KEY,
    NOW,
    controller,
    job,
    machine,
    nodeset,
    planned,
    revision_of,
    slurm,
    slurm_node,
    worker,
    world,
)


def seen(
    *things, record=None, registered=True, status=None, ready_for=timedelta(hours=1), words=("IDLE",), **spec
):
    made = nodeset(**{"replicas": 1, **spec})
    if status is not None:
        made = type(made)(metadata=made.metadata, spec=made.spec, status=type(made.status)(**status))
    revision = revision_of(made)
    pod = worker(0, revision=revision.metadata.labels[names.LABEL_REVISION], unready_for=ready_for)
    nodes = [slurm_node(pod, *words, **(record or {}))] if registered else []
    return world(made, controller(), pod, *things, revisions_=[revision], slurm_=slurm(*nodes))


def report(made):
    found = RECONCILER.observe(KEY, made)
    return RECONCILER.status(found, RECONCILER.decide(found, NOW), Outcome())


def limited(**limits) -> dict:
    return {
        "slurmd": {"resources": {"limits": {key.replace("_gpu", ".com/gpu"): v for key, v in limits.items()}}}
    }


@pytest.mark.parametrize(
    ("made", "told"),
    [
        pytest.param(seen(), "", id="nothing declared, nothing to differ"),
        pytest.param(seen(extraConf="CPUs=8", record={"cpus": 8}), "", id="as declared"),
        pytest.param(seen(extraConf="CPUs=8", record={"cpus": 4}), "CPUs: 8 by extraConf, 4 in Slurm", id="fewer CPUs"),
        pytest.param(seen(**limited(cpu="6"), record={"cpus": 64, "effective_cpus": 6}), "", id="the limit is what jobs get"),
        pytest.param(seen(**limited(cpu="96"), record={"cpus": 64, "effective_cpus": 64}), "CPUs: 96 by the pod's limits, 64 in Slurm", id="a limit beyond the machine"),
        pytest.param(seen(extraConf="CPUs=6", **limited(cpu="6"), record={"cpus": 6, "effective_cpus": 6}), "", id="both say the same"),
        pytest.param(seen(extraConf="CPUs=6", **limited(cpu="6"), record={"cpus": 6, "effective_cpus": 4}), "CPUs for jobs: 6 by the pod's limits, 4 in Slurm", id="as declared, but jobs get fewer"),
        pytest.param(seen(extraConf="CPUs=4", **limited(cpu="6"), record={"cpus": 4, "effective_cpus": 4}), "", id="fewer than the limit, as somebody wants it"),
        pytest.param(seen(extraConf="CPUs=4", **limited(cpu="6"), record={"cpus": 4, "effective_cpus": 2}), "CPUs for jobs: 4 by extraConf, 2 in Slurm", id="and jobs get fewer still"),
        pytest.param(seen(extraConf="CPUs=8", **limited(cpu="6"), record={"cpus": 8, "effective_cpus": 6}), "", id="more than the limit: the rest is set aside"),
        pytest.param(seen(extraConf="CoreSpecCount=2", **limited(cpu="8"), record={"cpus": 8, "effective_cpus": 6}), "", id="set aside by somebody else"),
        pytest.param(seen(**limited(cpu="1"), record={"cpus": 64, "cores": 32, "effective_cpus": 2}), "", id="half a core: Slurm gives a whole one"),
        pytest.param(seen(**limited(cpu="3"), record={"cpus": 64, "cores": 32, "effective_cpus": 2}), "", id="one core and a half: Slurm gives one"),
        pytest.param(seen(**limited(cpu="4"), record={"cpus": 64, "cores": 32, "effective_cpus": 2}), "CPUs: 4 by the pod's limits, 2 in Slurm", id="a core too few"),
        pytest.param(seen(**limited(cpu="3"), record={"cpus": 64, "cores": 64, "effective_cpus": 2}), "CPUs: 3 by the pod's limits, 2 in Slurm", id="where a core is one CPU"),
        pytest.param(seen(extraConf="RealMemory=1000", record={"real_memory_mb": 900}), "MiB of memory: 1000 by extraConf, 900 in Slurm", id="memory"),
        pytest.param(seen(**limited(memory="4Gi"), record={"real_memory_mb": 64000}), "", id="a limit below the machine is kept by slurmd"),
        pytest.param(seen(extraConf="Gres=gpu:h100:8", record={"gres": "gpu:h100:8(S:0-1)"}), "", id="GRES, as Slurm writes them"),
        pytest.param(seen(extraConf="Gres=gpu:8 Feature=", record={"gres": ""}), "GRES gpu: 8 by extraConf, 0 in Slurm", id="GRES beside a word that nobody can read"),
        pytest.param(seen(extraConf="Gres=gpu:8", record={"gres": "(null)"}), "GRES gpu: 8 by extraConf, 0 in Slurm", id="GRES that slurmd did not find"),
        pytest.param(seen(**limited(nvidia_gpu=4), record={"gres": ""}), "GRES gpu: 4 by the pod's limits, 0 in Slurm", id="devices that nobody told Slurm of"),
        pytest.param(seen(extraConf="Gres=gpu:h100:8", **limited(nvidia_gpu=8), record={"gres": "gpu:h100:8"}), "", id="as many devices as GRES"),
        pytest.param(seen(extraConf="Gres=gpu:h100:8", **limited(nvidia_gpu=4), record={"gres": "gpu:h100:8"}), "GRES gpu: 8 by extraConf, 4 by the pod's limits", id="GRES that the pod does not have"),
        pytest.param(seen(extraConf="Gres=gpu:8", record={"gres": "gpu:8"}), "", id="devices that come another way"),
        pytest.param(seen(words=("IDLE", "DRAIN", "INVALID_REG"), record={"reason": "Low CPUs"}), "Slurm refuses what it registered with: Low CPUs", id="refused"),
        pytest.param(seen(machine("n1", annotations={names.TOPOLOGY: "nonsense"})), "annotation topology.slinky.slurm.net/spec of Node n1: 'nonsense' is no place", id="a place that is none"),
        pytest.param(seen(registered=False), "its pod is ready, but Slurm does not know it", id="not registered"),
        pytest.param(seen(registered=False, ready_for=timedelta(seconds=3)), "", id="not registered yet"),
    ],
)  # fmt: skip
def test_what_differs_is_explained(made, told):
    answer = report(made)
    messages = [entry["message"] for entry in answer.fields["mismatches"]]
    [degraded] = [c for c in answer.conditions if c.type == "Degraded"]

    assert (messages[0] if messages else "").startswith(told)
    assert bool(messages) is bool(told)
    assert degraded.reason == ("Mismatch" if told else "AsExpected")


def test_while_slurm_is_silent_nothing_is_said_to_differ():
    made = seen(extraConf="CPUs=8", record={"cpus": 4})
    made.slurms[CONTROLLER] = Unreachable(since=NOW, why="no answer")

    assert report(made).fields["mismatches"] == []


def reconfigured(seconds: int, *, words=("ALLOCATED",)):
    """slurmctld was reconfigured so long ago, and does not say any more when slurmd started."""
    made = seen(record={"slurmd_start_time": None}, words=words)
    since = {"gpu-0": NOW - timedelta(seconds=seconds)}
    made.slurms[CONTROLLER] = wire.replace(
        made.slurms[CONTROLLER],
        unstarted_since=since,
        jobs={7: job(7, "gpu-0")},
        jobs_by_node={"gpu-0": (7,)},
    )
    return made


def test_for_half_a_minute_after_a_reconfigure_workers_are_as_they_were():
    answer = report(reconfigured(15))
    [degraded] = [c for c in answer.conditions if c.type == "Degraded"]

    assert (degraded.reason, answer.fields["mismatches"]) == ("AsExpected", [])
    assert (answer.fields["registeredReplicas"], answer.fields["slurmAllocated"]) == (1, 1)
    assert planned(reconfigured(15)).look_again == timedelta(seconds=15)


def test_after_half_a_minute_a_worker_that_did_not_register_again_is_told_of():
    [entry] = report(reconfigured(31)).fields["mismatches"]

    assert "has not registered again since slurmctld was reconfigured or restarted" in entry["message"]
    assert "another one" not in entry["message"]


def test_the_gate_stays_shut_until_slurmd_has_registered_again():
    [found] = RECONCILER.observe(KEY, reconfigured(15, words=("IDLE", "DRAIN"))).workers
    verdict = gate(found, NOW)

    assert isinstance(verdict, Shut)
    assert verdict.reason == "AnotherWorker"


def test_a_reconfigure_writes_nothing_on_the_pods():
    before = seen(words=("ALLOCATED",))
    [wanted] = [one for one in planned(before).actions() if getattr(one, "reason", "") == "SlurmState"]
    made = reconfigured(15)
    [pod] = made.all(Pod)
    told = tuple(
        PodCondition(type=one["value"]["type"], status="True")
        for one in wanted.operations
        if one["op"] == "add"
    )
    made.things[made.things.index(pod)] = wire.replace(
        pod, status=wire.replace(pod.status, conditions=(*pod.status.conditions, *told))
    )

    assert not [one for one in planned(made).actions() if getattr(one, "reason", "") == "SlurmState"]


def test_a_worker_that_has_not_registered_is_looked_at_again():
    assert planned(seen(registered=False, ready_for=timedelta(seconds=10))).look_again == timedelta(
        seconds=20
    )


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        pytest.param(seen(machine("n1"), pinToNode=True), {"0": "n1"}, id="where it is"),
        pytest.param(seen(machine("n1"), machine("n9"), pinToNode=True, status={"ordinal_to_node": {"3": "n9"}}), {"0": "n1", "3": "n9"}, id="one that is away keeps its machine"),
        pytest.param(seen(machine("n1"), pinToNode=True, status={"ordinal_to_node": {"3": "n9"}}), {"0": "n1"}, id="until the machine is gone"),
        pytest.param(seen(machine("n1"), machine("n9"), pinToNode=True, status={"ordinal_to_node": {"3": "n9"}}, template={"spec": {"nodeSelector": {"gpu": "yes"}}}), {"0": "n1"}, id="or no longer fits"),
        pytest.param(seen(machine("n1"), status={"ordinal_to_node": {"3": "n9"}}), {}, id="not pinned"),
        pytest.param(seen(machine("n1"), pinToNode=True, status={"ordinal_to_node": {"3": "n1"}}), {"0": "n1"}, id="who is there keeps it"),
        pytest.param(seen(machine("n1"), machine("n9"), pinToNode=True, status={"ordinal_to_node": {"10": "n9", "3": "n9"}}), {"0": "n1", "3": "n9"}, id="of two that are away, the lower number"),
        pytest.param(seen(machine("n1"), pinToNode=True, oversubscribeNode=True, status={"ordinal_to_node": {"3": "n1"}}), {"0": "n1", "3": "n1"}, id="machines may be shared"),
        pytest.param(seen(machine("n1"), machine("n9", taints=[("x", "NoSchedule")]), pinToNode=True, status={"ordinal_to_node": {"3": "n9"}}), {"0": "n1", "3": "n9"}, id="tainted: remembered until the taint is gone"),
    ],
)  # fmt: skip
def test_numbers_keep_their_machines(made, expected):
    assert report(made).fields["ordinalToNode"] == expected


def test_intents_whose_hashes_meet_are_told_apart_and_counted():
    spec = nodeset(replicas=1)
    first = revisions.current(spec, [])
    other = nodeset(replicas=1, slurmd={"image": "other"})
    squatter = revision_of(other)
    taken = wire.replace(
        squatter.metadata, labels={**squatter.metadata.labels, names.LABEL_REVISION: first.hash}
    )

    second = revisions.current(spec, [Child(metadata=taken, body=squatter.body)])

    assert second.is_new
    assert second.hash != first.hash
    assert second.collisions == 1


def test_collisions_are_remembered():
    assert report(seen(status={"collision_count": 2})).fields["collisionCount"] == 2


def test_a_restarted_operator_says_the_same_about_a_slurm_that_is_away():
    """It only knows that it could not ask since its own start; with that in the words it would write them again."""
    said = set()
    for since in (NOW - timedelta(hours=1), NOW):
        made = seen()
        made.slurms[CONTROLLER] = Unreachable(since=since, why="no answer")
        said |= {c.message for c in report(made).conditions if c.reason == "SlurmUnreachable"}

    assert len(said) == 1
