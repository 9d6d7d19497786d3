"""Workers with lines in slurm.conf: what the lines say, and that none goes or changes under a job."""

import pytest

from slurm_operator.manifests.meta import Meta, OwnerReference
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.actions import Wait
from slurm_operator.reconcilers.controller import RECONCILER
from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurm.states import JobState
from testing.controller_play import Play
from testing.controllers import KEY, NS, controller, thing, world

RESTAPI = thing("RestApi", "rest", {"controllerRef": {"name": "slurm"}})
LIMITS = {"resources": {"limits": {"cpu": "2", "memory": "2000Mi"}}}


def static(**spec):
    whole = {"controllerRef": {"name": "slurm"}, "records": "static", "slurmd": LIMITS, "replicas": 3, **spec}
    return thing("NodeSet", "gpu", whole)


def pod(name: str) -> Pod:
    owner = OwnerReference(
        api_version="slinky.slurm.net/v1beta1",
        kind="NodeSet",
        name="gpu",
        uid="uid-of-nodeset-gpu",
        controller=True,
    )
    meta = Meta(name=name, namespace=NS, uid=name, owner_references=[owner])
    return Pod(metadata=meta)


def up(nodeset, *things, jobs=()) -> Play:
    return Play(world(controller(), RESTAPI, nodeset, *things), jobs=jobs).rounds()


def on(node: str, *words: str, job_id: int = 7, **fields) -> SlurmJob:
    return SlurmJob(
        job_id=job_id, state=JobState.of(*(words or ("RUNNING",))), user="ada", nodes=(node,), **fields
    )


def lines(made: Play) -> list[str]:
    return [line for line in made.running.texts["slurm.conf"].splitlines() if line.startswith("NodeName=")]


def changed(made: Play, nodeset) -> Play:
    made.world.things = [t for t in made.world.things if getattr(t, "KIND", None) != nodeset.KIND] + [nodeset]
    for _ in range(12):
        made.round()
    return made


def waits(made: Play) -> dict[str, str]:
    plan = RECONCILER.decide(RECONCILER.observe(KEY, made.world), made.now)
    return {action.reason: action.message for action in plan.actions() if isinstance(action, Wait)}


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        pytest.param(
            {}, "NodeName=gpu-[0-2] CPUs=2 Features=gpu RealMemory=2000 State=CLOUD", id="by limits"
        ),
        pytest.param(
            {"extraConf": "CPUs=8 Gres=gpu:2 Weight=5", "replicas": 1},
            "NodeName=gpu-0 CPUs=8 Features=gpu Gres=gpu:2 RealMemory=2000 Weight=5 State=CLOUD",
            id="by extraConf",
        ),
        pytest.param(
            {"ordinals": [1, 4, 5]},
            "NodeName=gpu-[0-2,4-5] CPUs=2 Features=gpu RealMemory=2000 State=CLOUD",
            id="by a list, and those below replicas",
        ),
        pytest.param(
            {"ordinalPadding": 3, "template": {"spec": {"hostname": "w-"}}},
            "NodeName=w-[000-002] CPUs=2 Features=w RealMemory=2000 State=CLOUD",
            id="by other names",
        ),
    ],
)
def test_a_nodeset_has_one_line(spec, line):
    assert lines(up(static(**spec))) == [line]


def test_others_have_none():
    assert lines(up(static(records="created"))) == lines(up(static(records="registered"))) == []


def test_without_workers_there_is_no_line_and_the_partition_stays():
    made = up(static(replicas=0, partition={"enabled": True}))

    assert lines(made) == []
    assert "PartitionName=gpu Nodes=gpu" in made.running.texts["slurm.conf"]


def test_who_has_not_gone_yet_keeps_its_line():
    made = up(static(), pod("gpu-2"))
    changed(made, static(replicas=1))
    assert lines(made)[0].startswith("NodeName=gpu-[0,2] ")

    made.world.things = [
        t for t in made.world.things if not (isinstance(t, Pod) and t.metadata.name == "gpu-2")
    ]
    for _ in range(12):
        made.round()
    assert lines(made)[0].startswith("NodeName=gpu-0 ")


