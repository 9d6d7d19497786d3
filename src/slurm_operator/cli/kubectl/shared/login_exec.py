"""Slurm's own commands in a login pod, as one of its users: by `kubectl exec`, with the reader's rights."""

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

from slurm_operator import wire
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.cli.echo import echo
from slurm_operator.cli.kubectl.shared.session import Command, Session, run
from slurm_operator.insight.login_pods import (
    CONTAINER,
    SELECTOR,
    LoginPod,
    NoLogin,
    as_user,
    chosen,
    user_problem,
)
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import Forbidden
from slurm_operator.kube.request import Selection
from slurm_operator.manifests import kinds

USER_VARIABLE = "KUBECTL_SLURM_USER"


def user_option(command: Command) -> Command:
    return click.option(
        "--user",
        default="",
        envvar=USER_VARIABLE,
        metavar="NAME",
        help=f"As whom, by exec in a login pod. Default: ${USER_VARIABLE}.",
    )(command)


def cluster_option(command: Command) -> Command:
    return click.option("--cluster", default="", help="Which Slurm cluster, where there are several.")(
        command
    )


@dataclass(frozen=True)
class Login:
    """A user in a login pod."""

    session: Session
    pod: LoginPod
    user: str

    def announce(self) -> None:
        """The first line of every command: as whom it is done, and where."""
        meta = self.pod.metadata
        echo(f"As {self.user} in login pod {meta.namespace}/{meta.name}.", err=True)

    def kubectl(self, verb: str, *words: str) -> list[str]:
        """A command of kubectl in the namespace of the pod."""
        return [
            kubectl_program(),
            *self.session.kubectl_options,
            "-n",
            self.pod.metadata.namespace,
            verb,
            *words,
        ]

    def argv(self, command: Sequence[str], *flags: str) -> list[str]:
        target = [self.pod.metadata.name, "-c", CONTAINER, *flags, "--", *as_user(self.user, command)]
        return self.kubectl("exec", *target)

    def become(self, command: Sequence[str], *, terminal: bool = False, script: str | None = None) -> int:
        """Runs it here, with this terminal; its exit code."""
        return call(self.argv(command, *(("-i", "-t") if terminal else ("-i",))), script)

    def output(self, command: Sequence[str]) -> str:
        """What it prints. Raises with what it complained about."""
        done = subprocess.run(self.argv(command), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            said = done.stderr.strip() or f"exit code {done.returncode}"
            raise click.ClickException(f"{command[0]} failed as {self.user}: {said}")
        return done.stdout


def login(session: Session, user: str, cluster: str) -> Login:
    """Where to do something as this user. Raises ClickException with what is missing."""
    if problem := user_problem(user):
        raise click.UsageError(problem)
    return Login(session, run(_pod(session, cluster)), user)


def call(argv: Sequence[str], script: str | None = None) -> int:
    """Runs a program with this terminal. Ctrl-C is for it, not for us."""
    try:
        return subprocess.run(argv, input=script, text=True, check=False).returncode
    except KeyboardInterrupt:
        return 130


def kubectl_program() -> str:
    found = shutil.which("kubectl")
    if found is None:
        raise click.ClickException("This needs kubectl, and none is on your PATH.")
    return found


async def _pod(session: Session, cluster: str) -> LoginPod:
    async with session.looker() as looker:
        pods = await _listed(
            looker.client,
            Selection(kind=kinds.POD, namespace=session.namespace, label_selector=SELECTOR),
            LoginPod,
        )
        where = f"in namespace {session.namespace}" if session.namespace else "in any namespace"
        try:
            return chosen(pods, await _controllers(looker.client, session.namespace), cluster, where)
        except NoLogin as problem:
            raise click.ClickException(str(problem)) from problem


async def _controllers(client: Client, namespace: str) -> dict[tuple[str, str], str]:
    """The Controller of each LoginSet. Who may not list them tells clusters apart by their LoginSets."""
    try:
        found = await _listed(client, Selection(kind=LoginSet.KIND, namespace=namespace), LoginSet)
    except Forbidden:
        return {}
    return {(one.metadata.namespace, one.metadata.name): one.spec.controller_ref.name for one in found}


async def _listed(client: Client, selection: Selection, type_: type[Any]) -> list[Any]:
    decode = wire.decoder(type_)
    return [decode(item) async for page in client.list_pages(selection) for item in page.items]
