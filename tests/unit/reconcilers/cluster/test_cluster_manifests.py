"""Which objects a Cluster becomes."""

import pytest
import yaml

from slurm_operator.api.schema import codec
from slurm_operator.api.shared.names import IN_USE_FINALIZER
from slurm_operator.api.slinky.cluster import Cluster
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.manifests.objects import KubeNode
from slurm_operator.manifests.platform import Namespace
from slurm_operator.plan.actions import Apply, Create
from slurm_operator.reconcilers.cluster.desired import desired
from slurm_operator.slurm.conf import grammar
from testing.children import with_config
from testing.clusters import cluster, decide, settled, world
from testing.examples import example
from testing.golden import assert_golden

EVERYTHING = {
    "clusterName": "science",
    "image": "registry.example.org/slurm:1",
    "images": {"slurmdbd": "registry.example.org/dbd:2"},
    "isolation": "process",
    "slurmKeyRef": {"name": "keys", "key": "slurm.key"},
    "jwtHs256KeyRef": {"name": "keys", "key": "jwt.key"},
    "jwksKeyRef": {"name": "provider", "key": "jwks.json"},
    "controller": {
        "slurmctld": {"image": "registry.example.org/ctld:3", "resources": {"limits": {"memory": "4Gi"}}},
        "persistence": {"storageClassName": "fast", "resources": {"requests": {"storage": "4Gi"}}},
        "configFileRefs": [{"name": "gres"}],
        "prologScriptRefs": [{"name": "prolog"}],
        "metrics": {"enabled": True},
        "service": {"port": 7000},
    },
    "accounting": {"external": {"host": "db", "port": 3307, "username": "slurm", "passwordKeyRef": {"name": "db", "key": "pw"}},
                   "extraConf": "PurgeJobAfter=12months"},
    "restApi": {"replicas": 2, "service": {"spec": {"type": "NodePort"}}},
    "logins": [{"name": "ssh", "replicas": 3, "rootSshAuthorizedKeys": "ssh-ed25519 AAAA", "sssdConfRef": {"name": "sssd", "key": "sssd.conf"}}],
    "nodeSets": [
        {"name": "cpu", "ssh": {"enabled": True}, "slurmd": {"securityContext": {"capabilities": {"add": ["SYS_NICE"]}}}},
        {"name": "gpu", "replicas": 4, "extraConf": "Gres=gpu:8", "drainPolicy": {"type": "Requeue", "deadline": "12h"},
         "template": {"spec": {"hostname": "gpu-", "nodeSelector": {"pool": "gpu"}}}, "slurmd": {"image": "registry.example.org/gpu:4"},
         "updateStrategy": {"type": "ScheduledUpdate", "scheduledUpdate": {"startTime": "2030-01-31T22:00:00Z"}}},
    ],
    "partitions": [{"name": "all", "default": True}, {"name": "gpu", "nodeSets": ["gpu"], "config": "MaxTime=2-0"},
                   {"name": "both", "nodeSets": ["gpu", "cpu"], "config": "Default=NO PriorityTier=10"}],
    "extraConf": "SchedulerParameters=bf_continue\nTaskPlugin=task/affinity",
}  # fmt: skip

CASES = {
    "smallest": example("cluster-smallest"),
    "mariadb": example("cluster-mariadb"),
    "login": example("cluster-login"),
    "partitions": example("cluster-partitions"),
    "everything": EVERYTHING,
    "no-workers": {},
    "process": {"isolation": "process", "nodeSets": [{"name": "cpu", "replicas": 1}]},
}


@pytest.mark.parametrize("name", CASES)
def test_the_parts_of_a_cluster(name):
    _, plan = decide(world(cluster(CASES[name], finalizers=[IN_USE_FINALIZER])))

    made = [action.manifest for action in plan.actions() if isinstance(action, Apply | Create)]
    assert_golden("cluster", name, made)


def test_a_cluster_that_says_what_is_the_default_anyway_gives_the_same_parts():
    """The API server writes defaults into the object; none of them may find its way into the parts."""
    short = cluster(CASES["smallest"])
    long = codec.read(Cluster, codec.plain(short))

    assert desired(decide(world(short))[0]) == desired(decide(world(long))[0])


