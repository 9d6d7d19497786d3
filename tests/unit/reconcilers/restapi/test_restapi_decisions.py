"""When slurmrestd starts, when it restarts, what it waits for, and when a RestApi may go."""

import copy
from datetime import UTC, datetime

import pytest

from slurm_operator import wire
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.manifests import kinds
from slurm_operator.manifests.compare.differences import APPLIED_DIGEST, INPUT_DIGEST, TEMPLATE_DIGEST
from slurm_operator.manifests.digests import digest
from slurm_operator.plan.actions import Apply, PatchObject, Wait
from slurm_operator.plan.plan import Failure, Outcome
from slurm_operator.reconcilers.restapi import RECONCILER, beside, of_controller, of_nodeset, of_pod
from slurm_operator.reconcilers.shared.deletion_hold import FINALIZER, FORCE_DELETION
from slurm_operator.slurm.snapshot import Snapshot, Unreachable
from testing import slinky
from testing.children import carried_out, pod, put, read, report, running, secret, with_config, with_secrets
from testing.golden import assert_golden
from testing.world import HandmadeWorld

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
KEY = ObjectKey("ns", "rest")
CONF = """\
ClusterName=ns_slurm
SlurmctldHost=slurm-controller-0(slurm-controller-0.slurm-controller-internal.ns)
SlurmctldAddr=slurm-controller.ns
AuthType=auth/slurm
AccountingStorageType=accounting_storage/none
"""
WITH_ACCOUNTING = CONF.replace("/none", "/slurmdbd")

EVERYTHING = {
    "controllerRef": {"name": "slurm"},
    "replicas": 3,
    "slurmrestd": {
        "image": "registry.example.org/slurmrestd:1", "args": ["-v"], "env": [{"name": "SLURMRESTD_OPTIONS", "value": "-vv"}],
        "resources": {"limits": {"memory": "256Mi"}}, "livenessProbe": {"periodSeconds": 30},
    },
    "template": {
        "metadata": {"labels": {"team": "hpc"}, "annotations": {"example.org/scrape": "no"}},
        "spec": {"nodeSelector": {"kubernetes.io/os": "linux"}, "tolerations": [{"key": "infra", "operator": "Exists"}]},
    },
    "service": {
        "metadata": {"labels": {"expose": "yes"}}, "port": 8080, "nodePort": 30820,
        "spec": {"type": "NodePort", "externalIPs": ["192.0.2.1"], "ports": [{"name": "more", "port": 9000}]},
    },
}  # fmt: skip


def restapi(spec: dict | None = None, **meta) -> RestApi:
    return read(RestApi, spec or {"controllerRef": {"name": "slurm"}}, name="rest", **meta)


def world(made: RestApi, *more, conf=CONF, key="k1") -> HandmadeWorld:
    """A Controller that has a configuration and a key, and this RestApi."""
    there = HandmadeWorld(things=[made, read(Controller, {}), *more])
    if conf:
        with_config(there, "slurm-config", slurm_conf=conf)
    if key:
        with_secrets(there, secret("slurm-auth-slurm", slurm_key=key))
    return there


def decide(there: HandmadeWorld, key=KEY):
    seen = RECONCILER.observe(key, there)
    return seen, RECONCILER.decide(seen, NOW)


def settled(there: HandmadeWorld) -> HandmadeWorld:
    return carried_out(there, decide(there)[1])


@pytest.mark.parametrize(
    ("name", "spec", "conf"),
    [
        ("defaults", {"controllerRef": {"name": "slurm"}}, CONF),
        ("with-accounting", {"controllerRef": {"name": "slurm"}}, WITH_ACCOUNTING),
        ("everything", EVERYTHING, WITH_ACCOUNTING),
    ],
)
def test_the_objects_of_a_restapi(name, spec, conf):
    _, plan = decide(world(restapi(spec), conf=conf))

    assert_golden("restapi", name, [action.manifest for action in plan.actions()])


