"""`spec.auth` and `spec.slurmUser`: what pods and files of a cluster with munge, or of another user, have."""

import pytest

from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.api.shared.config_source import ConfigSource
from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.manifests.builders import munge
from slurm_operator.manifests.meta import Meta, OwnerReference
from slurm_operator.manifests.objects import Pod, Secret
from slurm_operator.plan.actions import Apply, Create, GenerateSecret
from slurm_operator.plan.plan import Plan
from slurm_operator.reconcilers import nodeset
from slurm_operator.reconcilers.controller import RECONCILER
from slurm_operator.reconcilers.controller.keys import key_copies
from slurm_operator.reconcilers.shared.slurm_servers import slurm_servers
from testing.children import put, secret, with_secrets
from testing.whole_namespace import NOW, WholeNamespace

MUNGE = {"auth": {"type": "munge"}}
ROOT = {"slurmUser": {"name": "root", "uid": 0, "gid": 0}}
DAEMONS = {"slurmctld", "slurmdbd", "slurmd", "login"}


def whole(**specs) -> WholeNamespace:
    made = WholeNamespace(**specs)
    with_secrets(made.world, secret("books-munge", munge_key="m1"))
    return made


def pods(made: WholeNamespace) -> dict[str, dict]:
    """Pod specs by their main container; the rehearsal's by its own name."""
    found = {}
    for manifest in made.everything():
        spec = manifest["spec"] if manifest["kind"] == "Pod" else None
        if manifest["kind"] in ("StatefulSet", "Deployment"):
            spec = manifest["spec"]["template"]["spec"]
        if spec is not None:
            is_rehearsal = "rehearsal" in manifest["metadata"]["name"]
            found["rehearsal" if is_rehearsal else spec["containers"][0]["name"]] = spec
    return found


@pytest.fixture(scope="module")
def with_munge() -> dict[str, dict]:
    return pods(whole(books=MUNGE))


def test_without_the_option_no_pod_knows_of_munge():
    assert "munge" not in wire.encode(whole().everything()).decode()
    assert wire.encode(whole().everything()) == wire.encode(
        whole(books={"auth": {}}, head={"auth": {}}).everything()
    )


@pytest.mark.parametrize("daemon", sorted(DAEMONS | {"rehearsal"}))
def test_munged_starts_before_the_daemon_and_needs_no_rights(with_munge, daemon):
    sidecar = with_munge[daemon]["initContainers"][0]

    assert (sidecar["name"], sidecar["restartPolicy"]) == ("munge", "Always")
    assert sidecar["securityContext"] == {
        "runAsNonRoot": True, "runAsUser": 102, "runAsGroup": 102, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }  # fmt: skip
    assert sidecar["image"] == with_munge[daemon]["containers"][0]["image"]
    assert munge.mount() in with_munge[daemon]["containers"][0]["volumeMounts"]
    volumes = {one["name"]: one for one in with_munge[daemon]["volumes"]}
    assert volumes["munge-key"]["projected"]["sources"][0]["secret"]["name"] == "books-munge"
    assert {"munge-socket", "munge-key-copy"} <= volumes.keys()


def test_slurmrestd_uses_tokens_and_has_no_munged(with_munge):
    assert "munge" not in wire.encode(with_munge["slurmrestd"]).decode()


@pytest.mark.parametrize("daemon", ["slurmd", "login"])
def test_who_takes_its_configuration_from_slurmctld_has_no_slurm_key(with_munge, daemon):
    """With one it would ask for the configuration by auth/slurm, which slurmctld does not take then."""
    text = wire.encode(with_munge[daemon]).decode()

    assert "auth-slurm" not in text
    assert "SLURM_SACK_JWKS" not in text


def test_a_login_pod_is_ready_when_commands_find_munged_and_the_configuration(with_munge):
    assert with_munge["login"]["containers"][0]["readinessProbe"]["exec"]["command"] == munge.ready(
        ConfigSource.CONFIGLESS
    )


def test_the_files_say_munge_and_tokens_go_on():
    made = {f"{one['kind']} {one['metadata']['name']}": one for one in whole(books=MUNGE).everything()}
    conf = made["ConfigMap slurm-config"]["data"]["slurm.conf"]
    slurmdbd_conf = made["Secret books-accounting"]["stringData"]["slurmdbd.conf"]

    assert "AuthType=auth/munge\nCredType=cred/munge\nAuthAltTypes=auth/jwt\n" in conf
    assert "AuthType=auth/munge\n" in slurmdbd_conf
    assert "use_client_ids" not in conf + slurmdbd_conf


