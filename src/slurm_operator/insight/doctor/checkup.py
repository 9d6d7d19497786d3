"""`doctor`: whether a Kubernetes cluster fits, as findings. Each trouble comes with what to do about it."""

from collections.abc import Callable, Iterator, Sequence

from rich.text import Text

from slurm_operator import wire
from slurm_operator.insight.doctor import crds, installation, kubernetes, network, slurm
from slurm_operator.insight.doctor.facts import Facts
from slurm_operator.insight.doctor.finding import Finding, Level
from slurm_operator.insight.text.output import BAD, BUSY, DIM, GOOD, Cell, counted, joined, paragraph

Check = Callable[[Facts], Iterator[Finding]]

# In the order in which things depend on each other.
CHECKS: tuple[Check, ...] = (
    kubernetes.versions,
    kubernetes.machines,
    kubernetes.architectures,
    kubernetes.cgroups,
    kubernetes.dns,
    kubernetes.storage,
    kubernetes.pod_security,
    installation.rights,
    installation.definitions,
    installation.operators,
    installation.metrics,
    installation.webhooks,
    installation.protection,
    crds.deletion,
    slurm.databases,
    slurm.images,
    slurm.probes,
    slurm.overrides,
    slurm.forced,
    slurm.confinement,
    network.policies,
    installation.monitoring,
)

# Without an answer to these there is no saying whether Slurm can run.
_ESSENTIAL = ("Operator", "CRDs")

_UNREAD = "Could not be looked at: "

_STYLES = {Level.OK: GOOD, Level.NOTE: DIM, Level.WARN: BUSY, Level.FAIL: BAD}


def findings(facts: Facts) -> list[Finding]:
    """What every check has to say."""
    return [finding for check in CHECKS for finding in check(facts)]


def is_fit(found: Sequence[Finding]) -> bool:
    return all(finding.level is not Level.FAIL for finding in found) and not is_unknown(found)


def is_unknown(found: Sequence[Finding]) -> bool:
    """Nobody could see whether there is an operator, or what it needs: then nobody can call it fit."""
    return any(finding.is_unread and finding.check in _ESSENTIAL for finding in found)


def grouped(found: Sequence[Finding]) -> list[Finding]:
    """Equal findings once, with all that they are about; and once what could not be looked at."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for one in found:
        words = ("", "") if one.is_unread else (one.message, one.remedy)
        groups.setdefault((one.level, one.is_unread, *words), []).append(one)
    return [_together(group) for group in groups.values()]


def _together(group: Sequence[Finding]) -> Finding:
    first, checks = group[0], list(dict.fromkeys(one.check for one in group))
    if first.is_unread and len(group) > 1:
        why = f"You may not look at {', '.join(checks)}: {first.message.removeprefix(_UNREAD)}"
        return wire.replace(first, check="Not checked", message=why)
    times = f" ({len(group)} times)" if len(group) > len(checks) else ""
    return wire.replace(first, check=", ".join(checks), message=f"{first.message}{times}")


def report(found: Sequence[Finding]) -> Text:
    """A line for each finding, and what to do about it below."""
    return joined([lines(grouped(found)), _summary(found)])


def lines(found: Sequence[Finding]) -> Text:
    """The same without a verdict."""
    width = max((len(finding.check) for finding in found), default=0)
    return joined([_finding_text(finding, width) for finding in found])


def _finding_text(finding: Finding, width: int) -> Text:
    line = paragraph(
        Cell(f"{finding.level:<4}", _STYLES[finding.level]), f"  {finding.check:<{width}}  {finding.message}"
    )
    if finding.remedy:
        line.append_text(paragraph(" " * (width + 8), Cell(f"→ {finding.remedy}", DIM)))
    return line


def _summary(found: Sequence[Finding]) -> Text:
    failed = sum(1 for finding in found if finding.level is Level.FAIL)
    unread = sum(1 for finding in found if finding.is_unread)
    warned = sum(1 for finding in found if finding.level is Level.WARN) - unread
    if failed:
        these = "this" if failed == 1 else "these"
        return paragraph(Cell(f"{counted(failed, 'check')} failed; fix {these} first.", BAD), apart=True)
    if is_unknown(found):
        told = f"Nobody can say whether it is fit: {counted(unread, 'check')} could not be made."
        return paragraph(Cell(told, BAD), apart=True)
    if unread:
        rest = f" and {counted(warned, 'warning')}" if warned else ""
        told = f"What could be checked is fit for Slurm; {counted(unread, 'check')} could not be made{rest}."
        return paragraph(Cell(told, BUSY), apart=True)
    if warned:
        return paragraph(Cell(f"Fit for Slurm, with {counted(warned, 'warning')}.", BUSY), apart=True)
    return paragraph(Cell("Fit for Slurm.", GOOD), apart=True)
