"""What is decided about a Controller, case by case, and what its owner is told."""

from datetime import timedelta

import pytest

from slurm_operator import wire
from slurm_operator.api.schema import codec
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import Meta, ObjectKey
from slurm_operator.api.slinky.accounting import AccountingStatus
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.manifests import kinds
from slurm_operator.manifests.builders.signing_keys import kept
from slurm_operator.manifests.compare.differences import TEMPLATE_DIGEST
from slurm_operator.manifests.objects import (
    ContainerState,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    Pod,
    PodCondition,
    PodStatus,
    Secret,
    Unread,
)
from slurm_operator.manifests.platform import VolumeClaim, VolumeClaimSpec
from slurm_operator.plan.actions import (
    Apply,
    DeleteDaemonPod,
    DeleteObject,
    GenerateSecret,
    Wait,
)
from slurm_operator.plan.plan import Failure, Outcome
from slurm_operator.reconcilers.controller import (
    RECONCILER,
    behind,
    keeping_records_in,
    of_clients,
    of_workers,
    sharing_volume,
)
from slurm_operator.reconcilers.controller.annotations import DIGEST_WORD, is_rehearsal
from slurm_operator.reconcilers.controller.configuration import rehearsal as rehearsals
from slurm_operator.reconcilers.controller.configuration.files import files_of, wanted_files
from slurm_operator.reconcilers.controller.configuration.rehearsal import judged, rehearsal_pod
from slurm_operator.reconcilers.controller.observe import observe
from slurm_operator.reconcilers.shared.deletion_hold import FINALIZER, FORCE_DELETION
from slurm_operator.reconcilers.shared.slurm_servers import slurm_servers
from slurm_operator.slurm.conf.lines import parse
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurm.states import JobState, NodeState
from testing.controller_cases import CASES
from testing.controller_play import NOON, Play, crashing, job, parameters, running
from testing.controllers import KEY, NS, child, controller, files, put, secret, thing, world

RESTAPI = thing("RestApi", "rest", {"controllerRef": {"name": "slurm"}})


def decide(made, now=NOON):
    seen = RECONCILER.observe(KEY, made)
    plan = RECONCILER.decide(seen, now)
    return seen, plan, list(plan.actions())


def conditions(made, now=NOON, outcome=None):
    seen, plan, done = decide(made, now)
    report = RECONCILER.status(seen, plan, outcome or Outcome(done=tuple(done)))
    return {c.type: c for c in report.conditions}


def up(*things, spec=None, **more) -> Play:
    return Play(world(controller(spec), RESTAPI, *things), **more).rounds()


def waits(made, now=NOON):
    return {action.reason: action.message for action in decide(made, now)[2] if isinstance(action, Wait)}


@pytest.mark.parametrize(
    ("made", "reason", "says"),
    [
        pytest.param(world(controller({"slurmKeyRef": {"name": "k", "key": "slurm.key"}})), "KeyMissing", "There is no Secret 'k'", id="no Slurm key"),
        pytest.param(world(controller({"jwtKeyRef": {"name": "k", "key": "nope"}}), secret("k", jwt_key="j")), "KeyMissing", "it has: jwt.key", id="a typo in the entry"),
        pytest.param(world(controller({"accountingRef": {"name": "books"}})), "AccountingNotFound", "no Accounting 'books'", id="no Accounting"),
        pytest.param(world(controller({"configFileRefs": [{"name": "f"}]})), "ConfigMapNotFound", "no ConfigMap 'f'", id="no ConfigMap"),
        pytest.param(world(controller({"extraConf": "Nonsense=1"})), "ConfigRefused", "line 1 of spec.extraConf", id="a bad line"),
    ],
)  # fmt: skip
def test_what_is_missing_is_named_and_holds_up_only_what_needs_it(made, reason, says):
    _, _, actions = decide(made)

    assert says in waits(made)[reason]
    assert {a.manifest["kind"] for a in actions if isinstance(a, Apply)} == {"Service", "PodDisruptionBudget"}
    found = conditions(made)
    assert (found["Ready"].status, found["Degraded"].status, found["Degraded"].reason) == (
        "False",
        "True",
        reason,
    )
    assert (found["Ready"].reason, found["Progressing"].status) == (reason, "True")


def test_a_secret_that_may_not_be_read_is_told():
    made = world(controller())
    made.with_secret(Unread(why="forbidden"), ObjectKey(NS, "slurm-auth-slurm"))

    assert "could not be read: forbidden" in waits(made)["KeyMissing"]


def test_keys_that_nobody_names_are_made_once_and_belong_to_nobody():
    _, _, actions = decide(world(controller(), keys=False))

    made = [action for action in actions if isinstance(action, GenerateSecret)]
    assert {a.manifest["metadata"]["name"]: (a.entry, a.size) for a in made} == {
        "slurm-auth-slurm": ("slurm.key", 1024), "slurm-auth-jwt": ("jwt.key", 32),
    }  # fmt: skip
    assert not any("ownerReferences" in action.manifest["metadata"] for action in made)


def test_a_key_that_is_lost_under_running_daemons_is_not_replaced_by_another():
    made = up()
    del made.world.named[Secret, ObjectKey(NS, "slurm-auth-slurm")]

    _, _, actions = decide(made.world)

    assert [type(action) for action in actions] == [Wait]
    assert "Put it back from a copy" in actions[0].message


def test_controllers_on_one_accounting_share_its_keys():
    made = world(controller({"accountingRef": {"name": "books"}}), thing("Accounting", "books"), keys=False)

    generated = [a.manifest["metadata"]["name"] for a in decide(made)[2] if isinstance(a, GenerateSecret)]

    assert generated == ["books-auth-slurm", "books-auth-jwt"]


def test_an_external_slurmctld_gets_no_keys_of_ours_and_no_pods():
    _, _, actions = decide(CASES["external"])

    assert {(a.manifest["kind"], a.manifest["metadata"]["name"]) for a in actions if isinstance(a, Apply)} == {
        ("Service", "slurm-workers-slurm"), ("PodDisruptionBudget", "slurm-workers-pdb-slurm"), ("ConfigMap", "slurm-config"),
    }  # fmt: skip
    assert not any(isinstance(action, GenerateSecret) for action in actions)
    assert conditions(CASES["external"])["Ready"].reason == "NotObserved"


