"""`kubectl slurm jobs`, `submit` and `cancel`."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TextIO

import click

from slurm_operator import wire
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.cli.echo import echo
from slurm_operator.cli.kubectl.screen.watching import again, watch_option
from slurm_operator.cli.kubectl.shared.login_exec import cluster_option, login, user_option
from slurm_operator.cli.kubectl.shared.proposals import job_names
from slurm_operator.cli.kubectl.shared.session import Session, as_slurm_user, output_option, run, where
from slurm_operator.clock import SystemClock
from slurm_operator.insight.clusters import NotFound, SlurmCluster, clusters, only
from slurm_operator.insight.collect import Looker, token_user
from slurm_operator.insight.explain.job_ids import read_id
from slurm_operator.insight.jobs.submission import NotSubmittable, job, names_job
from slurm_operator.insight.jobs.table import JobRow, rows, text, without_times
from slurm_operator.insight.text import output as show
from slurm_operator.slurm.jobs.detail import JobDetail
from slurm_operator.slurm.snapshot import Unreachable
from slurm_operator.slurmrest.answers.jobs import JobDetailsReply, job_detail
from slurm_operator.slurmrest.client import SlurmRest
from slurm_operator.slurmrest.errors import SlurmFailure

_reply = wire.decoder(JobDetailsReply)


class Asked(NamedTuple):
    """The way to Slurm, and as whom."""

    rest: SlurmRest
    who: str
    user: str


@click.command()
@user_option
@cluster_option
@click.option("-a", "--all", "finished", is_flag=True, help="Finished jobs too, while Slurm remembers them.")
@watch_option
@output_option("wide", "name")
@where
@as_slurm_user
def jobs(session: Session, user: str, cluster: str, output: str, *, finished: bool, watch: bool) -> None:
    """Show jobs, and in plain words why some wait.

    They are those that the user of --token-secret sees, or the --user in a login pod. Without either, Slurm
    is asked with the cluster's own key. The first line says as whom.
    """
    look = _looking(session, user, cluster, finished=finished)
    newest = again(
        lambda: rows(look(), SystemClock().now(), finished=finished), watch=watch, matter=without_times
    )
    for found in newest:
        _show(found, output)


@click.command()
@user_option
@cluster_option
@where
@as_slurm_user
@click.argument("script", type=click.File(encoding="utf-8"))
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def submit(session: Session, user: str, cluster: str, script: TextIO, options: tuple[str, ...]) -> None:
    """Submit a batch SCRIPT of this machine; `-` reads it from a pipe. OPTIONS are those of sbatch.

    \b
    kubectl slurm submit --user ada train.sh -- --time=10 --array=0-3
    kubectl slurm submit --token-secret ada-token train.sh

    With --user, sbatch runs in that user's home in a login pod. With --token-secret the job is sent to
    slurmrestd as the token's user: its directory is /home/USER unless --chdir names another, and the usual
    options are understood.
    """
    content, name = script.read(), Path(script.name).name if script.name not in ("-", "<stdin>") else "stdin"
    if session.token_secret:
        echo(f"Submitted batch job {run(_submitted(session, cluster, content, options, name))}")
        return
    found = login(session, user, cluster)
    found.announce()
    try:
        named = [] if names_job(content) else [f"--job-name={name}"]
    except NotSubmittable:  # sbatch itself says what is wrong with it.
        named = []
    sys.exit(found.become(["sbatch", *named, *options], script=content))


@click.command()
@user_option
@cluster_option
@where
@as_slurm_user
@click.argument("ids", nargs=-1, required=True, metavar="JOB...", shell_complete=job_names)
def cancel(session: Session, user: str, cluster: str, ids: tuple[str, ...]) -> None:
    """Cancel jobs: 4, the task 4_0, the tasks 4_[1-3], or job/4 as `jobs -o name` prints it.

    Slurm says who may: the owner of a job, and its operators.
    """
    wanted = [one.removeprefix("job/") for one in ids]
    for one in wanted:
        if read_id(one) is None:
            raise click.UsageError(
                f"{one!r} is no id of a job. Write it as squeue does: 4, 4_0, 4_[1-3] or 5+1."
            )
    if session.token_secret:
        failed = run(_cancelled(session, cluster, wanted))
        sys.exit(1 if failed else 0)
    found = login(session, user, cluster)
    found.announce()
    code = found.become(["scancel", "--verbose", *wanted])
    sys.exit(code)


def _show(found: list[JobRow], output: str) -> None:
    if output == "name":
        echo("".join(f"{row.called}\n" for row in found), nl=False)
    else:
        show.emit(output, found, lambda: text(found, wide=output == "wide"))


def _looking(
    session: Session, user: str, cluster: str, *, finished: bool
) -> Callable[[], Sequence[JobDetail]]:
    """What reads the jobs. As whom is said once."""
    if user and not session.token_secret:
        found = login(session, user, cluster)
        found.announce()
        command = ["squeue", "--json", *(["--states=all"] if finished else [])]
        return lambda: _of_squeue(found.output(command))
    told: list[str] = []

    def look() -> Sequence[JobDetail]:
        who, details = run(_details(session, cluster))
        if not told:
            told.append(who)
            echo(who, err=True)
        return details

    return look


def _of_squeue(printed: str) -> list[JobDetail]:
    """`squeue --json` has the form of slurmrestd's answers."""
    try:
        return [job_detail(one) for one in _reply(printed.encode()).jobs or ()]
    except wire.DecodeError as error:
        raise click.ClickException(f"squeue in the login pod answers in another form: {error}") from error


