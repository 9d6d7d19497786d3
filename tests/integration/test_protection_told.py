"""Whether a policy protects workers is told by the operator: in its log, and by a metric."""

import pytest
from kinds_rig import apply, ns, operator, plane

from slurm_operator.manifests.builders.protection import protection
from testing.managers import ManagerProcess, running_manager, until

__all__ = ["ns", "plane"]

WARNING = "no policy protects workers: deleting the pod of one ends its jobs"


def told(manager: ManagerProcess) -> str:
    """What the metric says, once the operator has looked."""
    name = "\nslurm_operator_workers_protected "

    def value() -> str:
        return manager.get("/metrics", manager.metrics)[1].partition(name)[2].partition("\n")[0]

    manager.wait_ready()
    until(lambda: value() not in ("", "NaN"), what="a look at the policies")
    return value()


@pytest.mark.full
def test_the_operator_says_whether_a_policy_protects_workers(plane, ns, tmp_path):
    flags = ("--namespaces", ns)
    whole = protection(f"op-{ns}")
    answers = []
    for number, there in enumerate(([], whole[:1], whole)):
        if there:
            apply(plane, *there)
        with running_manager(operator(plane, f"op-{ns}"), tmp_path / f"log{number}", *flags) as manager:
            answers.append((told(manager), WARNING in manager.log.read_text()))

    assert answers == [("0.0", True), ("0.0", True), ("1.0", False)], (
        "nothing, a policy that is not bound, both"
    )
