"""A real Prometheus reads the exporter and slurmctld, and evaluates what dashboards and alerts ask."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from slurm.alert_cases import CASES, cases_file, rules_without_texts
from slurm_operator.exporter.facts import Facts
from slurm_operator.exporter.options import Compat, Options
from testing import dashboard_pictures, dashboards
from testing.daemons import SlurmDaemons
from testing.prometheus import Prometheus, promtool, running
from unit.exporter.pages import jobs, nodes, page
from unit.exporter.test_exporter_caps import HOSTILE

# Ended jobs stay for a while, and a node that is down stays so until somebody resumes it.
SETTINGS = {"MinJobAge": "600", "GresTypes": "gpu", "ReturnToService": "0"}
COMMENT = '{"namespace":"slurm","podName":"w-0","node":"kube-1","nodeSetName":"gpu","nodeSetUID":"u"}'


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@pytest.fixture
def scene(new_slurm: Callable[..., SlurmDaemons]) -> SlurmDaemons:
    """Two workers with GPUs."""
    slurm = new_slurm(settings=SETTINGS)
    # slurmd counts a GPU by its file only; any two devices will do.
    slurm.head.box.path("/etc/slurm/gres.conf").write_text(
        "Name=gpu File=/dev/null\nName=gpu File=/dev/zero\n"
    )
    slurm.reconfigure()
    for name in ("w-0", "w-1"):
        slurm.add_worker(name, conf="Features=all Gres=gpu:2")
    slurm.wait_for(lambda: "IDLE" in slurm.node_states("w-0") & slurm.node_states("w-1"), "two idle workers")
    slurm.run("scontrol", "update", "nodename=w-0", f"comment={COMMENT}")
    return slurm


class Exporter:
    """One that reads Slurm every second."""

    def __init__(self, slurm: SlurmDaemons, directory: Path, *flags: str) -> None:
        key = directory / "jwt.key"
        key.write_bytes(slurm.jwt_key)
        self.metrics, self.monitoring = free_port(), free_port()
        self.log = directory / "exporter.log"
        self._stderr = self.log.open("w")
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "slurm_operator.cli", "exporter", "--cluster-name=test"),
                *(
                    f"--slurm-api-server={slurm.rest_url}",
                    f"--jwt-key-file={key}",
                    "--collection-interval=1s",
                ),
                *(f"--metrics-bind-address=127.0.0.1:{self.metrics}", *flags),
                f"--monitoring-bind-address=127.0.0.1:{self.monitoring}",
            ],
            stderr=self._stderr,
        )

    @property
    def urls(self) -> list[str]:
        return [f"http://127.0.0.1:{port}/metrics" for port in (self.metrics, self.monitoring)]

    def page(self) -> str:
        with urllib.request.urlopen(self.urls[0], timeout=10) as answer:
            return answer.read().decode()

    def wait(self, has: str) -> None:
        end = time.monotonic() + 30
        while time.monotonic() < end:
            try:
                if has in self.page():
                    return
            except OSError:
                pass
            time.sleep(0.2)
        raise AssertionError(f"no {has} on the page\n{self.log.read_text()[-2000:]}")

    def stop(self) -> int:
        self._process.send_signal(signal.SIGTERM)
        self._stderr.close()
        return self._process.wait(timeout=20)


@pytest.fixture
def exporter(scene: SlurmDaemons, tmp_path: Path) -> Iterator[Exporter]:
    made = Exporter(scene, tmp_path)
    yield made
    assert made.stop() == 0


@pytest.mark.full
def test_every_panel_about_slurm_gives_a_value_and_its_alerts_fire_and_end(
    scene: SlurmDaemons, exporter: Exporter, tmp_path: Path
):
    exporter.wait("slurm_pool_nodes")
    (tmp_path / "cut").mkdir()
    cut = Exporter(scene, tmp_path / "cut", "--cluster-name=cut", "--max-series-per-family=1")
    slurmctld = [
        f"http://{scene.head.address}:6817/metrics/{name}"
        for name in ("jobs", "jobs-users-accts", "nodes", "partitions", "scheduler")
    ]
    # Of the second exporter only its own page is read, which says what it would leave out.
    targets = {"exporter": exporter.urls, "cut": cut.urls[1:], "slurmctld": slurmctld}
    try:
        with running(
            tmp_path / "prometheus", free_port(), targets, [dashboards.rules_at_once(tmp_path)]
        ) as prometheus:
            prometheus.wait_for_targets()
            _alerts_fire_and_end(scene, prometheus)
            _every_panel_has_a_value(prometheus)
            assert prometheus.value("slurm_jobs_running")[0].value == 1, "slurmctld's own"
            _same_numbers(prometheus)
            if os.environ.get("SLURM_OPERATOR_GOLDEN") == "write":
                for path in dashboards.files()[1:]:
                    dashboard_pictures.write(path, prometheus.since_start)
            _old_data_are_told(scene, prometheus)
    finally:
        assert cut.stop() == 0


def _alerts_fire_and_end(scene: SlurmDaemons, prometheus: Prometheus) -> None:
    def fires(alert: str) -> None:
        prometheus.until(lambda: alert in prometheus.firing(), f"{alert} to fire")

    def ends(alert: str) -> None:
        prometheus.until(lambda: alert not in prometheus.firing(), f"{alert} to end")

    busy = scene.submit("sleep 600", "--nodelist=w-0", "--exclusive")
    scene.submit("exit 1", "--nodelist=w-1")
    scene.submit("sleep 600", "--nodelist=w-0", "--exclusive")
    scene.wait_for(lambda: scene.job_state(busy) == "RUNNING", "a job to run")
    for _ in range(5):
        scene.submit("sleep 3", "--nodelist=w-1", "--exclusive")
    prometheus.until(lambda: bool(prometheus.value('slurm_queue_jobs{state="FAILED"}')), "the failed job")
    prometheus.until(
        lambda: bool(prometheus.value('slurm_queue_jobs{state="COMPLETED"} >= 5')), "jobs that took turns"
    )
    fires("SlurmQueueStuck")  # One waits for w-0, w-1 is idle, and nothing starts any more.
    fires("SlurmExporterCutOff")
    fires("SlurmOperatorHasNoLeader")  # There is none.

    scene.run("scontrol", "update", "nodename=w-1", "state=down", "reason=broken disk")
    fires("SlurmNodesDown")
    ends("SlurmQueueStuck")
    scene.run("scontrol", "update", "nodename=w-1", "state=resume")
    scene.run("scontrol", "update", "nodename=w-1", "state=drain", "reason=look at it")
    ends("SlurmNodesDown")
    fires("SlurmDrainTooLong")


def _every_panel_has_a_value(prometheus: Prometheus) -> None:
    asked = [pair for path in dashboards.files()[1:] for pair in dashboards.expressions(path)]
    assert len(asked) > 20
    left = list(asked)
    end = time.monotonic() + 60
    while left and time.monotonic() < end:
        time.sleep(0.5)
        left = [pair for pair in asked if not prometheus.value(pair[1])]
    assert not left, f"no value for {left}"
    for alert in dashboards.alerts():
        prometheus.value(alert["expr"])  # Raises when it is no expression.
    (failures,) = prometheus.value(dict(asked)["Failures"])
    assert failures.value >= 1, "w-1 went down, for a reason that it never had before"


def _old_data_are_told(scene: SlurmDaemons, prometheus: Prometheus) -> None:
    scene.slurmrestd.pause()
    prometheus.until(lambda: "SlurmExporterStale" in prometheus.firing(), "SlurmExporterStale to fire")
    scene.slurmrestd.resume()
    prometheus.until(
        lambda: "SlurmExporterStale" not in prometheus.firing(), "SlurmExporterStale to end", 120
    )


def _same_numbers(prometheus: Prometheus) -> None:
    """The table of the guide that leads from slurmctld's names to ours: both sides say the same."""
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "monitoring.md").read_text().replace("\\|", "|")
    pairs = {
        "slurm_jobs": "sum by (cluster) (slurm_queue_jobs)",
        "slurm_jobs_running": 'sum by (cluster) (slurm_queue_jobs{state="RUNNING"})',
        "slurm_jobs_pending": 'sum by (cluster) (slurm_queue_jobs{state="PENDING"})',
        'slurm_partition_jobs_pending{partition="all"}': 'sum by (partition) (slurm_queue_jobs{state="PENDING"})',
        'slurm_partition_jobs{partition="all"}': 'sum by (partition) (slurm_queue_jobs{state=~"PENDING|RUNNING|SUSPENDED"})',
        'slurm_node_cpus_alloc{node="w-0"}': 'slurm_node_cpus_allocated{node_name="w-0"}',
    }
    for theirs, ours in pairs.items():
        assert f"`{theirs.partition('{')[0]}" in guide
        written = ours.replace('="w-0"', "")
        assert f"`{written}`" in guide
        (one,), (other,) = prometheus.value(theirs), prometheus.value(ours)
        assert one.value == other.value, theirs


