"""What a change of a SlurmCluster or of its NodeSet leads to, played through by `kubectl slurm plan`."""

from functools import cache

import pytest

from slurm_operator import wire
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.insight.forecast.outcome import Forecast, forecast
from slurm_operator.insight.text.plan_text import text
from slurm_operator.insight.world_snapshot import Picture
from slurm_operator.manifests.meta import Manifest
from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurm.snapshot import Snapshot, jobs_by_node
from testing.pictures import (
    NS,
    OF_BOTH_GROUPS,
    empty_of_both_groups,
    existing,
    job,
    state,
    working_slurmcluster,
)
from testing.slurmclusters import OURS, manifest, read, with_our_images

SLURM = ObjectKey(NS, "smallest")
IMAGE = OURS.format(daemon="slurmd").rpartition(":")[0]


def cluster(**changes) -> Manifest:
    return with_our_images(manifest("SlurmCluster", "smallest", spec__slurmNodes__login__size=1, **changes))


def nodeset(tag: str = "26.05-ubuntu26.04", **changes) -> Manifest:
    image = {"repository": IMAGE, "tag": tag}
    settings = {"spec__clusterName": "smallest", "spec__replicas": 2, "spec__slurmd__image": image}
    return manifest("NodeSet", "cpu", **{**settings, **changes})


@cache
def _running() -> Picture:
    return existing(working_slurmcluster(nodeset(), cluster()), OF_BOTH_GROUPS)


def running(*jobs: SlurmJob) -> Picture:
    """With these jobs on its workers."""
    made = _running().copy()
    slurm = made.slurms[SLURM]
    assert isinstance(slurm, Snapshot)
    found = {one.job_id: one for one in jobs}
    busy = {name for one in jobs for name in one.nodes}
    nodes = {
        name: wire.replace(node, state=state("ALLOCATED")) if name in busy else node
        for name, node in slurm.nodes.items()
    }
    made.slurms[SLURM] = wire.replace(slurm, nodes=nodes, jobs=found, jobs_by_node=jobs_by_node(jobs))
    return made


def planned(now: Picture, *bodies: Manifest) -> Forecast:
    then = now.copy()
    for body in bodies:
        wanted = read(body)
        old = now.get(type(wanted), NS, wanted.metadata.name)
        if old is not None:
            meta = wire.replace(old.metadata, generation=old.metadata.generation + 1)
            wanted = wire.replace(old, spec=wanted.spec, metadata=meta)
        then.put(wanted)
    return forecast(now, then, OF_BOTH_GROUPS)


def named(effects) -> list[str]:
    return [f"{effect.kind} {effect.name}" for effect in effects]


@pytest.mark.parametrize("body", [cluster(), nodeset()])
def test_the_same_changes_nothing(body):
    assert text(planned(running(), body)).plain.split("\n")[0].strip() == "This changes nothing."


def test_fewer_workers_wait_for_the_job_on_the_last_one():
    found = planned(running(job(7, "cpu-1", name="train")), nodeset(spec__replicas=1))

    assert named(found.deleted) == ["Pod cpu-1", "SlurmNode cpu-1"]
    assert [one.job_id for one in found.waited_for] == [7]
    assert found.restarted == found.created == found.ended == ()
    assert "is waited for" in text(found).plain


def test_another_image_restarts_workers_and_nothing_else():
    found = planned(running(job(7, "cpu-1", "cpu-0")), nodeset("next"))

    assert named(found.restarted) == ["Pod cpu-0", "Pod cpu-1"]
    assert [one.job_id for one in found.waited_for] == [7]


def test_a_line_of_slurm_conf_restarts_nothing():
    found = planned(running(), cluster(spec__customSlurmConfig="MinJobAge=400\n"))

    assert "ConfigMap smallest-slurm-configs" in named(found.changed)
    assert found.restarted == found.created == found.deleted == ()


def test_maintenance_takes_workers_and_login_pods_when_jobs_are_done():
    found = planned(running(job(7, "cpu-1")), cluster(spec__maintenance="downscale"))

    pods = [name for name in named(found.deleted) if name.startswith("Pod")]
    assert pods == ["Pod cpu-0", "Pod cpu-1", "Pod smallest-login-0"]
    assert [one.job_id for one in found.waited_for] == [7]
    assert found.ended == ()


def test_the_first_ephemeral_nodeset_restarts_slurmctld_and_keeps_every_worker():
    found = planned(running(job(7, "cpu-1")), nodeset(spec__ephemeralNodes=True))

    assert "NodeSetPowerState.slurm.nebius.ai cpu" in named(found.created)
    assert named(found.restarted) == ["Pod smallest-controller-0"]
    assert found.deleted == ()


def test_a_new_cluster_is_planned_to_its_first_workers():
    """The Job that populates its shared root has succeeded by then."""
    found = planned(empty_of_both_groups(), cluster(), nodeset())

    made = named(found.created)
    assert {"Job smallest-populate-jail", "Pod cpu-0", "Pod cpu-1", "Pod smallest-login-0"} <= {*made}
    assert found.stuck == ()
