"""What `kubectl slurm plan` says, and what real daemons then do: equal by uid and by job, in both directions."""

import random
from collections import Counter
from collections.abc import Iterator

import pytest
from changing import TAKING, Changing, changed
from operator_rig import install

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def changing(cluster, operator_image) -> Iterator[Changing]:
    install(cluster, operator_image)
    made = Changing(cluster)
    made.settle()
    yield made
    cluster.kubectl("delete", "cluster", "demo", "-n", made.namespace, "--wait=false")


def compare(changing: Changing, class_: str, chance: random.Random) -> None:
    """Plans one change, makes it, and looks whether both are the same."""
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

    told = f"{class_}: planned {found}; there was {before}, there is {after}"
    taken = {one["uid"] for key in ("deleted", "restarted") for one in found[key] if one["kind"] == "Pod"}
    assert taken == before.pods.keys() - after.pods.keys(), told
    fresh = Counter(after.pods[uid] for uid in after.pods.keys() - before.pods.keys())
    made = Counter(one["name"] for one in found["created"] if one["kind"] == "Pod")
    back = Counter(one["name"] for one in found["restarted"] if one["kind"] == "Pod")
    assert by_owner(fresh) == by_owner(made + back), told
    assert slurm_nodes(found["created"]) == after.slurm_nodes - before.slurm_nodes, told
    assert slurm_nodes(found["deleted"]) == before.slurm_nodes - after.slurm_nodes, told
    assert {one["job_id"] for one in found["waited_for"]} == jobs, told
    assert found["stuck"] == [], told


def by_owner(pods: Counter) -> Counter:
    """Kubernetes alone names pods of a Deployment; those go by what they belong to."""
    return Counter(
        {name.split("-login-")[0] if "-login-" in name else name: count for name, count in pods.items()}
    )


def slurm_nodes(effects: list[dict]) -> set[str]:
    return {one["name"] for one in effects if one["kind"] == "SlurmNode"}


def test_scaling_in_takes_the_worker_and_waits_for_the_job_that_the_plan_names(changing):
    chance = random.Random(1)
    for class_ in ("scale out", "scale in"):
        compare(changing, class_, chance)
