"""`doctor`: whether a Kubernetes cluster fits, as findings. Each trouble comes with what to do about it."""

from collections.abc import Callable, Iterator, Sequence

from rich.text import Text

from slurm_operator.kubectl import doctor_crds, doctor_installation, doctor_kubernetes, doctor_slurm
from slurm_operator.kubectl.doctor_facts import Facts
from slurm_operator.kubectl.doctor_finding import Finding, Level
from slurm_operator.kubectl.show import BAD, BUSY, DIM, GOOD, Cell, counted, joined, paragraph

Check = Callable[[Facts], Iterator[Finding]]

# In the order in which things depend on each other.
CHECKS: tuple[Check, ...] = (
    doctor_kubernetes.versions,
    doctor_kubernetes.machines,
    doctor_kubernetes.architectures,
    doctor_kubernetes.cgroups,
    doctor_kubernetes.dns,
    doctor_kubernetes.storage,
    doctor_kubernetes.pod_security,
    doctor_installation.rights,
    doctor_installation.definitions,
    doctor_installation.operators,
    doctor_installation.webhooks,
    doctor_installation.protection,
    doctor_crds.deletion,
    doctor_slurm.databases,
    doctor_slurm.images,
    doctor_slurm.probes,
    doctor_installation.monitoring,
)

_STYLES = {Level.OK: GOOD, Level.NOTE: DIM, Level.WARN: BUSY, Level.FAIL: BAD}


def findings(facts: Facts) -> list[Finding]:
    """What every check has to say."""
    return [finding for check in CHECKS for finding in check(facts)]


def is_fit(found: Sequence[Finding]) -> bool:
    return all(finding.level is not Level.FAIL for finding in found)


def report(found: Sequence[Finding]) -> Text:
    """A line for each finding, and what to do about it below."""
    width = max((len(finding.check) for finding in found), default=0)
    return joined([*(_told(finding, width) for finding in found), _summary(found)])


def _told(finding: Finding, width: int) -> Text:
    line = paragraph(
        Cell(f"{finding.level:<4}", _STYLES[finding.level]), f"  {finding.check:<{width}}  {finding.message}"
    )
    if finding.remedy:
        line.append_text(paragraph(" " * (width + 8), Cell(f"→ {finding.remedy}", DIM)))
    return line


def _summary(found: Sequence[Finding]) -> Text:
    failed = sum(1 for finding in found if finding.level is Level.FAIL)
    warned = sum(1 for finding in found if finding.level is Level.WARN)
    if failed:
        return paragraph("\n", Cell(f"{counted(failed, 'check')} failed: mend that first.", BAD))
    if warned:
        return paragraph("\n", Cell(f"Fit for Slurm, with {counted(warned, 'warning')}.", BUSY))
    return paragraph("\n", Cell("Fit for Slurm.", GOOD))
