"""NetworkPolicies let in what is listened on, and nothing else."""

import pytest

from slurm_operator.install import Installation, installation
from slurm_operator.install.admission import SERVER_PORT
from slurm_operator.install.pods import HEALTH_PORT, METRICS_PORT
from testing.ports import ports

WHOLE = Installation(image="operator:1", webhook_image="webhook:1")


@pytest.mark.parametrize(
    ("deployment", "named"),
    [
        ("slurm-operator", {HEALTH_PORT, METRICS_PORT}),
        ("slurm-operator-webhook", {HEALTH_PORT, SERVER_PORT}),
    ],
)
def test_every_port_that_is_listened_on_is_declared_and_reachable_and_no_other(deployment, named):
    found = ports(installation(WHOLE))[deployment]

    assert found.listened == found.declared == found.reachable == found.served == named
    assert found.probed == {HEALTH_PORT}
