from pathlib import Path

import click
import pytest
import yaml

from slurm_operator.api.registry import GROUPS
from slurm_operator.cli.flags import given_by_people, log_style
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


def test_the_settings_file_says_what_no_flag_does(file):
    settings = with_file(
        Settings(), file("controller-workers: 7\ncontroller-requeue-after: 90s\nclient-max-retries: 0\n")
    )

    assert settings.workers_of("nodeset") == 7
    assert settings.requeue_after_seconds == 90
    assert settings.client_max_retries == 0


# As the original installation has it: every key, with the value that it ships.
ORIGINAL = {
    "controller-workers": "8",
    "controller-requeue-after": "30s",
    "client-timeout": "10s",
    "client-retry-interval": "5s",
    "client-max-retries": "3",
    "builder-image-pull-policy": "IfNotPresent",
    "builder-default-annotations": "example.com/team: hpc\nexample.com/paid: true\n",
    "webhook-port": "9443",
    "webhook-tls-file": "/etc/tls/tls.crt",
}


@pytest.fixture(params=["one file", "a mounted ConfigMap"])
def original(request, tmp_path: Path) -> Path:
    """The same settings in both forms. Kubernetes mounts links into a directory with two dots."""
    if request.param == "one file":
        path = tmp_path / "settings.yaml"
        path.write_text(yaml.safe_dump(ORIGINAL))
        return path
    content, mounted = tmp_path / "mounted" / "..2026_01_01", tmp_path / "mounted"
    content.mkdir(parents=True)
    (mounted / "..data").symlink_to("..2026_01_01")
    for key, text in ORIGINAL.items():
        (content / key).write_text(text)
        (mounted / key).symlink_to(f"..data/{key}")
    return mounted


def test_the_original_settings_are_accepted_in_both_forms(original):
    settings = with_file(Settings(), original)

    assert (settings.default_workers, settings.requeue_after_seconds) == (8, 30)
    assert (settings.client_timeout_seconds, settings.client_retry_interval_seconds) == (10, 5)
    assert (settings.client_max_retries, settings.image_pull_policy) == (3, "IfNotPresent")
    assert settings.default_annotations == {"example.com/team": "hpc", "example.com/paid": "true"}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1m", 60), ("500ms", 0.5), ("1h30m", 5400), ("30", 30), ("2.5", 2.5)],
)
def test_durations_are_read_as_go_writes_them(file, text, seconds):
    assert with_file(Settings(), file(f"client-timeout: {text}")).client_timeout_seconds == seconds


def test_annotations_may_be_a_map_of_the_file(file):
    settings = with_file(Settings(), file("builder-default-annotations:\n  a: b\n  n: 3\n"))

    assert settings.default_annotations == {"a": "b", "n": "3"}


def test_a_flag_wins_over_the_environment_and_that_over_the_file(file, monkeypatch):
    path = file("apis: [slinky.slurm.net]\ncontroller-workers: 9\n")
    monkeypatch.delenv("SLURM_OPERATOR_APIS", raising=False)
    assert chosen(f"--config={path}").groups == GROUPS[:1]

    monkeypatch.setenv("SLURM_OPERATOR_APIS", ",".join(GROUPS))
    assert chosen(f"--config={path}").groups == GROUPS, "the environment wins over the file"
    assert chosen(f"--config={path}", f"--api={GROUPS[1]}").groups == GROUPS[1:], "a flag over both"

    settings = chosen(f"--config={path}", "--nodeset-workers=2")
    assert (settings.workers_of("nodeset"), settings.workers_of("token")) == (2, 9)


def test_the_environment_names_the_settings_file(file, monkeypatch):
    monkeypatch.setenv("SLURM_OPERATOR_CONFIG", str(file("client-max-retries: 2")))

    assert chosen().client_max_retries == 2


