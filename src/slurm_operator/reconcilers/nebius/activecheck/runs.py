"""What the Kubernetes Jobs of a check say: each is one run."""

from dataclasses import dataclass
from datetime import datetime

from slurm_operator.api.nebius import names
from slurm_operator.manifests.meta import Child, Manifest
from slurm_operator.manifests.moments import moment

# Words of `k8sJobsStatus.lastJobStatus`.
ACTIVE, PENDING, COMPLETE = "Active", "Pending", "Complete"
FAILED, SUSPENDED, UNKNOWN = "Failed", "Suspended", "Unknown"


@dataclass(frozen=True)
class Run:
    """One Job. What its pod noted about Slurm jobs stands in its annotations."""

    job: Child

    @property
    def name(self) -> str:
        return self.job.metadata.name

    @property
    def made_at(self) -> datetime | None:
        return self.job.metadata.creation_timestamp

    @property
    def state(self) -> str:
        for type_, word in (("Complete", COMPLETE), ("Failed", FAILED), ("Suspended", SUSPENDED)):
            if self._condition(type_) is not None:
                return word
        if "status" not in self.job.body:
            return PENDING
        return ACTIVE if self._status.get("active") else PENDING

    @property
    def is_over(self) -> bool:
        """Its pod submits nothing more."""
        return self.state in (COMPLETE, FAILED)

    @property
    def over_at(self) -> datetime | None:
        found = self._condition("Complete") or self._condition("Failed")
        said = found.get("lastTransitionTime") if found is not None else None
        return moment(str(said)) if said else None

    @property
    def failure(self) -> str:
        """Why the Job failed, in Kubernetes' words."""
        found = self._condition("Failed") or {}
        words = [str(found.get("reason") or ""), str(found.get("message") or "")]
        return ": ".join(filter(None, words)) or "the Job failed"

    @property
    def ids(self) -> tuple[int, ...]:
        return _numbers(self._noted(names.SLURM_JOB_IDS))

    @property
    def unhandled(self) -> frozenset[int]:
        """Of these. Releases that did not note them handled all at once."""
        noted = self.job.metadata.annotations.get(names.UNHANDLED_JOB_IDS)
        return frozenset(self.ids if noted is None else _numbers(noted))

    @property
    def unreadable_ids(self) -> tuple[str, ...]:
        return tuple(word for word in _words(self._noted(names.SLURM_JOB_IDS)) if not word.isdecimal())

    @property
    def skipped_because(self) -> str:
        return self._noted(names.SKIPPED_REASON)

    @property
    def is_closed(self) -> bool:
        """Everything was done about it."""
        return bool(self._noted(names.FINAL_STATE_TIME))

    @property
    def _status(self) -> Manifest:
        return self.job.body.get("status") or {}

    def _condition(self, type_: str) -> Manifest | None:
        found = self._status.get("conditions") or ()
        return next((one for one in found if (one.get("type"), one.get("status")) == (type_, "True")), None)

    def _noted(self, name: str) -> str:
        return self.job.metadata.annotations.get(name, "")


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(int(word) for word in _words(text) if word.isdecimal()))
