"""Workers on their machine's own network."""

from datetime import timedelta

import pytest

from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.manifests.objects import Pod, PodSpec
from slurm_operator.manifests.worker_names import slurm_node_name
from slurm_operator.reconcilers.nodeset.creation.pod import Slot, WorkerPods
from slurm_operator.reconcilers.nodeset.creation.revisions import Revision
from slurm_operator.safety.gate import is_record_of
from testing.workers import STARTED, controller, nodeset, slurm_node, worker


def pod(slot: Slot, **template) -> dict:
    made = nodeset(template={"spec": template}, slurmd={"args": ["-v"]})
    return WorkerPods(made, controller(), Revision("r1", 1, is_new=True)).pod(slot)["spec"]


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


def on_network_of(machine: str, pod: Pod) -> Pod:
    spec = PodSpec(node_name=machine, hostname=pod.spec.hostname, host_network=True)
    return wire.replace(pod, spec=spec)


NUMBERED_POD, DAEMON_POD = worker(0), worker(0, mode="DaemonSet", hostname="rack1")
ROUTED = "10.244.1.1"  # The machine's end of the pods' bridge, and not what Kubernetes calls its address.


@pytest.mark.parametrize(
    ("there", "address", "is_its_own"),
    [
        pytest.param(on_network_of("rack1.example.org", NUMBERED_POD), ROUTED, True, id="named as its machine: by any way"),
        pytest.param(on_network_of("rack1", DAEMON_POD), ROUTED, True, id="a daemon that is, too"),
        pytest.param(on_network_of("rack1.example.org", DAEMON_POD), ROUTED, False, id="a short name may be that of two machines"),
        pytest.param(on_network_of("rack1.example.org", DAEMON_POD), DAEMON_POD.status.pod_ip, True, id="unless the address is right"),
        pytest.param(NUMBERED_POD, ROUTED, False, id="on a network of its own: another pod's"),
        pytest.param(on_network_of("rack1.example.org", NUMBERED_POD), "", False, id="nobody has registered"),
    ],
)  # fmt: skip
def test_the_address_that_a_worker_registers_from(there, address, is_its_own):
    record = slurm_node(there, "IDLE")
    of_before = wire.replace(record, address=address, slurmd_start_time=STARTED - timedelta(seconds=1))

    assert is_record_of(wire.replace(record, address=address), there) is is_its_own
    assert not is_record_of(of_before, there), "an older slurmd was of an earlier pod"


def test_the_record_is_looked_for_under_the_name_of_the_machine():
    assert slurm_node_name(NUMBERED_POD) == "gpu-0"
    assert slurm_node_name(on_network_of("rack1.example.org", NUMBERED_POD)) == "rack1.example.org"
