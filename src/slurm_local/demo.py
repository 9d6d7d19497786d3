"""`up` as a newcomer sees it: Kubernetes, then Slurm, a first job, and what to try next."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from slurm_local import demo_cluster, image, own_command, shared_root_cluster, slurm_cluster
from slurm_local.cluster import DEFAULT_NAME, Cluster
from slurm_local.image.accounts import DEMO
from slurm_local.kubernetes import containerd
from slurm_local.paths import Paths
from slurm_local.progress import Progress
from slurm_local.start import Wanted, prepare
from slurm_local.start import up as start
from slurm_local.state import Ledger
from slurm_local.status import ClusterStatus, status
from slurm_local.stop import down, undisturbed
from slurm_operator.api.shared import names

_WORKERS = 2
_MIB = 1024**2


def up(
    name: str,
    paths: Paths,
    progress: Progress,
    *,
    nodes: int = 2,
    fake_nodes: int = 0,
    slurm: bool = True,
    api: str = names.GROUP,
) -> Cluster:
    """Starts what does not run yet, and says how it went. Interrupted, it leaves nothing behind.

    `api` is the group of the API that Slurm's manifest is of.
    """
    began = time.monotonic()
    state = Ledger(paths.cluster(name)).read()
    if state is not None and state.ready and state.cell.is_alive and state.slurm >= slurm:
        progress.note(f"Cluster {name} is up already.")
        if (state.nodes, state.fake_nodes) != (nodes, fake_nodes):
            progress.note("To change its number of nodes, take it down first.")
        if slurm and (state.api or names.GROUP) != api:
            progress.note("To have a cluster of the other API, take it down first, or choose another --name.")
        progress.note(described(status(name, paths)))
        progress.note(try_next(Cluster(name, paths)))
        return Cluster(name, paths, progress)

    prepare(Wanted(name, nodes, fake_nodes), paths, progress)
    has_root = slurm and api == shared_root_cluster.GROUP
    archives = (
        image.pause_archive(paths, progress),
        image.slurm_archive(paths, progress),
        *((image.populate_archive(paths, progress),) if has_root else ()),
    )
    operator = image.operator_archive(paths, progress) if slurm else None
    containerd.seed(archives, paths, progress)
    prepared = time.monotonic()
    had_home = paths.home_of(name).exists()
    if slurm and not has_root and had_home:
        progress.note(f"/home is kept from before: {paths.home_of(name)}")
    cluster, is_new = start(Wanted(name, nodes, fake_nodes, archives), paths, progress)
    with _gone_unless_done(cluster, is_new=is_new, keep_home=had_home):
        if operator is not None:
            progress.note(_first_job(cluster, operator, nodes, progress, has_root=has_root))
            cluster.kubectl("config", "set-context", "--current", f"--namespace={slurm_cluster.NAMESPACE}")
            Ledger(cluster.directory).change(slurm=True, api=api)
    progress.note(described(status(name, paths)))
    progress.note(_times(prepared - began, time.monotonic() - prepared))
    progress.note(try_next(cluster))
    return cluster


def _first_job(cluster: Cluster, operator: Path, nodes: int, progress: Progress, *, has_root: bool) -> str:
    """Brings Slurm up; what its first job did."""
    if has_root:
        said = shared_root_cluster.start(cluster, operator, _WORKERS, progress)
        return f"A job wrote to /etc, and one on another node read it: {said.strip()}"
    slurm_cluster.start(
        cluster, operator, _WORKERS, lambda: demo_cluster.objects(cluster, _WORKERS, nodes), progress
    )
    with progress.step(f"First job, of user {DEMO.name}"):
        job = demo_cluster.as_user(DEMO.name, ("srun", f"--nodes={_WORKERS}", "hostname"))
        said = slurm_cluster.login(cluster, *job)
    return f"The first job ran on: {' '.join(sorted(said.split()))}"


def login_of(cluster: Cluster, user: str, command: tuple[str, ...]) -> tuple[str, ...]:
    """What of `kubectl exec` leads to where Slurm's commands work: there a shell, or the command.

    In a shared root there are the users that somebody has made there, so root is who looks at it.
    """
    if has_root(cluster):
        if user:
            return (*shared_root_cluster.LOGIN, *demo_cluster.as_user(user, command))
        return (*shared_root_cluster.LOGIN, *(command or ("bash", "--login")))
    return (*slurm_cluster.LOGIN, *demo_cluster.as_user(user or DEMO.name, command))


def has_root(cluster: Cluster) -> bool:
    """Whether it is a SlurmCluster around a shared root."""
    return cluster.state.api == shared_root_cluster.GROUP


def described(found: ClusterStatus) -> str:
    """A cluster's state in a few lines."""
    if not found.is_running:
        return f"Cluster {found.name} is not running."
    lines = [f"Cluster {found.name} at {found.url}, {found.memory_bytes // _MIB} MiB of memory"]
    for title, things in (("nodes", found.nodes), ("Slurm pods", found.slurm_pods)):
        ready = sum(thing.is_ready for thing in things)
        waiting = [thing.name for thing in things if not thing.is_ready]
        if things:
            lines.append(f"  {title}: {ready} of {len(things)} ready" + _list("; not yet: ", waiting))
    running = [component.name for component in found.components if component.is_running]
    lines.append(f"  components: {len(running)} of {len(found.components)} running")
    lines += [
        f"  {component.name} ENDED. The last lines of {component.log}:\n{component.last_lines}"
        for component in found.components
        if not component.is_running
    ]
    return "\n".join(lines)


def _list(prefix: str, found: list[str], most: int = 5) -> str:
    if not found:
        return ""
    return prefix + ", ".join(found[:most]) + (", ..." if len(found) > most else "")


def _times(preparing_s: float, starting_s: float) -> str:
    if preparing_s < 5:
        return f"Started in {starting_s:.0f} s."
    return f"Prepared in {preparing_s:.0f} s, which is kept for the next time; started in {starting_s:.0f} s."


def try_next(cluster: Cluster) -> str:
    """Commands that work as they stand here, in any directory, and the kubeconfig that they use."""
    name, program = cluster.name, own_command.own_command()
    which = "" if name == DEFAULT_NAME else f" --name {name}"
    lines = [f"Commands below use the kubeconfig {cluster.kubeconfig}", "Try:"]
    commands = [f"{program} local kubectl{which} get pods -A -o wide", f"{program} local status{which}"]
    if cluster.state.slurm:
        commands = [
            f"{program} local shell{which} sinfo",
            f"{program} local shell{which} srun -N2 hostname",
            f"{program} local shell{which}",
            *(
                []
                if has_root(cluster)
                else [f"ssh -F {demo_cluster.ssh_config(cluster)} {slurm_cluster.CLUSTER}"]
            ),
            f"{program} local kubectl{which} slurm status",
        ]
    commands.append(f"{program} down{which}")
    return "\n".join([*lines, *(f"  {command}" for command in commands)])


@contextlib.contextmanager
def _gone_unless_done(cluster: Cluster, *, is_new: bool, keep_home: bool) -> Iterator[None]:
    """What was started for nothing is taken down again; what ran before is left as it was."""
    try:
        yield
    except BaseException:
        if is_new:
            with undisturbed():
                down(cluster.name, cluster.paths, cluster.progress, keep_home=keep_home)
        raise
