"""What a command looks at: the cluster, or a support archive of one."""

from pathlib import Path

import click

from slurm_operator.cli.kubectl.session import Session, run
from slurm_operator.kubectl.bundle import NotABundle, about, replayed, unpack
from slurm_operator.kubectl.look import Sight
from slurm_operator.operator import program
from slurm_operator.runtime.settings import Settings

bundle_option = click.option(
    "--bundle",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Look at what is in a support archive instead.",
)


def sight_of(session: Session, bundle: Path | None, *, closely: bool = False) -> tuple[Sight, str]:
    """What there is to see, and the namespace that it is about.

    `closely` is with Kubernetes' complaints, and with the last words of what keeps ending.
    """
    if bundle is None:
        return run(_live(session, closely=closely)), session.namespace
    try:
        files = unpack(bundle)
        return replayed(files, program(Settings())), session.given_namespace or about(files).namespace
    except NotABundle as problem:
        raise click.ClickException(str(problem)) from problem


async def _live(session: Session, *, closely: bool) -> Sight:
    async with session.looker() as looker:
        sight = await looker.look()
        if closely:
            await looker.warn(sight)
            await looker.hear(sight)
        return sight