@pytest.mark.parametrize(
    ("given", "reason", "word"),
    [
        pytest.param(HandmadeWorld(things=[restapi()]), "ControllerNotFound", "there is none", id="no Controller"),
        pytest.param(world(restapi(), conf=""), "ConfigNotYetWritten", "slurm.conf", id="no configuration yet"),
        pytest.param(world(restapi(), key=""), "KeyNotYetGenerated", "slurm-auth-slurm", id="no key yet"),
    ],
)  # fmt: skip
def test_slurmrestd_is_not_started_before_it_has_all_it_needs(given, reason, word):
    seen, plan = decide(given)

    assert {type(action).__name__: action.reason for action in plan.actions()} == {
        "Apply": "Created",
        "Wait": reason,
    }
    assert [action.manifest["kind"] for action in plan.actions() if isinstance(action, Apply)] == ["Service"]
    status, told, message = report(RECONCILER, seen, plan)["Ready"]
    assert (status, told) == ("False", reason)
    assert word in message


def test_what_is_there_is_not_written_again():
    there = settled(world(restapi(EVERYTHING)))

    assert list(decide(there)[1].actions()) == []


@pytest.mark.parametrize(
    ("conf", "restarts"),
    [
        pytest.param(
            CONF + "NodeSet=gpu Feature=gpu\nPartitionName=gpu Nodes=gpu\n", False, id="a partition more"
        ),
        pytest.param(CONF + "SlurmctldParameters=enable_configless,digest_1234\n", False, id="another stamp"),
        pytest.param(CONF + "SchedulerParameters=bf_interval=30\n", False, id="the scheduler's business"),
        pytest.param(WITH_ACCOUNTING, True, id="accounting turned on"),
        pytest.param(CONF + "AuthAltTypes=auth/jwt\n", True, id="authentication"),
        pytest.param(CONF + "SlurmctldHost=slurm-controller-1\n", True, id="a backup slurmctld"),
    ],
)
def test_slurmrestd_restarts_exactly_when_what_it_read_at_its_start_changes(conf, restarts):
    there = with_config(settled(world(restapi())), "slurm-config", slurm_conf=conf)

    actions = list(decide(there)[1].actions())

    assert [action.manifest["kind"] for action in actions] == (["Deployment"] if restarts else [])


def test_a_changed_key_restarts_slurmrestd():
    there = with_secrets(settled(world(restapi())), secret("slurm-auth-slurm", slurm_key="k2"))

    [apply] = decide(there)[1].actions()

    assert (
        apply.manifest["spec"]["template"]["metadata"]["annotations"]["slinky.slurm.net/slurm-key-hash"]
        == "k2"
    )


def test_scaling_changes_no_template():
    there = settled(world(restapi()))
    before = there.child(kinds.DEPLOYMENT, "ns", "rest-restapi").metadata.annotations[INPUT_DIGEST]
    noted = {APPLIED_DIGEST: "as a Cluster notes it, and again with every change"}
    there.things[0] = restapi({"controllerRef": {"name": "slurm"}, "replicas": 5}, annotations=noted)

    [apply] = decide(there)[1].actions()

    assert apply.manifest["spec"]["replicas"] == 5
    assert apply.manifest["metadata"]["annotations"][INPUT_DIGEST] == before


def test_a_lost_key_leaves_the_running_slurmrestd_alone():
    there = running(settled(world(restapi())), kinds.DEPLOYMENT, "rest-restapi")
    there.named.clear()

    seen, plan = decide(there)

    assert {type(action) for action in plan.actions()} == {Wait}
    assert report(RECONCILER, seen, plan)["Ready"][0] == "True"


def test_status_while_starting_ready_and_in_trouble():
    there = settled(world(restapi()))
    assert report(RECONCILER, *decide(there))["Ready"][:2] == ("False", "PodsNotReady")

    told = report(RECONCILER, *decide(running(there, kinds.DEPLOYMENT, "rest-restapi")))
    assert told["Ready"] == ("True", "Serving", "slurmrestd answers at http://rest-restapi.ns:6820.")
    assert told["Progressing"][0] == told["Degraded"][0] == "False"
    assert (told["replicas"], told["readyReplicas"]) == (1, 1)
    assert told["selector"] == "app.kubernetes.io/instance=rest,app.kubernetes.io/name=slurmrestd"

    running(there, kinds.DEPLOYMENT, "rest-restapi", ready=0)
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    there.things.append(
        pod(
            "rest-1",
            "slurmrestd",
            "rest",
            phase="Pending",
            containerStatuses=[{"name": "slurmrestd", "state": waiting}],
        )
    )
    told = report(RECONCILER, *decide(there))
    assert told["Degraded"][:2] == ("True", "PodsNotReady")
    assert told["Ready"][2] == (
        "0 of 1 slurmrestd pods are ready: pod rest-1 cannot start container slurmrestd: ImagePullBackOff: no such image"
    )