def test_alerts_fire_when_they_should_and_not_before(tmp_path: Path):
    rules = yaml.safe_load(dashboards.ALERTS.read_text())
    (tmp_path / "alerts.yaml").write_text(dashboards.ALERTS.read_text())
    (tmp_path / "plain.yaml").write_text(yaml.safe_dump(rules_without_texts(rules)))
    (tmp_path / "cases.yaml").write_text(yaml.safe_dump(cases_file(rules, "plain.yaml")))

    checked = promtool(tmp_path, "check", "rules", "alerts.yaml")
    tested = promtool(tmp_path, "test", "rules", "cases.yaml")

    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert {case.alert for case in CASES} == {one["alert"] for one in dashboards.alerts()}, (
        "each of them fires"
    )


def test_prometheus_own_tool_reads_pages_with_hostile_names(tmp_path: Path):
    facts = Facts(
        nodes=nodes({"reason": HOSTILE, "comment": HOSTILE}),
        jobs=jobs({"name": HOSTILE, "user_name": HOSTILE, "partition": HOSTILE}),
    )
    for compat in Compat:
        checked = promtool(tmp_path, "check", "metrics", given=page(facts, Options(compat=compat)))

        # 3 is advice about names, which are others' here.
        assert checked.returncode in (0, 3), checked.stderr
        assert "error while linting" not in checked.stderr


