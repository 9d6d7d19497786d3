"""Partitions that the spec no longer has and that jobs still name: they stay, and take no new jobs.

slurmctld ends the jobs of a partition that a new configuration lacks, at once and without a word. Such a
partition must not hold up everything else that changes, so its line stays as INACTIVE until no job names it.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from slurm_operator.conditions import Reason
from slurm_operator.plan.actions import Wait
from slurm_operator.plan.step import NOTHING, Step, step
from slurm_operator.slurm.conf.includes import load
from slurm_operator.slurm.conf.lines import Pair, Setting, render
from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurm.snapshot import Snapshot, Unreachable

REASON: Final = Reason.PARTITION_IN_USE

# How soon it is noticed that the last job has ended, where nothing else wakes us.
LOOK_SECONDS: Final = 10.0

_SLURM_CONF: Final = "slurm.conf"

# Read on every pass, so by a pattern: to parse whole files takes milliseconds.
_NAMED = re.compile(r"^\s*PartitionName\s*=\s*\"?([^\s\"#]+)", re.MULTILINE | re.IGNORECASE)
_NODESETS = re.compile(r"^\s*NodeSet\s*=\s*\"?([^\s\"#]+)", re.MULTILINE | re.IGNORECASE)

Texts = Mapping[str, str]


def kept(mounted: Texts, wanted: Texts, slurm: Snapshot | Unreachable) -> list[str]:
    """The partitions of the mounted files that the wanted ones lack, and that jobs name, or may."""
    gone = _names(_NAMED, mounted) - _names(_NAMED, wanted) - {"DEFAULT"}
    return sorted(name for name in gone if not isinstance(slurm, Snapshot) or slurm.jobs_in(name))


def lines(mounted: Texts, wanted: Texts, partitions: Iterable[str]) -> list[str]:
    """Their lines as they were, but for new jobs. NodeSets that are gone from the files are left out."""
    lost = _names(_NODESETS, mounted) - _names(_NODESETS, wanted)
    settings = load(mounted, _SLURM_CONF).all("PartitionName")
    by_name = {name: setting for setting in settings for name in setting.value.split(",")}
    return [_inactive(name, by_name[name], lost) for name in partitions if name in by_name]


def _inactive(name: str, line: Setting, lost: set[str]) -> str:
    """A second default would be refused, and what Slurm no longer knows as well."""
    dropped = ("partitionname", "state", "default")
    others = [_without(pair, lost) for pair in line.pairs if pair.key.lower() not in dropped]
    pairs = (Pair("PartitionName", name), *(one for one in others if one.value), Pair("State", "INACTIVE"))
    return render([Setting(pairs)]).rstrip("\n")


def _without(pair: Pair, lost: set[str]) -> Pair:
    if pair.key.lower() != "nodes" or not lost:
        return pair
    return Pair(pair.key, ",".join(word for word in pair.value.split(",") if word not in lost))


def _names(pattern: re.Pattern[str], texts: Texts) -> set[str]:
    found = (match for text in texts.values() for match in pattern.findall(text))
    return {name for match in found for name in match.split(",")}


def next_step(partitions: Iterable[str], slurm: Snapshot | Unreachable) -> Step:
    """Says what each of them waits for, and what can be done about it."""
    waits = [_wait(name, slurm) for name in partitions]
    return step(waits, seconds=LOOK_SECONDS) if waits else NOTHING


def _wait(name: str, slurm: Snapshot | Unreachable) -> Wait:
    begin = (
        f"Partition {name} is not in the spec any more. It takes no new jobs, and is removed with its last"
    )
    if not isinstance(slurm, Snapshot):
        message = f"{begin}; whether it has any cannot be seen: {slurm.why}."
        return Wait(subject=f"partition {name}", reason=REASON, message=message)
    jobs = slurm.jobs_in(name)
    begun = [job for job in jobs if job.state.holds_node]
    pending = [job for job in jobs if not job.state.holds_node]
    told = [f"{begin}.", *_begun(begun), *_pending(pending)]
    return Wait(
        subject=f"partition {name}",
        reason=REASON,
        message=" ".join(told),
        jobs=tuple(sorted(job.job_id for job in jobs)),
    )


def _begun(jobs: list[SlurmJob]) -> list[str]:
    return [f"Jobs that have started: {_ids(jobs, ', ')}."] if jobs else []


def _pending(jobs: list[SlurmJob]) -> list[str]:
    """Those would wait for ever."""
    if not jobs:
        return []
    return [
        f"Pending jobs, which do not start there: {_ids(jobs, ', ')}. Move them with `scontrol update "
        f"jobid={_ids(jobs, ',')} partition=PARTITION`, or cancel them with `scancel {_ids(jobs, ' ')}`."
    ]


def _ids(jobs: list[SlurmJob], between: str) -> str:
    return between.join(str(number) for number in sorted(job.job_id for job in jobs))
