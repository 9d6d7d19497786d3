"""What the documentation says about installing, upgrading and moving over, typed as it stands, on a real API server."""

import pytest
import yaml
from chart_rig import program
from kinds_rig import apply

from testing.control_plane import ControlPlane
from testing.docs import Terminal
from testing.foreign_kinds import definitions
from testing.readers import ON_AN_API_SERVER, type_page

CHANGED = {
    "apiVersion": "slinky.slurm.net/v1beta1",
    "kind": "Cluster",
    "metadata": {"name": "demo"},
    "spec": {"nodeSets": [{"name": "cpu", "replicas": 2}]},
}


@pytest.fixture(scope="module")
def terminal(tmp_path_factory) -> Terminal:
    """A reader with an empty Kubernetes, in which Prometheus' kinds are known."""
    place = tmp_path_factory.mktemp("reader")
    with ControlPlane(place / "plane", controller_manager=True).running() as plane:
        apply(plane, *definitions())
        terminal = Terminal(place / "home", plane.kubeconfig, kubectl=plane.kubectl_program, helm=program())
        (terminal.directory / "values.yaml").write_text(
            "operator: {replicas: 1}\nglobal: {image: {repository: docker.io/local/slurm-operator}}\n"
        )
        (terminal.directory / "changed.yaml").write_text(yaml.safe_dump(CHANGED))
        yield terminal


@pytest.mark.full
@pytest.mark.timeout(900)
def test_every_command_about_installing_works_as_it_stands(terminal):
    troubles = [trouble for page in ON_AN_API_SERVER for trouble in type_page(page, terminal)]

    assert not troubles, "\n\n".join(troubles)
    left = terminal.type("helm list -A -q | sort | xargs; kubectl get crd -o name | grep -c slinky")
    assert left.stdout == "slurm-operator slurm-operator-crds\n7\n"
