"""The command tree of `slurm-operator`. Each subcommand lives in a module of its own."""

import click

import slurm_operator
from slurm_operator.cli.lazy import LazyGroup, Table

COMMANDS: Table = {
    "crds": ("slurm_operator.cli.crds", "crds", "Print the custom resource definitions as YAML."),
    "down": ("slurm_operator.cli.local", "down", "Stop the local cluster; short for `local down`."),
    "exporter": ("slurm_operator.cli.exporter", "exporter", "Show a Slurm cluster to Prometheus."),
    "local": ("slurm_operator.cli.local", "local", "A real Kubernetes and Slurm on this machine."),
    "manager": ("slurm_operator.cli.manager", "manager", "Run the reconcilers."),
    "manifests": ("slurm_operator.cli.manifests", "manifests", "Print the whole installation as YAML."),
    "power-manager": (
        "slurm_operator.cli.power_manager",
        "power_manager",
        "Tell the API server which nodes Slurm wants to run.",
    ),
    "rebooter": (
        "slurm_operator.cli.rebooter",
        "rebooter",
        "Drain and reboot a Kubernetes node when asked to.",
    ),
    "sconfigcontroller": (
        "slurm_operator.cli.sconfigcontroller",
        "sconfigcontroller",
        "Write JailedConfigs into a cluster's shared root.",
    ),
    "soperator": (
        "slurm_operator.cli.soperator",
        "soperator",
        "Run the reconcilers in place of Soperator's manager.",
    ),
    "soperatorchecks": (
        "slurm_operator.cli.soperatorchecks",
        "soperatorchecks",
        "Run ActiveChecks in a process of their own.",
    ),
    "up": ("slurm_operator.cli.local", "up", "Start a local cluster; short for `local up`."),
    "webhook": ("slurm_operator.cli.webhook", "webhook", "Answer the API server about our kinds."),
}

_LOCAL = "slurm_local"


class _Absent(click.ClickException):
    """A command that this installation leaves out."""

    exit_code = 2


class _Program(LazyGroup):
    """The operator's image has the operator alone, without the package of the local cluster."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        try:
            return super().get_command(ctx, cmd_name)
        except ModuleNotFoundError as missing:
            if missing.name != _LOCAL:
                raise
            raise _Absent(
                f"`slurm-operator {cmd_name}` is for local clusters, which the operator's image leaves out; "
                "install slurm-operator on the machine that is to run the cluster, and run it there."
            ) from missing


main = click.version_option(slurm_operator.__version__, prog_name="slurm-operator")(
    _Program(COMMANDS, help="Runs Slurm clusters on Kubernetes, and never ends a running job.")
)