def test_of_several_the_one_that_the_operator_asks_says_so_with_what_it_speaks():
    asked = Snapshot(
        nodes={}, jobs={}, nodes_asked_at=NOW, jobs_asked_at=NOW, release="26.05.5", api_version="v0.0.45",
        url="http://rest-restapi.ns:6820",
    )  # fmt: skip

    def told(slurm):
        there = running(settled(world(restapi())), kinds.DEPLOYMENT, "rest-restapi")
        there.slurms[ObjectKey("ns", "slurm")] = slurm
        found = report(RECONCILER, *decide(there))
        return found["inUse"], found.get("slurmVersion"), found.get("apiVersions")

    assert told(asked) == (True, "26.05.5", ["v0.0.45"])
    assert told(wire.replace(asked, url="http://spare-restapi.ns:6820")) == (False, None, None)
    assert told(Unreachable(since=NOW, why="no answer")) == (False, None, None)


def test_a_refused_write_is_told_and_tried_again():
    seen, plan = decide(world(restapi()))
    refused = Failure(action=next(plan.actions()), error="the server said no.")

    told = report(RECONCILER, seen, plan, Outcome(failed=(refused,)))

    assert told["Degraded"] == ("True", "WriteFailed", "created Service rest-restapi: the server said no.")
    assert told["Progressing"][:2] == ("True", "Retrying")


NODESET = read(NodeSet, {"controllerRef": {"name": "slurm"}}, name="gpu")
OTHER = read(RestApi, {"controllerRef": {"name": "slurm"}}, name="second", uid="uid-2")
GOING = {"deletionTimestamp": "2026-01-01T11:00:00Z", "finalizers": [FINALIZER]}


@pytest.mark.parametrize(
    ("made", "more", "finalizers", "waits"),
    [
        pytest.param(restapi(), (), None, False, id="nobody needs it"),
        pytest.param(restapi(), (NODESET,), [FINALIZER], False, id="the only way to empty workers"),
        pytest.param(restapi(), (NODESET, OTHER), None, False, id="there is another way"),
        pytest.param(restapi(finalizers=["x", FINALIZER]), (NODESET, OTHER), ["x"], False, id="another way has come"),
        pytest.param(restapi(**GOING), (NODESET,), None, True, id="deleted: it waits"),
        pytest.param(restapi(**GOING, annotations={FORCE_DELETION: "true"}), (NODESET,), [], False, id="deleted by force"),
        pytest.param(restapi(**GOING), (), [], False, id="deleted, and the last NodeSet is gone"),
    ],
)  # fmt: skip
def test_the_last_restapi_stays_while_there_are_nodesets(made, more, finalizers, waits):
    seen, plan = decide(world(made, *more))

    patches = [action for action in plan.actions() if isinstance(action, PatchObject)]
    assert [patch.operations[-1]["value"] for patch in patches] == (
        [] if finalizers is None else [finalizers]
    )
    assert bool(plan.waits) == waits
    if made.metadata.is_terminating and not waits:
        assert not [action for action in plan.actions() if isinstance(action, Apply)]
    if waits:
        assert "NodeSet gpu" in report(RECONCILER, seen, plan)["Progressing"][2]


def test_while_it_is_held_it_has_what_it_lacks_and_what_it_has_stays_as_it_is():
    """Workers cannot go before somebody has asked Slurm, whoever deleted slurmrestd or kept it from starting."""
    made = world(restapi(**GOING), NODESET)
    lacking = [one.manifest["kind"] for one in decide(made)[1].actions() if isinstance(one, Apply)]
    carried_out(made, decide(made)[1])
    with_secrets(made, secret("slurm-auth-slurm", slurm_key="k2"))

    assert lacking == ["Service", "Deployment"]
    assert not [one for one in decide(made)[1].actions() if isinstance(one, Apply)], (
        "a new key changes nothing"
    )


