"""Workers that Slurm has forgotten are looked into, if we may, and marked where no step runs."""

from datetime import timedelta
from types import SimpleNamespace

import pytest

from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.kube.errors import CommandFailed, Forbidden, Status
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.actions import DeleteWorker
from slurm_operator.runtime.act.perform import Performer
from slurm_operator.runtime.act.stages import ActionFailed
from slurm_operator.runtime.loop.retries import NEXT_PASS
from slurm_operator.runtime.step_watch import PATIENCE, StepWatch, is_forgotten
from slurm_operator.safety.gate import Candidate, gate, has_no_steps, no_steps_mark
from slurm_operator.slurm.snapshot import Unreachable
from testing.workers import CONTROLLER, NOW, nodeset, planned, slurm, slurm_node, told, worker, world

VIRTUAL_TIME = True
FREE, BUSY = b"slurmd\nlooked\n", b"slurmd\nstep\nlooked\n"


def marked(pod: Pod) -> Pod:
    notes = {**pod.metadata.annotations, names.POD_NO_STEPS: no_steps_mark(pod)}
    return wire.replace(pod, metadata=wire.replace(pod.metadata, annotations=notes))


@pytest.mark.parametrize(
    ("pod", "known", "is_one"),
    [
        pytest.param(worker(0), slurm(), True, id="long ready, and unknown"),
        pytest.param(worker(0), slurm(slurm_node(worker(0), "IDLE")), False, id="known"),
        pytest.param(worker(0), Unreachable(since=NOW, why="away"), False, id="nobody can tell"),
        pytest.param(worker(0), wire.replace(slurm(), nodes_asked_at=NOW - timedelta(minutes=1)), False, id="an old answer"),
        pytest.param(worker(0, ready=False), slurm(), False, id="not ready"),
        pytest.param(worker(0, age=PATIENCE - timedelta(seconds=1)), slurm(), False, id="it may yet register"),
    ],
)  # fmt: skip
def test_a_worker_is_forgotten_when_slurm_has_long_not_known_it(pod, known, is_one):
    assert is_forgotten(pod, known, NOW) is is_one


class Stage:
    """One worker that Slurm does not know, and what a command in it prints."""

    def __init__(self, printed: bytes | Exception) -> None:
        self.output = printed
        self.asked = 0
        self.patches: list[list] = []
        self.deleted: list[dict] = []
        plain = worker(0)
        labels = {**plain.metadata.labels, names.LABEL_CLUSTER: CONTROLLER.name}
        self.pod = wire.replace(plain, metadata=wire.replace(plain.metadata, labels=labels))
        self.known = SimpleNamespace(
            records={Pod: {key_of(self.pod): self.pod}},
            view=lambda: SimpleNamespace(now=NOW, slurm=lambda *_: self.answer),
            note_written=lambda *_: None,
            note_deleted=lambda *_: None,
            slurms=SimpleNamespace(latest=lambda key: slurm(), refresh=self.refresh),
        )
        self.answer = slurm()

    async def refresh(self, cluster: ObjectKey) -> None:
        """Slurm is read again."""
        assert cluster == CONTROLLER
        self.answer = slurm()

    async def printed(self, pod, container, command) -> bytes:
        self.asked += 1
        assert container == "slurmd"
        if isinstance(self.output, Exception):
            raise self.output
        return self.output

    async def json_patch(self, kind, key, operations, *, uid) -> dict:
        self.patches.append(list(operations))
        return {}

    async def delete_undecoded(self, kind, key, **how):
        self.deleted.append(how)


async def test_where_no_step_runs_the_pod_is_marked_in_the_version_that_was_looked_at():
    stage = Stage(FREE)
    await StepWatch(stage, stage.known).look()
    [operations] = stage.patches
    by_path = {one["path"]: one for one in operations}
    assert by_path["/metadata/resourceVersion"]["op"] == "test"
    assert by_path["/metadata/annotations/nodeset.slinky.slurm.net~1no-steps"]["value"] == no_steps_mark(
        stage.pod
    )


async def test_slurm_is_read_again_where_its_last_answer_is_too_old_to_look_by():
    stage = Stage(FREE)
    stage.answer = wire.replace(stage.answer, nodes_asked_at=NOW - timedelta(seconds=12))
    await StepWatch(stage, stage.known).look()
    assert len(stage.patches) == 1


@pytest.mark.parametrize(
    "printed",
    [
        pytest.param(BUSY, id="a step runs"),
        pytest.param(b"", id="nothing was printed"),
        pytest.param(CommandFailed("no such file: sh"), id="the image has no shell"),
        pytest.param(Forbidden(Status(code=403, message="no")), id="not allowed"),
    ],
)
async def test_nothing_is_marked_where_a_step_runs_or_nobody_can_tell(printed):
    stage = Stage(printed)
    watch = StepWatch(stage, stage.known)
    await watch.look()
    assert (stage.patches, stage.asked) == ([], 1)
    assert (watch._refused_until > 0) is isinstance(printed, Forbidden)


def test_a_marked_worker_is_replaced_with_its_whole_grace_period_and_an_unmarked_one_waits():
    made, spec = marked(worker(0)), nodeset(replicas=1)
    [delete] = [
        one for one in planned(world(spec, made, slurm_=slurm())).actions() if isinstance(one, DeleteWorker)
    ]
    assert (delete.grace_seconds, delete.reason) == (None, "Forgotten")
    assert "Slurm did not know it, and no step ran in it" in delete.message
    waiting = told(world(spec, worker(0), slurm_=slurm()))
    assert not any("DeleteWorker" in line for line in waiting)


def test_a_marked_worker_that_registers_again_stays():
    made = marked(worker(0))
    there = world(nodeset(replicas=1), made, slurm_=slurm(slurm_node(made, "IDLE")))
    assert not [one for one in planned(there).actions() if isinstance(one, DeleteWorker)]


@pytest.mark.parametrize(("printed", "is_deleted"), [(FREE, True), (BUSY, False), (b"", False)])
async def test_its_processes_are_looked_at_once_more_when_it_is_deleted(printed, is_deleted):
    stage = Stage(printed)
    stage.pod = marked(stage.pod)
    stage.known.records[Pod] = {key_of(stage.pod): stage.pod}
    assert has_no_steps(stage.pod)
    name = stage.pod.metadata.name
    action = DeleteWorker(
        controller=CONTROLLER, key=key_of(stage.pod), slurm_node=name, grace_seconds=None, reason="Forgotten",
        proof=gate(Candidate(stage.pod, name, slurm()), NOW), message="",
    )  # fmt: skip
    performer = Performer(stage, stage.known, lambda: NOW, NEXT_PASS, lambda: True)
    if is_deleted:
        await performer.perform(action)
        [how] = stage.deleted
        assert (how["grace_seconds"], how["resource_version"]) == (None, stage.pod.metadata.resource_version)
    else:
        with pytest.raises(ActionFailed, match="a step may run there"):
            await performer.perform(action)
        assert stage.deleted == []
    assert (stage.asked, ObjectKey(*action.key)) == (1, key_of(stage.pod))
