"""How a job ended is part of what a decision came from: it is recorded, and answered again."""

from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.manifests.objects import Unread
from slurm_operator.runtime.world.recording_world import Answer, RecordingWorld, ReplayWorld, plain_answer
from testing.checks import NOW, RECONCILER, check, ended, with_run, world, writes


def test_a_decision_about_ended_jobs_is_the_same_when_replayed():
    there = with_run(world(check()), ids="7,8,9")
    there.job_ends = {
        7: (ended(7, "FAILED", "cpu-3", reason="NonZeroExitCode"),),
        8: Unread(why="it runs"),
        9: (),
    }
    recording, key = RecordingWorld(there), ObjectKey("ns", "gpus")
    first = RECONCILER.decide(RECONCILER.observe(key, recording), NOW)
    answers = {question: Answer(plain_answer(answer)) for question, answer in recording.answers.items()}
    again = RECONCILER.decide(RECONCILER.observe(key, ReplayWorld(NOW, answers)), NOW)

    assert writes(first)
    assert writes(again) == writes(first)
    assert [wait.message for wait in again.waits] == [wait.message for wait in first.waits]