VARIABLES = {
    "WATCH_NAMESPACE": ("blue,red", "namespaces", ("blue", "red")),
    "LEADER_ELECTION_ENABLED": ("false", "leader_elect", False),
    "LEADER_ELECTION_ID": ("mine", "leader_elect_id", "mine"),
    "METRICS_BIND_ADDRESS": (":9090", "metrics", Address("0.0.0.0", 9090)),
    "HEALTH_BIND_ADDRESS": ("127.0.0.1:9091", "health", Address("127.0.0.1", 9091)),
}
FLAGS = {
    "WATCH_NAMESPACE": ("--namespaces=green", ("green",)),
    "LEADER_ELECTION_ENABLED": ("--leader-elect=true", True),
    "LEADER_ELECTION_ID": ("--leader-elect-id=other", "other"),
    "METRICS_BIND_ADDRESS": ("--metrics-addr=:7070", Address("0.0.0.0", 7070)),
    "HEALTH_BIND_ADDRESS": ("--health-addr=:7071", Address("0.0.0.0", 7071)),
}


@pytest.mark.parametrize("variable", VARIABLES)
def test_an_environment_variable_means_what_its_flag_does_and_the_flag_wins(variable, monkeypatch):
    text, field, value = VARIABLES[variable]
    flag, other = FLAGS[variable]
    monkeypatch.setenv(variable, text)

    assert getattr(chosen(), field) == value
    assert getattr(chosen(flag), field) == other


def test_without_a_word_one_manager_of_several_acts_under_the_name_that_slinky_uses(monkeypatch):
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)

    settings = chosen()

    assert (settings.leader_elect, settings.leader_elect_id) == (True, "slurm-operator")
    assert (settings.metrics.port, settings.health.port, settings.namespaces) == (8080, 8081, ())


LEVELS = {
    "debug": "debug", "info": "info", "warn": "warning", "error": "error", "dpanic": "error", "panic": "error",
    "fatal": "error",
}  # fmt: skip


@pytest.mark.parametrize(
    "form", ["--zap-log-level={}", "-zap-log-level={}", "--log-level={}", "-log-level={}"]
)
@pytest.mark.parametrize("level", LEVELS)
def test_every_level_of_zap_is_known_in_every_form(form, level):
    for word in (level, level.upper()):
        with manager.make_context("manager", [form.format(word)]) as context:
            assert log_style(context.params)[1] == LEVELS[level]


@pytest.mark.parametrize(("number", "level"), [("1", "debug"), ("9", "debug"), ("0", "info"), ("-1", "info")])
def test_numbers_say_how_much_more_than_info_is_logged(number, level):
    with manager.make_context("manager", [f"--zap-log-level={number}"]) as context:
        assert log_style(context.params)[1] == level


def test_a_level_that_does_not_exist_is_refused_with_those_that_do():
    with pytest.raises(click.BadParameter, match=r"'loud' is no level\. Levels: debug, info, warn"):
        manager.make_context("manager", ["--zap-log-level=loud"])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("client-timeuot: 3", "unknown key 'client-timeuot'"),
        ("client-timeout: soon", "client-timeout is 'soon'; it must be seconds"),
        ("client-timeout: -1s", "client-timeout is '-1s'; it must be seconds"),
        ("builder-image-pull-policy: Sometimes", "must be one of Always, IfNotPresent, Never"),
        ("builder-default-annotations: just words", "must be a YAML map of names to texts"),
        ("builder-default-annotations: {a: [1]}", "and a is none"),
        ("webhook-port: 70000", "webhook-port is 70000; it must be a whole number from 1 to 65535"),
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
        return settings_of(context.params, given_by_people(context))


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
    with pytest.raises(SettingsProblem, match=r"a list of API groups\. There is no API group 'nowhere'"):
        with_file(Settings(), file("apis: [nowhere]\n"))
    with pytest.raises(SettingsProblem, match="it must be a list of API groups"):
        with_file(Settings(), file("apis: slurm.nebius.ai\n"))