@pytest.mark.parametrize(
    ("status", "waits_for"),
    [
        ({}, True),
        (
            {
                "conditions": [
                    {
                        "type": "Ready",
                        "status": "False",
                        "reason": "X",
                        "message": "no database",
                        "lastTransitionTime": "2026-01-01T11:59:18Z",
                    }
                ]
            },
            True,
        ),
        ({"conditions": [{"type": "Ready", "status": "True", "reason": "X", "message": ""}]}, False),
    ],
)
def test_the_first_start_waits_for_slurmdbd(status, waits_for):
    books = thing("Accounting", "books")
    made = Play(world(controller({"accountingRef": {"name": "books"}}),
                      wire.replace(books, status=codec.read(AccountingStatus, status))))  # fmt: skip
    for _ in range(6):
        made.round()

    assert bool(made.pods()) is not waits_for
    if waits_for:
        ready = made.condition("Ready")
        assert ready.reason == "AccountingNotReady"
        since = " since 11:59:18 UTC" if status else ""
        assert ready.message.startswith(
            f"waiting for slurmdbd: no answer on books-accounting:6819{since}. slurmctld starts"
        )
        assert ("no database" in ready.message) is bool(status)


def test_a_running_slurmctld_does_not_care_that_slurmdbd_is_away():
    made = up()
    made.spec(accountingRef={"name": "books"})
    made.world.things.append(thing("Accounting", "books"))
    made.world.named.update(world(controller({"accountingRef": {"name": "books"}})).named)
    made.rounds()

    assert "AccountingStorageHost=books-accounting" in made.running.texts["slurm.conf"]


# ---- Pods


def with_pods(made: Play, *pods: Pod) -> Play:
    for pod in pods:
        made._replace(pod)
    return made


def test_a_changed_template_replaces_the_pod():
    made = up()
    made.spec(slurmctld={"image": "slurmctld:26.11"})
    made.rounds()

    assert made.restarts == 1
    assert any("the pod template changed" in line for line in made.transcript)


def built_by_an_older_version(made: Play) -> Play:
    """The StatefulSet has another template than we would build, for the same spec."""
    workload = made.world.child(kinds.STATEFUL_SET, NS, "slurm-controller")
    body = wire.decode_any(wire.encode(workload.body))
    body["spec"]["template"]["spec"]["containers"][0]["image"] = "slurmctld:older"
    notes = {**workload.metadata.annotations, TEMPLATE_DIGEST: "older"}
    body["metadata"]["annotations"] = notes
    metadata = wire.replace(workload.metadata, annotations=notes)
    made.world.children_[kinds.STATEFUL_SET] = [wire.replace(workload, metadata=metadata, body=body)]
    return made


def test_a_new_operator_version_with_other_templates_replaces_nothing():
    made = built_by_an_older_version(up())

    assert [a for a in decide(made.world)[2] if not isinstance(a, Apply)] == []
    assert all(
        a.manifest["spec"]["template"]["spec"]["containers"][0]["image"] == "slurmctld:older"
        for a in decide(made.world)[2]
    )


def test_without_persistence_slurmctld_is_not_restarted_under_jobs():
    made = up(spec={"persistence": {"enabled": False}}, jobs=(job(3),))
    made.round()
    made.spec(slurmctld={"image": "slurmctld:26.11"})
    for _ in range(4):
        made.round()
    assert made.restarts == 0
    assert "forget its jobs; unfinished jobs: 3" in waits(made.world, made.now)["RestartPostponed"]

    made.jobs = ()
    made.rounds()
    assert made.restarts == 1


def test_a_new_signing_key_gives_a_new_pod_at_once():
    made = up(jobs=(job(3),))
    made.world.named[Secret, ObjectKey(NS, "slurm-auth-jwt")] = secret("slurm-auth-jwt", jwt_key="j2")
    made.rounds()

    assert made.restarts == 1


@pytest.mark.parametrize(
    ("began", "is_told", "is_put_back"),
    [
        pytest.param(timedelta(seconds=-60), False, False, id="it ended before it could read them"),
        pytest.param(timedelta(seconds=-60), True, True, id="it was told to read them"),
        pytest.param(timedelta(seconds=60), False, True, id="it began with them"),
    ],
)
def test_only_a_slurmctld_that_has_read_the_new_files_speaks_against_them(began, is_told, is_put_back):
    made = up(takes=lambda found: not is_told)
    before = made.mounted()
    made.spec(extraConf="KillWait=5\n")
    while made.mounted() == before or (is_told and not any("told slurmctld" in it for it in made.transcript)):
        made.round()
    with_pods(made, crashing(made.pods()[0], "fatal: no such thing", began=made.now + began))
    made.has_restapi = False
    made.world.slurms.clear()
    made.round()

    assert (made.mounted() == before) is is_put_back


def test_without_persistence_the_key_before_is_kept_until_no_slurmctld_has_it():
    made = up(spec={"persistence": {"enabled": False}}, jobs=(job(3),))
    names_of_secrets = (ObjectKey(NS, "slurm-auth-jwt"), ObjectKey(NS, "slurm-signing-keys"))
    theirs, ours = ((Secret, key) for key in names_of_secrets)
    [before] = kept(made.world.named[ours])

    made.world.named[theirs] = secret("slurm-auth-jwt", jwt_key="j2")
    for _ in range(4):
        made.round()
    assert (made.restarts, set(kept(made.world.named[ours]))) == (0, {before, "j2"})
    [server] = slurm_servers(made.world).values()
    assert (server.key.digest, [one.key for one in server.former]) == ("j2", [f"key-{before}"])

    made.jobs = ()
    made.rounds()
    assert (made.restarts, kept(made.world.named[ours])) == (1, ("j2",))
    [server] = slurm_servers(made.world).values()
    assert server.former == ()


def test_the_copy_of_a_key_comes_before_the_slurmctld_that_is_started_with_it():
    made = Play(world(controller({"persistence": {"enabled": False}}), RESTAPI)).rounds()
    told = [line for line in made.transcript if "signing-keys" in line or "StatefulSet" in line]
    unreadable = world(controller({"persistence": {"enabled": False}}), RESTAPI)
    unreadable.named[Secret, ObjectKey(NS, "slurm-signing-keys")] = Unread(why="forbidden")

    assert [line.split()[1] for line in told] == ["Secret", "StatefulSet"]
    assert Play(unreadable).rounds().pods(), "one that cannot be read holds up nobody"


