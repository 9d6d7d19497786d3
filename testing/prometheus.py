"""A real Prometheus, the distribution's package, for tests: rules checked, pages scraped, questions answered."""

import contextlib
import json
import shutil
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from slurm_local.image.debian import DebianRoot, unpacked
from slurm_local.paths import Paths
from slurm_local.progress import PlainProgress

ROOT = DebianRoot(name="prometheus", minutes="about a minute, once", packages=("prometheus",))

# Inside its root the test's directory is here.
_INSIDE = "/mnt"

# Mounts of its own, over the root that all tests share: nothing is written there.
_ENTER = """
set -eu
root=$1 work=$2; shift 2
mount --bind "$work" "$root/mnt"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
cd /
exec chroot "$root" "$@"
"""


Points = list[tuple[float, float]]


# A program of its own, because its network may be another one than ours. Refusals are answers too.
_FETCH = """
import sys, urllib.error, urllib.request
try:
    answer = urllib.request.urlopen(sys.argv[1], timeout=20)
except urllib.error.HTTPError as error:
    answer = error
sys.stdout.write(answer.read().decode())
"""


class Sample(NamedTuple):
    """One series of an answer."""

    labels: Mapping[str, str]
    value: float


def rootfs() -> Path:
    return unpacked(ROOT, Paths.of(), PlainProgress())


def _entering(work: Path, *command: str) -> list[str]:
    head = ["unshare", "--mount", "--fork", "--kill-child", "sh", "-c", _ENTER, "prometheus"]
    return [*head, str(rootfs()), str(work), *command]


def promtool(work: Path, *arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
    """promtool in a directory: files are named relative to it."""
    enter = _entering(work, "sh", "-c", f'cd {_INSIDE} && exec promtool "$@"', "promtool", *arguments)
    return subprocess.run(enter, input=given, capture_output=True, text=True, check=False, timeout=120)


class Prometheus:
    """One that scrapes every second. `targets` are pages by the name of their job.

    `network` is the file of the network namespace that it runs in, where the targets can only be reached there.
    """

    def __init__(
        self,
        work: Path,
        port: int,
        targets: Mapping[str, Iterable[str]],
        rules: Iterable[Path] = (),
        network: Path | None = None,
    ) -> None:
        self._inside = [] if network is None else ["nsenter", f"--net={network}", "--"]
        work.mkdir(parents=True, exist_ok=True)
        self._work, self.url = work, f"http://127.0.0.1:{port}"
        for rule in rules:
            shutil.copy(rule, work / rule.name)
        (work / "prometheus.yml").write_text(
            yaml.safe_dump(_configuration(targets, [rule.name for rule in rules]))
        )
        self._started_at = time.time()
        self._log = (work / "prometheus.log").open("w")
        flags = (
            f"--config.file={_INSIDE}/prometheus.yml",
            f"--storage.tsdb.path={_INSIDE}/data",
            f"--web.listen-address=127.0.0.1:{port}",
        )
        self._process = subprocess.Popen(
            [*self._inside, *_entering(work, "prometheus", *flags)],
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._log.close()

    @property
    def log(self) -> str:
        return (self._work / "prometheus.log").read_text()

    def ask(self, path: str, **query: str) -> Any:
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        asked = [*self._inside, sys.executable, "-IS", "-c", _FETCH, url]
        done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=60)
        if done.returncode != 0:
            raise ConnectionError(done.stderr[-300:])
        if not done.stdout.startswith("{"):
            raise ConnectionError(f"Prometheus is not ready: {done.stdout[:80]}")
        answer = json.loads(done.stdout)
        assert answer["status"] == "success", f"{query or path}: {answer.get('error')}"
        return answer["data"]

    def value(self, expression: str) -> list[Sample]:
        """What an expression gives now."""
        found = self.ask("query", query=expression)
        if found["resultType"] == "scalar":
            return [Sample({}, float(found["result"][1]))]
        return [Sample(one["metric"], float(one["value"][1])) for one in found["result"]]

    def history(self, expression: str, seconds: float, step: float) -> list[tuple[dict[str, str], Points]]:
        """What it gave in the last so many seconds: labels of each series, and (time, value)."""
        end = time.time()
        found = self.ask(
            "query_range", query=expression, start=f"{end - seconds}", end=f"{end}", step=f"{step}"
        )
        return [
            (one["metric"], [(float(at), float(value)) for at, value in one["values"]])
            for one in found["result"]
        ]

    def since_start(self, expression: str) -> list[tuple[dict[str, str], Points]]:
        """The same, of all the time that it has run."""
        return self.history(expression, time.time() - self._started_at, 1)

    def firing(self) -> set[str]:
        return {
            one["labels"]["alertname"] for one in self.ask("alerts")["alerts"] if one["state"] == "firing"
        }

    def until(self, condition: Callable[[], bool], what: str, seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while True:
            with contextlib.suppress(OSError, AssertionError):
                if condition():
                    return
            assert time.monotonic() < end, f"{what} did not happen in time\n{self.log[-3000:]}"
            assert self._process.poll() is None, f"Prometheus ended:\n{self.log[-3000:]}"
            time.sleep(0.3)

    def wait_for_targets(self) -> None:
        """Until each was scraped well."""

        def are_up() -> bool:
            active = self.ask("targets")["activeTargets"]
            return bool(active) and all(one["health"] == "up" for one in active)

        self.until(are_up, "all targets to be up")


@contextlib.contextmanager
def running(
    work: Path,
    port: int,
    targets: Mapping[str, Iterable[str]],
    rules: Iterable[Path] = (),
    network: Path | None = None,
) -> Iterator[Prometheus]:
    made = Prometheus(work, port, targets, tuple(rules), network)
    try:
        yield made
    finally:
        made.close()


def _configuration(targets: Mapping[str, Iterable[str]], rules: list[str]) -> dict[str, Any]:
    jobs = []
    for name, urls in targets.items():
        for number, url in enumerate(urls):
            parts = urllib.parse.urlsplit(url)
            jobs.append(
                {
                    "job_name": f"{name}-{number}",
                    "honor_labels": True,
                    "metrics_path": parts.path,
                    "static_configs": [{"targets": [parts.netloc]}],
                }
            )
    return {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [f"{_INSIDE}/{name}" for name in rules],
        "scrape_configs": jobs,
    }
