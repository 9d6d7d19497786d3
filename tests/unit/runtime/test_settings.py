from pathlib import Path

import pytest

from slurm_operator.cli.manager import domain_found
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
    names = {reconciler.name for reconciler in reconcilers(Settings(propagated_node_conditions=("GpuSick",)))}

    assert names == set(RECONCILER_NAMES)
