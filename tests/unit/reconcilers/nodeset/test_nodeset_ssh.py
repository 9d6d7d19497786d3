"""ssh into workers: its configuration comes before them and goes after the last that needs it."""

import pytest

from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Child, Meta
from slurm_operator.manifests.objects import Secret, Unread
from slurm_operator.plan.actions import Apply, Create, DeleteWorker, WriteSlurm
from slurm_operator.plan.conditions import DEGRADED
from slurm_operator.plan.plan import Outcome
from slurm_operator.reconcilers.nodeset import RECONCILER
from slurm_operator.reconcilers.nodeset.creation.pod import RESOURCES_DIGEST
from testing.children import secret, with_secrets
from testing.workers import (
    CONTROLLER,
    KEY,
    NOW,
    controller,
    nodeset,
    planned,
    revision_of,
    slurm,
    slurm_node,
    told,
    worker,
    world,
)

SSH = {
    "enabled": True,
    "extraSshdConfig": "MaxSessions 3",
    "sssdConfRef": {"name": "sssd", "key": "sssd.conf"},
}


def seen(*things, there=(), **spec):
    made = nodeset(**{"replicas": 1, **spec})
    found = world(made, controller(), *things, revisions_=[revision_of(made)])
    found.children_[kinds.CONFIG_MAP] = list(there)
    return with_secrets(found, secret("sssd", sssd_conf="d1"))


def applied(made) -> dict:
    return next(action.manifest for action in planned(made).actions() if isinstance(action, Apply))


def live(made) -> Child:
    """The ConfigMap as it is once it was written."""
    body = applied(made)
    meta = body["metadata"]
    found = Meta(
        name=meta["name"],
        namespace="ns",
        uid="cm",
        labels=meta["labels"],
        annotations=meta.get("annotations", {}),
    )
    return Child(metadata=found, body=body)


def test_the_configuration_comes_first():
    made = seen(ssh=SSH)

    assert told(made) == ["Apply", "create Pod gpu-0"]
    text = applied(made)["data"]["sshd_config"]
    assert text.index("AuthenticationMethods publickey password") < text.index("MaxSessions 3")
    assert applied(made)["metadata"]["name"] == "gpu-ssh-config"
    assert applied(made)["metadata"]["labels"][names.LABEL_CLUSTER] == "slurm"


def test_workers_forward_x11_only_where_the_user_says_so():
    asked = {**SSH, "extraSshdConfig": "X11Forwarding yes"}

    assert "X11" not in applied(seen(ssh=SSH))["data"]["sshd_config"]
    assert applied(seen(ssh=asked))["data"]["sshd_config"].count("X11Forwarding yes") == 1


def test_pods_say_what_their_sshd_was_started_with_and_admit_only_jobs():
    made = seen(ssh=SSH)
    pod = next(action.manifest for action in planned(made).actions() if isinstance(action, Create))
    notes = pod["metadata"]["annotations"]
    environment = {item["name"]: item.get("value") for item in pod["spec"]["containers"][0]["env"]}

    assert notes[names.SSSD_CONF_HASH] == "d1"
    assert notes[names.SSHD_CONF_HASH]
    assert environment["PAM_SLURM_ADOPT_OPTIONS"] == "action_adopt_failure=deny action_generic_failure=deny"


def test_without_ssh_there_is_none_of_it():
    [pod] = [action.manifest for action in planned(seen()).actions() if isinstance(action, Create)]

    assert names.SSHD_CONF_HASH not in pod["metadata"]["annotations"]
    assert "PAM_SLURM_ADOPT_OPTIONS" not in {item["name"] for item in pod["spec"]["containers"][0]["env"]}


def noting(**notes: str):
    """A worker as it was made, with what it notes about sssd.conf."""
    made = nodeset(replicas=1, ssh=SSH)
    return worker(0, revision=revision_of(made).metadata.labels[names.LABEL_REVISION], annotations=notes)


def of_another_operator():
    there = noting(**{names.SSSD_CONF_HASH: "d0"})
    kept = {key: value for key, value in there.metadata.annotations.items() if key != RESOURCES_DIGEST}
    return wire.replace(there, metadata=wire.replace(there.metadata, annotations=kept))


