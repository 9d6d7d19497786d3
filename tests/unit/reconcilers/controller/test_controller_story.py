"""Changes of configuration as stories: what is decided, in order, kept as transcripts in the repository.

Run with SLURM_OPERATOR_GOLDEN=write to write them again.
"""

import os
import re
from functools import cache

import pytest

from slurm_operator.api.shared.meta import Meta
from slurm_operator.manifests import kinds
from slurm_operator.manifests.platform import VolumeClaim
from testing.controller_play import GOOD, NOON, Play, crashing, job, running
from testing.controllers import NS, controller, files, thing, world
from testing.golden import GOLDEN
from testing.world import HandmadeWorld

STORIES = GOLDEN / "controller"

RESTAPI = thing("RestApi", "rest", {"controllerRef": {"name": "slurm"}})
GPU = thing("NodeSet", "gpu", {"controllerRef": {"name": "slurm"}, "partition": {"enabled": True}})


def play(*things, spec=None, **more) -> Play:
    """A cluster that has come up."""
    made = Play(world(controller(spec), RESTAPI, *things, keys=False), **more).rounds()
    made.transcript.append("-- it runs")
    return made


def refuses(word, said):
    return lambda found: said if word in "".join(found.texts.values()) else GOOD


def new(*things) -> HandmadeWorld:
    """Where one can see that no slurmctld has left its state."""
    made = world(*things, RESTAPI, keys=False)
    made.served.add(kinds.PERSISTENT_VOLUME_CLAIM)
    return made


def first_start():
    return Play(new(controller(), GPU)).rounds()


def first_start_where_a_volume_is_left():
    """Of a Controller of this name, which has been deleted."""
    there = new(controller(), GPU)
    there.things.append(VolumeClaim(metadata=Meta(name="statesave-slurm-controller-0", namespace=NS)))
    return Play(there).rounds()


def first_start_with_a_broken_file():
    made = Play(new(controller({"extraConf": "MailProg=/broken\n"})),
                rehearse=refuses("/broken", "[2026-01-01T12:00:00.123] fatal: Unable to run /broken\n")).rounds()  # fmt: skip
    made.spec(extraConf="")
    return made.rounds()


def good_change():
    made = play(GPU)
    made.spec(extraConf="KillWait=5\n")
    return made.rounds()


def bad_grammar():
    made = play()
    made.spec(extraConf="KillWait=5\nMaxJobCoutn=9\n")
    made.rounds()
    made.spec(extraConf="KillWait=5\n")
    return made.rounds()


def bad_rehearsal():
    made = play(rehearse=refuses("job_submit/nonsense", "slurmctld: error: cannot find plugin\nslurmctld: fatal: failed to initialize job_submit plugin\n"))  # fmt: skip
    made.spec(extraConf="JobSubmitPlugins=job_submit/nonsense\n")
    made.rounds()
    made.spec(extraConf="")
    return made.rounds()


def restart_key():
    made = play()
    made.spec(extraConf="SlurmctldPort=7817\n")
    return made.rounds()


def restart_key_in_place():
    made = play(spec={"inplaceReconfigure": True})
    made.spec(extraConf="CommunicationParameters=NoAddrCache\n")
    return made.rounds()


def costs_all_jobs():
    made = play(jobs=(job(7), job(8)))
    made.spec(extraConf="SelectType=select/linear\n")
    made.round()
    made.round()
    made.jobs = ()
    made.transcript.append("-- the jobs end")
    return made.rounds()


def partition_with_jobs_leaves():
    made = play(GPU, jobs=(job(7, "gpu"),))
    made.world.things = [t for t in made.world.things if t is not GPU]
    made.transcript.append("-- the NodeSet is gone")
    made.round()
    made.round()
    made.jobs = ()
    made.transcript.append("-- the job ends")
    return made.rounds()


def job_comes_while_its_partition_leaves():
    made = play(spec={"extraConf": "PartitionName=debug Nodes=ALL\n"})
    before = made.mounted()
    made.spec(extraConf="")
    while made.mounted() == before:
        made.round()
    made.jobs = (job(7, "debug"),)
    made._slurm()
    made.transcript.append("-- somebody submits a job to partition debug")
    for _ in range(4):
        made.round()
    made.jobs = ()
    made.transcript.append("-- the job ends")
    made._slurm()
    return made.rounds()


def never_taken():
    made = play(takes=lambda found: "/stubborn" not in found.texts["slurm.conf"])
    made.spec(extraConf="MailProg=/stubborn\n")
    return made.rounds()


