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


def said(*args: str) -> list[str]:
    with soperatorchecks.make_context("soperatorchecks", list(args)) as context:
        return list(notes(context, {}))


def test_it_runs_checks_and_nothing_else():
    settings = chosen(*OF_5_0)

    assert [one.name for one in program(settings).reconcilers] == ["activecheck"]
    assert settings.leader_elect_id == "a22156dp.nebius.ai"
    assert settings.leader_elect is False


@pytest.mark.parametrize(
    ("controllers", "runs"),
    [("*", True), ("activecheck,activecheckjob", True), ("k8snodes", False), ("*,-k8snodes", True)],
)
def test_controllers_are_chosen_in_their_words(controllers, runs):
    found = program(chosen(f"--controllers={controllers}")).reconcilers

    assert bool(found) == runs


def test_an_unknown_controller_is_refused():
    with pytest.raises(SettingsProblem, match="there is no 'activechecks'"):
        chosen("--controllers=activechecks")


def test_what_has_no_effect_is_said():
    told = said(*OF_5_0)

    assert [line for line in told if line.startswith("--enable-node-replacement has no effect")]
    assert [line for line in told if "'k8snodes' has no counterpart" in line]


def test_the_manager_leaves_checks_to_it_when_told_so():
    def kinds(*args: str) -> set[str]:
        with manager.make_context("manager", ["--api=slurm.nebius.ai", *args]) as context:
            return {one.kind.kind for one in program(manager_settings(context.params)).reconcilers}

    assert ActiveCheck.KIND.kind in kinds()
    assert ActiveCheck.KIND.kind not in kinds("--checks=false")