@pytest.mark.parametrize(
    ("there", "is_told"),
    [
        pytest.param(noting(**{names.SSSD_CONF_HASH: "d1"}), False, id="it has the present one"),
        pytest.param(noting(**{names.SSSD_CONF_HASH: "d0"}), True, id="it was made with another one"),
        pytest.param(noting(), False, id="it notes none"),
        pytest.param(of_another_operator(), False, id="another operator made it: its digests are not ours"),
    ],
)
def test_a_worker_with_an_old_sssd_conf_is_told_of_and_stays(there, is_told):
    before = live(seen(ssh=SSH))
    made = seen(there, ssh=SSH, there=[before])
    made.slurms[CONTROLLER] = slurm(slurm_node(there, "IDLE"))
    found = RECONCILER.observe(KEY, made)
    plan = RECONCILER.decide(found, NOW)
    [degraded] = [one for one in RECONCILER.status(found, plan, Outcome()).conditions if one.type == DEGRADED]

    assert (degraded.reason == "OldSssdConf") is is_told
    assert (
        "gpu-0 has the sssd.conf that was in Secret 'sssd' when its pod was made" in degraded.message
    ) is is_told
    assert [action for action in plan.actions() if isinstance(action, DeleteWorker | WriteSlurm)] == []


def degraded(made):
    found = RECONCILER.observe(KEY, made)
    told_of = RECONCILER.status(found, RECONCILER.decide(found, NOW), Outcome()).conditions
    return next(one for one in told_of if one.type == DEGRADED)


@pytest.mark.parametrize(
    ("named", "reason", "words"),
    [
        pytest.param(None, "SecretNotFound", "Secret 'sssd' in namespace 'ns', which spec.ssh.sssdConfRef names: there is none yet.", id="no such Secret"),
        pytest.param(secret("sssd", other_conf="d1"), "SecretEntryNotFound", "has no entry 'sssd.conf' (it has: other.conf). Correct spec.ssh.sssdConfRef.key, or add it.", id="without the key"),
        pytest.param(secret("sssd", sssd_conf="d1"), "AsExpected", "", id="in order"),
        pytest.param(Unread(why="forbidden"), "AsExpected", "", id="only the operator cannot read it"),
    ],
)  # fmt: skip
def test_a_missing_sssd_conf_is_told_of_with_what_happens_when_it_comes(named, reason, words):
    pod = worker(0, ready=False, phase="Pending", started=False)
    made = seen(pod, ssh=SSH)
    made.slurms[CONTROLLER] = slurm()
    made.named.clear()
    if named is not None:
        made.named[Secret, ObjectKey("ns", "sssd")] = named

    found = degraded(made)

    assert found.reason == reason
    assert words in found.message
    assert ("When 'sssd.conf' is there, new workers start automatically" in found.message) is bool(words)


@pytest.mark.parametrize(
    "ssh",
    [
        pytest.param({**SSH, "enabled": False}, id="ssh is off"),
        pytest.param({"enabled": True}, id="none is named"),
    ],
)
def test_where_no_sssd_conf_is_asked_for_none_is_missed(ssh):
    made = seen(ssh=ssh)
    made.named.clear()

    assert degraded(made).reason == "AsExpected"


def test_a_missing_secret_holds_up_no_worker():
    made = seen(ssh=SSH)
    made.named.clear()

    assert "create Pod gpu-0" in told(made)
    assert not made.named.get((Secret, ("ns", "sssd")))


def test_what_is_as_it_should_be_is_not_written():
    there = live(seen(ssh=SSH))

    assert told(seen(ssh=SSH, there=[there])) == ["create Pod gpu-0"]


@pytest.mark.parametrize(
    ("revision", "goes"),
    [
        pytest.param("before", False, id="a worker still mounts it"),
        pytest.param(None, True, id="nobody does"),
    ],
)
def test_the_configuration_goes_with_the_last_worker_that_needs_it(revision, goes):
    there = live(seen(ssh=SSH))
    hash_ = revision or revision_of(nodeset()).metadata.labels[names.LABEL_REVISION]
    made = seen(worker(0, revision=hash_), there=[there])

    assert ("DeleteObject" in told(made)) is goes
