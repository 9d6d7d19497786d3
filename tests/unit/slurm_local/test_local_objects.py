"""Objects and files that are written for the cluster's components."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from slurm_local import demo_cluster, home, slurm_cluster
from slurm_local.kubernetes import dns, kwok_nodes, volumes
from slurm_local.kubernetes.commands import Certificates
from slurm_local.kubernetes.nodes import NodeFiles
from slurm_local.machine.network import Link, NodeNetwork
from slurm_operator import wire
from slurm_operator.api.schema.problems import References
from slurm_operator.api.slinky.cluster import Cluster

CLAIM = {
    "metadata": {"name": "data", "namespace": "slurm", "uid": "u-1"},
    "spec": {
        "storageClassName": volumes.CLASS,
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "1Gi"}},
    },
}


def claim(**spec: str) -> dict[str, Any]:
    return {**CLAIM, "spec": {**CLAIM["spec"], **spec}}


@pytest.mark.parametrize(
    ("asked", "ours"),
    [
        pytest.param(claim(), True, id="ours and waiting"),
        pytest.param(claim(volumeName="pvc-u-1"), False, id="bound already"),
        pytest.param(claim(storageClassName="other"), False, id="another class"),
        pytest.param(claim(storageClassName=""), False, id="no dynamic volume wanted"),
    ],
)
def test_only_waiting_claims_of_our_class_get_a_volume(asked: dict[str, Any], ours: bool) -> None:
    assert volumes.wants_volume(asked) is ours


def test_a_volume_is_reserved_for_its_claim() -> None:
    made: Any = volumes.volume(CLAIM, Path("/volumes"))

    assert made["spec"]["claimRef"]["uid"] == "u-1"
    assert made["spec"]["hostPath"]["path"] == "/volumes/pvc-u-1"
    assert made["spec"]["accessModes"] == ["ReadWriteMany"]


@pytest.mark.parametrize(
    ("phase", "provisioner", "done"),
    [
        ("Released", volumes.PROVISIONER, True),
        ("Bound", volumes.PROVISIONER, False),
        ("Released", "x", False),
    ],
)
def test_only_our_released_volumes_are_deleted(phase: str, provisioner: str, done: bool) -> None:
    annotations = {"pv.kubernetes.io/provisioned-by": provisioner}

    assert volumes.is_done({"metadata": {"annotations": annotations}, "status": {"phase": phase}}) is done


def test_a_volume_somebody_made_by_hand_is_not_ours() -> None:
    assert not volumes.is_done({"metadata": {}, "status": {"phase": "Released"}})


@given(st.integers(0, 255), st.integers(0, 255))
def test_links_share_neither_device_nor_address(one: int, other: int) -> None:
    first, second = Link(one), Link(other)

    assert len(first.device) <= 15, "the kernel's limit"
    if one != other:
        assert not {first.device, first.here, first.there} & {second.device, second.here, second.there}


def test_only_the_first_node_lives_in_the_cluster_s_own_namespace() -> None:
    assert [NodeNetwork(number).namespace for number in (1, 2, 3)] == [None, "node-2", "node-3"]


def test_nodes_share_no_path_no_group_and_no_range(tmp_path: Path) -> None:
    first, second = (NodeFiles("demo", NodeNetwork(n), tmp_path / str(n)) for n in (1, 2))

    assert first.socket != second.socket
    assert first.cgroup != second.cgroup
    assert first.network.pods != second.network.pods


def test_a_kubelet_trusts_only_our_authority_and_keeps_its_images(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "pki", addresses=())
    node = NodeFiles("demo", NodeNetwork(2), tmp_path / "node-2")

    node.write(certificates, "https://172.30.0.1:6443")

    config = yaml.safe_load((tmp_path / "node-2" / "kubelet.yaml").read_text())
    assert config["authentication"]["anonymous"]["enabled"] is False
    assert config["authentication"]["x509"]["clientCAFile"] == str(certificates.ca)
    assert config["imageGCHighThresholdPercent"] == 100
    assert config["cgroupRoot"] == "/slurm-operator/demo/node-2"
    kubeconfig = yaml.safe_load((tmp_path / "node-2" / "kubelet.kubeconfig").read_text())
    assert kubeconfig["clusters"][0]["cluster"]["server"] == "https://172.30.0.1:6443"


def test_coredns_answers_for_the_cluster_and_denies_the_rest() -> None:
    blocks = dns.corefile("172.30.0.1", Path("/k")).split("\n}\n")

    assert "kubernetes cluster.local" in blocks[0]
    assert "template" not in blocks[0], "it would answer before the kubernetes plugin is asked"
    assert "NXDOMAIN" in blocks[1]


def test_the_dns_slice_carries_the_service_s_ports() -> None:
    service, endpoints, *_ = (dict(each) for each in dns.objects("172.30.0.1"))

    assert service["spec"]["ports"] == endpoints["ports"]  # type: ignore[index]


def test_fake_nodes_keep_strangers_away() -> None:
    made: Any = kwok_nodes.node(7)

    assert made["metadata"]["name"] == "fake-7"
    assert made["spec"]["taints"][0]["effect"] == "NoSchedule"


def test_the_stages_are_yaml_that_kwok_reads() -> None:
    stages = list(yaml.safe_load_all(kwok_nodes.stages()))

    assert {stage["kind"] for stage in stages} == {"Stage"}
    assert [stage["spec"]["resourceRef"]["kind"] for stage in stages] == ["Node", "Pod", "Pod"]


def test_kwok_ends_pods_only_where_nobody_else_does() -> None:
    def ends(text: str) -> bool:
        return any(stage["spec"]["next"].get("delete") for stage in yaml.safe_load_all(text))

    assert ends(kwok_nodes.stages())
    assert not ends(kwok_nodes.stages(ends_pods=False))


def test_the_first_cluster_is_ten_lines_long() -> None:
    manifest = slurm_cluster.manifest(workers=2, nodes=2)
    del manifest["metadata"]["namespace"]

    assert len(yaml.safe_dump(manifest, sort_keys=False).splitlines()) == 10


def test_workers_share_machines_only_where_there_are_too_few() -> None:
    assert "oversubscribeNode" not in str(slurm_cluster.manifest(workers=2, nodes=2))
    assert "oversubscribeNode" in str(slurm_cluster.manifest(workers=2, nodes=1))


def test_operator_and_webhook_run_without_any_privilege_from_images_that_are_never_pulled() -> None:
    made = slurm_cluster.installation("docker.io/local/slurm-operator:x")
    pods = {
        thing["metadata"]["name"]: thing["spec"]["template"]["spec"]
        for thing in made
        if thing["kind"] == "Deployment"
    }

    assert set(pods) == {"slurm-operator", "slurm-operator-webhook"}
    for pod in pods.values():
        [container] = pod["containers"]
        assert container["imagePullPolicy"] == "Never"
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_the_cluster_of_up_says_in_its_manifest_what_the_smallest_leaves_to_slurm() -> None:
    smallest: Any = slurm_cluster.manifest(workers=2, nodes=2)
    whole: Any = demo_cluster.whole_manifest(workers=2, nodes=2, memory_per_cpu_mib=700)

    assert "extraConf" not in smallest["spec"]
    assert whole["spec"]["extraConf"].splitlines() == [
        "DefMemPerCPU=700",
        "ReturnToService=1",
        "JobAcctGatherType=jobacct_gather/linux",
        "JobAcctGatherFrequency=30",
    ]
    assert "DefaultTime=" in whole["spec"]["partitions"][0]["config"]
    assert whole["spec"]["accounting"] == {"managed": {}}
    [nodeset], [login] = whole["spec"]["nodeSets"], whole["spec"]["logins"]
    assert nodeset["slurmd"]["volumeMounts"] == login["login"]["volumeMounts"]
    assert nodeset["template"] == login["template"]


def test_the_cluster_of_up_is_one_that_the_api_takes() -> None:
    whole: Any = demo_cluster.whole_manifest(workers=2, nodes=1, memory_per_cpu_mib=1024)
    cluster = wire.decode(wire.encode(whole), Cluster)

    assert list(cluster.problems(None, References())) == []
    assert cluster.spec.node_sets[0].oversubscribe_node


@pytest.mark.parametrize(
    ("gib", "cpus", "mib"),
    [
        pytest.param(24, 2, 1024, id="plenty: no job needs more unless it says so"),
        pytest.param(4, 8, 460, id="little: jobs on all CPUs have room side by side"),
    ],
)
def test_jobs_on_all_cpus_fit_into_a_node_s_memory(gib: int, cpus: int, mib: int) -> None:
    found = demo_cluster.memory_per_cpu_mib(gib * 1024**3, cpus)

    assert found == mib
    assert found * cpus <= gib * 1024


def test_the_home_is_a_directory_of_its_own_that_no_claim_deletes() -> None:
    volume, claim = home.objects(Path("/state/homes/local"), "slurm")

    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"  # type: ignore[index]
    assert volume["spec"]["hostPath"]["path"] == "/state/homes/local"  # type: ignore[index]
    assert claim["spec"]["volumeName"] == volume["metadata"]["name"]  # type: ignore[index]
    assert not volumes.wants_volume(claim)


def test_a_command_of_a_user_keeps_its_words() -> None:
    assert demo_cluster.as_user("demo", ("sbatch", "--wrap", "echo 'a b'")) == (
        "su",
        "--login",
        "demo",
        "--command",
        """sbatch --wrap 'echo '"'"'a b'"'"''""",
    )
    assert demo_cluster.as_user("demo", ()) == ("su", "--login", "demo")
