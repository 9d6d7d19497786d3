"""`spec.children`: names and labels of what is made for an object are those that its spec gives, everywhere."""

import pytest

from slurm_operator.api.schema.problems import References
from slurm_operator.api.shared import belonging, names
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.manifests import kinds
from slurm_operator.manifests.labels import matches
from slurm_operator.operator import OUR_CHILDREN
from slurm_operator.plan.actions import Wait
from slurm_operator.reconcilers import loginset as loginsets
from slurm_operator.reconcilers.shared.slurm_servers import url
from testing.whole_namespace import NOW, WholeNamespace

APP_LABELS = {names.APP_NAME: "slurmcluster", names.APP_INSTANCE: "c", names.APP_PART_OF: "slurm-operator"}


def children(component: str, **called: str) -> dict:
    labels = {**APP_LABELS, names.APP_COMPONENT: component, "team": "hpc"}
    return {"children": {"names": called, "labels": labels}}


HEAD = children(
    "controller",
    service="c-controller-svc",
    internalService="c-controller-pods",
    workload="c-controller",
    config="c-slurm-configs",
    workers="c-nodeset-svc",
    budget="c-workers",
)
BOOKS = children(
    "accounting", service="c-accounting-svc", workload="c-accounting", config="c-slurmdbd-configs"
)
REST = children("rest", service="c-rest-svc", workload="c-rest")
LOGIN = children("login", service="c-login-svc", workload="c-login", sshConfig="c-ssh-configs")
GPU = children("nodeset", service="c-nodeset-gpu-svc")

# What nobody can name, or what keeps its name for good reasons.
UNNAMED = {
    "Pod gpu-0", "Secret books-auth-slurm", "Secret books-auth-jwt", "Secret login-ssh-host-keys", "Secret login-sssd-conf",
}  # fmt: skip


@pytest.fixture(scope="module")
def whole() -> WholeNamespace:
    return WholeNamespace(HEAD, BOOKS, REST, LOGIN, GPU)


@pytest.fixture(scope="module")
def made(whole) -> list[dict]:
    return whole.everything()


def called(manifest: dict) -> str:
    return f"{manifest['kind']} {manifest['metadata']['name']}"


def test_every_object_has_the_name_that_its_spec_gives(made):
    found = {called(one) for one in made}

    assert {name for name in found if "rehearsal" not in name} - UNNAMED == {
        "Service c-controller-svc", "Service c-controller-pods", "StatefulSet c-controller", "ConfigMap c-slurm-configs",
        "ConfigMap c-slurm-configs-good", "Service c-nodeset-svc", "PodDisruptionBudget c-workers",
        "Service c-accounting-svc", "StatefulSet c-accounting", "Secret c-slurmdbd-configs",
        "Service c-rest-svc", "Deployment c-rest", "Service c-login-svc", "Deployment c-login", "ConfigMap c-ssh-configs",
        "Service c-nodeset-gpu-svc", *(name for name in found if name.startswith("ControllerRevision gpu-")),
    }  # fmt: skip


def test_every_object_and_pod_carries_the_labels_and_is_found_by_the_operator(made):
    for manifest in made:
        template = (manifest.get("spec") or {}).get("template")
        for metadata in [manifest["metadata"], *([template["metadata"]] if template else [])]:
            labels = metadata["labels"]
            assert {**APP_LABELS, "team": "hpc"}.items() <= labels.items(), called(manifest)
            assert matches(OUR_CHILDREN, labels), called(manifest)


def test_labels_of_a_whole_cluster_select_only_the_pods_of_one_object(made):
    """Every workload and Service finds the pods that it is for, and no others."""
    pods = {
        called(one): one["spec"]["template"]["metadata"]["labels"]
        for one in made
        if one["kind"] in ("StatefulSet", "Deployment")
    }
    pods |= {called(one): one["metadata"]["labels"] for one in made if one["kind"] == "Pod"}
    selectors = {
        called(one): one["spec"]["selector"].get("matchLabels", one["spec"]["selector"])
        for one in made
        if one["kind"] in ("StatefulSet", "Deployment", "Service")
    }
    found = {
        name: sorted(pod for pod, labels in pods.items() if wanted.items() <= labels.items())
        for name, wanted in selectors.items()
    }

    assert found == {
        "StatefulSet c-controller": ["StatefulSet c-controller"],
        "Service c-controller-svc": ["StatefulSet c-controller"],
        "Service c-controller-pods": ["StatefulSet c-controller"],
        "StatefulSet c-accounting": ["StatefulSet c-accounting"],
        "Service c-accounting-svc": ["StatefulSet c-accounting"],
        "Deployment c-rest": ["Deployment c-rest"],
        "Service c-rest-svc": ["Deployment c-rest"],
        "Deployment c-login": ["Deployment c-login"],
        "Service c-login-svc": ["Deployment c-login"],
        "Service c-nodeset-svc": ["Pod gpu-0"],
        "Service c-nodeset-gpu-svc": ["Pod gpu-0"],
    }