async def _details(session: Session, cluster: str) -> tuple[str, list[JobDetail]]:
    async with session.looker() as looker:
        try:
            asked = await _asked(looker, cluster)
            return asked.who, await asked.rest.read.job_details()
        except (NotFound, SlurmFailure) as problem:
            raise click.ClickException(str(problem)) from problem


async def _submitted(session: Session, cluster: str, script: str, options: Sequence[str], name: str) -> int:
    async with session.looker(may_write=True) as looker:
        try:
            asked = await _asked(looker, cluster)
            body = job(script, options, name=name, user=asked.user)
            echo(asked.who, err=True)
            return await asked.rest.send.submit_job(body)
        except (NotFound, NotSubmittable, SlurmFailure) as problem:
            raise click.ClickException(str(problem)) from problem


async def _cancelled(session: Session, cluster: str, ids: Sequence[str]) -> bool:
    """Whether one of them could not be cancelled; each is said."""
    failed = False
    async with session.looker(may_write=True) as looker:
        try:
            asked = await _asked(looker, cluster)
        except NotFound as problem:
            raise click.ClickException(str(problem)) from problem
        echo(asked.who, err=True)
        for one in ids:
            try:
                await asked.rest.send.cancel_job(one)
            except SlurmFailure as problem:
                echo(f"Job {one} is not cancelled: {problem}", err=True)
                failed = True
            else:
                echo(f"Job {one} is cancelled.")
    return failed


async def _asked(looker: Looker, name: str) -> Asked:
    """Slurm itself, as the user of the token, or with the cluster's own key."""
    sight = await looker.look()
    cluster = only(clusters(sight.picture), name)
    server = looker.servers(sight.picture).get(cluster.slurm_key)
    if server is None:
        raise NotFound(no_way(cluster))
    rest = await looker.slurm(cluster.slurm_key, server)
    if not looker.token_secret:
        return Asked(rest, f"As {server.user}, with the own key of {cluster.key}.", server.user)
    user = token_user(await looker.token(cluster.key.namespace))
    return Asked(rest, f"As {user or 'its user'}, with the token in Secret {looker.token_secret}.", user)


def no_way(cluster: SlurmCluster) -> str:
    """What is not there yet, or what the reader may not see: the operator may ask all the same."""
    cannot = f"Slurm of {cluster.key} cannot be asked"
    for kind in () if cluster.is_elsewhere else (Controller, RestApi):
        if not any(isinstance(part, kind) for part in cluster.parts):
            see = f"kubectl slurm explain cluster/{cluster.key.name}"
            return f"{cannot}. It has no {kind.__name__} yet. See: {see}"
    why = cluster.slurm.why if isinstance(cluster.slurm, Unreachable) else "the key for its tokens is missing"
    return (
        f"{cannot}: {why}. With --token-secret it is asked as the Slurm user whose token that Secret has, "
        "with --user as a user of a login pod."
    )
