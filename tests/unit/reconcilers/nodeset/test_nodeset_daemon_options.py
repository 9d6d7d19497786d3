"""How slurmd is started: by its record, by where its files are, alone or under supervisord."""

import pytest

from images.entry.options import argument_words, words
from slurm_operator.plan.actions import Create
from slurm_operator.reconcilers.nodeset.creation import revisions
from slurm_operator.reconcilers.nodeset.creation.pod import Slot, WorkerPods
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.snapshot import Unreachable
from slurm_operator.slurm.states import NodeState
from testing.story import Story
from testing.workers import NOW, controller, machine, nodeset, planned, revision_of, slurm, world

LIMITS = {"resources": {"limits": {"cpu": "2", "memory": "2Gi"}}}
CONF = "CPUs=2 Features=gpu RealMemory=2048"
SERVER = ["--conf-server", "slurm-controller.ns:6817"]


def known(name: str) -> SlurmNode:
    state = NodeState.of("IDLE", "CLOUD", "POWERED_DOWN", "DYNAMIC_NORM")
    return SlurmNode(name=name, state=state, features=("gpu",), cpus=2, real_memory_mb=2048)


def plan_of(spec: dict, facts) -> list:
    wanted = nodeset(replicas=1, slurmd=LIMITS, **spec)
    made = world(wanted, controller(), machine("n1"), slurm_=facts, revisions_=(revision_of(wanted),))
    return list(planned(made).actions())


def pod_of(**spec) -> dict:
    [pod] = [a.manifest for a in plan_of(spec, slurm(known("gpu-0"))) if isinstance(a, Create)]
    return pod["spec"]


def slurmd_of(**spec) -> dict:
    return pod_of(**spec)["containers"][0]


@pytest.mark.parametrize(
    ("spec", "args"),
    [
        pytest.param({}, ["-Z", *SERVER, "--conf", "Features=gpu"], id="it makes its own record"),
        pytest.param({"records": "created"}, ["-Z", "-b", *SERVER, "--conf", CONF], id="its record is there"),
        pytest.param({"records": "static"}, ["-N", "gpu-0", "-b", *SERVER], id="its line is there"),
        pytest.param({"configSource": "files"}, ["-Z", "--conf", "Features=gpu"], id="files of its own"),
        pytest.param({"records": "static", "configSource": "files"}, ["-N", "gpu-0", "-b"], id="both"),
    ],
)
def test_the_arguments_of_slurmd(spec, args):
    given = [arg.replace("$(SLURM_NODE_NAME)", "gpu-0") for arg in slurmd_of(**spec)["args"]]

    assert argument_words(given, {}) == args


def test_the_name_of_a_static_worker_comes_from_its_label():
    [name] = [one for one in slurmd_of(records="static")["env"] if one["name"] == "SLURM_NODE_NAME"]

    path = name["valueFrom"]["fieldRef"]["fieldPath"]
    assert path == "metadata.labels['nodeset.slinky.slurm.net/pod-hostname']"


def test_files_leave_etc_slurm_to_the_user_and_keys_are_elsewhere():
    slurmd = slurmd_of(configSource="files")
    env = {one["name"]: one.get("value") for one in slurmd["env"]}
    mounts = {one["name"]: one["mountPath"] for one in slurmd["volumeMounts"]}

    assert mounts["slurm-etc"] == "/run/slurm-keys"
    assert "/etc/slurm" not in mounts.values()
    assert env["SLURM_SACK_KEY"] == "/run/slurm-keys/slurm.key"
    assert env["SLURM_SACK_JWKS"] == "/run/slurm-keys/slurm.jwks"


def test_a_supervisor_runs_slurmd_with_the_same_options():
    plain, slurmd = (
        slurmd_of(records="created"),
        slurmd_of(records="created", supervisor={"configMapRef": {"name": "programs"}}),
    )
    [options] = [one["value"] for one in slurmd["env"] if one["name"] == "SLURMD_OPTIONS"]

    assert "args" not in slurmd
    assert slurmd["command"] == [
        "supervisord",
        "--nodaemon",
        "--configuration=/etc/supervisor/conf.d/supervisord.conf",
    ]
    assert words(options, {}) == argument_words(plain["args"], {})
    assert [one for one in slurmd["env"] if one["name"] != "SLURMD_OPTIONS"] == plain["env"]
    assert slurmd["lifecycle"] == plain["lifecycle"], "it still waits for its jobs"


