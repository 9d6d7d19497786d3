"""Which parts, objects and files a SlurmCluster becomes."""

import pytest

from slurm_operator.api.nebius import NodeSet, SlurmCluster
from slurm_operator.api.schema import codec
from slurm_operator.api.schema.problems import References, Severity
from slurm_operator.api.slinky.nodeset import NodeSet as WorkerPart
from slurm_operator.manifests import kinds
from slurm_operator.plan.actions import Apply, Create, GenerateSecret
from slurm_operator.slurm.conf import grammar
from testing.children import with_config
from testing.golden import assert_golden
from testing.slurmclusters import (
    decide,
    manifest,
    populated,
    read,
    settled,
    with_our_images,
    world,
)

SMALLEST = manifest("SlurmCluster", "smallest")
PARTITIONS = {
    "configType": "structured",
    "partitions": [
        {"name": "main", "isAll": True, "config": "Default=YES"},
        {"name": "gpu", "nodeSetRefs": ["gpu", "absent"], "config": "MaxTime=1-0"},
        {"name": "empty", "nodeSetRefs": ["absent"]},
        {"name": "none"},
    ],
}


def nodeset(name: str, cluster: str) -> dict:
    found = manifest("NodeSet", name)
    found["spec"]["clusterName"] = cluster
    return found


CASES = {
    "smallest": [SMALLEST],
    "whole": [manifest("SlurmCluster", "whole")],
    "older": [manifest("SlurmCluster", "older", spec__maintenance="none")],
    "typed": [manifest("SlurmCluster", "typed", spec__slurmNodes__login__sshRootPublicKeys=[])],
    "ours": [with_our_images(manifest("SlurmCluster", "whole")), nodeset("cpu", "whole")],
    "structured": [
        manifest("SlurmCluster", "smallest", spec__partitionConfiguration=PARTITIONS),
        nodeset("gpu", "smallest"),
    ],
}


def made(name: str) -> list[dict]:
    """What the first pass makes, its Secrets included."""
    there = world(*CASES[name])
    there.served |= {kinds.POD_MONITOR, kinds.APP_ARMOR_PROFILE}
    if name in ("whole", "ours"):
        with_config(there, "my-sshd", sshd_config="Port 22\n")
    for body in CASES[name]:
        if body["kind"] == "NodeSet":
            settled(there, (NodeSet, body["metadata"]["name"]), rounds=1)
    _, plan = decide(there, SlurmCluster, CASES[name][0]["metadata"]["name"])
    return [a.manifest for a in plan.actions() if isinstance(a, Apply | Create | GenerateSecret)]


@pytest.mark.parametrize("name", CASES)
def test_the_parts_and_files_of_a_slurmcluster(name):
    assert_golden("nebius/slurmcluster", name, made(name))


@pytest.mark.parametrize("name", CASES)
def test_slurm_takes_the_lines_and_files_of_a_slurmcluster(name):
    found = made(name)
    [controller] = [one for one in found if one["kind"] == "Controller"]
    [accounting] = [one for one in found if one["kind"] == "Accounting"] or [{"spec": {"extraConf": ""}}]
    [files] = [one["data"] for one in found if "plugstack.conf" in one.get("data", {})]
    texts = {
        "slurm.conf": controller["spec"]["extraConf"],
        "slurmdbd.conf": accounting["spec"]["extraConf"],
        **files,
    }

    assert [str(fault) for fault in grammar.problems(texts) if fault.is_fatal] == []


@pytest.mark.parametrize("name", CASES)
def test_every_part_reads_back_without_a_problem(name):
    """What the engine would refuse must not be written in the first place."""
    parts = [one for one in made(name) if one["kind"] in ("Controller", "Accounting", "RestApi", "LoginSet")]
    for body in parts:
        found = read(body)
        problems = [p for p in found.problems(None, References()) if p.severity is Severity.ERROR]
        assert problems == [], body["kind"]


def test_a_cluster_that_says_what_is_the_default_anyway_gives_the_same_parts():
    """The API server writes defaults into the object; none of them may find its way into the parts."""
    short = world(SMALLEST)
    long = world(SMALLEST)
    long.things = [codec.read(SlurmCluster, codec.plain(thing)) for thing in long.things]

    assert decide(short, SlurmCluster, "smallest")[1] == decide(long, SlurmCluster, "smallest")[1]


def test_what_is_there_is_not_written_again():
    there = world(with_our_images(SMALLEST), nodeset("cpu", "smallest"))
    settled(there, (SlurmCluster, "smallest"), (NodeSet, "cpu"))
    populated(there, "smallest")
    with_config(there, "smallest-slurm-configs-good", slurm_conf="ClusterName=smallest\n")
    settled(there, (SlurmCluster, "smallest"), (NodeSet, "cpu"))

    _, plan = decide(there, SlurmCluster, "smallest")
    _, of_nodeset = decide(there, NodeSet, "cpu")

    assert [a.message for a in plan.actions() if a.reason != "Held"] == []
    assert [a.message for a in of_nodeset.actions() if a.reason != "Held"] == []


def test_files_reach_the_root_only_from_what_slurmctld_runs_with():
    writer = {"container": {"image": "writer:1"}, "serviceAccountName": "writer"}
    body = manifest("SlurmCluster", "smallest", spec__sConfigController=writer)
    there = settled(world(body), (SlurmCluster, "smallest"))
    before = [
        a.manifest["kind"]
        for a in decide(there, SlurmCluster, "smallest")[1].actions()
        if isinstance(a, Apply)
    ]
    assert "JailedConfig" not in before

    with_config(there, "smallest-slurm-configs-good", slurm_conf="x\n", cgroup_conf="y\n")
    _, plan = decide(there, SlurmCluster, "smallest")
    [jailed] = [a.manifest for a in plan.actions() if isinstance(a, Apply)]

    assert jailed["spec"] == {
        "configMap": {"name": "smallest-slurm-configs-good"},
        "items": [
            {"key": "cgroup.conf", "path": "/etc/slurm/cgroup.conf"},
            {"key": "slurm.conf", "path": "/etc/slurm/slurm.conf"},
        ],
        "updateActions": ["Reconfigure"],
    }
    assert jailed["metadata"]["labels"]["slurm.nebius.ai/jailed-aggregation"] == "common"


def test_the_older_workers_become_a_nodeset_that_makes_a_part():
    there = settled(world(*CASES["older"]), (SlurmCluster, "older"))
    with_config(there, "supervisord", supervisord_conf="[supervisord]\n")
    with_config(there, "worker-sshd", sshd_config="Port 22\n")
    settled(there, (NodeSet, "worker"))
    part = there.get(WorkerPart, "ns", "worker")

    assert part.spec.controller == "older"
    assert part.spec.records == "static"
    assert part.spec.extra_conf == "Feature=low"
