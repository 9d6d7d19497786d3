"""The command tree. Each subcommand lives in a module of its own and is imported when it is called."""

import importlib

import click

import slurm_operator

# name -> (module with the click command, its attribute, one line of help). The help stands here so that
# `slurm-operator --help` imports nothing.
COMMANDS: dict[str, tuple[str, str, str]] = {
    "crds": ("slurm_operator.cli.crds", "crds", "Print the custom resource definitions as YAML."),
    "down": ("slurm_operator.cli.local", "down", "Stop the local cluster; short for `local down`."),
    "local": ("slurm_operator.cli.local", "local", "A real Kubernetes and Slurm on this machine."),
    "manager": ("slurm_operator.cli.manager", "manager", "Run the reconcilers."),
    "up": ("slurm_operator.cli.local", "up", "Start a local cluster; short for `local up`."),
}


class LazyGroup(click.Group):
    """A group that imports a subcommand's module only when that subcommand is used."""

    def __init__(self, table: dict[str, tuple[str, str, str]], *, help: str) -> None:  # noqa: A002
        super().__init__(help=help, no_args_is_help=True)
        self._table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self._table.get(cmd_name)
        if entry is None:
            return None
        module, attribute, _ = entry
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._table[name][2]) for name in self.list_commands(ctx)])


main = click.version_option(slurm_operator.__version__, prog_name="slurm-operator")(
    LazyGroup(COMMANDS, help="Runs Slurm clusters on Kubernetes, and never ends a running job.")
)

KUBECTL_COMMANDS: dict[str, tuple[str, str, str]] = {}

kubectl_slurm = LazyGroup(KUBECTL_COMMANDS, help="Looks at Slurm clusters on Kubernetes and explains them.")