def test_what_the_user_adds_is_for_slurmd_not_for_the_supervisor():
    wanted = {"configMapRef": {"name": "programs"}}
    given = {"args": ["-v"], "env": [{"name": "SLURMD_OPTIONS", "value": "-vv"}]}
    made = nodeset(supervisor=wanted, slurmd=given)
    pod = WorkerPods(made, controller(), revisions.current(made, ())).pod(Slot("gpu-0", "gpu-0", ordinal=0))
    [slurmd] = pod["spec"]["containers"]
    [options] = [one["value"] for one in slurmd["env"] if one["name"] == "SLURMD_OPTIONS"]

    assert "args" not in slurmd
    assert words(options, {})[-2:] == ["-v", "-vv"]


def test_the_configuration_of_a_supervisor_is_a_directory():
    spec = pod_of(supervisor={"configMapRef": {"name": "programs"}})
    [volume] = [one for one in spec["volumes"] if one["name"] == "supervisord-config"]
    [mount] = [one for one in spec["containers"][0]["volumeMounts"] if one["name"] == "supervisord-config"]

    [source] = volume["projected"]["sources"]
    assert source["configMap"] == {
        "name": "programs",
        "items": [{"key": "supervisord.conf", "path": "supervisord.conf"}],
    }
    assert mount == {"name": "supervisord-config", "mountPath": "/etc/supervisor/conf.d", "readOnly": True}


@pytest.mark.parametrize(
    ("facts", "comes"),
    [
        pytest.param(slurm(known("gpu-0")), True, id="slurmctld has read it"),
        pytest.param(slurm(), False, id="not yet: slurmd would end at once"),
        pytest.param(Unreachable(since=NOW, why="away"), True, id="nobody can tell"),
    ],
)
def test_a_static_worker_waits_for_its_line(facts, comes):
    actions = plan_of({"records": "static"}, facts)

    assert any(isinstance(action, Create) and action.manifest["kind"] == "Pod" for action in actions) is comes
    assert any(getattr(action, "reason", "") == "LineNotRead" for action in actions) is not comes


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"records": "created"}, id="records"),
        pytest.param({"configSource": "files"}, id="configSource"),
        pytest.param({"supervisor": {"configMapRef": {"name": "programs"}}}, id="supervisor"),
    ],
)
def test_each_of_them_is_a_reason_to_replace_workers(spec):
    before = nodeset()

    assert revisions.current(nodeset(**spec), [revision_of(before)]).is_new


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"records": "registered", "configSource": "configless"}, id="what is so anyway"),
        pytest.param({"ordinals": [3]}, id="who runs is not what they are made from"),
    ],
)
def test_what_changes_no_worker_is_no_new_revision(spec):
    before = nodeset()

    assert not revisions.current(nodeset(**spec), [revision_of(before)]).is_new


def test_static_workers_leave_from_the_highest_number():
    """Their lines are a range, and a line without a worker would be given jobs that nobody runs."""
    story = Story({"records": "registered", "replicas": 3}, machines=4).tick(12)
    story.change(records="static", updateStrategy={"type": "OnDelete"}).tick(2)
    uid = story.slurm.records["gpu-2"].pod_uid
    story.submit(60, state="RUNNING", nodes=("gpu-2",), processes={"gpu-2": uid})
    story.slurm.jobs[1].ends_at = story.now.replace(year=2100)

    story.change(replicas=2).tick(30)
    assert set(story.pods.pods) == {"gpu-0", "gpu-1", "gpu-2"}, "it waits for the job, and nobody else goes"
    story.slurm.jobs[1].state = "COMPLETED"
    story.tick(20)

    assert set(story.pods.pods) == {"gpu-0", "gpu-1"}
    assert story.broken == []
