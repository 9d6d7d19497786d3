"""Names that other people's tools rely on."""

import pytest

from slurm_operator.api import Cluster, Controller, NodeSet, Token
from slurm_operator.api.schema.codec import read
from slurm_operator.api.schema.problems import References, Severity
from slurm_operator.api.shared import names


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        (names.controller_service("c"), "c-controller"),
        (names.controller_pod("c", 1), "c-controller-1"),
        (names.controller_internal_service("c"), "c-controller-internal"),
        (names.controller_config("c"), "c-config"),
        (names.worker_service("c"), "slurm-workers-c"),
        (names.worker_budget("c"), "slurm-workers-pdb-c"),
        (names.accounting_workload("a"), "a-accounting"),
        (names.database_workload("a"), "a-mariadb"),
        (names.restapi_workload("r"), "r-restapi"),
        (names.login_workload("l"), "l"),
        (names.ssh_host_keys("l"), "l-ssh-host-keys"),
        (names.ssh_config("n"), "n-ssh-config"),
        (names.token_secret("t", "alice"), "t-jwt-alice"),
        (names.worker_claim("data", "n", "003"), "data-n-003"),
        (names.reservation("n"), "SlurmOperatorMaint-n"),
        (names.auth_slurm_secret("c"), "c-auth-slurm"),
        (names.auth_jwt_secret("c"), "c-auth-jwt"),
        (names.selector("slurmd", "n"), "app.kubernetes.io/instance=n,app.kubernetes.io/name=slurmd"),
        (names.cluster_part("demo", "cpu"), "demo-cpu"),
    ],
)
def test_children_have_the_names_that_people_know(name: str, wanted: str) -> None:
    assert name == wanted


@pytest.mark.parametrize(
    ("hostname", "wanted"),
    [
        ("", "cpu"),
        ("gpu-", "gpu"),
        ("-gpu-", "gpu"),
        ("gpu", "gpu"),
        ("a b", "a"),
        ("-", "cpu"),
        ("  ", "cpu"),
    ],
)
def test_slurm_knows_a_set_by_its_hostname_prefix_or_else_its_own_name(hostname: str, wanted: str) -> None:
    spec = {"controllerRef": {"name": "slurm"}, "template": {"spec": {"hostname": hostname}}}
    nodeset = read(NodeSet, {"metadata": {"name": "cpu"}, "spec": spec})

    assert nodeset.slurm_name == wanted


def test_a_cluster_s_derived_name_is_unique_in_kubernetes() -> None:
    metadata = {"name": "slurm", "namespace": "lab"}

    assert read(Controller, {"metadata": metadata}).cluster_name == "lab_slurm"
    assert read(Controller, {"metadata": metadata, "spec": {"clusterName": "x"}}).cluster_name == "x"


@pytest.mark.parametrize(
    ("secret", "wanted"),
    [
        (None, ("alice-jwt-bob", "SLURM_JWT")),
        ({"key": "token"}, ("alice-jwt-bob", "token")),
        ({"name": "mine", "key": ""}, ("mine", "SLURM_JWT")),
    ],
)
def test_a_token_goes_where_it_is_asked_to(secret: dict[str, str] | None, wanted: tuple[str, str]) -> None:
    spec = {"username": "bob", "jwtKeyRef": {"name": "a", "key": "b"}, "secretRef": secret}
    token = read(Token, {"metadata": {"name": "alice"}, "spec": spec})

    assert (token.secret_name, token.secret_key) == wanted


@pytest.mark.parametrize("length", [1, 41, 43, 44, 49, 50, 52])
def test_what_a_controller_is_made_of_has_names_that_kubernetes_takes(length):
    controller = "c" * length
    services = [
        names.controller_service(controller),
        names.controller_internal_service(controller),
        names.worker_service(controller),
    ]

    assert max(map(len, services)) <= 63
    assert len(set(services)) == 3
    workload = names.controller_workload(controller)
    assert len(workload) <= 52 or length == 43
    if length <= 43:
        assert services[1] == f"{controller}-controller-internal"
        assert (workload, services[2]) == (f"{controller}-controller", f"slurm-workers-{controller}")


def test_shortened_names_of_two_controllers_differ():
    one, other = "c" * 51 + "a", "c" * 51 + "b"

    for made in (names.controller_workload, names.controller_internal_service, names.worker_service):
        assert made(one) != made(other)
        assert made(one) == made(one)


@pytest.mark.parametrize("length", [1, 41, 43, 44, 49, 52])
def test_what_an_accounting_is_made_of_has_names_that_kubernetes_takes(length):
    usual = (f"{'a' * length}-accounting", f"{'a' * length}-mariadb")
    made = (names.accounting_workload("a" * length), names.database_workload("a" * length))

    assert len({*made}) == 2
    for name, before in zip(made, usual, strict=True):
        assert name == before if length <= 43 else len(name) <= 52


@pytest.mark.parametrize(
    ("name", "nodeset", "replicas", "long"),
    [
        pytest.param("c" * 43, "cpu", 2, "", id="as long as it ever could be"),
        pytest.param("c" * 52, "cpu", 1000, "", id="as long as a Service leaves room for"),
        pytest.param("c" * 52, "cpu-nodes", 2, "nodeSets[0]", id="a label has no room for the worker"),
        pytest.param("c" * 52, "cpu", 9_999_999, "nodeSets[0]", id="nor for so large a number"),
        pytest.param("c" * 30, "p" * 40, 1, "nodeSets[0]", id="a long name of the NodeSet"),
    ],
)
def test_a_cluster_says_which_of_its_names_are_too_long(name, nodeset, replicas, long):
    spec = {"clusterName": "lab", "nodeSets": [{"name": nodeset, "replicas": replicas}]}
    cluster = read(Cluster, {"metadata": {"name": name, "namespace": "lab"}, "spec": spec})
    found = [
        problem for problem in cluster.problems(None, References()) if problem.severity is Severity.ERROR
    ]

    assert [problem.path for problem in found] == ([f"spec.{long}.name"] if long else [])
    assert all("63 fit into labels and host names" in problem.message for problem in found)
