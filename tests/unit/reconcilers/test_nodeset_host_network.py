"""Workers on their machine's own network."""

import pytest

from slurm_operator import wire
from slurm_operator.api import names
from slurm_operator.manifests.objects import PodSpec
from slurm_operator.manifests.worker_names import slurm_node_name
from slurm_operator.reconcilers.nodeset.pod import Slot, WorkerPods
from support.workers import controller, nodeset, worker


def pod(slot: Slot, **template) -> dict:
    made = nodeset(template={"spec": template}, slurmd={"args": ["-v"]})
    return WorkerPods(made, controller(), "r1").pod(slot)["spec"]


def slurmd(spec: dict) -> dict:
    [found] = [container for container in spec["containers"] if container["name"] == "slurmd"]
    return found


NUMBERED = Slot("gpu-0", "gpu-0", ordinal=0)
DAEMON = Slot("gpu-1a2b", "rack1", kube_node="rack1.example.org")


@pytest.mark.parametrize(
    ("slot", "path"),
    [
        pytest.param(NUMBERED, "spec.nodeName", id="a numbered one is called like its machine"),
        pytest.param(
            DAEMON, f"metadata.labels['{names.LABEL_POD_HOSTNAME}']", id="a daemon as it would be anyway"
        ),
    ],
)
def test_slurmd_registers_under_the_name_that_the_operator_looks_for(slot, path):
    spec = pod(slot, hostNetwork=True)
    [name] = [env for env in slurmd(spec)["env"] if env["name"] == "SLURMD_NODENAME"]

    assert name["valueFrom"]["fieldRef"]["fieldPath"] == path
    assert slurmd(spec)["args"][-2:] == ["-N", "$(SLURMD_NODENAME)"]
    assert spec["dnsPolicy"] == "ClusterFirstWithHostNet", "else slurmctld's name does not resolve"


def test_the_users_dns_policy_stands():
    assert pod(NUMBERED, hostNetwork=True, dnsPolicy="Default")["dnsPolicy"] == "Default"


def test_on_a_network_of_its_own_nothing_of_this_is_there():
    spec = pod(NUMBERED)

    assert "dnsPolicy" not in spec
    assert "-N" not in slurmd(spec)["args"]


def test_the_record_is_looked_for_under_the_name_of_the_machine():
    there = worker(0, on="rack1.example.org")
    on_host = wire.replace(
        there, spec=PodSpec(node_name="rack1.example.org", hostname="gpu-0", host_network=True)
    )

    assert slurm_node_name(there) == "gpu-0"
    assert slurm_node_name(on_host) == "rack1.example.org"
