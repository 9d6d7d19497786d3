"""Which login pod a command uses, and what runs there."""

import shlex
from pathlib import Path

import click
import pytest

from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import Meta
from slurm_operator.cli.kubectl.login import ssh_command
from slurm_operator.cli.kubectl.shared.session import Session
from slurm_operator.insight.login_pods import LoginPod, NoLogin, as_user, chosen, user_problem
from slurm_operator.manifests.objects import PodCondition, PodStatus


def pod(
    name: str, owner: str, *, ready: bool = True, namespace: str = "slurm", daemon: str = "login"
) -> LoginPod:
    labels = {names.APP_NAME: daemon, names.APP_INSTANCE: owner}
    status = PodStatus(conditions=(PodCondition(type="Ready", status="True" if ready else "False"),))
    return LoginPod(metadata=Meta(name=name, namespace=namespace, labels=labels), status=status)


DEMO, OTHER = pod("demo-login-1", "demo-login"), pod("lab-login-1", "lab-login")
WHOSE = {("slurm", "demo-login"): "demo", ("slurm", "second"): "demo", ("slurm", "lab-login"): "lab"}


@pytest.mark.parametrize(
    ("pods", "cluster", "used"),
    [
        pytest.param([DEMO], "", "demo-login-1", id="the only one"),
        pytest.param([DEMO, OTHER], "lab", "lab-login-1", id="of the cluster that is named"),
        pytest.param([DEMO, pod("a", "second")], "", "a", id="two LoginSets of one cluster: any"),
        pytest.param([pod("a", "demo-login", ready=False), DEMO], "", "demo-login-1", id="one that is ready"),
        pytest.param([DEMO, pod("cpu-0", "demo-cpu", daemon="slurmd")], "", "demo-login-1", id="no worker"),
    ],
)
def test_a_ready_login_pod_of_the_cluster_is_used(pods: list[LoginPod], cluster: str, used: str) -> None:
    assert chosen(pods, WHOSE, cluster, "here").metadata.name == used


@pytest.mark.parametrize(
    ("pods", "cluster", "says"),
    [
        pytest.param([], "", "There is no login pod here. Add one with spec.logins", id="none"),
        pytest.param(
            [DEMO, OTHER], "", "here: slurm/demo, slurm/lab. Say which with --cluster", id="several"
        ),
        pytest.param([DEMO], "lab", "'lab' has no login pod here. Those have some: demo.", id="another's"),
        pytest.param(
            [pod("a", "demo-login", ready=False)],
            "",
            "explain pod/a -n slurm",
            id="not ready: how to see why",
        ),
    ],
)
def test_what_is_missing_is_said_with_what_to_do(pods: list[LoginPod], cluster: str, says: str) -> None:
    with pytest.raises(NoLogin) as told:
        chosen(pods, WHOSE, cluster, "here")

    assert says in str(told.value)


def test_whoever_may_not_list_login_sets_tells_clusters_apart_by_their_names() -> None:
    with pytest.raises(NoLogin, match="slurm/demo-login, slurm/lab-login"):
        chosen([DEMO, OTHER], {}, "", "here")


@pytest.mark.parametrize(
    ("user", "problem"),
    [
        ("ada", ""),
        ("ada@lab.org", ""),
        ("", "--user says as whom"),
        ("-c", "'-c' is no name of a user"),
        ("a b", "is no name of a user"),
    ],
)
def test_a_name_that_su_would_take_for_something_else_is_refused(user: str, problem: str) -> None:
    assert problem in user_problem(user)
    assert bool(user_problem(user)) is bool(problem)


def test_a_command_reaches_the_pod_word_by_word() -> None:
    made = as_user("ada", ["sbatch", "--wrap", "echo 'a  b'; ls $HOME"])

    assert made[:4] == ["su", "--login", "ada", "--command"]
    assert shlex.split(made[4]) == ["sbatch", "--wrap", "echo 'a  b'; ls $HOME"]


@pytest.mark.parametrize(
    ("args", "tail"),
    [
        pytest.param((), ["ada@127.0.0.1"], id="a shell"),
        pytest.param(("squeue", "--me"), ["ada@127.0.0.1", "squeue", "--me"], id="a command"),
        pytest.param(
            ("-A", "hostname"), ["-A", "ada@127.0.0.1", "hostname"], id="an option of ssh before it"
        ),
    ],
)
def test_ssh_gets_its_options_before_the_host_and_the_command_behind_it(
    args: tuple[str, ...], tail: list[str]
) -> None:
    made = ssh_command("ada", "demo-login.slurm", 40022, "", args)

    assert made[-len(tail) :] == tail
    assert "HostKeyAlias=demo-login.slurm" in made


def test_kubectl_looks_where_the_plugin_looks_and_as_whom() -> None:
    session = Session(Path("/k"), "lab", "slurm", acting_as="ada", acting_groups=("hpc", "dev"))

    assert session.kubectl_options == [
        "--kubeconfig=/k",
        "--context=lab",
        "--as=ada",
        "--as-group=hpc",
        "--as-group=dev",
    ]


def test_a_group_without_a_user_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    kubeconfig = Path(__file__).with_name("kubeconfig.yaml")

    with pytest.raises(click.UsageError, match="name one with --as"):
        _ = Session(kubeconfig, acting_groups=("hpc",)).access
