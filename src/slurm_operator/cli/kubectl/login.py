"""`kubectl slurm shell` and `kubectl slurm ssh`."""

import contextlib
import re
import subprocess
import sys
from collections.abc import Iterator

import click

from slurm_operator.cli.kubectl.shared.login_exec import Login, call, cluster_option, login, user_option
from slurm_operator.cli.kubectl.shared.session import Session, where

# What stands behind the command is for Slurm or ssh, dashes included.
_PASS_ON = {"ignore_unknown_options": True, "allow_interspersed_args": False}
_FORWARDING = re.compile(r"Forwarding from 127\.0\.0\.1:(\d+)")


@click.command(context_settings=_PASS_ON)
@user_option
@cluster_option
@where
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def shell(session: Session, user: str, cluster: str, command: tuple[str, ...]) -> None:
    """A shell where sinfo, srun and sbatch work, in the user's home; or one COMMAND there.

    \b
    kubectl slurm shell --user ada
    kubectl slurm shell --user ada squeue --me

    It is `kubectl exec` into a login pod, and needs the right to create pods/exec there. Whoever has that
    right can be any user of the pod, root too.
    """
    found = login(session, user, cluster)
    found.announce()
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    sys.exit(found.become(command, terminal=terminal))


@click.command(context_settings=_PASS_ON)
@user_option
@cluster_option
@click.option("-i", "--identity", default="", metavar="FILE", help="The private key, as for ssh.")
@where
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def ssh(session: Session, user: str, cluster: str, identity: str, args: tuple[str, ...]) -> None:
    """Log in by ssh to a login pod that only Kubernetes can reach; ARGS are a command, or options of ssh.

    \b
    kubectl slurm ssh --user ada
    kubectl slurm ssh --user ada -- -A hostname

    The connection goes through `kubectl port-forward`, and needs the right to create pods/portforward. sshd
    says who may log in.
    """
    found = login(session, user, cluster)
    found.announce()
    with _forwarded(found) as port:
        sys.exit(call(ssh_command(found.user, host_alias(found), port, identity, args)))


def host_alias(found: Login) -> str:
    """By which ssh remembers the host key: all pods of a LoginSet have one, and each time another port."""
    return f"{found.pod.owner}.{found.pod.metadata.namespace}"


def ssh_command(user: str, alias: str, port: int, identity: str, args: tuple[str, ...]) -> list[str]:
    """Options of ssh that somebody adds stand before the host, a command behind it."""
    at = next((at for at, word in enumerate(args) if not word.startswith("-")), len(args))
    own = ["-p", str(port), "-o", f"HostKeyAlias={alias}", "-o", "StrictHostKeyChecking=accept-new"]
    key = ["-i", identity, "-o", "IdentitiesOnly=yes"] if identity else []
    return ["ssh", *own, *key, *args[:at], f"{user}@127.0.0.1", *args[at:]]


@contextlib.contextmanager
def _forwarded(found: Login) -> Iterator[int]:
    """A port of this machine that leads to the pod's sshd for as long as the block runs."""
    argv = found.kubectl("port-forward", f"pod/{found.pod.metadata.name}", f":{found.pod.ssh_port}")
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as forward:
        try:
            assert forward.stdout is not None
            assert forward.stderr is not None
            line = forward.stdout.readline()
            port = _FORWARDING.match(line)
            if port is None:
                forward.terminate()
                raise click.ClickException(
                    f"No way to the login pod: {forward.stderr.read().strip() or line}"
                )
            yield int(port[1])
        finally:
            forward.terminate()
