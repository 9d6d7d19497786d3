from pathlib import Path

import click
import pytest

from slurm_operator.api.registry import GROUPS
from slurm_operator.cli.manager import domain_found, manager, settings_of
from slurm_operator.operator import RECONCILER_NAMES, reconcilers
from slurm_operator.runtime.settings import Address, Settings, SettingsProblem, with_file


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":8081", Address("0.0.0.0", 8081)),
        ("127.0.0.1:8080", Address("127.0.0.1", 8080)),
        ("[::1]:8080", Address("::1", 8080)),
        ("9090", Address("0.0.0.0", 9090)),
        ("0", Address("0.0.0.0", 0)),
    ],
)
def test_addresses_are_read_as_go_programs_take_them(text, address):
    assert Address.parse(text) == address


@pytest.mark.parametrize("text", ["", ":", "host", ":99999", "a:b"])
def test_a_bad_address_is_refused_with_what_would_do(text):
    with pytest.raises(SettingsProblem, match="Use :8080"):
        Address.parse(text)


def test_zero_means_off():
    assert Address.parse("0").is_off


@pytest.fixture
def file(tmp_path: Path):
    def write(text: str) -> Path:
        path = tmp_path / "settings.yaml"
        path.write_text(text)
        return path

    return write


def test_the_cluster_domain_is_that_of_our_own_pod(tmp_path):
    mine = tmp_path / "resolv.conf"
    mine.write_text("search slurm-operator.svc.k8s.example.org svc.k8s.example.org k8s.example.org\n")

    assert domain_found(mine) == "k8s.example.org"
    assert domain_found(tmp_path / "missing") == ""


def test_the_settings_file_goes_over_the_flags(file):
    settings = with_file(
        Settings(), file("controller-workers: 7\ncontroller-requeue-after: 90s\nclient-max-retries: 0\n")
    )

    assert settings.workers_of("nodeset") == 7
    assert settings.requeue_after_seconds == 90
    assert settings.client_max_retries == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("client-timeuot: 3", "unknown key 'client-timeuot'"),
        ("client-timeout: soon", "client-timeout is 'soon'; it must be seconds"),
        ("controller-workers: 0", "controller-workers is 0; it must be a whole number"),
        ("- a", "must be a mapping"),
        ("a: [", "Cannot read"),
    ],
)
def test_a_bad_settings_file_is_refused_by_name(file, text, says):
    with pytest.raises(SettingsProblem, match="(?s)" + says.replace("[", r"\[")):
        with_file(Settings(), file(text))


def test_every_reconciler_has_a_flag_for_its_workers_and_gets_its_settings():
    settings = Settings(propagated_node_conditions=("GpuSick",), groups=GROUPS)

    assert {reconciler.name for reconciler in reconcilers(settings)} == set(RECONCILER_NAMES)


def chosen(*args: str) -> Settings:
    with manager.make_context("manager", list(args)) as context:
        return settings_of(context.params)


@pytest.mark.parametrize(
    ("args", "groups"),
    [
        pytest.param([], GROUPS[:1], id="the first group, if nobody says otherwise"),
        pytest.param(["--api", GROUPS[1]], GROUPS[1:], id="only the second"),
        pytest.param([f"--api={GROUPS[1]}", f"--api={GROUPS[0]}"], GROUPS, id="both, in our own order"),
        pytest.param([f"--api={GROUPS[0]},{GROUPS[1]}"], GROUPS, id="both in one flag"),
    ],
)
def test_api_groups_are_asked_for_by_a_flag(args, groups, monkeypatch):
    monkeypatch.delenv("SLURM_OPERATOR_APIS", raising=False)

    assert chosen(*args).groups == groups


def test_or_by_the_environment_or_by_the_settings_file(file, monkeypatch):
    monkeypatch.setenv("SLURM_OPERATOR_APIS", ",".join(GROUPS))
    assert chosen().groups == GROUPS
    assert chosen(f"--api={GROUPS[1]}").groups == GROUPS[1:], "a flag wins"

    assert with_file(Settings(), file(f"apis: [{GROUPS[1]}]\n")).groups == GROUPS[1:]


def test_a_group_that_does_not_exist_is_refused_with_those_that_do(file):
    with pytest.raises(click.BadParameter, match=r"no API group 'nowhere'\. There are: slinky"):
        chosen("--api=nowhere")
    with pytest.raises(SettingsProblem, match=r"apis: There is no API group 'nowhere'"):
        with_file(Settings(), file("apis: [nowhere]\n"))
    with pytest.raises(SettingsProblem, match="it must be a list of API groups"):
        with_file(Settings(), file("apis: slurm.nebius.ai\n"))