def crashes_on_it():
    made = play(takes=lambda found: False)
    made.spec(extraConf="MailProg=/fatal\n")
    while not any("told slurmctld" in line for line in made.transcript):
        made.round()
    [pod] = made.pods()
    made._replace(crashing(pod, "fatal: no such thing"))
    made.running, made.has_restapi = None, False
    made.transcript.append("-- slurmctld crashes")
    made.rounds()
    made._replace(running(made.pods()[0], made.now, is_ready=True))
    made.running, made.has_restapi = made.mounted(), True
    made.transcript.append("-- the kubelet starts it again")
    made.round()
    return made.rounds()


def without_a_restapi():
    made = Play(world(controller(), keys=False), has_restapi=False).rounds()
    made.transcript.append("-- it runs")
    made.spec(extraConf="KillWait=5\n")
    for _ in range(6):
        made.round()
    made.has_restapi = True
    made.transcript.append("-- a RestApi comes")
    made.round()
    return made.rounds()


TOLD = {
    story.__name__: story
    for story in (
        first_start, first_start_where_a_volume_is_left, first_start_with_a_broken_file, good_change, bad_grammar, bad_rehearsal, restart_key,
        restart_key_in_place, costs_all_jobs, partition_with_jobs_leaves,
        job_comes_while_its_partition_leaves, never_taken, crashes_on_it,
        without_a_restapi,
    )
}  # fmt: skip


@cache
def ended(name: str) -> tuple[Play, str]:
    """A story at its end, and its transcript."""
    made = TOLD[name]()
    return made, written(made)


@pytest.mark.parametrize("name", TOLD)
def test_the_story_is_the_one_in_the_repository(name):
    _, told = ended(name)
    path = STORIES / f"{name.replace('_', '-')}.story"
    if os.environ.get("SLURM_OPERATOR_GOLDEN") == "write":
        path.write_text(told)

    assert told == path.read_text()


def written(made: Play) -> str:
    """The transcript from where it runs, with digests by number: a changed builder changes no story."""
    lines = made.transcript
    if "-- it runs" in lines:
        lines = lines[lines.index("-- it runs") :]
    text = "\n".join(lines) + "\n"
    for number, digest in enumerate(dict.fromkeys(re.findall(r"\b[0-9a-f]{16}\b", text)), 1):
        text = text.replace(digest, f"#{number}")
    conditions = [
        f"   {c.type}={c.status} {c.reason}: {c.message}".rstrip(": ")
        for c in made.controller.status.conditions
    ]
    return text + "\n".join(["-- in the end", *conditions]) + "\n"


@pytest.mark.parametrize("name", TOLD)
def test_in_the_end_the_mounted_files_are_ones_that_slurmctld_runs_with(name):
    made, _ = ended(name)

    assert made.running is not None
    assert made.mounted() == made.running


@pytest.mark.parametrize("name", TOLD)
def test_a_pass_more_writes_nothing(name):
    made, _ = ended(name)
    before = len(made.transcript)
    made.round()

    assert [line for line in made.transcript[before:] if not line.startswith("Wait")] == []


@pytest.mark.parametrize(("name", "restarts"), [
    ("good_change", 0), ("bad_grammar", 0), ("bad_rehearsal", 0), ("never_taken", 0), ("partition_with_jobs_leaves", 0),
    ("restart_key", 1), ("costs_all_jobs", 1), ("restart_key_in_place", 0), ("without_a_restapi", 0), ("first_start", 0), ("first_start_where_a_volume_is_left", 0), ("first_start_with_a_broken_file", 1),
])  # fmt: skip
def test_slurmctld_restarts_only_for_what_needs_it(name, restarts):
    assert ended(name)[0].restarts == restarts


def test_a_change_of_a_referenced_file_is_a_change_like_any_other():
    made = play(files("f", {"gres.conf": "AutoDetect=off\n"}), spec={"configFileRefs": [{"name": "f"}]})
    before = made.running

    made.world.named.update(world(files("f", {"gres.conf": "AutoDtect=off\n"})).named)
    made.rounds()
    assert made.running == before
    assert (made.controller.status.config.refused.file, made.controller.status.config.refused.line) == (
        "gres.conf",
        1,
    )

    made.world.named.update(world(files("f", {"gres.conf": "AutoDetect=nvml\n"})).named)
    made.rounds()
    assert made.running.texts["gres.conf"] == "AutoDetect=nvml\n"
    assert made.restarts == 0


def test_the_operator_may_forget_everything_between_any_two_passes():
    """Nothing is kept but what stands in objects: a new operator goes on where the old one stopped."""
    made = play()
    made.spec(extraConf="KillWait=7\n")
    for _ in range(40):
        again = Play(made.world, now=made.now, running=made.running, uids=made.uids)
        again.round()
        made = again

    assert "KillWait=7" in made.running.texts["slurm.conf"]
    assert made.now > NOON
