"""Where names of Services end: told, found, or as usual."""

import pytest

from slurm_operator.api.shared.images import DOMAIN_VARIABLE, images_named, named_images
from slurm_operator.api.shared.meta import Meta
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.manifests.builders.dns import domain_in, worker_domain

CONTROLLER = Controller(metadata=Meta(name="slurm", namespace="ns"))


@pytest.mark.parametrize(
    ("resolv_conf", "domain"),
    [
        pytest.param("search slurm.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.96.0.10\noptions ndots:5\n", "cluster.local", id="as usual"),
        pytest.param("nameserver 10.0.0.10\nsearch slurm.svc.k8s.example.org svc.k8s.example.org k8s.example.org example.org\n", "k8s.example.org", id="another one"),
        pytest.param("search svc.k8s.\n", "k8s", id="with a dot at its end"),
        pytest.param("search example.org\nnameserver 192.0.2.1\n", "", id="outside, or on the machine's network"),
        pytest.param("# search svc.x\n", "", id="a comment"),
        pytest.param("", "", id="nothing"),
    ],
)  # fmt: skip
def test_the_domain_is_found_where_the_kubelet_writes_it(resolv_conf, domain):
    assert domain_in(resolv_conf) == domain


def test_workers_are_found_in_the_domain_that_the_operator_was_told_of(monkeypatch):
    assert worker_domain(CONTROLLER) == "slurm-workers-slurm.ns.svc.cluster.local"

    monkeypatch.setenv(DOMAIN_VARIABLE, "k8s.example.org")

    assert worker_domain(CONTROLLER) == "slurm-workers-slurm.ns.svc.k8s.example.org"


def test_a_recording_takes_the_domain_along(monkeypatch):
    monkeypatch.setenv(DOMAIN_VARIABLE, "k8s.example.org")
    kept = named_images()
    monkeypatch.delenv(DOMAIN_VARIABLE)

    with images_named(kept):
        assert worker_domain(CONTROLLER).endswith(".svc.k8s.example.org")
