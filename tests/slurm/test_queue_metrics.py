"""What slurmctld tells of its queue, in the words that the guide about autoscaling reads."""

import re
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import yaml

from testing.daemons import SlurmDaemons
from testing.docs import ROOT, blocks
from testing.prometheus import promtool

GUIDE = ROOT / "docs" / "guides" / "autoscaling.md"
LINES = (
    "NodeSet=cpu Feature=cpu",
    "PartitionName=cpu Nodes=cpu Default=YES State=UP MaxTime=UNLIMITED",
)
NAMES = ("jobs_pending", "jobs_hold", "jobs_min_job_nodes_nohold", "nodes_alloc", "nodes_mixed")


def queue(slurm: SlurmDaemons) -> dict[str, int]:
    """The metrics of the guide, of partition cpu."""
    url = f"http://{slurm.head.address}:6817/metrics/partitions"
    with urllib.request.urlopen(url, timeout=10) as answer:
        page = answer.read().decode()
    found = dict(re.findall(r'^slurm_partition_(\w+)\{partition="cpu"\} (\S+)$', page, re.MULTILINE))
    return {name: int(float(found[name])) for name in NAMES}


def wanted(slurm: SlurmDaemons) -> int:
    """The guide's sum."""
    pending, hold, largest, allocated, mixed = queue(slurm).values()
    return allocated + mixed + max(pending - hold, largest)


@pytest.mark.full
def test_the_queue_says_how_many_workers_are_wanted_also_in_front_of_none(
    new_slurm: Callable[..., SlurmDaemons],
):
    slurm = new_slurm(lines=LINES)
    assert wanted(slurm) == 0

    small = slurm.submit("sleep 600", "--exclusive")
    assert wanted(slurm) == 1
    large = slurm.submit("sleep 600", "--exclusive", "--nodes=2-4")
    assert wanted(slurm) == 2
    held = slurm.submit("sleep 600", "--nodes=5", "--hold")
    assert wanted(slurm) == 2
    assert (queue(slurm)["jobs_pending"], queue(slurm)["jobs_hold"]) == (3, 1)
    slurm.run("scancel", str(held))

    for name in ("w-0", "w-1"):
        slurm.add_worker(name, conf="Features=cpu")
    slurm.wait_for(lambda: slurm.job_state(small) == "RUNNING", "the small job to run")
    slurm.wait_for(lambda: wanted(slurm) == 3, f"a worker that is busy, and two more: {queue(slurm)}")
    slurm.run("scancel", str(small))
    slurm.wait_for(lambda: slurm.job_state(large) == "RUNNING", "the large job to run")
    slurm.wait_for(lambda: wanted(slurm) == 2, f"two busy workers: {queue(slurm)}")


def test_the_guide_reads_metrics_that_are_looked_at_here():
    named = set(re.findall(r"\bslurm_partition_(\w+)", GUIDE.read_text()))

    assert named == set(NAMES)


MATCHERS = 'cluster="demo",partition="cpu"'


def queries() -> dict[str, str]:
    """The guide's expressions, by who asks."""
    shown = [yaml.safe_load(block.text) for block in blocks("yaml", (GUIDE,))]
    (rules,) = (one["data"]["config.yaml"] for one in shown if one["metadata"]["name"] == "adapter-config")
    (rule,) = yaml.safe_load(rules)["externalRules"]
    (trigger,) = next(one["spec"]["triggers"] for one in shown if one["kind"] == "ScaledObject")
    return {
        "prometheus-adapter": rule["metricsQuery"].replace("<<.LabelMatchers>>", MATCHERS),
        "KEDA": trigger["metadata"]["query"],
    }


def test_both_autoscalers_ask_the_same():
    adapter, keda = (one.split() for one in queries().values())

    assert adapter == keda


@pytest.mark.parametrize("asks", queries())
def test_the_guides_expression_gives_the_sum(asks: str, tmp_path: Path):
    """Evaluated by Prometheus' own tool. Numbers are in the order of NAMES."""
    cases = [
        ((0, 0, 0, 0, 0), 0),  # Nothing to do.
        ((3, 0, 1, 0, 0), 3),  # A worker for each job.
        ((1, 0, 4, 0, 0), 4),  # One job for four workers.
        ((0, 0, 0, 3, 1), 4),  # Nobody waits: as many as are busy.
        ((1, 0, 4, 2, 0), 6),  # A large one behind two busy workers.
        ((2, 2, 0, 1, 0), 1),  # Held jobs do not count.
    ]
    (tmp_path / "none.yaml").write_text("groups: []\n")
    tests = [_case(numbers, expected, queries()[asks]) for numbers, expected in cases]
    (tmp_path / "cases.yaml").write_text(yaml.safe_dump({"rule_files": ["none.yaml"], "tests": tests}))

    done = promtool(tmp_path, "test", "rules", "cases.yaml")

    assert done.returncode == 0, done.stdout + done.stderr


def _case(numbers: Sequence[int], expected: int, query: str) -> dict[str, object]:
    labels = f'{MATCHERS},instance="ctld:6817",job="slurmctld"'
    other = labels.replace('partition="cpu"', 'partition="other"')
    series = [
        {"series": f"slurm_partition_{name}{{{whose}}}", "values": str(number)}
        for name, mine in zip(NAMES, numbers, strict=True)
        for whose, number in ((labels, mine), (other, 7))
    ]
    sample = {"labels": f"{{{labels}}}", "value": expected}
    asked = {"expr": query, "eval_time": "0m", "exp_samples": [sample]}
    return {"interval": "1m", "input_series": series, "promql_expr_test": [asked]}