@pytest.mark.parametrize("name", [*CASES])
def test_slurm_takes_the_lines_that_follow_from_a_cluster(name):
    manifests = desired(decide(world(cluster(CASES[name])))[0])
    conf = next(m["spec"]["extraConf"] for m in manifests if m["kind"] == "Controller")
    files = next(m["data"] for m in manifests if m["kind"] == "ConfigMap")

    assert [str(fault) for fault in grammar.problems({"slurm.conf": conf, **files}) if fault.is_fatal] == []


@pytest.mark.parametrize(
    ("given", "storage", "persistent"),
    [
        pytest.param({}, True, True, id="a default StorageClass: on"),
        pytest.param({}, False, False, id="none: off"),
        pytest.param({}, None, True, id="nobody may look: on, and a waiting pod says why"),
        pytest.param({"storageClassName": "fast"}, False, True, id="a class was named: on"),
        pytest.param({"existingClaim": "state"}, False, True, id="a claim was named: on"),
        pytest.param({"enabled": False}, True, False, id="turned off"),
        pytest.param({"enabled": True}, False, True, id="turned on"),
    ],
)
def test_when_slurmctld_gets_a_volume(given, storage, persistent):
    made = cluster({"controller": {"persistence": given}})
    [controller] = [m for m in desired(decide(world(made, storage=storage))[0]) if m["kind"] == "Controller"]

    assert controller["spec"]["persistence"]["enabled"] is persistent


def test_a_volume_once_decided_about_stays_decided():
    there = settled(world(cluster(), storage=False))
    there.things += world(cluster(), storage=True).things[1:]

    assert there.get(Controller, "ns", "demo").spec.persistence.enabled is False
    assert list(decide(there)[1].actions())[1:] == [], "only the finalizer is new"


def pod_security(level: str) -> Namespace:
    return codec.read(
        Namespace, {"metadata": {"name": "ns", "labels": {"pod-security.kubernetes.io/enforce": level}}}
    )


def labelled(value: str) -> KubeNode:
    return codec.read(KubeNode, {"metadata": {"name": "n1", "labels": {"slinky.slurm.net/isolation": value}}})


@pytest.mark.parametrize(
    ("wanted", "before", "around", "mode", "why"),
    [
        pytest.param("auto", "", [], "cgroup", "nothing is known", id="nothing against it"),
        pytest.param("auto", "", [pod_security("privileged")], "cgroup", "nothing is known", id="privileged pods are welcome"),
        pytest.param("auto", "", [pod_security("baseline")], "process", "'baseline'", id="privileged pods are refused"),
        pytest.param("auto", "", [labelled("process")], "process", "'n1' is labelled", id="a node that cannot"),
        pytest.param("auto", "", [labelled("cgroup")], "cgroup", "nothing is known", id="a node that can"),
        pytest.param("auto", "cgroup", [pod_security("baseline")], "cgroup", "when the cluster was made", id="chosen before: it stands"),
        pytest.param("auto", "process", [], "process", "when the cluster was made", id="chosen before: it stands, too"),
        pytest.param("process", "cgroup", [], "process", "spec.isolation says", id="the user's word counts"),
        pytest.param("cgroup", "process", [pod_security("restricted")], "cgroup", "spec.isolation says", id="whatever it is"),
    ],
)  # fmt: skip
def test_which_isolation_is_chosen(wanted, before, around, mode, why):
    from testing.children import report
    from testing.clusters import RECONCILER

    seen, plan = decide(world(cluster({"isolation": wanted}, status={"isolation": before}), *around))

    told = report(RECONCILER, seen, plan)
    assert told["isolation"] == mode
    assert told["Isolation"][1] == mode.capitalize()
    assert why in told["Isolation"][2]


def test_a_cgroup_conf_of_the_users_takes_the_place_of_ours():
    made = cluster({"isolation": "process", "controller": {"configFileRefs": [{"name": "mine"}]}})
    there = with_config(world(made), "mine", cgroup_conf="CgroupPlugin=disabled\n")

    manifests = desired(decide(there)[0])

    assert [m["kind"] for m in manifests] == ["Controller", "RestApi"]
    assert manifests[0]["spec"]["configFileRefs"] == [{"name": "mine"}]


def test_the_golden_manifests_name_no_default_of_the_schema():
    text = yaml.safe_dump(desired(decide(world(cluster(CASES["smallest"])))[0]))

    for word in ("scalingMode", "drainPolicy", "inplaceReconfigure", "replicas: 2"):
        assert word not in text
