"""A SlurmCluster and its NodeSet explained as a Cluster and its parts are."""

from functools import cache

import pytest

from slurm_operator import wire
from slurm_operator.api.nebius import SlurmCluster
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.insight.clusters import clusters, clusters_named
from slurm_operator.insight.evaluation import verdicts
from slurm_operator.insight.explain.chain import NotThere
from slurm_operator.insight.status.cluster_status import status
from slurm_operator.insight.text.explain_text import text
from slurm_operator.insight.text.status_text import screen
from slurm_operator.insight.world_snapshot import Picture
from slurm_operator.manifests.meta import Manifest
from slurm_operator.slurm.snapshot import Snapshot
from testing import pictures
from testing.pictures import OF_BOTH_GROUPS, one_of, retold, state, waiting, working_slurmcluster
from testing.slurmclusters import OURS, manifest, with_our_images
from testing.texts import assert_text

CLUSTER, WORKERS = "slurmcluster/smallest", "nodesets.slurm.nebius.ai/cpu"
PARTS = "nodesets.slinky.slurm.net/cpu"


def cluster() -> Manifest:
    return with_our_images(manifest("SlurmCluster", "smallest", spec__slurmNodes__login__size=1))


def nodeset(**changes) -> Manifest:
    image = {"repository": OURS.format(daemon="slurmd").rpartition(":")[0], "tag": "26.05-ubuntu26.04"}
    settings = {"spec__clusterName": "smallest", "spec__replicas": 2, "spec__slurmd__image": image}
    return manifest("NodeSet", "cpu", **{**settings, **changes})


@cache
def _working() -> Picture:
    return working_slurmcluster(nodeset(), cluster())


def working() -> Picture:
    return _working().copy()


def explanation(made: Picture, what: str):
    return pictures.explanation(made, what, reconcilers_=OF_BOTH_GROUPS)


def again(made: Picture) -> Picture:
    return retold(made, reconcilers_=OF_BOTH_GROUPS)


def crashing_slurmctld() -> Picture:
    made = working()
    waiting(
        made,
        one_of(made, "smallest-controller"),
        "slurmctld",
        "CrashLoopBackOff",
        last="fatal: no such plugin",
    )
    return again(made)


def bad_image_of_workers() -> Picture:
    made = working()
    waiting(made, "cpu-0", "slurmd", "ImagePullBackOff", message="no such image")
    return again(made)


def populating() -> Picture:
    return working_slurmcluster(nodeset(), cluster(), is_populated=False)


def without_cluster() -> Picture:
    return working_slurmcluster(nodeset(spec__clusterName="another"), cluster())


def drained_workers() -> Picture:
    made = working()
    key = ObjectKey("ns", "smallest")
    slurm = made.slurms[key]
    assert isinstance(slurm, Snapshot)
    nodes = {
        name: wire.replace(one, state=state("IDLE", "DRAIN"), reason="bad disk", reason_set_by="root")
        for name, one in slurm.nodes.items()
    }
    assert len(nodes) == 2
    made.slurms[key] = wire.replace(slurm, nodes=nodes)
    return again(made)


@pytest.mark.parametrize(
    ("made", "what", "cause", "advice"),
    [
        pytest.param(crashing_slurmctld, CLUSTER, "no such plugin", "logs", id="slurmctld-crash"),
        pytest.param(bad_image_of_workers, CLUSTER, "no such image", "in NodeSet.slurm.nebius.ai cpu", id="bad-image"),
        pytest.param(bad_image_of_workers, WORKERS, "no such image", "in NodeSet.slurm.nebius.ai cpu", id="bad-image-workers"),
        pytest.param(bad_image_of_workers, PARTS, "no such image", "in NodeSet.slurm.nebius.ai cpu", id="bad-image-part"),
        pytest.param(without_cluster, WORKERS, "There is no SlurmCluster 'another'", "spec.clusterName", id="no-cluster"),
        pytest.param(drained_workers, CLUSTER, "bad disk", "undrain", id="drained"),
        pytest.param(drained_workers, WORKERS, "bad disk", "undrain", id="drained-workers"),
    ],
)  # fmt: skip
def test_the_cause_and_the_way_out_of_what_ails_a_slurmcluster(made, what, cause, advice, request):
    found = explanation(made(), what)
    told = text(found).plain

    assert_text(f"explain/slurmcluster-{request.node.callspec.id}.txt", told)
    assert not found.is_well
    assert cause in told
    assert found.remedy is not None
    assert advice in f"{found.remedy.advice} {found.remedy.commands}"


@pytest.mark.parametrize("what", [CLUSTER, WORKERS, PARTS])
def test_a_slurmcluster_in_which_everything_works_is_well(what):
    found = explanation(working(), what)

    assert found.is_well, text(found).plain


@pytest.mark.parametrize("what", [CLUSTER, WORKERS])
def test_a_root_that_is_being_populated_is_no_trouble(what):
    found = explanation(populating(), what)

    assert found.is_well, text(found).plain
    assert "shared root" in text(found).plain


def test_nodesets_of_one_name_are_one_where_the_second_is_made_from_the_first():
    made = working()

    assert explanation(made, "nodeset/cpu").subject == "NodeSet.slurm.nebius.ai cpu"


def test_a_slurmcluster_that_is_not_there_is_named():
    with pytest.raises(NotThere, match="smallest"):
        explanation(working(), "slurmcluster/smalest")


def screen_of(made: Picture) -> str:
    judged = list(verdicts(OF_BOTH_GROUPS, made))
    found = [status(one, judged) for one in clusters(made)]
    return screen(found, [], made.now, "").plain


def test_a_slurmcluster_is_one_cluster_on_the_screen():
    made = working()
    [one] = clusters(made)

    assert isinstance(one.about, SlurmCluster)
    assert [part.metadata.name for part in one.node_sets] == ["cpu"]
    assert clusters_named(clusters(made), "slurmcluster/smallest") == [one]
    assert_text("status/slurmcluster.txt", screen_of(made))


def test_the_screen_says_why_a_slurmcluster_is_not_ready_and_what_it_waits_for():
    assert_text("status/slurmcluster-populating.txt", screen_of(populating()))
    assert "slurmctld" in screen_of(crashing_slurmctld())
