"""Two RestApis for one Controller: when the one that is asked fails, the operator goes on with the other."""

import contextlib

import pytest
from control_plane_rig import ControlPlane, control_plane
from operator_rig import install, until

from slurm_local.errors import LocalError
from slurm_operator.api.shared import names

pytestmark = [pytest.mark.timeout(1200), pytest.mark.full]


@pytest.fixture(scope="module")
def slurm(cluster, operator_image):
    install(cluster, operator_image)
    with control_plane(cluster, workers=2) as made:
        yield made


def wants(slurm: ControlPlane, replicas: int) -> None:
    slurm.apply(slurm.kind("RestApi", "slurm", {**slurm.restapi()["spec"], "replicas": replicas}))


def stop(slurm: ControlPlane) -> None:
    wants(slurm, 0)


def start(slurm: ControlPlane) -> None:
    wants(slurm, 1)


def signalled(slurm: ControlPlane, signal: str) -> None:
    where = ("exec", f"deploy/{names.restapi_workload('slurm')}", "-c", "slurmrestd", "--", "sh", "-c")
    slurm.kubectl(*where, f"kill -{signal} $(pidof slurmrestd)")


def freeze(slurm: ControlPlane) -> None:
    """It takes connections and says nothing."""
    signalled(slurm, "STOP")


def thaw(slurm: ControlPlane) -> None:
    """By then its probe may have ended it, which does as well."""
    with contextlib.suppress(LocalError):
        signalled(slurm, "CONT")


@pytest.mark.parametrize(
    ("fails", "repairs"),
    [pytest.param(stop, start, id="it is gone"), pytest.param(freeze, thaw, id="it hangs")],
)
def test_when_one_restapi_fails_the_operator_goes_on_with_another(slurm, fails, repairs):
    degraded = lambda: slurm.condition("Degraded", "nodeset", "cpu")  # noqa: E731
    until(lambda: degraded().get("status") == "False", what=lambda: f"sight of Slurm: {degraded()}")
    before = degraded()
    slurm.apply(slurm.kind("RestApi", "spare", slurm.restapi()["spec"]))
    slurm.wait_ready("restapi", "spare")
    in_use = lambda: {name for name in ("slurm", "spare") if slurm.status("restapi", name).get("inUse")}  # noqa: E731
    until(lambda: in_use() == {"slurm"}, what=lambda: f"the older one: {in_use()}")
    slurm.wait_idle(2)
    assert degraded() == before, "one more is no reason to lose sight of Slurm"

    fails(slurm)
    try:
        until(lambda: in_use() == {"spare"}, what=lambda: f"the other one: {in_use()}")
        slurm.apply(slurm.nodeset(replicas=1))  # A drain, a proof and a removal, all by way of the other.
        until(lambda: "cpu-1" not in slurm.pods(), 240, lambda: f"{slurm.pods()} {slurm.states()}")
    finally:
        repairs(slurm)
    slurm.apply(slurm.nodeset(replicas=2))
    slurm.wait_ready("restapi", "slurm")
    slurm.kubectl("delete", "restapi", "spare")
    until(lambda: slurm.status("restapi").get("inUse"), what=lambda: f"{slurm.status('restapi')}")
    slurm.wait_idle(2)