def test_wishes_are_laid_over_the_sidecar():
    wishes = {
        "auth": {"type": "munge", "munge": {"image": "munge:1", "resources": {"limits": {"memory": "64Mi"}}}}
    }

    sidecar = pods(whole(books=wishes))["slurmd"]["initContainers"][0]

    assert (sidecar["name"], sidecar["image"]) == ("munge", "munge:1")
    assert sidecar["resources"] == {"limits": {"memory": "64Mi"}}


def test_a_key_is_generated_once_unless_one_is_named():
    asked = WholeNamespace(books=MUNGE)
    named = WholeNamespace(books={"auth": {"type": "munge", "mungeKeyRef": {"name": "mine", "key": "k"}}})

    def generated(made: WholeNamespace) -> list[tuple[str, str, int]]:
        actions = RECONCILER.decide(RECONCILER.observe(key_of(made.controller), made.world), NOW).actions()
        return [
            (a.manifest["metadata"]["name"], a.entry, a.size)
            for a in actions
            if isinstance(a, GenerateSecret)
        ]

    assert generated(asked) == [("books-munge", "munge.key", 1024)]
    assert generated(named) == []


def worker_of(nodeset: NodeSet) -> Pod:
    owner = OwnerReference(
        api_version="slinky.slurm.net/v1beta1",
        kind="NodeSet",
        name="gpu",
        uid=nodeset.metadata.uid,
        controller=True,
    )
    return Pod(metadata=Meta(name="gpu-0", namespace="ns", uid="w", owner_references=(owner,)))


def switched(before: dict, after: dict, *, workers: bool) -> WholeNamespace:
    """A cluster that ran with one authentication when its spec came to ask for another."""
    old, new = whole(books=before), whole(books=after)
    for manifest in old.of_controller():
        if manifest["kind"] == "ConfigMap":
            put(new.world, manifest)
    if workers:
        new.world.things.append(worker_of(new.nodeset))
    return new


@pytest.mark.parametrize(
    ("before", "after", "workers", "used"),
    [
        pytest.param({}, MUNGE, True, "slurm", id="to munge with workers: not yet"),
        pytest.param({}, MUNGE, False, "munge", id="to munge without workers"),
        pytest.param(MUNGE, {}, True, "munge", id="back with workers: not yet"),
        pytest.param(MUNGE, {}, False, "slurm", id="back without workers"),
        pytest.param(MUNGE, MUNGE, True, "munge", id="nothing changes"),
    ],
)
def test_authentication_changes_only_while_there_are_no_workers(before, after, workers, used):
    made = switched(before, after, workers=workers)

    plan = RECONCILER.decide(RECONCILER.observe(key_of(made.controller), made.world), NOW)
    told = [one for one in plan.waits if one.reason == "AuthHeld"]

    assert bool(told) == (before != after and workers)
    conf = {one["metadata"]["name"]: one for one in made.of_controller()}["slurm-config"]["data"][
        "slurm.conf"
    ]
    assert f"AuthType=auth/{used}\n" in conf
    others = {f"{one['kind']} {one['metadata']['name']}": one for one in made.of_others()}
    assert f"AuthType=auth/{used}\n" in others["Secret books-accounting"]["stringData"]["slurmdbd.conf"]
    for spec in (made.of_worker()["spec"], others["Deployment login"]["spec"]["template"]["spec"]):
        assert ("munge" in wire.encode(spec).decode()) == (used == "munge")


@pytest.mark.parametrize(
    ("phase", "is_left_behind", "is_held"),
    [
        pytest.param("Running", False, True, id="a worker"),
        pytest.param("Running", True, True, id="a worker whose NodeSet is gone: it may have jobs"),
        pytest.param("Failed", False, False, id="a worker that has ended has none"),
    ],
)
def test_which_workers_hold_up_another_authentication(phase, is_left_behind, is_held):
    made = switched({}, MUNGE, workers=False)
    pod = worker_of(made.nodeset)
    if is_left_behind:
        labels = {names.APP_NAME: "slurmd", names.LABEL_CLUSTER: made.controller.metadata.name}
        pod = wire.replace(pod, metadata=wire.replace(pod.metadata, owner_references=(), labels=labels))
    made.world.things.append(wire.replace(pod, status=wire.replace(pod.status, phase=phase)))
    plan = RECONCILER.decide(RECONCILER.observe(key_of(made.controller), made.world), NOW)

    assert bool([one for one in plan.waits if one.reason == "AuthHeld"]) is is_held


