"""Why Slurm cannot be asked for jobs: something is not there yet, or the reader may not see the key."""

from slurm_operator.api import RestApi
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.cli.kubectl.jobs import no_way
from slurm_operator.insight.clusters import clusters
from slurm_operator.manifests.objects import Unread
from testing.clusters import cluster, settled, world

SPEC = {"nodeSets": [{"name": "cpu", "replicas": 2}]}


def test_a_reader_without_the_key_is_told_of_it_and_of_the_ways_without() -> None:
    there = settled(world(cluster(SPEC)))
    there.with_secret(Unread(why="forbidden"), ObjectKey("ns", "demo-auth-jwt"))

    [found] = clusters(there)

    assert no_way(found).startswith(
        "Slurm of ns/demo cannot be asked: you may not read Secret demo-auth-jwt, which holds the key for its tokens."
    )
    assert "--token-secret" in no_way(found)


def test_what_is_not_there_yet_is_named() -> None:
    begun = world(cluster(SPEC))
    without = settled(world(cluster(SPEC)))
    without.things = [thing for thing in without.things if not isinstance(thing, RestApi)]

    [first], [second] = clusters(begun), clusters(without)

    assert "It has no Controller yet. See: kubectl slurm explain cluster/demo" in no_way(first)
    assert "It has no RestApi yet." in no_way(second)
