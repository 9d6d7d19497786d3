"""`slurm-operator soperatorchecks` is started by the command line of Soperator's own Deployment."""

import pytest

from slurm_operator.api.nebius import ActiveCheck
from slurm_operator.cli.manager import manager
from slurm_operator.cli.manager import settings_of as manager_settings
from slurm_operator.cli.soperatorchecks import notes, settings_of, soperatorchecks
from slurm_operator.operator import program
from slurm_operator.runtime.settings import Settings, SettingsProblem

OF_5_0 = [
    "--health-probe-bind-address=:8081", "--metrics-bind-address=:8080", "--requeue-after-slurm-nodes=3m",
    "--requeue-after-activecheck=10s", "--requeue-after-activecheckjob=1m", "--enable-node-replacement=false",
    "-not-ready-timeout=15m", "--ephemeral-storage-threshold=85", "--ephemeral-storage-resume-threshold=80",
    "--maintenance-condition-type=NebiusMaintenanceScheduled", "--kubelet-insecure-skip-tls-verify=true",
    "--log-level=debug", "--leader-elect=false",
]  # fmt: skip


def chosen(*args: str) -> Settings:
    with soperatorchecks.make_context("soperatorchecks", list(args)) as context:
        return settings_of(context.params)


def names(settings: Settings) -> list[str]:
    return [one.name for one in program(settings).reconcilers]


def said(*args: str) -> list[str]:
    with soperatorchecks.make_context("soperatorchecks", list(args)) as context:
        return list(notes(context, {}))


def test_it_runs_checks_and_nothing_else():
    settings = chosen(*OF_5_0)

    assert names(settings) == ["activecheck", "kubenode"]
    assert settings.leader_elect_id == "a22156dp.nebius.ai"
    assert settings.leader_elect is False


@pytest.mark.parametrize(
    ("controllers", "runs"),
    [
        ("*", ["activecheck", "kubenode"]),
        ("activecheck,activecheckjob", ["activecheck"]),
        ("k8snodes", ["kubenode"]),
        ("slurmnodes", ["kubenode"]),
        ("*,-k8snodes", ["activecheck", "kubenode"]),
        ("podephemeralstoragecheck", ["kubenode"]),
        ("*,-k8snodes,-slurmnodes,-podephemeralstoragecheck", ["activecheck"]),
        ("slurmapiclients", []),
    ],
)
def test_controllers_are_chosen_in_their_words(controllers, runs):
    assert names(chosen(f"--controllers={controllers}")) == runs


def test_each_of_its_node_controllers_has_its_part_of_the_rules():
    def parts(controllers: str) -> tuple[bool, bool, bool]:
        settings = chosen(f"--controllers={controllers}")
        nodes = settings.nodes
        assert nodes is not None
        assert nodes.follows_storage == (settings.kubelets is not None)
        return nodes.follows_slurm, nodes.follows_conditions, nodes.follows_storage

    assert parts("*") == (True, True, True)
    assert parts("slurmnodes") == (True, False, False)
    assert parts("*,-slurmnodes") == (False, True, True)
    assert parts("podephemeralstoragecheck") == (False, False, True)


def test_an_unknown_controller_is_refused():
    with pytest.raises(SettingsProblem, match="there is no 'activechecks'"):
        chosen("--controllers=activechecks")


def test_what_has_no_effect_is_said():
    told = said(*OF_5_0)

    assert [line for line in told if line.startswith("--requeue-after-slurm-nodes has no effect")]
    assert not [line for line in told if line.startswith(("--enable-node-replacement", "--ephemeral"))]


def test_the_manager_leaves_checks_to_it_when_told_so():
    def kinds(*args: str) -> set[str]:
        with manager.make_context("manager", ["--api=slurm.nebius.ai", *args]) as context:
            return {one.kind.kind for one in program(manager_settings(context.params)).reconcilers}

    assert ActiveCheck.KIND.kind in kinds()
    assert ActiveCheck.KIND.kind not in kinds("--checks=false")


def test_a_manager_of_ours_with_the_lease_of_soperators_is_no_reason_to_observe():
    """The charts start both; the manager holds that Lease."""
    assert chosen(*OF_5_0).is_beside_manager
    with manager.make_context("manager", ["--api", "slurm.nebius.ai"]) as context:
        assert not manager_settings(context.params).is_beside_manager
