"""Flags of `slurm-operator exporter`, and the variables that stand in for them."""

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from slurm_operator.cli.exporter import exporter, settings_of
from slurm_operator.exporter.options import Compat
from slurm_operator.exporter.program import Settings
from slurm_operator.runtime.settings import SettingsProblem


def settings(*arguments: str, environ: dict[str, str] | None = None) -> Settings:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (environ or {}).items():
            patch.setenv(name, value)
        flags: dict[str, Any] = exporter.make_context("exporter", list(arguments)).params
    return settings_of(flags)


def test_the_defaults_are_those_of_soperators_exporter():
    found = settings("--cluster-name", "demo")

    assert found.plan.cluster == "demo"
    assert found.namespace == "soperator"
    assert found.urls == ("http://localhost:6820",)
    assert (found.plan.interval_seconds, found.plan.most_in_flight, found.plan.is_accounting) == (
        30,
        1,
        False,
    )
    assert found.plan.lookback.total_seconds() == 3600
    assert (found.metrics.port, found.monitoring.port) == (8080, 8081)
    assert found.login.rotation_seconds == 1800


def test_a_flag_wins_over_its_variable_and_that_over_the_default():
    environ = {
        "SLURM_EXPORTER_CLUSTER_NAME": "from-variable",
        "SLURM_EXPORTER_COLLECTION_INTERVAL": "5s",
        "SLURM_EXPORTER_JOB_SOURCE": "accounting",
        "SLURM_EXPORTER_TOKEN": "t",
        "SLURM_EXPORTER_PERSONAL_DATA": "false",
    }

    found = settings("--collection-interval=7s", environ=environ)

    assert found.plan.cluster == "from-variable"
    assert found.plan.interval_seconds == 7
    assert found.plan.is_accounting
    assert found.login.static_token == "t"
    assert found.options.personal_data is False


def test_the_second_api_signs_as_root_unless_told_otherwise():
    assert settings("--cluster-name=a", "--compat=soperator").login.user == "root"
    assert settings("--cluster-name=a", "--compat=soperator", "--slurm-user=me").login.user == "me"
    assert settings("--cluster-name=a").login.user == "slurm"
    assert settings("--cluster-name=a", "--compat=slinky").options.compat is Compat.SLINKY
    assert settings("--cluster-name=a", "--token-file=/x").login.token_file == Path("/x")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param(["--collection-interval=0.1s"], "--collection-interval is 0.1s", id="too often"),
        pytest.param(
            ["--collection-interval=soon"], "--collection-interval: 'soon' is not a duration", id="no time"
        ),
        pytest.param(["--slurm-api-server=slurm:6820"], "is no URL", id="no URL"),
        pytest.param(["--slurm-api-server=,"], "is empty", id="no server"),
        pytest.param(["--metrics-bind-address=x"], "not an address", id="no address"),
    ],
)
def test_what_cannot_be_is_said(arguments: list[str], says: str):
    with pytest.raises(SettingsProblem, match=says):
        settings("--cluster-name=a", *arguments)


def test_without_a_name_of_the_cluster_it_does_not_start():
    result = CliRunner().invoke(exporter, [])

    assert result.exit_code == click.UsageError.exit_code
    assert "--cluster-name" in result.output
