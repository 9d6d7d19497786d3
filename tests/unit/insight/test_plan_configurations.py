"""Changes of a Controller: the plan, and what then happens in the little world of the Controller's own stories."""

import pytest

from slurm_operator import wire
from slurm_operator.api.schema import codec
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import key_of
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.insight.forecast.outcome import Forecast, forecast
from slurm_operator.insight.world_snapshot import Picture
from slurm_operator.manifests import kinds
from slurm_operator.manifests.objects import ConfigMap, Secret
from slurm_operator.reconcilers.controller import RECONCILER
from testing.controller_play import Play
from testing.controllers import NAME, NS, controller, thing, world

RESTAPI = thing("RestApi", "rest", {"controllerRef": {"name": NAME}, "replicas": 1})
GPU = thing("NodeSet", "gpu", {"controllerRef": {"name": NAME}, "partition": {"enabled": True}})
HEAD = names.controller_pod(NAME, 0)


def begun(spec: dict | None = None) -> Play:
    return Play(world(controller(spec), RESTAPI, GPU, keys=False)).rounds()


def picture(play: Play) -> Picture:
    """What somebody would see who looks at the play now."""
    made = Picture(now=play.now, is_whole=True, slurms=dict(play.world.slurms), served=set(play.world.served))
    for one in play.world.things:
        made.put(one)
    for kind, children in play.world.children_.items():
        made.parts[kind] = {key_of(child): child for child in children}
    for (type_, key), named in play.world.named.items():
        if type_ is Secret:
            made.secrets[key] = named
        elif type_ is ConfigMap:
            made.config_maps[key] = named
    return made


def planned(play: Play, change: dict) -> Forecast:
    now = picture(play)
    old = now.get(Controller, NS, NAME)
    body = codec.plain(old)
    body["spec"] = {**body["spec"], **change}
    new = codec.read(Controller, body)
    then = now.copy()
    generation = old.metadata.generation + 1
    then.put(wire.replace(new, metadata=wire.replace(new.metadata, generation=generation)))
    return forecast(now, then, [RECONCILER])


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"extraConf": "KillWait=5\n"}, id="a key that slurmctld takes while it runs"),
        pytest.param({"extraConf": "KillWait=5\nMinJobAge=60\nInactiveLimit=10\n"}, id="several of them"),
        pytest.param({"extraConf": "SchedulerParameters=bf_window=60\n"}, id="parameters"),
        pytest.param({"extraConf": "SelectType=select/linear\n"}, id="a key that needs a restart"),
        pytest.param({"extraConf": "MaxNodeCount=77\n"}, id="another one"),
        pytest.param({"extraConf": "MaxJobCoutn=9\n"}, id="a typo that is refused"),
        pytest.param({"slurmctld": {"image": "slurmctld:next"}}, id="another image"),
        pytest.param({"template": {"metadata": {"annotations": {"a": "b"}}}}, id="another template"),
        pytest.param({"extraConf": "KillWait=5\n", "slurmctld": {"image": "slurmctld:next"}}, id="both at once"),
        pytest.param({"service": {"port": 7000}}, id="another Service"),
        pytest.param({"metrics": {"enabled": True}}, id="metrics"),
    ],
)  # fmt: skip
def test_slurmctld_restarts_and_reads_files_as_planned(change: dict) -> None:
    play = begun()
    restarts, files = play.restarts, play.mounted()
    found = planned(play, change)
    assert play.mounted() == files  # Nothing was done.
    play.spec(**change)
    play.rounds()

    assert [one.name for one in found.restarted] == [HEAD] * (play.restarts - restarts), play.transcript[-20:]
    names_ = {f"{one.kind} {one.name}": one for one in found.changed}
    is_new = play.mounted() != files
    config = f"ConfigMap {names.controller_config(NAME)}"
    assert (config in names_) is is_new, play.transcript[-20:]
    if is_new:
        told = next(one for one in names_[config].fields if one.field == "data.slurm.conf").after.splitlines()
        assert set(told) <= set(play.mounted().texts["slurm.conf"].splitlines())
    assert bool(found.stuck or found.refused) is bool(play.condition("Degraded").status == "True")
    assert play.world.child(kinds.STATEFUL_SET, NS, names.controller_workload(NAME)) is not None
