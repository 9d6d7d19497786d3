"""On the CRDs of Slinky 1.3: statuses are written, as far as those have fields, and whole as soon as ours are there."""

import json
import time

import pytest
from kinds_rig import condition, get, merge, ns, operator, secret, wait_for, writes_by
from slinky_rig import call, load

from slurm_local.slurm_cluster import wait_established
from slurm_operator.api import registry
from slurm_operator.api.schema.crd import crd
from testing import rights, slinky, slinky_crds
from testing.control_plane import ControlPlane
from testing.managers import running_manager, until

__all__ = ["ns"]

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    """A server with Slinky's CRDs instead of ours."""
    with ControlPlane(tmp_path_factory.mktemp("theirs"), audit="Metadata").running() as plane:
        rights.grant(plane, registry.DEFAULT)
        for one in slinky_crds.crds():
            plane.caller.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", one)
        wait_established(plane.kubectl)
        yield plane


def install(plane, definitions: list[dict]) -> None:
    text = "\n---\n".join(json.dumps(one) for one in definitions)
    plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)


def status(plane, ns: str) -> dict:
    return get(plane, ns, "nodeset", "w").get("status") or {}


def is_quiet(plane, user: str) -> bool:
    before = len(writes_by(plane, user))
    time.sleep(4)
    return len(writes_by(plane, user)) == before


def test_statuses_are_written_with_the_fields_that_the_crds_have_and_whole_when_they_have_them_all(
    plane, ns, tmp_path
):
    call(plane, "POST", "Secret", ns, body=secret(ns, "db", password="x"))
    load(plane, ns, [*slinky.recorded(ns), *slinky.accounting(ns), *slinky.token(ns)])
    with running_manager(operator(plane, f"op-{ns}"), tmp_path / "log", "--namespaces", ns) as manager:
        manager.wait_ready()
        until(lambda: status(plane, ns).get("replicas") == 3, what="the counts of the NodeSet")
        written = status(plane, ns)
        assert written["selector"] == "app.kubernetes.io/instance=w,app.kubernetes.io/name=slurmd"
        assert set(written) <= {"conditions", *slinky_crds.STATUSES["NodeSet"]}
        scale = plane.caller.call("GET", f"/apis/slinky.slurm.net/v1beta1/namespaces/{ns}/nodesets/w/scale")
        assert (scale["status"]["replicas"], scale["status"]["selector"]) == (3, written["selector"])
        assert plane.kubectl("get", "nodeset", "w", "-n", ns, "--no-headers").split()[1:3] == ["3", "3"]
        for kind, name in (
            ("controller", "slurm"),
            ("restapi", "slurm"),
            ("loginset", "login"),
            ("accounting", "books"),
        ):
            until(lambda k=kind, n=name: condition(plane, ns, k, n)[0], what=f"conditions of {kind} {name}")
        said = [line for line in manager.log.read_text().splitlines() if "the CRD lacks fields" in line]
        assert len([line for line in said if '"NodeSet.' in line or "NodeSet." in line]) == 1
        until(lambda: is_quiet(plane, f"op-{ns}"), what="nothing to be written any more")

        install(plane, [crd(model) for model in registry.DEFAULT.models])
        theirs = {"conditions", *slinky_crds.STATUSES["NodeSet"]}
        until(lambda: set(status(plane, ns)) - theirs, what="what only our CRDs have, without a restart")

        install(plane, slinky_crds.crds())
        merge(plane, ns, "nodeset", "w", {"spec": {"replicas": 4}})
        wait_for(plane, ns, "pod", "w-3")
        until(lambda: status(plane, ns).get("desired") == 4, what="the count, on Slinky's CRDs again")