@pytest.mark.parametrize(
    ("before", "after", "is_awaited"),
    [
        pytest.param({}, MUNGE, True, id="to munge"),
        pytest.param(MUNGE, {}, True, id="back"),
        pytest.param(MUNGE, MUNGE, False, id="nothing changes"),
    ],
)
def test_no_worker_is_made_before_slurm_conf_has_the_new_authentication(before, after, is_awaited):
    made = switched(before, after, workers=False)

    waiting = plan_of_workers(made)
    assert [one.reason for one in waiting.waits] == (["AuthChanging"] if is_awaited else [])
    assert pods_created(waiting) == ([] if is_awaited else ["gpu-0"])
    assert bool(waiting.look_again) is is_awaited

    for manifest in made.of_controller():
        if manifest["kind"] == "ConfigMap":
            put(made.world, manifest)
    assert pods_created(plan_of_workers(made)) == ["gpu-0"]


def plan_of_workers(made: WholeNamespace) -> Plan:
    key = key_of(made.nodeset)
    meta = wire.replace(made.nodeset.metadata, finalizers=(names.WORKERS_FINALIZER,))
    guarded = wire.replace(made.nodeset, metadata=meta)
    made.world.things = [guarded if one is made.nodeset else one for one in made.world.things]
    made.nodeset = guarded
    return nodeset.RECONCILER.decide(nodeset.RECONCILER.observe(key, made.world), NOW)


def pods_created(plan: Plan) -> list[str]:
    created = [one.manifest for one in plan.actions() if isinstance(one, Create)]
    return [one["metadata"]["name"] for one in created if one["kind"] == "Pod"]


def test_a_controller_and_an_accounting_that_differ_are_told():
    made = whole(head=MUNGE)

    plan = RECONCILER.decide(RECONCILER.observe(key_of(made.controller), made.world), NOW)

    [wait] = [one for one in plan.waits if one.reason == "AuthDiffers"]
    assert "'books' authenticates with slurm, this Controller with munge" in wait.message


def test_slurmctld_and_slurmdbd_run_as_the_user_and_tokens_are_theirs():
    made = whole(head=ROOT, books=ROOT)
    found = pods(made)
    as_root = {"runAsNonRoot": False, "runAsUser": 0, "runAsGroup": 0}

    for daemon in ("slurmctld", "slurmdbd"):
        security = found[daemon]["containers"][0]["securityContext"]
        assert {key: security[key] for key in as_root} == as_root
        assert "capabilities" not in security
        assert found[daemon]["securityContext"] == {**as_root, "fsGroup": 0}
    objects = {f"{one['kind']} {one['metadata']['name']}": one for one in made.everything()}
    assert "SlurmUser=root\n" in objects["ConfigMap slurm-config"]["data"]["slurm.conf"]
    assert "chown 0:0 " in found["login"]["initContainers"][0]["command"][-1]
    assert {"name": "SLURM_USER", "value": "root"} in found["login"]["containers"][0]["env"]
    assert slurm_servers(made.world)[ObjectKey("ns", "slurm")].user == "root"


def test_the_key_is_copied_and_stands_in_for_one_that_is_lost():
    made = whole(books=MUNGE)
    head = key_of(made.controller)
    [copy] = [
        one.manifest
        for one in RECONCILER.decide(RECONCILER.observe(head, made.world), NOW).actions()
        if isinstance(one, Apply) and one.manifest["metadata"]["name"] == "books-munge-copy"
    ]
    put(made.world, {**copy, "metadata": {**copy["metadata"]}})
    del made.world.named[Secret, ObjectKey("ns", "books-munge")]

    seen = RECONCILER.observe(head, made.world)

    assert list(copy["stringData"]) == ["key-m1"]
    assert key_copies.lost(seen)["books-munge"]["munge.key"].key == "key-m1"
    assert [one.key.name for one in key_copies.removals(seen) if one.key.name == "books-munge-copy"]
