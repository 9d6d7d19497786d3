"""What `kubectl slurm plan` says, and what real daemons then do: equal by uid and by job, in both directions."""

import random
from collections import Counter
from collections.abc import Iterator

import pytest
from changing import TAKING, Changing, Sight, changed
from operator_rig import install

pytestmark = pytest.mark.timeout(1800)

# Changes that belong together stand in the order in which they make sense.
TURNS = (
    ("scale out", "scale in"), ("more node sets", "fewer node sets"), ("a login", "no login"), ("replace",),
    ("replace and scale out", "replace and scale in"), ("reconfigure",), ("restart slurmctld",), ("nothing",),
)  # fmt: skip

EFFECTS = ("created", "restarted", "deleted")

ROUNDS = 5  # Each has every class of change once. One of them can be run alone.


@pytest.fixture(scope="module")
def changing(cluster, operator_image) -> Iterator[Changing]:
    install(cluster, operator_image)
    made = Changing(cluster)
    made.settle()
    yield made
    cluster.kubectl("delete", "cluster", "demo", "-n", made.namespace, "--wait=false")


def differences(changing: Changing, class_: str, chance: random.Random) -> list[str]:
    """Plans one change, makes it, and gives back in what the plan and reality are not the same."""
    changing.free()
    workers = [f"demo-cpu-{number}" for number in range(changing.wish.replicas)]
    if class_ in TAKING:
        changing.occupy(chance.sample(workers, chance.randint(0, 2)))
    wish = changed(changing.wish, class_, chance)
    before, found = changing.see(), changing.plan(wish)
    assert changing.see() == before, "nothing was done"

    changing.apply(wish)
    jobs = changing.settle()
    after = changing.see()

    planned, real = told_by(found), happened(before, after, jobs)
    return [
        f"{class_}: {what}: planned {planned[what]}, really {real[what]}; before {before}, after {after}"
        for what in planned
        if planned[what] != real[what]
    ]


def told_by(found: dict) -> dict[str, object]:
    pods = {key: [one for one in found[key] if one["kind"] == "Pod"] for key in EFFECTS}
    nodes = {key: {one["name"] for one in found[key] if one["kind"] == "SlurmNode"} for key in EFFECTS}
    return {
        "pods taken": {one["uid"] for one in (*pods["deleted"], *pods["restarted"])},
        "pods made": by_owner(one["name"] for one in (*pods["created"], *pods["restarted"])),
        "nodes made": nodes["created"],
        "nodes taken": nodes["deleted"],
        "jobs waited for": {one["job_id"] for one in found["waited_for"]},
        "images changed": [
            field for one in found["changed"] for field in one["fields"] if field["field"].endswith(".image")
        ],
        "left unfinished": found["stuck"],
    }


def happened(before: Sight, after: Sight, jobs: set[int]) -> dict[str, object]:
    return {
        "pods taken": before.pods.keys() - after.pods.keys(),
        "pods made": by_owner(after.pods[uid] for uid in after.pods.keys() - before.pods.keys()),
        "nodes made": after.slurm_nodes - before.slurm_nodes,
        "nodes taken": before.slurm_nodes - after.slurm_nodes,
        "jobs waited for": jobs,
        "images changed": [],
        "left unfinished": [],
    }


def by_owner(pods: Iterator[str]) -> Counter:
    """Kubernetes alone names pods of a Deployment; those go by what they belong to."""
    return Counter(name.split("-login-")[0] if "-login-" in name else name for name in pods)


def drawn(chance: random.Random) -> Iterator[str]:
    """Every class of change once, in a random order that can be."""
    turns = [list(turn) for turn in TURNS]
    while turns:
        turn = chance.choice(turns)
        yield turn.pop(0)
        turns = [one for one in turns if one]


def test_scaling_in_takes_the_worker_and_waits_for_the_job_that_the_plan_names(changing):
    chance = random.Random(1)
    for class_ in ("scale out", "scale in"):
        assert differences(changing, class_, chance) == []


@pytest.mark.minutes
@pytest.mark.parametrize("round_", range(ROUNDS))
def test_what_was_planned_is_what_really_happens_in_a_random_order_of_changes(changing, round_):
    chance = random.Random(round_)
    order = list(drawn(chance))
    assert sorted(order) == sorted(class_ for turn in TURNS for class_ in turn)
    found = [difference for class_ in order for difference in differences(changing, class_, chance)]
    assert found == []
