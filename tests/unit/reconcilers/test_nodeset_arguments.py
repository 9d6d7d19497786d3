"""What slurmd is started with, and what of it a worker is compared by later."""

import pytest

from slurm_operator.reconcilers.nodeset import revisions
from slurm_operator.reconcilers.nodeset.pod import Slot, WorkerPods, resources_digest
from support.workers import controller, nodeset


def slurmd(**spec) -> dict:
    spec = WorkerPods(nodeset(**spec), controller(), "r1").pod(Slot("gpu-0", "gpu-0", ordinal=0))["spec"]
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
