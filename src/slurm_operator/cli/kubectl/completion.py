"""`kubectl slurm completion`: what a shell, or kubectl itself, needs to complete our commands."""

import click
from click.shell_completion import ShellComplete, get_completion_class

from slurm_operator.cli.echo import echo

_PROGRAM = "kubectl-slurm"
_VARIABLE = "_KUBECTL_SLURM_COMPLETE"

# kubectl completes a plugin by running `kubectl_complete-PLUGIN` with the words so far. It expects a proposal
# per line, and in the end what else to do: 4 is "offer no file names" (cobra's ShellCompDirectiveNoFileComp).
_HELPER = f"""\
#!/bin/sh
# Lets kubectl complete `kubectl slurm`. Put it into PATH as kubectl_complete-slurm.
COMP_WORDS="{_PROGRAM} $*" COMP_CWORD=$# {_VARIABLE}=bash_complete {_PROGRAM} | sed 's/^[a-z]*,//'
echo :4
"""


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish", "kubectl"]))
def completion(shell: str) -> None:
    """Print what a shell has to read to complete `kubectl-slurm`, or what kubectl needs for `kubectl slurm`.

    \b
    bash:     source <(kubectl slurm completion bash)
    zsh:      source <(kubectl slurm completion zsh)
    fish:     kubectl slurm completion fish | source
    kubectl:  kubectl slurm completion kubectl > ~/.local/bin/kubectl_complete-slurm
              chmod +x ~/.local/bin/kubectl_complete-slurm
    """
    echo(_HELPER if shell == "kubectl" else source(shell), nl=False)


def source(shell: str) -> str:
    """The functions for one shell; they ask the program itself for proposals."""
    kind = get_completion_class(shell)
    assert kind is not None, f"click knows {shell}"
    # The text holds names only. `ShellComplete.source` rather than bash's own, which first runs bash.
    return ShellComplete.source(kind(click.Command(_PROGRAM), {}, _PROGRAM, _VARIABLE)) + "\n"
