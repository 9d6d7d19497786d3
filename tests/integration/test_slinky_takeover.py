"""What Slinky's own operator left behind, taken over on a real API server: no pod changes, no write is refused.

There and back: on the way back a stand-in does what Slinky would do to our objects. No kubelet and no Slurm runs
here; with both, and a job, it is done in the end-to-end tests.
"""

import time
from contextlib import contextmanager

import pytest
from kinds_rig import condition, get, merge, ns, operator, secret, wait_for, writes_by
from slinky_rig import call, lives, load, swapped_operator, templates

from slurm_operator.api.shared import names
from testing import slinky
from testing.audit import changes_by
from testing.managers import running_manager, until
from testing.slinky_stand_in import SlinkyStandIn

__all__ = ["ns"]

pytestmark = pytest.mark.timeout(240)

NEW = "docker.io/local/new:26.05"
IMAGES = (
    ("controller", "slurm", "slurmctld", "statefulset", "slurm-controller"),
    ("restapi", "slurm", "slurmrestd", "deployment", "slurm-restapi"),
    ("loginset", "login", "login", "deployment", "login"),
    ("accounting", "books", "slurmdbd", "statefulset", "books-accounting"),
)


def everything(plane, ns: str, *, existing_claim: bool) -> None:
    call(plane, "POST", "Secret", ns, body=secret(ns, "db", password="x"))
    load(
        plane,
        ns,
        [*slinky.recorded(ns, existing_claim=existing_claim), *slinky.accounting(ns), *slinky.token(ns)],
    )


@contextmanager
def our_operator(plane, ns: str, tmp_path, user: str, rights=operator):
    """Runs until the block ends; by then nothing of what it wrote was refused, and it writes no more."""
    with running_manager(rights(plane, user), tmp_path / user, "--namespaces", ns) as manager:
        manager.wait_ready()
        settle(plane, user)
        yield manager
        settle(plane, user)
        assert refused(plane, user) == []


def refused(plane, user: str) -> list[str]:
    """Writes of ours that the API server did not take."""
    return [
        f"{entry['verb']} {entry['requestURI']} {entry['responseStatus'].get('message', '')}"
        for entry in changes_by(plane.audit_log, user)
        if entry["responseStatus"]["code"] >= 400 and "leases" not in entry["requestURI"]
    ]


def settle(plane, user: str, seconds: float = 3.0) -> None:
    """Until no write has come for a while. A write that is repeated never ends this."""
    last, since, end = -1, time.monotonic(), time.monotonic() + 40
    while time.monotonic() < since + seconds:
        count = len(writes_by(plane, user))
        if count != last:
            last, since = count, time.monotonic()
        assert time.monotonic() < end, writes_by(plane, user)[-20:]
        time.sleep(0.3)


def kept(plane, ns: str, before: dict) -> dict:
    return {name: uid for name, uid in lives(plane, ns).items() if name in before}


def owners(plane, ns: str, kind: str, name: str) -> list[dict]:
    return get(plane, ns, kind, name)["metadata"]["ownerReferences"]


def new_revisions(plane, ns: str, before: dict) -> list[str]:
    return [
        name for name in lives(plane, ns) if name.startswith("ControllerRevision/") and name not in before
    ]