@pytest.mark.full
def test_the_exporter_lives_through_a_frozen_slurmrestd_and_a_private_configuration(
    scene: SlurmDaemons, tmp_path: Path
):
    job = scene.submit("sleep 600", "--job-name=secret-name")
    scene.wait_for(lambda: scene.job_state(job) == "RUNNING", "a job to run")
    made = Exporter(scene, tmp_path, "--compat=soperator")
    try:
        made.wait("secret-name")
        scene.write_config({**SETTINGS, "PrivateData": "jobs,users"})
        scene.reconfigure()
        end = time.monotonic() + 30
        while "secret-name" in made.page() and time.monotonic() < end:
            time.sleep(0.3)
        assert "secret-name" not in made.page()
        assert f'job_id="{job}"' in made.page(), "the job is there, without its name"

        scene.slurmrestd.pause()
        time.sleep(2)  # What was asked for before may still be on its way.
        before = made.page()
        time.sleep(3)
        assert made.page() == before
        scene.slurmrestd.resume()
    finally:
        assert made.stop() == 0


@pytest.mark.full
def test_jobs_that_slurmctld_has_forgotten_are_read_from_accounting(
    slurm_with_accounting: SlurmDaemons, tmp_path: Path
):
    slurm = slurm_with_accounting
    job = slurm.submit("true", "--job-name=short")
    slurm.wait_for(lambda: slurm.job_state(job) == "GONE", "slurmctld to forget the job")
    made = Exporter(slurm, tmp_path, "--compat=soperator", "--job-source=accounting")
    try:
        made.wait(f'slurm_job_info{{cluster="test",job_id="{job}",job_state="COMPLETED"')
        (line,) = (
            line
            for line in made.page().splitlines()
            if line.startswith("slurm_job_info") and f'job_id="{job}"' in line
        )
        assert 'job_name="short"' in line
        assert "user_id=" not in line
        assert "finished_time=" in line
    finally:
        assert made.stop() == 0