def test_a_pod_that_does_not_run_is_replaced_without_asking():
    made = up(spec={"persistence": {"enabled": False}}, jobs=(job(3),))
    [pod] = made.pods()
    stuck = ContainerStatus(name="slurmctld")
    with_pods(made, wire.replace(pod, status=PodStatus(phase="Pending", container_statuses=[stuck])))
    made.spec(slurmctld={"image": "slurmctld:26.11"})
    made.rounds()

    assert made.restarts == 1


@pytest.mark.parametrize(
    ("has_volume", "restarts"),
    [
        pytest.param(False, 0, id="its jobs are in the pod, and there again when it starts again"),
        pytest.param(True, 1, id="its jobs are on the volume"),
    ],
)
def test_a_slurmctld_whose_container_crashed_is_replaced_only_if_that_costs_no_jobs(has_volume, restarts):
    made = up(spec={"persistence": {"enabled": has_volume}}, jobs=(job(3),))
    made.spec(slurmctld={"image": "slurmctld:26.11"})
    made.round()
    with_pods(made, crashing(made.pods()[0], "Killed", began=NOON))
    made.has_restapi = False
    made._slurm()
    for _ in range(2):
        made.round()

    assert made.restarts == restarts
    if not restarts:
        told = waits(made.world, made.now)["RestartPostponed"]
        assert "whether jobs are left cannot be seen" in told
        assert told.endswith("To start over without them, delete pod slurm-controller-0.")


HA = {"ha": {"enabled": True}, "persistence": {"enabled": True, "existingClaim": "shared"}}


def test_of_several_slurmctlds_the_standby_is_replaced_first_and_one_at_a_time():
    made = up(spec=HA)
    made.spec(slurmctld={"image": "slurmctld:26.11"})
    made.rounds()

    replaced = [line.split()[2] for line in made.transcript if line.startswith("DeleteDaemonPod")]
    assert replaced == [f"{NS}/slurm-controller-1:", f"{NS}/slurm-controller-0:"]


def test_the_next_one_waits_until_the_first_runs_again():
    made = up(spec=HA)
    for pod in made.pods():
        old = wire.replace(pod.metadata, labels={**pod.metadata.labels, names.LABEL_REVISION: "older"})
        made._replace(wire.replace(pod, metadata=old))
    standby = made.pods()[1]
    with_pods(made, wire.replace(standby, status=PodStatus(phase="Pending")))

    [action] = [a for a in decide(made.world)[2] if isinstance(a, DeleteDaemonPod)]
    assert action.key.name == "slurm-controller-1"

    with_pods(made, wire.replace(standby, metadata=wire.replace(standby.metadata, labels=made.pods()[0].metadata.labels | {names.LABEL_REVISION: current(made)}), status=PodStatus(phase="Pending")))  # fmt: skip
    assert "slurm-controller-1" in waits(made.world)["OneAtATime"]


def test_the_next_one_waits_while_the_first_is_still_going():
    made = up(spec=HA)
    for pod in made.pods():
        old = wire.replace(pod.metadata, labels={**pod.metadata.labels, names.LABEL_REVISION: "older"})
        made._replace(wire.replace(pod, metadata=old))
    standby = made.pods()[1]
    with_pods(made, wire.replace(standby, metadata=wire.replace(standby.metadata, deletion_timestamp=NOON)))

    assert not [a for a in decide(made.world)[2] if isinstance(a, DeleteDaemonPod)]
    assert "slurm-controller-1" in waits(made.world)["OneAtATime"]


def current(made: Play) -> str:
    return made.world.child(kinds.STATEFUL_SET, NS, "slurm-controller").body["status"]["updateRevision"]


def test_the_label_of_the_one_in_charge_follows_readiness():
    made = up(spec=HA)
    first, second = made.pods()
    assert names.LABEL_ACTIVE in first.metadata.labels
    assert names.LABEL_ACTIVE not in second.metadata.labels

    with_pods(made, running(first, NOON, is_ready=False), running(second, NOON, is_ready=True))
    made.rounds()

    first, second = made.pods()
    assert names.LABEL_ACTIVE not in first.metadata.labels
    assert names.LABEL_ACTIVE in second.metadata.labels
    assert made.controller.status.active == "slurm-controller-1"


BESIDE = {"template": {"spec": {"containers": [{"name": "sssd", "image": "sssd:1"}]}}}


def with_broken_sssd(pod: Pod, *, is_reported: bool = True) -> Pod:
    """The same pod while the container beside a ready slurmctld keeps ending; or its kubelet is silent."""
    state = ContainerState(waiting=ContainerStateWaiting(reason="CrashLoopBackOff"))
    last = ContainerState(terminated=ContainerStateTerminated(exit_code=4, message="no such domain"))
    sssd = ContainerStatus(name="sssd", restart_count=3, state=state, last_state=last)
    slurmctld = running(pod, NOON, is_ready=True).status.container_statuses
    told = "False" if is_reported else "True"
    conditions = [
        PodCondition(type="Ready", status="False"),
        PodCondition(type="ContainersReady", status=told),
    ]
    beside = (sssd,) if is_reported else ()
    return wire.replace(
        pod,
        status=PodStatus(phase="Running", conditions=conditions, container_statuses=[*slurmctld, *beside]),
    )


def test_a_broken_container_beside_slurmctld_is_named_and_takes_nothing_else_away():
    made = up(spec=BESIDE)
    [pod] = made.pods()

    with_pods(made, with_broken_sssd(pod))
    made.rounds()

    service = made.world.child(kinds.SERVICE, NS, "slurm-controller").body["spec"]
    assert service["publishNotReadyAddresses"] is True, "slurmctld stays behind its Service"
    assert made.condition("Ready").status == "True"
    assert made.controller.status.active == pod.metadata.name
    degraded = made.condition("Degraded")
    assert (degraded.status, degraded.reason) == ("True", "PodsNotReady")
    assert "container sssd that keeps ending with exit code 4: no such domain" in degraded.message


def test_a_slurmctld_whose_kubelet_is_silent_is_not_taken_for_ready():
    made = up(spec=BESIDE)

    with_pods(made, with_broken_sssd(made.pods()[0], is_reported=False))
    made.rounds()

    assert made.condition("Ready").status == "False"


def test_of_several_slurmctlds_the_service_finds_the_one_in_charge_by_its_readiness():
    made = up(spec={**HA, **BESIDE})
    first = next(pod for pod in made.pods() if pod.metadata.name == "slurm-controller-0")

    assert (
        "publishNotReadyAddresses" not in made.world.child(kinds.SERVICE, NS, "slurm-controller").body["spec"]
    )
    with_pods(made, with_broken_sssd(first))
    made.rounds()
    assert made.controller.status.active == ""