def test_who_forces_a_deletion_is_told_beforehand_what_it_costs():
    seen, plan = decide(world(restapi(**GOING), NODESET))

    told = report(RECONCILER, seen, plan)["Progressing"][2]
    assert "annotate it with slinky.slurm.net/force-deletion=true: nobody can then ask Slurm" in told


def test_a_nodeset_that_cannot_be_read_may_need_it_too():
    there = world(restapi(**GOING))
    there.undecoded = [(NodeSet, ObjectKey(KEY.namespace, "strange"))]
    _, plan = decide(there)

    assert ["NodeSet strange (cannot be read)" in wait.message for wait in plan.waits] == [True]
    assert plan.look_again is not None, "nobody tells when it is gone"


def test_who_wakes_a_restapi():
    there = world(restapi(), NODESET, OTHER)
    both = {KEY, ObjectKey("ns", "second")}

    assert set(of_controller(there.get(Controller, "ns", "slurm"), there)) == both
    assert set(of_nodeset(NODESET, there)) == set(beside(OTHER, there)) == both
    assert list(of_pod(pod("p", "slurmrestd", "rest"), there)) == [KEY]
    assert list(of_pod(pod("p", "slurmd", "rest"), there)) == []


def test_a_deleted_restapi_needs_nothing():
    assert RECONCILER.observe(KEY, HandmadeWorld()) is None


@pytest.mark.parametrize(
    ("spec", "conf", "args", "options"),
    [
        pytest.param({}, CONF, ["-s", "openapi/slurmctld", "0.0.0.0:6820"], "-t 16", id="without accounting"),
        pytest.param({}, WITH_ACCOUNTING, ["0.0.0.0:6820"], "-t 16", id="with accounting"),
        pytest.param({"args": ["-v"]}, WITH_ACCOUNTING, ["-v", "0.0.0.0:6820"], "-t 16", id="arguments of the user"),
        pytest.param({"env": [{"name": "SLURMRESTD_OPTIONS", "value": "-t 4 -vv"}]}, WITH_ACCOUNTING, ["0.0.0.0:6820"],
                     "-t 16 -t 4 -vv", id="options of the user come last"),
    ],
)  # fmt: skip
def test_the_arguments_are_exactly_those_of_slinkys_operator(spec, conf, args, options):
    made = restapi({"controllerRef": {"name": "slurm"}, "slurmrestd": spec})
    plan = RECONCILER.decide(RECONCILER.observe(KEY, world(made, conf=conf)), NOW)
    [deployment] = [
        one.manifest
        for one in plan.actions()
        if isinstance(one, Apply) and one.manifest["kind"] == "Deployment"
    ]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    theirs = slinky.named(slinky.recorded(), "Deployment", "slurm-restapi")["spec"]["template"]["spec"][
        "containers"
    ][0]

    assert container["args"] == args
    if not spec and conf == CONF:
        assert container["args"] == theirs["args"]
    assert {one["name"]: one["value"] for one in container["env"]}["SLURMRESTD_OPTIONS"] == options


def test_a_slurmrestd_with_the_arguments_of_an_earlier_version_is_left_alone():
    there = world(restapi())
    _, plan = decide(there)
    [apply] = [
        one for one in plan.actions() if isinstance(one, Apply) and one.manifest["kind"] == "Deployment"
    ]
    before = copy.deepcopy(apply.manifest)
    [container] = before["spec"]["template"]["spec"]["containers"]
    container["args"], container["env"] = ["-t", "16", *container["args"]], container["env"][-1:]
    before["metadata"]["annotations"][TEMPLATE_DIGEST] = digest(before["spec"]["template"])
    carried_out(there, plan)
    there.children_[kinds.DEPLOYMENT].clear()
    put(there, before)

    for again in decide(there)[1].actions():
        assert again.manifest["spec"]["template"] == before["spec"]["template"]