def test_whose_a_pod_is_is_read_from_our_own_labels(made):
    templates = [one["spec"]["template"] for one in made if one["kind"] in ("StatefulSet", "Deployment")]
    pods = [*templates, *(one for one in made if one["kind"] == "Pod")]

    found = sorted(belonging.part(one["metadata"]["labels"]) for one in pods)

    assert found == [
        ("login", "login"),
        ("slurm-rehearsal", "slurm"),
        ("slurmctld", "slurm"),
        ("slurmd", "gpu"),
        ("slurmdbd", "books"),
        ("slurmrestd", "rest"),
    ]


def test_daemons_find_each_other_under_these_names(whole, made):
    by_name = {called(one): one for one in made}
    conf = by_name["ConfigMap c-slurm-configs"]["data"]["slurm.conf"]
    worker = by_name["Pod gpu-0"]["spec"]
    login = by_name["Deployment c-login"]["spec"]["template"]["spec"]

    assert "SlurmctldHost=c-controller-0(c-controller-0.c-controller-pods.ns)\n" in conf
    assert "SlurmctldAddr=c-controller-svc.ns\n" in conf
    assert "AccountingStorageHost=c-accounting-svc\n" in conf
    assert worker["subdomain"] == "c-nodeset-svc"
    assert "c-controller-svc.ns:6817" in worker["containers"][0]["args"]
    assert login["dnsConfig"]["searches"] == ["c-nodeset-svc.ns.svc.cluster.local"]
    assert url(whole.restapi) == "http://c-rest-svc.ns:6820"
    assert "DbdHost=c-accounting-0\n" in by_name["Secret c-slurmdbd-configs"]["stringData"]["slurmdbd.conf"]


def test_every_file_that_slurmrestd_mounts_is_in_an_object_that_is_made(made):
    [rest] = [one for one in made if called(one) == "Deployment c-rest"]
    [files] = rest["spec"]["template"]["spec"]["volumes"]

    mounted = [one["configMap"]["name"] for one in files["projected"]["sources"] if "configMap" in one]
    assert mounted == ["c-slurm-configs"]


def test_workers_with_and_without_labels_of_their_own_never_share_a_machine(made):
    [worker] = [one for one in made if called(one) == "Pod gpu-0"]
    terms = worker["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]

    assert [term["labelSelector"]["matchExpressions"][0]["key"] for term in terms] == [
        names.APP_NAME,
        names.LABEL_PART,
    ]


def test_labels_that_replace_none_of_ours_change_no_selector():
    """A workload keeps its selector for life, so they may come later."""
    plain, labelled = (
        WholeNamespace(head={"children": {"labels": labels}}).of_controller()
        for labels in ({}, {"team": "hpc"})
    )

    for before, after in zip(plain, labelled, strict=True):
        assert before["metadata"]["name"] == after["metadata"]["name"]
        if before["kind"] in ("Service", "StatefulSet"):
            assert before["spec"]["selector"] == after["spec"]["selector"]


@pytest.mark.parametrize(
    ("given", "path", "words"),
    [
        pytest.param({"names": {"service": "head", "workers": "head"}}, "spec.children.names.workers", "two names", id="two roles, one name"),
        pytest.param({"names": {"internalService": "slurm-controller"}}, "spec.children.names.internalService", "two names", id="the usual name of another role"),
        pytest.param({"labels": {"a b": "c"}}, "spec.children.labels[a b]", "no key of a label", id="no key"),
        pytest.param({"labels": {"team": "h p c"}}, "spec.children.labels[team]", "no value of a label", id="no value"),
        pytest.param({"labels": {"slinky.slurm.net/part": "slurmd"}}, "spec.children.labels[slinky.slurm.net/part]", "the operator's own", id="a label of ours"),
        pytest.param({"labels": {names.APP_NAME: "web"}}, f"spec.children.labels[{names.APP_NAME}]", "not find its own", id="nobody would find it"),
    ],
)  # fmt: skip
def test_names_and_labels_that_cannot_work_are_refused(given, path, words):
    controller = WholeNamespace(head={"children": given}).controller

    [problem] = controller.problems(None, References())

    assert problem.path == path
    assert words in problem.message


def test_an_object_of_somebody_else_is_left_alone_and_named():
    whole = WholeNamespace(rest=REST, login=children("login", service="c-rest-svc"))
    whole.of_others()

    seen = loginsets.RECONCILER.observe(ObjectKey("ns", "login"), whole.world)
    actions = list(loginsets.RECONCILER.decide(seen, NOW).actions())

    [wait] = [one for one in actions if isinstance(one, Wait)]
    assert wait.reason == "NameTaken"
    assert wait.message.startswith("Service 'c-rest-svc' belongs to RestApi 'rest'")
    assert whole.world.child(kinds.SERVICE, "ns", "c-rest-svc").metadata.owner.name == "rest"