def test_fields_that_cannot_change_are_changed_by_a_new_statefulset_under_the_same_pods():
    made = up()
    made.spec(persistence={"enabled": True, "resources": {"requests": {"storage": "99Gi"}}})

    [deleted] = [a for a in decide(made.world)[2] if isinstance(a, DeleteObject)]

    assert (deleted.kind, deleted.keeps_dependents) == (kinds.STATEFUL_SET, True)
    made.rounds()
    assert made.restarts == 0


# ---- Rehearsals


def test_a_rehearsal_touches_nothing_but_itself():
    made = _rehearsing(world(controller({**HA, "accountingRef": {"name": "books"},
        "extraConf": "AccountingStorageEnforce=limits,\\\nqos\nSlurmctldPrimaryOnProg=/bin/ring\nKillWait=5\n"}), thing("Accounting", "books")))  # fmt: skip
    conf = parse(made.texts["slurm.conf"], "slurm.conf")

    assert conf.last("AccountingStorageType") == "accounting_storage/none"
    assert [s.value for s in conf.all("SlurmctldHost")] == ["slurm-controller-0(127.0.0.1)"]
    assert (
        conf.all("SlurmctldAddr")
        == conf.all("AccountingStorageHost")
        == conf.all("AccountingStorageEnforce")
        == ()
    )
    assert conf.all("SlurmctldPrimaryOnProg") == conf.problems == ()
    assert conf.last("KillWait") == "5"


def test_lines_keep_their_numbers_in_a_rehearsal():
    made = world(controller({"extraConf": "AccountingStorageTRES=gres/gpu\nKillWait=5\n"}))
    before = wanted_files(observe(KEY, made)).texts["slurm.conf"].splitlines()
    after = _rehearsing(made).texts["slurm.conf"].splitlines()

    assert before.index("KillWait=5") == after.index("KillWait=5")


def test_workers_that_joined_by_themselves_are_known_to_the_rehearsal():
    made = world(controller())
    node = SlurmNode(name="gpu-0", state=NodeState(frozenset({"IDLE", "DYNAMIC_NORM"})))
    static = SlurmNode(name="old-0", state=NodeState(frozenset({"IDLE"})))
    made.slurms[KEY] = Snapshot(
        nodes={"gpu-0": node, "old-0": static}, jobs={}, nodes_asked_at=NOON, jobs_asked_at=NOON
    )

    assert parse(_rehearsing(made).texts["slurm.conf"], "").last("NodeName") == "gpu-0"


def _rehearsing(made):
    seen = observe(KEY, made)
    return files_of(child(rehearsals.config_map(seen, wanted_files(seen))))


def test_the_rehearsal_runs_the_image_that_runs_not_a_newer_default():
    seen = observe(KEY, built_by_an_older_version(up()).world)

    pod = rehearsal_pod(seen, child(rehearsals.config_map(seen, wanted_files(seen))))

    assert pod["spec"]["containers"][0]["image"] == "slurmctld:older"


def test_the_rehearsal_pod_is_no_slurmctld_to_services_and_statefulsets():
    seen = observe(KEY, CASES["everything"])
    holder = child(rehearsals.config_map(seen, wanted_files(seen)))

    pod = rehearsal_pod(seen, holder)

    assert pod["metadata"]["labels"][names.APP_NAME] == "slurm-rehearsal"
    assert pod["metadata"]["ownerReferences"][0]["uid"] == holder.metadata.uid
    assert pod["spec"]["hostname"] == "slurm-controller-0"
    assert [c["name"] for c in pod["spec"]["containers"]] == ["slurmctld"]
    assert pod["spec"]["initContainers"] == []
    assert "affinity" not in pod["spec"]
    resources = pod["spec"]["containers"][0]["resources"]
    assert resources == {"limits": {"memory": "4Gi"}, "requests": {"cpu": "10m", "memory": "64Mi"}}
    assert {"name": "statesave", "emptyDir": {}} in pod["spec"]["volumes"]
    assert {"name": "plugins", "emptyDir": {}} in pod["spec"]["volumes"]


@pytest.mark.parametrize(
    ("said", "is_good", "file", "line", "word"),
    [
        ("good\n", True, "", 0, ""),
        ("slurmctld: error: Configured MailProg is invalid\nslurmctld: fatal: Invalid node names in partition p\n", False, "", 0, "fatal: Invalid node names in partition p"),
        ("[2026-01-01T12:00:00.123] error: Parse error in file /etc/slurm/gres.conf line 7: \"x\"\nfatal: no\n", False, "gres.conf", 7, "Parse error"),
        ("slurmctld: error: s_p_parse_file: cannot stat file /etc/slurm/topology.conf\n", False, "", 0, "cannot stat file"),
    ],
)  # fmt: skip
def test_the_verdict_of_a_rehearsal_is_read(said, is_good, file, line, word):
    found = judged(said)

    assert (found.is_good, found.file, found.line) == (is_good, file, line)
    assert word in found.message
    assert "MailProg" not in found.message


def test_a_complaint_about_node_names_does_not_count_while_workers_cannot_be_seen():
    made = Play(world(controller({"extraConf": "PartitionName=p Nodes=gpu-0\n"})),
                rehearse=lambda files: "fatal: Invalid node names in partition p\n", has_restapi=False)  # fmt: skip
    made.rounds()

    assert made.pods()


def test_what_was_read_of_slurm_before_a_change_was_asked_for_does_not_tell_what_it_costs():
    made = up()
    made.spec(extraConf="SelectType=select/linear\n")
    made.round()
    [begun] = [one for one in made.world.children_[kinds.CONFIG_MAP] if is_rehearsal(one)]
    [read] = made.world.slurms.values()
    now = read.asked_at + timedelta(seconds=2)
    assert "JobsAtStake" not in waits(made.world, now)
    set_back = read.asked_at - timedelta(minutes=1)
    assert "Slurm is read again" in waits(made.world, set_back)["JobsAtStake"]

    younger = wire.replace(begun.metadata, creation_timestamp=read.asked_at + timedelta(seconds=1))
    others = [one for one in made.world.children_[kinds.CONFIG_MAP] if one is not begun]
    made.world.children_[kinds.CONFIG_MAP] = [*others, wire.replace(begun, metadata=younger)]

    assert "Slurm is read again" in waits(made.world, now)["JobsAtStake"]


