"""The command tree of `slurm-operator`. Each subcommand lives in a module of its own."""

import click

import slurm_operator
from slurm_operator.cli.lazy import LazyGroup, Table

COMMANDS: Table = {
    "crds": ("slurm_operator.cli.crds", "crds", "Print the custom resource definitions as YAML."),
    "down": ("slurm_operator.cli.local", "down", "Stop the local cluster; short for `local down`."),
    "local": ("slurm_operator.cli.local", "local", "A real Kubernetes and Slurm on this machine."),
    "manager": ("slurm_operator.cli.manager", "manager", "Run the reconcilers."),
    "manifests": ("slurm_operator.cli.manifests", "manifests", "Print the whole installation as YAML."),
    "up": ("slurm_operator.cli.local", "up", "Start a local cluster; short for `local up`."),
    "webhook": ("slurm_operator.cli.webhook", "webhook", "Answer the API server about our kinds."),
}

main = click.version_option(slurm_operator.__version__, prog_name="slurm-operator")(
    LazyGroup(COMMANDS, help="Runs Slurm clusters on Kubernetes, and never ends a running job.")
)
