"""What every command of `kubectl slurm` shares: which cluster, which namespace, and one look at it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import click

from slurm_operator.api import registry
from slurm_operator.cli.echo import echo
from slurm_operator.insight.collect import Looker, Sight
from slurm_operator.kube.auth import config
from slurm_operator.kube.auth.access import Access
from slurm_operator.kube.auth.credentials import Impersonating
from slurm_operator.kube.client import Client
from slurm_operator.kube.discovery import Discovery
from slurm_operator.kube.errors import ConfigProblem, KubeError, Unauthorised, Unreachable
from slurm_operator.operator import program
from slurm_operator.runtime.logs import configure
from slurm_operator.runtime.settings import Settings

T = TypeVar("T")

Command = Callable[..., None]


@dataclass(frozen=True)
class Session:
    """Where to look, as the user said."""

    kubeconfig: Path | None = None
    context: str = ""
    given_namespace: str = ""
    everywhere: bool = False
    token_secret: str = ""
    acting_as: str = ""
    acting_groups: tuple[str, ...] = ()

    @cached_property
    def access(self) -> Access:
        """Looked for when it is first needed: who reads an archive needs no API server."""
        try:
            found = config.find(self.kubeconfig, self.context)
        except ConfigProblem as problem:
            raise click.ClickException(str(problem)) from problem
        for note in found.notes:
            echo(note, err=True)
        if not self.acting_as:
            if self.acting_groups:
                raise click.UsageError(
                    "--as-group says of which groups the user of --as is: name one with --as."
                )
            return found
        return replace(
            found, credentials=Impersonating(found.credentials, self.acting_as, self.acting_groups)
        )

    @property
    def namespace(self) -> str:
        """Empty is all of them."""
        return "" if self.everywhere else self.given_namespace or self.access.namespace

    @property
    def kubectl_options(self) -> list[str]:
        """The same for kubectl itself, but for the namespace."""
        given = {"--kubeconfig": self.kubeconfig, "--context": self.context, "--as": self.acting_as}
        return [
            *(f"{option}={value}" for option, value in given.items() if value),
            *(f"--as-group={group}" for group in self.acting_groups),
        ]

    @asynccontextmanager
    async def looker(
        self, *, may_write: bool = False, every_group: bool = False, greets: bool = True
    ) -> AsyncIterator[Looker]:
        """Connected. Without `may_write` no request can change anything, whatever asks for it.

        With `every_group` it also looks at the API groups that are off by default, where they are served.
        Who asks for one thing alone, and tells every refusal, `greets` nobody first.
        """
        async with Client(self.access, may_write=lambda: may_write) as client:
            if greets:
                await _greet(client)
            groups = await _served_groups(client) if every_group else registry.DEFAULT_GROUPS
            yield Looker(client, program(Settings(groups=groups)), self.namespace, self.token_secret)

    async def look(self) -> Sight:
        async with self.looker() as looker:
            return await looker.look()


async def _greet(client: Client) -> None:
    """Raises KubeError where no question gets an answer: nothing would look as if there were nothing."""
    try:
        await client.request("GET", "/version")
    except Unreachable as problem:
        raise KubeError(f"The API server cannot be asked: {_bare(problem)}") from problem
    except Unauthorised as problem:
        advice = "Log in again, or name another --context."
        raise KubeError(f"The API server does not know you ({_bare(problem)}). {advice}") from problem
    except KubeError:
        return  # Then some other question may be allowed.


def _bare(problem: KubeError) -> str:
    """Without the request, which nobody has typed."""
    return str(problem).removeprefix("get /version: ")


async def _served_groups(client: Client) -> tuple[str, ...]:
    """The groups that are on by default, and those of the others that this Kubernetes has."""
    others = [group for group in registry.GROUPS if group not in registry.DEFAULT_GROUPS]
    return (*registry.DEFAULT_GROUPS, *await Discovery(client).served(others))


def where(command: Command) -> Command:
    """The options that say which cluster; the command gets a `session`."""

    def with_session(
        kubeconfig: Path | None,
        context: str,
        namespace: str,
        everywhere: bool,
        acting_as: str,
        acting_groups: tuple[str, ...],
        **kw: Any,
    ) -> None:
        configure("plain", "error")
        session = Session(
            kubeconfig, context, namespace, everywhere, acting_as=acting_as, acting_groups=acting_groups
        )
        command(session=session, **kw)

    with_session.__name__, with_session.__doc__ = command.__name__, command.__doc__
    given = getattr(command, "__click_params__", [])
    with_session.__click_params__ = list(given)  # type: ignore[attr-defined]
    for option in (
        click.option("--kubeconfig", type=click.Path(path_type=Path), help="Where the API server is."),
        click.option("--context", default="", help="Which context of the kubeconfig."),
        click.option("-n", "--namespace", default="", help="Default: that of the context."),
        click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="Look everywhere."),
        click.option(
            "--as", "acting_as", default="", metavar="USER", help="Ask Kubernetes as somebody else."
        ),
        click.option(
            "--as-group", "acting_groups", multiple=True, metavar="GROUP", help="A group of that user."
        ),
    ):
        with_session = option(with_session)
    return with_session


def as_slurm_user(command: Command) -> Command:
    """The option that says whose token Slurm is asked with; it joins the session."""

    def with_token(session: Session, token_secret: str, **kw: Any) -> None:
        command(session=replace(session, token_secret=token_secret), **kw)

    with_token.__name__, with_token.__doc__ = command.__name__, command.__doc__
    with_token.__click_params__ = list(getattr(command, "__click_params__", []))  # type: ignore[attr-defined]
    return click.option(
        "--token-secret",
        default="",
        metavar="SECRET",
        help="Ask Slurm with the token in this Secret, as its user. Nobody needs the signing key for that.",
    )(with_token)


def output_option(*more: str) -> Callable[[Command], Command]:
    """-o with the forms that every command has, and more of them."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(["text", *more, "json", "yaml"]),
        default="text",
        show_default=True,
        help="For people, or for programs.",
    )


output = output_option()


def selector_option(command: Command) -> Command:
    return click.option(
        "-l", "--selector", default="", metavar="LABELS", help="Only those with these labels, as for kubectl."
    )(command)


def run(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`; what the API server refuses becomes the last line of the command."""
    try:
        return asyncio.run(work)
    except KubeError as error:
        raise click.ClickException(str(error)) from error