RUNS_OUT = "CredType=cred/none\n"  # Interrupts steps that run; jobs that have not begun lose nothing.
FORGETS = "SelectType=select/linear\n"  # Loses all jobs, those in the queue too.
RESTARTS = "SlurmctldPort=7817\n"  # Costs jobs only where slurmctld forgets them.
FORGETFUL = {"persistence": {"enabled": False}}


@pytest.mark.parametrize(
    ("change", "spec", "words", "waits_for_it"),
    [
        pytest.param(RUNS_OUT, {}, ("PENDING",), False, id="pending: nothing to lose"),
        pytest.param(RUNS_OUT, {}, ("PENDING", "REQUEUE_HOLD"), False, id="held in the queue"),
        pytest.param(RUNS_OUT, {}, ("RUNNING",), True, id="running"),
        pytest.param(RUNS_OUT, {}, ("RUNNING", "CONFIGURING"), True, id="its nodes are being prepared"),
        pytest.param(RUNS_OUT, {}, ("PENDING", "CONFIGURING"), True, id="the same, as some versions say it"),
        pytest.param(RUNS_OUT, {}, ("SUSPENDED",), True, id="suspended"),
        pytest.param(RUNS_OUT, {}, ("COMPLETED", "COMPLETING"), True, id="its epilog runs"),
        pytest.param(RUNS_OUT, {}, ("PENDING", "COMPLETING"), True, id="requeued, and not gone yet"),
        pytest.param(RUNS_OUT, {}, ("COMPLETED", "STAGE_OUT"), True, id="its data is brought home"),
        pytest.param(RUNS_OUT, {}, ("PENDING", "NEW_WORD"), True, id="a word that nobody knows"),
        pytest.param(FORGETS, {}, ("PENDING",), True, id="a change that loses the queue"),
        pytest.param("StateSaveLocation=/elsewhere\n", {}, ("PENDING",), True, id="another state directory"),
        pytest.param(RESTARTS, {}, ("PENDING",), False, id="a restart"),
        pytest.param(RESTARTS, FORGETFUL, ("PENDING",), True, id="a restart without persistence"),
        pytest.param(RUNS_OUT, FORGETFUL, ("PENDING",), True, id="one that costs steps, without persistence"),
    ],
)  # fmt: skip
def test_a_change_waits_for_the_jobs_that_it_would_cost(change, spec, words, waits_for_it):
    made = up(spec={"extraConf": "PartitionName=debug Nodes=ALL\n", **spec}, jobs=(a_job(7, "debug", words),))
    made.spec(extraConf=f"PartitionName=debug Nodes=ALL\n{change}")
    for _ in range(12):
        made.round()

    assert (change.strip() in made.running.texts["slurm.conf"]) is not waits_for_it
    if waits_for_it:
        assert ": 7." in waits(made.world, made.now)["JobsAtStake"]
        made.jobs = ()
        made.rounds()
    assert change.strip() in made.running.texts["slurm.conf"]


@pytest.mark.parametrize("words", [("PENDING",), ("RUNNING",), ("SUSPENDED",)])
@pytest.mark.parametrize(
    ("before", "kept_line"),
    [
        ("PartitionName=debug Nodes=ALL Default=YES MaxTime=60", "PartitionName=debug Nodes=ALL MaxTime=60 State=INACTIVE"),
        ("PartitionName=debug Nodes=ALL State=UP", "PartitionName=debug Nodes=ALL State=INACTIVE"),
    ],
)  # fmt: skip
def test_a_partition_that_jobs_name_stays_inactive_and_holds_up_nothing_else(words, before, kept_line):
    made = up(
        spec={"extraConf": f"{before}\n"}, jobs=(a_job(7, "debug", words), a_job(8, "debug,more", words))
    )
    made.spec(extraConf="PartitionName=other Nodes=ALL Default=YES\nMaxJobCount=7000\n")
    for _ in range(12):
        made.round()
        assert has_debug(made.running)

    lines = made.running.texts["slurm.conf"].splitlines()
    assert kept_line in lines
    assert {"PartitionName=other Nodes=ALL Default=YES", "MaxJobCount=7000"} <= {*lines}
    told = waits(made.world, made.now)["PartitionInUse"]
    if words == ("PENDING",):
        assert "scontrol update jobid=7,8 partition=PARTITION`, or cancel them with `scancel 7 8`" in told
    else:
        assert "Jobs that have started: 7, 8." in told
    assert made.condition("Degraded").status == "False"
    assert made.condition("Progressing").reason == "PartitionInUse"

    made.spec(extraConf="PartitionName=other Nodes=ALL Default=YES\nMaxJobCount=8000\n")
    for _ in range(12):
        made.round()
    assert "MaxJobCount=8000" in made.running.texts["slurm.conf"], "later changes pass as well"
    assert has_debug(made.running)

    made.jobs = ()
    made._slurm()
    made.rounds()
    assert not has_debug(made.running)
    assert "PartitionInUse" not in waits(made.world, made.now)
    assert made.restarts == 0


def test_whether_jobs_name_a_partition_is_assumed_while_slurm_is_out_of_sight():
    made = up(spec={"extraConf": "PartitionName=debug Nodes=ALL\n"})
    made.has_restapi = False
    made._slurm()
    made.spec(extraConf="MaxJobCount=7000\n")
    for _ in range(12):
        made.round()
    assert "PartitionName=debug Nodes=ALL State=INACTIVE" in made.mounted().texts["slurm.conf"]
    assert "cannot be seen" in waits(made.world, made.now)["PartitionInUse"]


def a_job(job_id: int, partition: str, words: tuple[str, ...]):
    return wire.replace(job(job_id, partition), state=JobState.of(*words))


def test_a_job_that_begins_before_slurmctld_is_told_of_a_change_that_would_cost_it_keeps_the_former_files():
    made = up(jobs=(a_job(7, "debug", ("PENDING",)),))
    before = made.mounted()
    made.spec(extraConf=RUNS_OUT)
    for _ in range(12):
        if made.mounted() == before:
            made.round()
    assert made.mounted() != before
    made.jobs = (a_job(7, "debug", ("RUNNING",)),)
    made._slurm()
    for _ in range(6):
        made.round()

    assert made.mounted() == made.running == before
    assert made.restarts == 0


