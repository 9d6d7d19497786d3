"""slurmctld starts on files of ours, with the jobs of Soperator's: what may change in them, and what waits."""

from collections.abc import Mapping

import pytest
from test_takeover import MINE, NAME, marked, there_is, worker

from slurm_operator.api.nebius import NodeSet, SlurmCluster, names
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.manifests import kinds
from slurm_operator.manifests.objects import ConfigMap
from slurm_operator.plan.actions import Apply, Wait
from slurm_operator.reconcilers.controller import RECONCILER
from slurm_operator.reconcilers.controller.annotations import WRITTEN_AT
from slurm_operator.reconcilers.controller.configuration.files import wanted_files
from slurm_operator.reconcilers.nebius.shared import takeover
from testing import children
from testing.slurmclusters import NOW, carried_out, decide
from testing.soperator import SLURM_FILES

BASE = "slurm_base.conf.noedit"
CONFIGS = names.slurm_configs(NAME)


def put_files(there, texts: Mapping[str, str], **notes: str) -> None:
    meta = {"name": CONFIGS, "namespace": "ns", "annotations": notes}
    children.put(there, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": dict(texts)})


def with_parts(texts: Mapping[str, str] = SLURM_FILES, *, is_taken_over: bool = True, **notes: str):
    """slurmctld of Soperator has ended, and the parts are made on what it left."""
    pods = [marked(worker(n), owner=MINE) for n in range(2)] if is_taken_over else []
    there = there_is(*pods, asked=is_taken_over, spec__replicas=2)
    orphans = there_is(*(marked(worker(n)) for n in range(2)), spec__replicas=2)
    carried_out(there, decide(orphans, NodeSet, "cpu")[1])
    put_files(there, texts, **notes)
    for _ in range(3):
        carried_out(there, decide(there, SlurmCluster, NAME)[1])
    for child in there.children_[kinds.CONFIG_MAP]:
        found = ConfigMap(metadata=child.metadata, data=child.body.get("data", {}))
        there.named[ConfigMap, ObjectKey("ns", child.metadata.name)] = found
    return there


def seen(there):
    found = RECONCILER.observe(ObjectKey("ns", NAME), there)
    assert found is not None
    return found


def waits(there) -> dict[str, str]:
    plan = RECONCILER.decide(seen(there), NOW)
    return {one.reason: one.message for one in plan.actions() if isinstance(one, Wait)}


def config_waits(there) -> dict[str, str]:
    lanes = (lane for lane in RECONCILER.decide(seen(there), NOW).lanes if lane.name == "config")
    return {one.reason: one.message for lane in lanes for one in lane.actions() if isinstance(one, Wait)}


def test_what_differs_from_soperators_files_costs_no_job():
    assert "JobsAtStake" not in config_waits(with_parts())


def test_lines_of_nodes_keep_the_size_that_jobs_were_given():
    """Soperator's line says no CPUs. Ours would, and slurmctld would end the jobs."""
    there = with_parts()
    [line] = [
        one
        for one in wanted_files(seen(there)).texts["slurm.conf"].splitlines()
        if one.startswith("NodeName=")
    ]
    assert line.startswith("NodeName=cpu-[0-1] ")
    assert "CPUs" not in line
    assert "keep their size" in waits(there)["JobsAtStake"]

    cold = with_parts(is_taken_over=False)
    assert "CPUs=4" in wanted_files(seen(cold)).texts["slurm.conf"], (
        "without workers nobody has anything to lose"
    )


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        pytest.param("PartitionName=hidden", "PartitionName=gone", "Without partition gone", id="a partition is gone"),
        pytest.param("SelectType=select/cons_tres", "SelectType=select/linear", "If SelectType changes", id="how nodes are shared"),
        pytest.param("CredType=cred/munge", "CredType=cred/slurm", "If CredType changes", id="what steps are trusted by"),
        pytest.param("SlurmdSpoolDir=/var/spool/slurmd", "SlurmdSpoolDir=/var/spool/other", "If SlurmdSpoolDir changes", id="where slurmd finds its steps"),
        pytest.param("NodeName=cpu-[0-1]", "NodeName=cpu-[0-2]", "Without node cpu-2", id="a node is gone"),
    ],
)  # fmt: skip
def test_slurmctld_does_not_start_where_jobs_would_end(old, new, says):
    changed = {**SLURM_FILES, BASE: SLURM_FILES[BASE].replace(old, new)}
    assert changed != SLURM_FILES
    # Made with the files as they were; else the SlurmCluster itself would have waited for some of these.
    there = with_parts()
    put_files(there, changed)
    assert says in config_waits(there)["JobsAtStake"]
    assert "cannot be seen" in config_waits(there)["JobsAtStake"]


def test_the_cluster_waits_while_a_partition_of_soperators_would_be_gone():
    changed = {**SLURM_FILES, BASE: SLURM_FILES[BASE].replace("PartitionName=hidden", "PartitionName=gone")}
    there = with_parts(changed)
    [waiting] = [one for one in decide(there, SlurmCluster, NAME)[1].actions() if isinstance(one, Wait)]
    assert waiting.reason == takeover.REFUSED
    assert "gone" in waiting.message


@pytest.mark.parametrize("is_taken_over", [True, False], ids=["with workers", "without"])
def test_slurmctld_is_not_started_on_files_of_somebody_else(is_taken_over):
    """They name another directory for its state: it would find none, and forget every job."""
    made = with_parts(is_taken_over=is_taken_over)
    for _ in range(3):
        children.carried_out(made, RECONCILER.decide(seen(made), NOW))
    assert made.children_.get(kinds.STATEFUL_SET, []) == []

    ours = wanted_files(seen(made)).texts
    put_files(made, ours, **{WRITTEN_AT: "2026-01-01T12:00:00+00:00"})
    assert "StatefulSet" in _applied(made)


def _applied(there) -> list[str]:
    plan = RECONCILER.decide(seen(there), NOW)
    return [one.manifest["kind"] for one in plan.actions() if isinstance(one, Apply)]
