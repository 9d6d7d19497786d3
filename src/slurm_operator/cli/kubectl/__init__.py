"""`kubectl slurm …`: the command tree. Each subcommand lives in a module of its own."""

import click

import slurm_operator
from slurm_operator.cli.lazy import LazyGroup, Table

COMMANDS: Table = {
    "cancel": ("slurm_operator.cli.kubectl.jobs", "cancel", "Cancel jobs."),
    "bundle": ("slurm_operator.cli.kubectl.bundle", "bundle", "Pack what support needs, without secrets."),
    "completion": ("slurm_operator.cli.kubectl.completion", "completion", "Print a shell's completion."),
    "doctor": ("slurm_operator.cli.kubectl.doctor", "doctor", "Check whether this Kubernetes fits."),
    "drain": ("slurm_operator.cli.kubectl.drain", "drain", "Let no new job start on these Slurm nodes."),
    "explain": ("slurm_operator.cli.kubectl.explain", "explain", "Say why something is as it is."),
    "jobs": ("slurm_operator.cli.kubectl.jobs", "jobs", "Show jobs, and why some wait."),
    "logs": ("slurm_operator.cli.kubectl.logs", "logs", "Show the logs of Slurm's daemons."),
    "plan": ("slurm_operator.cli.kubectl.plan", "plan", "Say what a change would do; nothing is done."),
    "record": ("slurm_operator.cli.kubectl.record", "record", "Replay what the operator decided, and why."),
    "shell": ("slurm_operator.cli.kubectl.login", "shell", "A shell where Slurm's commands work."),
    "ssh": ("slurm_operator.cli.kubectl.login", "ssh", "Log in by ssh through Kubernetes."),
    "status": ("slurm_operator.cli.kubectl.status", "status", "Show a Slurm cluster on one screen."),
    "submit": ("slurm_operator.cli.kubectl.jobs", "submit", "Submit a batch script of this machine."),
    "top": ("slurm_operator.cli.kubectl.top", "top", "Watch nodes and jobs live."),
    "undrain": ("slurm_operator.cli.kubectl.drain", "undrain", "Let jobs start on these nodes again."),
}

# What says where to look, and what has its value in the next word.
_FLAGS = {"-A", "--all-namespaces"}
_OPTIONS = {"-n", "--namespace", "--context", "--kubeconfig", "--as", "--as-group"}

# Whatever stands behind their own options is for somebody else.
_PASSING_ON = {"shell", "ssh"}


def options_last(words: list[str]) -> list[str]:
    """The same command, with the options that say where to look behind it: there subcommands read them."""
    end = 0
    while end < len(words) and words[end].partition("=")[0] in _FLAGS | _OPTIONS:
        end += 2 if words[end] in _OPTIONS else 1
    first, command = words[:end], words[end:]
    if command and command[0] in _PASSING_ON:
        return [command[0], *first, *command[1:]]
    stop = command.index("--") if "--" in command else len(command)
    return [*command[:stop], *first, *command[stop:]] if command else words


class _Plugin(LazyGroup):
    """kubectl's own options may stand right after `kubectl slurm`, as people write them for kubectl."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, options_last(args))


kubectl_slurm = click.version_option(slurm_operator.__version__, prog_name="kubectl-slurm")(
    _Plugin(COMMANDS, help="Looks at Slurm clusters on Kubernetes, explains them, and runs jobs on them.")
)
