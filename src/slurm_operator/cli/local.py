"""`slurm-operator local …`: a real Kubernetes and Slurm on this machine."""

import errno
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn, TypeVar

import click

from slurm_local import demo, status, stop
from slurm_local.cluster import DEFAULT_NAME, Cluster
from slurm_local.errors import LocalError
from slurm_local.machine.processes import last_lines
from slurm_local.paths import Paths
from slurm_local.progress import progress_for
from slurm_operator import wire
from slurm_operator.api.registry import GROUPS
from slurm_operator.cli.echo import echo

F = TypeVar("F", bound=Callable[..., object])
_PASS_ON = {"ignore_unknown_options": True, "allow_interspersed_args": False}


def _with_cluster_name(command: F) -> F:
    return click.option("--name", default=DEFAULT_NAME, show_default=True, help="Which cluster.")(command)


@contextmanager
def _in_words() -> Iterator[None]:
    """Troubles as one message, without a traceback; being terminated is the same as Ctrl-C."""
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    except LocalError as trouble:
        raise click.ClickException(str(trouble)) from trouble
    except PermissionError as trouble:
        hint = " Local clusters belong to root: run it with sudo." if os.geteuid() else ""
        raise click.ClickException(f"No access to {trouble.filename}.{hint}") from trouble
    except OSError as trouble:
        if trouble.errno != errno.ENOSPC:
            raise
        raise click.ClickException(
            f"No space is left on the disk of {trouble.filename or Paths.of().cache}. What was started is "
            "taken down. Make room, or set SLURM_OPERATOR_HOME and SLURM_OPERATOR_CACHE to a larger disk."
        ) from trouble


@click.group()
def local() -> None:
    """A real Kubernetes and Slurm on this machine."""


@click.command()
@_with_cluster_name
@click.option("--nodes", default=2, show_default=True, help="Kubernetes nodes, each with its own kubelet.")
@click.option("--fake-nodes", default=0, help="Further nodes that only the API server believes in.")
@click.option("--kubernetes-only", is_flag=True, help="No Slurm.")
@click.option(
    "--api",
    type=click.Choice(GROUPS),
    default=GROUPS[0],
    show_default=True,
    help="Of which API the Slurm cluster is: a Cluster, or a SlurmCluster on a shared root.",
)
def up(name: str, nodes: int, fake_nodes: int, api: str, *, kubernetes_only: bool) -> None:
    """Start a cluster, run a first job, and say what to try next."""
    with _in_words():
        demo.up(
            name,
            Paths.of(),
            progress_for(sys.stderr),
            nodes=nodes,
            fake_nodes=fake_nodes,
            slurm=not kubernetes_only,
            api=api,
        )


@click.command()
@_with_cluster_name
@click.option("--keep-home", is_flag=True, help="Keep the files in /home for the next cluster of this name.")
def down(name: str, *, keep_home: bool) -> None:
    """Stop a cluster and leave nothing behind: /home of its users is deleted too, unless it is kept."""
    with _in_words():
        if not stop.down(name, Paths.of(), progress_for(sys.stderr), keep_home=keep_home):
            echo(f"There is no cluster {name!r}.")


@click.command(name="status")
@_with_cluster_name
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
def status_(name: str, output: str) -> None:
    """What runs. Fails when something that should run does not."""
    with _in_words():
        found = status.status(name, Paths.of())
        echo(wire.pretty(found) if output == "json" else demo.described(found))
        if not found.is_healthy:
            sys.exit(1)


@click.command()
@_with_cluster_name
@click.option("-f", "--follow", is_flag=True, help="Go on as the log grows.")
@click.argument("component", required=False)
def logs(name: str, component: str | None, *, follow: bool) -> None:
    """The log of one component; without one, which there are."""
    with _in_words():
        parts = Cluster(name, Paths.of()).state.parts
        if component is None:
            echo("\n".join(sorted(parts)))
        elif component not in parts:
            raise LocalError(f"There is no component {component!r}. There are: {', '.join(sorted(parts))}.")
        elif follow:
            _become("tail", "-n", "50", "-f", parts[component].log)
        else:
            echo(last_lines(Path(parts[component].log), count=1000))


@click.command(context_settings=_PASS_ON)
@_with_cluster_name
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def kubectl(name: str, args: tuple[str, ...]) -> None:
    """kubectl as administrator of the cluster; `kubectl slurm` included."""
    with _in_words():
        cluster = _running(name)
        # A plugin is found on PATH, and wants to be the first word after kubectl.
        os.environ["KUBECONFIG"] = str(cluster.kubeconfig)
        own = (Path(sys.executable).parent, cluster.kubectl_program.parent)
        os.environ["PATH"] = os.pathsep.join([*map(str, own), os.environ.get("PATH", "")])
        _become(str(cluster.kubectl_program), *args)


@click.command(context_settings=_PASS_ON)
@_with_cluster_name
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def helm(name: str, args: tuple[str, ...]) -> None:
    """helm as administrator of the cluster; built when it is first used."""
    with _in_words():
        cluster = _running(name)
        os.environ["KUBECONFIG"] = str(cluster.kubeconfig)
        _become(str(cluster.helm_program), *args)


@click.command(context_settings=_PASS_ON)
@_with_cluster_name
@click.option("--user", default="", help="As whom.  [default: demo; in a shared root, root]")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def shell(name: str, user: str, command: tuple[str, ...]) -> None:
    """A shell in the Slurm cluster, where sinfo and srun work; or one command there."""
    with _in_words():
        cluster = _running(name)
        if not cluster.state.slurm:
            raise LocalError(f"Cluster {name!r} has no Slurm. To have one: slurm-operator up --name {name}")
        terminal = ["--stdin", "--tty"] if sys.stdin.isatty() and not command else ["--stdin"]
        target = ["exec", *terminal, *demo.login_of(cluster, user, command)]
        _become(str(cluster.kubectl_program), f"--kubeconfig={cluster.kubeconfig}", *target)


def _running(name: str) -> Cluster:
    cluster = Cluster(name, Paths.of(), progress_for(sys.stderr))
    _ = cluster.state  # Says so when it does not run.
    return cluster


def _become(*command: str) -> NoReturn:
    sys.stdout.flush()
    try:
        os.execvp(command[0], list(command))  # noqa: S606
    except OSError as trouble:
        raise LocalError(f"Cannot run {command[0]}: {trouble}") from trouble


for _command in (up, down, status_, logs, kubectl, helm, shell):
    local.add_command(_command)