@pytest.mark.parametrize(("words", "restarts"), [(("PENDING",), 1), (("RUNNING",), 0), (("SUSPENDED",), 0)])
def test_a_slurmctld_that_knows_one_key_is_replaced_once_no_job_has_started(words, restarts):
    made = up(jobs=(a_job(7, "debug", words),))
    [pod] = made.pods()
    notes = {key: value for key, value in pod.metadata.annotations.items() if key != names.KEY_RING}
    notes[names.SLURM_KEY_HASH] = "another"
    labels = {**pod.metadata.labels, names.LABEL_REVISION: "of-before"}
    metadata = wire.replace(pod.metadata, annotations=notes, labels=labels)
    made._replace(wire.replace(pod, metadata=metadata))
    for _ in range(4):
        made.round()

    assert made.restarts == restarts


def leaving(extra: str = "", **more) -> Play:
    """Files without partition debug are in place, and slurmctld has not been told of them."""
    made = up(spec={"extraConf": "PartitionName=debug Nodes=ALL\n", **more})
    before = made.mounted()
    made.spec(extraConf=extra)
    while made.mounted() == before:
        made.round()
    return made


def has_debug(files) -> bool:
    return "PartitionName=debug" in files.texts["slurm.conf"]


@pytest.mark.parametrize(
    "extra",
    [
        pytest.param("", id="to be read by a slurmctld that runs"),
        pytest.param("SlurmctldPort=7817\n", id="to be read by one that restarts"),
    ],
)
def test_a_job_that_comes_to_a_partition_before_slurmctld_is_told_that_it_goes_keeps_it(extra):
    made = leaving(extra)
    assert not has_debug(made.mounted())
    made.has_restapi = False
    made._slurm()
    for _ in range(3):
        made.round()
    made.jobs, made.has_restapi = (job(77, "debug"),), True
    made._slurm()
    for _ in range(8):
        made.round()
        assert has_debug(made.running)

    assert has_debug(made.mounted()), "one that crashes finds the partition too"
    assert made.restarts == (1 if extra else 0), "what needs a restart is not held up by it"
    assert "Jobs that have started: 77." in waits(made.world, made.now)["PartitionInUse"]
    assert conditions(made.world, made.now)["Degraded"].status == "False"

    made.jobs = ()
    made._slurm()
    made.rounds()
    assert not has_debug(made.running)


def test_another_image_does_not_bring_files_to_slurmctld_that_would_cost_jobs():
    made = leaving()
    made.jobs = (job(77, "debug"),)
    made._slurm()
    made.spec(slurmctld={"image": "slurmctld:26.11"})
    for _ in range(12):
        made.round()
        assert has_debug(made.running)

    assert made.restarts == 1, "with the previous files it may restart"


def test_files_are_not_taken_back_for_a_reading_that_is_old():
    made = leaving()
    made.now += timedelta(seconds=20)
    files_before = made.mounted()

    assert "Slurm is read again" in waits(made.world, made.now)["JobsAtStake"]
    made.rounds()
    assert made.mounted() == made.running == files_before


def test_files_are_not_taken_back_from_a_slurmctld_that_may_have_them():
    """Partition debug was renamed. slurmctld knows the new name already, and says so only later."""
    made = leaving("PartitionName=new Nodes=ALL\n")
    slow = made.running
    while not any("told slurmctld" in line for line in made.transcript[-2:]):
        made.round()
    made.jobs = (job(5, "new"), job(6, "debug"))
    made.now += timedelta(seconds=12)
    made._slurm()
    late = wire.replace(made.world.slurms[KEY], slurmctld_parameters=parameters(slow))
    made.world.slurms[KEY] = late

    assert "unfinished jobs: 6" in waits(made.world, made.now)["JobsAtStake"]
    assert not [a for a in decide(made.world, made.now)[2] if a.reason == "ConfigWithdrawn"]


def reporting(made: Play, **report) -> None:
    """From now on slurmctld is said to run with this, whatever it really does."""
    slurm = made._slurm

    def late():
        slurm()
        made.world.slurms[KEY] = wire.replace(made.world.slurms[KEY], **report)

    made._slurm = late
    late()


def test_files_that_slurmctld_does_not_report_are_not_put_back_under_jobs_that_need_them():
    made = up()
    reporting(made, slurmctld_parameters=parameters(made.running))
    made.spec(extraConf="PartitionName=new Nodes=ALL\n")
    for _ in range(60):
        made.round()
        if "PartitionName=new" in made.running.texts["slurm.conf"]:
            made.jobs = (job(5, "new"),)

    assert "PartitionName=new" in made.mounted().texts["slurm.conf"]
    assert "Without partition new its jobs would end at once" in waits(made.world, made.now)["ConfigNotTaken"]

    made.jobs = ()
    made.rounds()
    assert made.condition("Degraded").reason == "ConfigPutBack"


def test_a_slurmctld_that_runs_with_other_files_than_were_kept_is_not_told_to_leave_its_jobs():
    made = up()
    kept_files = parameters(made.running)
    made.spec(extraConf="PartitionName=new Nodes=ALL\n")
    reporting(made, slurmctld_parameters=kept_files)
    for _ in range(60):
        made.round()
    assert made.condition("Degraded").reason == "ConfigPutBack"

    made.jobs = (job(5, "new"),)
    del made._slurm
    made.now += timedelta(minutes=2)
    made._slurm()
    for _ in range(6):
        made.round()
        assert "PartitionName=new" in made.running.texts["slurm.conf"]
    assert "unfinished jobs: 5" in waits(made.world, made.now)["JobsAtStake"]

    made.jobs = ()
    made._slurm()
    made.rounds()
    assert made.mounted() == made.running


def test_a_report_that_could_not_be_read_yet_proves_nothing_and_tells_slurmctld_nothing():
    made = up(takes=lambda found: "PartitionName=new" not in found.texts["slurm.conf"])
    assert not unread(made), "what was proven before needs no proof"

    made.spec(extraConf="PartitionName=new Nodes=ALL\n")
    while not any("told slurmctld" in line for line in made.transcript[-3:]):
        made.round()

    [waiting] = unread(made)
    assert (waiting.reason, "could not be read yet" in waiting.message) == ("Verifying", True)


def unread(made: Play) -> list:
    """What is done when the first question for the configuration got no answer."""
    made._slurm()
    unknown = wire.replace(made.world.slurms[KEY], slurmctld_parameters=None, is_config_known=False)
    made.world.slurms[KEY] = unknown
    return decide(made.world, made.now)[2]