@pytest.mark.parametrize(
    ("job", "spec", "is_held"),
    [
        pytest.param(on("gpu-2"), {"replicas": 2}, True, id="its line would go"),
        pytest.param(on("gpu-0"), {"replicas": 2}, False, id="another line would go"),
        pytest.param(on("gpu-2", "SUSPENDED"), {"replicas": 2}, True, id="suspended: not over"),
        pytest.param(
            on("", "PENDING", required_nodes=("gpu-2",)), {"replicas": 2}, True, id="it insists on that node"
        ),
        pytest.param(on("gpu-0"), {"extraConf": "CPUs=4"}, True, id="other CPUs: slurmctld would end it"),
        pytest.param(on("gpu-0"), {"extraConf": "Gres=gpu:1"}, True, id="other GRES"),
        pytest.param(on("gpu-0"), {"extraConf": "RealMemory=100"}, False, id="memory may change under jobs"),
        pytest.param(on("gpu-0"), {"extraConf": "Weight=9"}, False, id="so may a weight"),
        pytest.param(
            on("", "PENDING", required_nodes=("gpu-0",)),
            {"extraConf": "CPUs=4"},
            False,
            id="who only waits for it has nothing to lose by that",
        ),
        pytest.param(on("gpu-2"), {"replicas": 5}, False, id="more lines cost nothing"),
    ],
)
def test_no_line_goes_or_changes_under_a_job(job, spec, is_held):
    made = up(static(), jobs=(job,))
    before = lines(made)
    changed(made, static(**spec))

    assert (lines(made) == before) is is_held
    if is_held:
        assert "unfinished jobs: 7" in waits(made)["JobsAtStake"]
        made.jobs = ()
        made.rounds()
        assert lines(made) != before


def test_a_size_that_waits_for_a_job_holds_up_nothing_else():
    made = up(static(), jobs=(on("gpu-0"),))
    changed(made, static(replicas=4, extraConf="CPUs=4 Weight=9"))

    assert lines(made) == ["NodeName=gpu-[0-3] CPUs=2 Features=gpu RealMemory=2000 Weight=9 State=CLOUD"]
    assert "unfinished jobs: 7" in waits(made)["JobsAtStake"]
    made.spec(extraConf="MinJobAge=77\n")
    for _ in range(12):
        made.round()
    assert "MinJobAge=77" in made.running.texts["slurm.conf"]
    made.jobs = ()
    made.rounds()
    assert lines(made) == ["NodeName=gpu-[0-3] CPUs=4 Features=gpu RealMemory=2000 Weight=9 State=CLOUD"]
    assert "JobsAtStake" not in waits(made)


def test_while_slurm_cannot_be_asked_no_size_changes():
    made = up(static())
    made.has_restapi = False
    changed(made, static(extraConf="Gres=gpu:1", replicas=4))

    assert "cannot be seen" in waits(made)["JobsAtStake"]
    assert "Gres" not in lines(made)[0]


@pytest.mark.parametrize(
    ("text", "is_held"),
    [
        pytest.param("NodeName=DEFAULT CPUs=4\nNodeName=old-0\n", True, id="other CPUs by default"),
        pytest.param(
            "NodeName=DEFAULT CPUs=4\nNodeName=old-0 CPUs=2\n", False, id="its own line says the same"
        ),
        pytest.param(
            "NodeName=old-0 CPUs=2\nNodeName=DEFAULT CPUs=4\n", False, id="a default after its line"
        ),
        pytest.param("NodeName=DEFAULT CPUs=2 Weight=5\nNodeName=old-0\n", False, id="a weight may change"),
    ],
)
def test_a_default_line_changes_every_node_after_it(text, is_held):
    before = "NodeName=DEFAULT CPUs=2\nNodeName=old-0\n"
    held = Play(world(controller({"extraConf": before}), RESTAPI), jobs=(on("old-0"),)).rounds()
    held.spec(extraConf=text)
    for _ in range(12):
        held.round()

    assert (text not in held.running.texts["slurm.conf"]) is is_held
    assert ("CPUs or GRES of node old-0" in waits(held).get("JobsAtStake", "")) is is_held


def test_a_line_of_somebody_else_is_held_as_well():
    """The same for lines that people wrote into extraConf."""
    held = Play(
        world(controller({"extraConf": "NodeName=old-0 CPUs=2\n"}), RESTAPI), jobs=(on("old-0"),)
    ).rounds()
    held.spec(extraConf="NodeName=old-0 CPUs=4\n")
    for _ in range(12):
        held.round()

    assert "CPUs=2" in lines(held)[0]
    assert "CPUs or GRES of node old-0" in waits(held)["JobsAtStake"]
    held.jobs = ()
    held.rounds()
    assert "CPUs=4" in lines(held)[0]
