"""Login pods: which one to use, and what to run in it as somebody."""

import shlex
from collections.abc import Mapping, Sequence

from slurm_operator import wire
from slurm_operator.api.shared import belonging, names
from slurm_operator.api.shared.meta import Meta
from slurm_operator.manifests.objects import PodStatus

DAEMON = "login"
CONTAINER = "login"
SELECTOR = f"{names.APP_NAME} in ({DAEMON},slurmcluster)"
SSH_PORT = 22

_NO_NAME = "says as whom: the name of a user in the login pods"


class _Port(wire.CamelRecord):
    container_port: int = SSH_PORT


class _Container(wire.CamelRecord):
    name: str
    ports: tuple[_Port, ...] = ()


class _Spec(wire.CamelRecord):
    containers: tuple[_Container, ...] = ()


class LoginPod(wire.CamelRecord):
    """A pod where people log in."""

    metadata: Meta
    spec: _Spec = _Spec()
    status: PodStatus = PodStatus()

    @property
    def is_login(self) -> bool:
        return belonging.daemon_of(self.metadata.labels) == DAEMON

    @property
    def owner(self) -> str:
        """The LoginSet that it belongs to."""
        return belonging.owner_of(self.metadata.labels)

    @property
    def is_ready(self) -> bool:
        ready = self.status.condition("Ready")
        return ready is not None and ready.status == "True" and not self.metadata.is_terminating

    @property
    def ssh_port(self) -> int:
        """Where its sshd listens."""
        ports = [port for one in self.spec.containers if one.name == CONTAINER for port in one.ports]
        return ports[0].container_port if ports else SSH_PORT


class NoLogin(Exception):  # noqa: N818 - it says what is the case
    """There is no login pod to use, or it is not clear which."""


def chosen(
    pods: Sequence[LoginPod], controllers: Mapping[tuple[str, str], str], cluster: str, where: str
) -> LoginPod:
    """A ready login pod of one Slurm cluster. Raises NoLogin, with what to do.

    `controllers` says of each LoginSet, by namespace and name, whose it is; one that is missing is its own.
    """

    def whose(pod: LoginPod) -> str:
        return controllers.get((pod.metadata.namespace, pod.owner), pod.owner)

    there = [pod for pod in pods if pod.is_login]
    meant = [pod for pod in there if cluster in ("", whose(pod))]
    if not meant:
        raise NoLogin(_none(cluster, sorted({whose(pod) for pod in there}), where))
    several = {(pod.metadata.namespace, whose(pod)) for pod in meant}
    if len(several) > 1:
        listed = ", ".join(f"{namespace}/{name}" for namespace, name in sorted(several))
        raise NoLogin(
            f"Several Slurm clusters have login pods here: {listed}. Say which with --cluster and -n."
        )
    ready = sorted((pod for pod in meant if pod.is_ready), key=lambda pod: pod.metadata.name)
    if not ready:
        first = meant[0].metadata
        raise NoLogin(
            f"No login pod of {whose(meant[0])} is ready. See why: "
            f"kubectl slurm explain pod/{first.name} -n {first.namespace}"
        )
    return ready[0]


def _none(cluster: str, others: Sequence[str], where: str) -> str:
    if others:
        return f"Slurm cluster {cluster!r} has no login pod {where}. Those have some: {', '.join(others)}."
    return (
        f"There is no login pod {where}. Add one with spec.logins of the Cluster, look elsewhere with -n, or "
        "use a token with --token-secret."
    )


def user_problem(user: str) -> str:
    """What is wrong with this name of a user; empty when it can be one."""
    if not user:
        return f"--user {_NO_NAME}. With --token-secret you are the user of that token."
    if user.startswith("-") or not user.isprintable() or any(letter in ":/ \t" for letter in user):
        return f"{user!r} is no name of a user. --user {_NO_NAME}."
    return ""


def as_user(user: str, command: Sequence[str]) -> list[str]:
    """What the container runs: a login shell of the user, or one command from it, in their home."""
    return ["su", "--login", user, *(["--command", shlex.join(command)] if command else [])]