def test_a_rehearsal_that_cannot_start_is_told_and_holds_nothing_else():
    made = Play(world(controller()))
    made.round()
    made.round()
    [pod] = made.pods("slurm-rehearsal")
    unscheduled = PodCondition(type="PodScheduled", status="False", message="0/3 nodes are available")
    made._replace(wire.replace(pod, status=PodStatus(phase="Pending", conditions=[unscheduled])))

    assert "0/3 nodes are available" in waits(made.world)["RehearsalStuck"]
    assert conditions(made.world)["Degraded"].reason == "RehearsalStuck"


def test_a_rehearsal_that_was_cut_off_is_repeated():
    made = Play(world(controller()))
    made.round()
    made.round()
    [pod] = made.pods("slurm-rehearsal")
    evicted = wire.replace(pod.metadata, creation_timestamp=NOON)
    made._replace(wire.replace(pod, metadata=evicted, status=PodStatus(phase="Failed", reason="Evicted")))

    assert "Evicted" in waits(made.world, NOON)["RehearsalCutOff"]
    later = decide(made.world, NOON + timedelta(minutes=1))[2]
    assert [type(a) for a in later] == [DeleteObject]


# ---- Children, metrics, deletion, status


def test_a_service_that_somebody_deleted_comes_back_and_an_edit_is_undone():
    made = up()
    made.world.children_[kinds.SERVICE] = [
        c for c in made.world.children_[kinds.SERVICE] if c.metadata.name != "slurm-controller"
    ]
    assert [a.manifest["metadata"]["name"] for a in decide(made.world)[2] if isinstance(a, Apply)] == [
        "slurm-controller"
    ]

    made.rounds()
    config = made.world.child(kinds.CONFIG_MAP, NS, "slurm-config")
    put(made.world, {**config.body, "data": {**config.body["data"], "cgroup.conf": "edited\n"}})
    made.rounds()
    assert made.mounted().texts["cgroup.conf"].startswith("CgroupPlugin")


def told_prometheus(made):
    return [action for lane in decide(made)[1].lanes if lane.name == "metrics" for action in lane.actions()]


def test_prometheus_is_told_once_told_again_after_an_edit_and_told_off_once():
    made = world(controller({"metrics": {"enabled": True, "serviceMonitor": {"enabled": True}}}))
    made.served.add(kinds.SERVICE_MONITOR)
    play = Play(made)

    [wrote] = told_prometheus(made)
    assert wrote.manifest["kind"] == "ServiceMonitor"
    put(made, wrote.manifest)
    assert told_prometheus(made) == []

    put(made, {**wrote.manifest, "spec": {**wrote.manifest["spec"], "endpoints": []}})
    [repaired] = told_prometheus(made)
    assert "spec.endpoints" in repaired.message
    put(made, repaired.manifest)

    play.spec(metrics={"enabled": False})
    [gone] = told_prometheus(made)
    assert (type(gone), gone.uid) == (DeleteObject, "uid-of-slurm-controller")
    made.children_[kinds.SERVICE_MONITOR] = []
    assert told_prometheus(made) == []


def test_a_monitor_that_this_kubernetes_cannot_have_is_told_and_holds_up_nothing():
    made = Play(world(controller({"metrics": {"enabled": True, "serviceMonitor": {"enabled": True}}})))
    made.rounds()

    assert told_prometheus(made.world) == []
    degraded = conditions(made.world)["Degraded"]
    assert (degraded.status, degraded.reason) == ("False", "AsExpected")
    assert "There is no ServiceMonitor yet" in degraded.message


def deleted(**metadata):
    return controller(deletionTimestamp="2026-01-01T11:00:00Z", finalizers=[FINALIZER], **metadata)


def test_a_controller_is_held_while_others_name_it():
    gpu = thing("NodeSet", "gpu", {"controllerRef": {"name": "slurm"}})

    [held] = [a for a in decide(world(controller(), gpu))[2] if a.reason == "Held"]
    assert held.operations[-1]["value"] == [FINALIZER]

    made = world(deleted(), gpu, RESTAPI, thing("LoginSet", "login", {"controllerRef": {"name": "slurm"}}))
    assert "NodeSet gpu, LoginSet login, RestApi rest" in waits(made)["InUse"]
    assert any(isinstance(a, Apply) for a in decide(made)[2]), "it goes on working meanwhile"
    assert conditions(made)["Progressing"].reason == "InUse"


CPU = thing("NodeSet", "cpu", {"controllerRef": {"name": "slurm"}, "partition": {"enabled": True}})
UNREAD = (NodeSet, ObjectKey(NS, "cpu"))


def test_a_nodeset_that_cannot_be_read_is_not_one_that_is_gone():
    """An operator that was restarted knows of it only that it is there."""
    made = up(CPU)
    made.world.things = [t for t in made.world.things if t is not CPU]
    made.world.undecoded = [UNREAD]
    for _ in range(12):
        made.round()

    assert "PartitionName=cpu" in made.running.texts["slurm.conf"]
    assert "PartitionName=cpu" in made.mounted().texts["slurm.conf"]
    assert made.condition("Degraded").reason == "NodeSetUnreadable"
    assert "does not understand NodeSet cpu" in made.condition("Degraded").message

    made.world.undecoded = []
    made.rounds()
    assert "PartitionName=cpu" not in made.running.texts["slurm.conf"], "somebody deleted it"


def test_a_nodeset_that_cannot_be_read_holds_up_only_what_it_may_need():
    made = up(CPU)
    made.world.undecoded = [(NodeSet, ObjectKey(NS, "new"))]
    made.spec(extraConf="KillWait=5\n")
    for _ in range(30):
        made.round()

    assert "KillWait=5" in made.running.texts["slurm.conf"]
    assert made.condition("Degraded").status == "False"


def test_a_nodeset_that_was_understood_before_still_counts_as_it_was():
    made = up(CPU)
    made.world.undecoded = [UNREAD]
    made.spec(extraConf="KillWait=5\n")
    made.rounds()

    assert "KillWait=5" in made.running.texts["slurm.conf"]


def test_a_controller_is_held_for_a_nodeset_that_cannot_be_read_and_looks_after_it():
    made = world(deleted())
    made.undecoded = [UNREAD]

    assert "NodeSet cpu (cannot be read)" in waits(made)["InUse"]
    assert decide(made)[1].look_again is not None, "nobody tells when it is gone"


