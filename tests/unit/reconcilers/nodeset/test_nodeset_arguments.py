"""What slurmd is started with, and what of it a worker is compared by later."""

import pytest

from slurm_operator.api.shared import names
from slurm_operator.reconcilers.nodeset.creation import revisions
from slurm_operator.reconcilers.nodeset.creation.pod import (
    RESOURCES_DIGEST,
    Slot,
    WorkerPods,
    resources_digest,
)
from slurm_operator.reconcilers.nodeset.creation.revisions import Revision
from testing.workers import controller, nodeset, revision_of, told, worker, world


def slurmd(**spec) -> dict:
    spec = WorkerPods(nodeset(**spec), controller(), Revision("r1", 1, is_new=True)).pod(
        Slot("gpu-0", "gpu-0", ordinal=0)
    )["spec"]
    return next(container for container in spec["containers"] if container["name"] == "slurmd")


@pytest.mark.parametrize(
    ("extra", "conf"),
    [
        pytest.param("", "Features=gpu", id="one item needs no quotes"),
        pytest.param(
            "Gres=gpu:2 Weight=10", "'Features=gpu Gres=gpu:2 Weight=10'", id="several are one word"
        ),
        pytest.param("Gres=$(reboot)", "'Features=gpu Gres=$(reboot)'", id="nothing in it is run"),
    ],
)
def test_the_items_of_a_worker_are_one_word_for_a_shell(extra, conf):
    args = slurmd(extraConf=extra, slurmd={"args": ["-v"]})["args"]

    assert args == ["-Z", "--conf-server", "slurm-controller.ns:6817", "--conf", conf, "-v"]


def test_how_arguments_are_written_makes_no_worker_outdated():
    """Both were noted by earlier versions, and whoever differs is replaced."""
    made = nodeset(
        extraConf="Gres=gpu:2 Weight=10", slurmd={"resources": {"limits": {"cpu": "4", "memory": "8Gi"}}}
    )

    assert resources_digest(made) == "36359126a6056c64"
    assert revisions.current(made, ()).hash == "fbba5bc06b"


@pytest.mark.parametrize(
    ("own", "pods", "said"),
    [
        pytest.param({}, {}, ("0", "0"), id="no limits"),
        pytest.param({"cpu": "4", "memory": "8Gi"}, {}, ("4", "8192"), id="whole CPUs"),
        pytest.param({"cpu": "500m"}, {}, ("1", "0"), id="half a CPU is not no limit"),
        pytest.param({"cpu": 2.5}, {"cpu": "8"}, ("3", "0"), id="the container's own count"),
        pytest.param({"memory": "1Gi"}, {"cpu": "100m"}, ("1", "1024"), id="the pod's where it has none"),
    ],
)
def test_a_worker_knows_what_it_is_limited_to(own, pods, said):
    made = slurmd(slurmd={"resources": {"limits": own}}, template={"spec": {"resources": {"limits": pods}}})
    environment = {item["name"]: item.get("value") for item in made["env"]}

    assert (environment["POD_CPUS"], environment["POD_MEMORY"]) == said


def test_a_worker_that_was_made_with_another_count_of_its_cpus_stays():
    half = nodeset(replicas=1, slurmd={"resources": {"limits": {"cpu": "500m"}}})
    hash_ = revision_of(half).metadata.labels[names.LABEL_REVISION]
    there = worker(0, revision=hash_, annotations={RESOURCES_DIGEST: "of-an-earlier-version"})

    assert told(world(half, controller(), there, revisions_=[revision_of(half)])) == []
