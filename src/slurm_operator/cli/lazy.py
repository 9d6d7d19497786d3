"""A group of commands that imports a subcommand's module only when that subcommand is used."""

import importlib
import sys
from typing import Any

import click
from click.shell_completion import CompletionItem

from slurm_operator import startup
from slurm_operator.cli.echo import errors_shown, show_crash
from slurm_operator.insight.typed_names import did_you_mean

# name -> (module with the click command, its attribute, one line of help). The help stands in the table so
# that `--help` imports nothing.
Table = dict[str, tuple[str, str, str]]


class LazyGroup(click.Group):
    """The commands of a table."""

    def __init__(self, table: Table, *, help: str) -> None:  # noqa: A002
        # Subcommands have the same: a context passes on how help is asked for.
        super().__init__(
            help=help, no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]}
        )
        self._table = table

    def main(self, *args: Any, **kw: Any) -> Any:
        sys.excepthook = show_crash
        return super().main(*args, **kw)

    def invoke(self, ctx: click.Context) -> Any:
        with errors_shown():
            return super().invoke(ctx)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in self._table:
            raise click.UsageError(
                f"There is no command {args[0]!r}.{did_you_mean(args[0], self._table)}", ctx
            )
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self._table.get(cmd_name)
        if entry is None:
            return None
        module, attribute, _ = entry
        with startup.loading(startup.MANAGER_WITHOUT if cmd_name == "manager" else ()):
            command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """From the table too: somebody waits for it at a keyboard."""
        fitting = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        commands = [CompletionItem(name, help=self._table[name][2]) for name in fitting]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._table[name][2]) for name in self.list_commands(ctx)])
