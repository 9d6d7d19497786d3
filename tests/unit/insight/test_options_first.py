"""Options that say where to look, before the subcommand and behind it."""

import pytest
from click.testing import CliRunner

from slurm_operator.cli.kubectl import kubectl_slurm, options_last


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        pytest.param("status -n a", "status -n a", id="behind: as it is"),
        pytest.param("-n a status", "status -n a", id="before"),
        pytest.param("-n a --context=b -A status c", "status c -n a --context=b -A", id="several"),
        pytest.param("--kubeconfig f record fetch g", "record fetch g --kubeconfig f", id="a command of two words"),
        pytest.param("-n a drain -- -x", "drain -n a -- -x", id="before what is no option"),
        pytest.param("--help", "--help", id="of the program itself"),
        pytest.param("-n a", "-n a", id="no command"),
        pytest.param("", "", id="nothing"),
    ],
)  # fmt: skip
def test_options_are_read_where_the_subcommand_reads_them(typed: str, read: str) -> None:
    assert options_last(typed.split()) == read.split()


def test_a_namespace_before_the_command_is_the_one_that_is_looked_in() -> None:
    done = CliRunner().invoke(kubectl_slurm, ["-n", "a", "--kubeconfig", "/nowhere", "status"])

    assert "/nowhere" in done.output
    assert "No such option" not in done.output


def test_what_a_subcommand_does_not_know_is_refused_by_name() -> None:
    done = CliRunner().invoke(kubectl_slurm, ["-n", "a", "completion", "bash"])

    assert done.exit_code == 2
    assert "No such option '-n'" in done.output
