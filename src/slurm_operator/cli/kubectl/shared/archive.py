"""What a command looks at: the cluster, or a support archive of one."""

import contextlib
from pathlib import Path

import click

from slurm_operator.cli.kubectl.shared.session import Session, run
from slurm_operator.insight.bundle.archive import NotABundle, about, replayed, unpack
from slurm_operator.insight.collect import Sight
from slurm_operator.insight.doctor.rights import user_name
from slurm_operator.kube.errors import KubeError
from slurm_operator.operator import program
from slurm_operator.runtime.settings import Settings

bundle_option = click.option(
    "--bundle",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Look at what is in a support archive instead.",
)


def sight_of(
    session: Session, bundle: Path | None, *, closely: bool = False, job: int | None = None
) -> tuple[Sight, str]:
    """What there is to see, and the namespace that it is about.

    `closely` is with Kubernetes' complaints, the last words of what keeps ending, and who looks.
    `job` is one that somebody asks about: then Slurm is asked for all that it knows of jobs.
    """
    if bundle is None:
        return run(_live(session, closely=closely, job=job)), session.namespace
    try:
        files = unpack(bundle)
        return replayed(files, program(Settings())), session.given_namespace or about(files).namespace
    except NotABundle as problem:
        raise click.ClickException(str(problem)) from problem


async def _live(session: Session, *, closely: bool, job: int | None) -> Sight:
    async with session.looker(every_group=True) as looker:
        sight = await looker.look()
        if closely:
            await looker.warn(sight)
            await looker.hear(sight)
            with contextlib.suppress(KubeError):
                sight.user = await user_name(looker.client)
        if job is not None:
            await looker.ask_jobs(sight, job)
        return sight
