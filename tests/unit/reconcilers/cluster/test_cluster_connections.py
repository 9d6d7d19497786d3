"""Where the Slurm clusters are, those elsewhere included."""

import pytest

from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.slinky.cluster import Cluster
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.reconcilers.shared.slurm_servers import slurm_servers
from testing.children import read, secret, with_secrets
from testing.world import HandmadeWorld

URL = "https://slurm.example.org:6820"


def elsewhere(**token) -> Cluster:
    return read(Cluster, {"server": URL, "token": {"secretRef": "login", **token}}, name="demo")


@pytest.mark.parametrize(
    ("token", "entries", "chosen"),
    [
        pytest.param({}, {"SLURM_JWT": "1", "auth-token": "2", "x": "3"}, "SLURM_JWT", id="ours"),
        pytest.param({}, {"auth-token": "2", "x": "3"}, "auth-token", id="that of the Slinky operator"),
        pytest.param({}, {"x": "3"}, "x", id="the only one"),
        pytest.param({"key": "x"}, {"SLURM_JWT": "1", "x": "3"}, "x", id="the one that was named"),
        pytest.param({}, {"x": "3", "y": "4"}, None, id="who can tell?"),
        pytest.param({"key": "z"}, {"x": "3"}, None, id="one that is not there"),
    ],
)
def test_which_entry_is_the_token(token, entries, chosen):
    there = with_secrets(HandmadeWorld(things=[elsewhere(**token)]), secret("login", **entries))

    servers = slurm_servers(there)

    assert [server.key.key for server in servers.values()] == ([chosen] if chosen else [])


def test_a_slurm_elsewhere_is_only_watched_and_never_mixed_up_with_a_controller():
    own = [read(Controller, {}, name="demo"), read(RestApi, {"controllerRef": {"name": "demo"}}, name="demo")]
    there = with_secrets(
        HandmadeWorld(things=[elsewhere(), *own]),
        secret("login", SLURM_JWT="d1"),
        secret("demo-auth-jwt", jwt_key="d2"),
    )

    servers = slurm_servers(there)

    assert {str(key): (server.urls, server.is_only_watched) for key, server in servers.items()} == {
        "ns/demo": (("http://demo-restapi.ns:6820",), False),
        "ns/cluster/demo": ((URL,), True),
    }


def test_a_new_token_is_a_new_connection():
    def connected(digest: str):
        there = HandmadeWorld(things=[elsewhere()])
        return slurm_servers(with_secrets(there, secret("login", SLURM_JWT=digest)))

    assert connected("d1") == connected("d1")
    assert (
        connected("d1")[ObjectKey("ns", "cluster/demo")] != connected("d2")[ObjectKey("ns", "cluster/demo")]
    )