def test_a_deletion_in_the_foreground_does_not_take_its_children_first():
    held = controller(deletionTimestamp="2026-01-01T11:00:00Z", finalizers=["foregroundDeletion", FINALIZER])

    _, _, actions = decide(world(held, RESTAPI))

    [patched] = [a for a in actions if a.reason == "NotInForeground"]
    assert patched.operations[-1]["value"] == [FINALIZER]
    assert not [a for a in decide(world(held))[2] if a.reason == "NotInForeground"], "nobody needs them"


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(world(deleted()), id="nobody names it any more"),
        pytest.param(world(deleted(annotations={FORCE_DELETION: "true"}), RESTAPI), id="forced"),
    ],
)
def test_it_is_let_go_and_nothing_else_is_done(made):
    _, _, [copy, released] = decide(made)

    assert (copy.key.name, copy.reason) == ("slurm-auth-slurm-ring", "Deleted")
    assert (released.reason, released.operations[-1]["value"]) == ("Released", [])


def test_status_names_version_head_endpoint_and_configuration():
    made = up(thing("NodeSet", "gpu", {"controllerRef": {"name": "slurm"}}))
    status = made.controller.status

    assert (status.slurm_version, status.active, status.endpoint) == (
        "26.05.5",
        "slurm-controller-0",
        "slurm-controller.demo:6817",
    )
    assert (status.cluster_name, status.node_sets, status.replicas, status.ready_replicas) == (
        "demo_slurm",
        1,
        1,
        1,
    )
    assert [(c.pod, c.role, c.responding, c.active) for c in status.controllers] == [
        ("slurm-controller-0", "primary", True, True)
    ]
    assert status.config.applied == status.config.wanted == made.running.digest
    assert (status.config.owed, status.config.refused) == ("nothing", None)
    assert (status.slurm_key_secret, status.jwt_key_secret) == ("slurm-auth-slurm", "slurm-auth-jwt")


def test_a_write_that_failed_is_told_and_slurmctld_stays_ready():
    made = up()
    seen, plan, _ = decide(made.world)
    failure = Failure(
        action=Wait(subject="x", reason="Updated", message="updated Service x"), error="forbidden"
    )

    found = {c.type: c for c in RECONCILER.status(seen, plan, Outcome(failed=(failure,))).conditions}

    assert (found["Ready"].status, found["Degraded"].reason) == ("True", "WriteFailed")
    assert "forbidden" in found["Degraded"].message


def test_another_cluster_name_is_refused_and_the_statefulset_stays():
    made = up()
    made.spec(clusterName="other")
    made.rounds()

    assert made.condition("Degraded").reason == "SpecRefused"
    assert made.restarts == 0
    assert "ClusterName=demo_slurm" in made.mounted().texts["slurm.conf"]


def test_a_slurmctld_of_an_older_api_version_counts_as_told_once_it_was_asked():
    made = up()
    made.spec(extraConf="KillWait=5\n")
    slurm = made._slurm

    def blind():
        slurm()
        made.world.slurms[KEY] = wire.replace(made.world.slurms[KEY], slurmctld_parameters=None)

    made._slurm = blind
    blind()
    made.rounds()

    assert "KillWait=5" in made.running.texts["slurm.conf"]
    assert made.controller.status.config.owed == "nothing"


def test_a_word_of_ours_tells_which_files_slurmctld_has_read():
    made = up()

    assert f"{DIGEST_WORD}{made.mounted().digest}" in made.world.slurms[KEY].slurmctld_parameters


def test_everything_that_matters_to_a_controller_wakes_it():
    named = controller({"accountingRef": {"name": "books"}})
    made = world(named, files("f", {}))
    pod = Play(world(controller())).rounds().pods()[0]

    assert list(keeping_records_in(thing("Accounting", "books"), made)) == [KEY]
    assert list(keeping_records_in(thing("Accounting", "others"), made)) == []
    assert list(of_workers(thing("NodeSet", "gpu", {"controllerRef": {"name": "slurm"}}), made)) == [KEY]
    assert list(of_clients(RESTAPI, made)) == [KEY]
    assert list(behind(pod, made)) == [KEY]


def test_a_deleted_controller_needs_nothing():
    assert observe(KEY, world()) is None


@pytest.mark.parametrize(
    ("modes", "is_refused"),
    [(("ReadWriteOnce",), True), (("ReadWriteMany",), False), (("ReadWriteOnce", "ReadWriteMany"), False)],
)
def test_slurmctlds_that_share_a_volume_need_one_that_can_be_shared(modes, is_refused):
    spec = {"ha": {"enabled": True}, "persistence": {"enabled": True, "existingClaim": "state"}}
    claim = VolumeClaim(metadata=Meta(name="state", namespace=NS), spec=VolumeClaimSpec(access_modes=modes))

    told = conditions(world(controller(spec), RESTAPI, claim))["Degraded"]

    assert (told.reason == "SpecRefused") == is_refused
    assert ("its accessModes must contain ReadWriteMany" in told.message) == is_refused
    assert list(sharing_volume(claim, world(controller(spec)))) == [KEY]
    assert list(sharing_volume(claim, world(controller()))) == []


REFUSED = Failure(action=Wait(subject="x", reason="Updated", message="updated Service x"), error="forbidden.")


def test_a_refused_write_hides_neither_a_refused_configuration_nor_a_held_deletion():
    made = world(controller({"extraConf": "Nonsense=1"}), secret("slurm-auth-slurm", slurm_key="s"))
    found = conditions(made, outcome=Outcome(failed=(REFUSED,)))
    assert found["Degraded"].reason == "WriteFailed"
    assert found["Degraded"].message.startswith("updated Service x: forbidden. Besides: ")
    assert "line 1 of spec.extraConf" in found["Degraded"].message

    going = {"deletionTimestamp": "2026-01-01T11:00:00Z", "finalizers": [FINALIZER]}
    held = up(thing("NodeSet", "gpu", {"controllerRef": {"name": "slurm"}}))
    leaving_ = codec.read(Controller, {**codec.plain(held.controller), "metadata": {**META, **going}})
    held._replace(leaving_)
    found = conditions(held.world, held.now, outcome=Outcome(failed=(REFUSED,)))
    assert found["Progressing"].reason == "InUse"
    assert "forbidden." in found["Degraded"].message


META = {"name": "slurm", "namespace": "demo", "uid": "uid-of-slurm", "generation": 1}


def test_every_refused_write_is_told():
    other = wire.replace(REFUSED, action=wire.replace(REFUSED.action, message="updated Service y"))
    found = conditions(up().world, outcome=Outcome(failed=(other, REFUSED)))

    assert found["Degraded"].message == "updated Service x: forbidden.; updated Service y: forbidden."