@pytest.mark.parametrize(
    "existing_claim",
    [
        pytest.param(False, id="claim by template"),
        pytest.param(True, id="existing claim", marks=pytest.mark.full),
    ],
)
def test_a_cluster_of_slinky_is_taken_over_given_back_and_taken_over_again(
    plane, ns, tmp_path, existing_claim
):
    everything(plane, ns, existing_claim=existing_claim)
    before, made_from = lives(plane, ns), templates(plane, ns)
    theirs = SlinkyStandIn(plane, ns)
    assert theirs.reconcile() == [], "the stand-in agrees with what was recorded"

    with our_operator(plane, ns, tmp_path, f"op-{ns}"):
        assert kept(plane, ns, before) == before
        assert new_revisions(plane, ns, before) == []
        assert templates(plane, ns) == made_from
        budget = get(plane, ns, "pdb", "slurm-workers-pdb-slurm")["spec"]
        assert ("maxUnavailable" in budget, budget["minAvailable"]) == (False, 1_000_000)
        assert get(plane, ns, "statefulset", "slurm-controller")["spec"]["updateStrategy"] == {
            "type": "OnDelete"
        }
        assert [one["kind"] for one in owners(plane, ns, "secret", "tok-jwt-ada")] == ["Token"]
        merge(plane, ns, "nodeset", "w", {"spec": {"replicas": 4}})
        wait_for(plane, ns, "pod", "w-3")
    before = lives(plane, ns)

    assert theirs.reconcile() == [], "neither its workers nor the one that we made are outdated for Slinky"
    assert templates(plane, ns) == made_from

    with our_operator(plane, ns, tmp_path, f"again-{ns}"):
        assert kept(plane, ns, before) == before
        assert new_revisions(plane, ns, before) == []
        assert templates(plane, ns) == made_from


@pytest.mark.full
def test_with_the_rights_of_slinkys_chart_nothing_is_refused_and_protection_is_unknown(plane, ns, tmp_path):
    everything(plane, ns, existing_claim=False)
    before = lives(plane, ns)
    with our_operator(plane, ns, tmp_path, f"op-{ns}", swapped_operator) as manager:
        status, reason, message = condition(plane, ns, "nodeset", "w", "Protected")
        assert (status, reason) == ("Unknown", "NotAllowedToLook")
        assert "kubectl create clusterrolebinding" in message
        assert "unknown whether a policy protects workers" in manager.log.read_text()
    assert kept(plane, ns, before) == before


@pytest.mark.full
def test_a_change_after_the_swap_arrives(plane, ns, tmp_path):
    everything(plane, ns, existing_claim=False)
    before = lives(plane, ns)
    with our_operator(plane, ns, tmp_path, f"op-{ns}"):
        for kind, name, container, _, _ in IMAGES:
            merge(plane, ns, kind, name, {"spec": {container: {"image": NEW}}})
        merge(plane, ns, "nodeset", "w", {"spec": {"replicas": 4, "slurmd": {"image": NEW}}})
        for _, _, container, kind, name in IMAGES:
            until(
                lambda k=kind, n=name, c=container: image(plane, ns, k, n, c) == NEW,
                what=f"{kind} {name}: {NEW}",
            )
        wait_for(plane, ns, "pod", "w-3")
    for name, template in templates(plane, ns).items():
        assert "namespace" not in template["metadata"], (
            f"{name}: the template is ours, and nothing is left of theirs"
        )

    [made] = new_revisions(plane, ns, before)
    marks = get(plane, ns, "controllerrevision", made.partition("/")[2])["metadata"]["labels"]
    worker = get(plane, ns, "pod", "w-3")["metadata"]["labels"]
    for label in (names.LABEL_REVISION, names.LABEL_HASH):
        assert worker[label] == marks[label]
    assert SlinkyStandIn(plane, ns).reconcile() == ["w-0", "w-1", "w-2"], (
        "the new one is up to date for Slinky, too"
    )

    before = lives(plane, ns)
    with our_operator(plane, ns, tmp_path, f"again-{ns}"):
        workers = [name for name in before if name.startswith("Pod/w-")]
        assert {name: lives(plane, ns).get(name) for name in workers} == {
            name: before[name] for name in workers
        }
        status = get(plane, ns, "nodeset", "w")["status"]
        assert status["updatedReplicas"] == 1, "the same one as before, by whichever label"


def image(plane, ns: str, kind: str, name: str, container: str) -> str:
    pod = get(plane, ns, kind, name)["spec"]["template"]["spec"]
    return next(one["image"] for one in pod["containers"] if one["name"] == container)
