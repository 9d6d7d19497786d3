"""Whether the checks that this one depends on let it run."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from slurm_operator.api.nebius.activecheck import ActiveCheck, CheckType
from slurm_operator.reconcilers.nebius.activecheck import results, runs

SKIPPED = results.SKIPPED


class Standing(StrEnum):
    """What another check says to those that depend on it."""

    PASSED = "passed"
    WAITING = "waiting"
    FAILED = "failed"


@dataclass(frozen=True)
class Dependency:
    """A check that this one depends on, and how it stands."""

    name: str
    standing: Standing
    text: str


def standing(check: ActiveCheck) -> tuple[Standing, str]:
    """How a check stands, and in which words."""
    assert check.spec is not None
    is_slurm = check.spec.check_type is CheckType.SLURM_JOB
    told = check.status
    word = told.slurm_jobs_status.last_run_status if is_slurm else told.k8s_jobs_status.last_job_status
    if word == SKIPPED and not told.skipped_by:
        return Standing.PASSED, "had nothing to check"
    if word == SKIPPED:
        return Standing.FAILED, f"was skipped because of {', '.join(told.skipped_by)}"
    if word == results.COMPLETE:
        return Standing.PASSED, "passed"
    if word in (results.FAILED, results.ERROR, results.CANCELLED):
        return Standing.FAILED, f"ended as {word}"
    if not word and not check.spec.run_after_creation:
        return Standing.PASSED, "has not run, and runs only when somebody starts it"
    if word in ("", runs.PENDING):
        return Standing.WAITING, "has not run yet"
    return Standing.WAITING, f"is {word}"


def dependencies(check: ActiveCheck, others: Mapping[str, ActiveCheck]) -> list[Dependency]:
    assert check.spec is not None
    return [_dependency(name, others) for name in dict.fromkeys(check.spec.depends_on)]


def _dependency(name: str, others: Mapping[str, ActiveCheck]) -> Dependency:
    found = check_called(name, others)
    if found is None:
        return Dependency(name, Standing.WAITING, "is not there")
    return Dependency(name, *standing(found))


def check_called(name: str, others: Mapping[str, ActiveCheck]) -> ActiveCheck | None:
    """By the name of the object, or else by the name of its CronJob."""
    by_spec = (other for other in others.values() if other.spec is not None and other.spec.name == name)
    return others.get(name) or next(by_spec, None)


def cycle(check: ActiveCheck, others: Mapping[str, ActiveCheck]) -> list[str]:
    """The way from this check through those that it depends on back to it; empty if there is none."""
    start = check.metadata.name
    ways = [[start]]
    seen = {start}
    while ways:
        way = ways.pop()
        for name in _next(others.get(way[-1], check), others):
            if name == start:
                return [*way, start]
            if name not in seen:
                seen.add(name)
                ways.append([*way, name])
    return []


def _next(check: ActiveCheck, others: Mapping[str, ActiveCheck]) -> Iterator[str]:
    for name in check.spec.depends_on if check.spec is not None else ():
        found = check_called(name, others)
        if found is not None:
            yield found.metadata.name
