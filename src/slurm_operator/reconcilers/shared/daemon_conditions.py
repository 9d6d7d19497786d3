"""How a daemon that runs in pods stands, as the three conditions that every kind has."""

from collections.abc import Sequence
from dataclasses import dataclass

from slurm_operator.manifests.builders.workloads import Rollout
from slurm_operator.plan import failing
from slurm_operator.plan.conditions import DEGRADED, PROGRESSING, READY, Condition, false, true
from slurm_operator.plan.plan import Outcome, Plan
from slurm_operator.reconcilers.shared.dependencies import Need


@dataclass(frozen=True)
class Standing:
    """What is known about one daemon. `serving` is what to say when all is well."""

    daemon: str
    serving: str
    rollout: Rollout | None
    needs: Sequence[Need] = ()
    troubles: Sequence[str] = ()
    complaints: Sequence[Need] = ()  # What needs attention although the daemon may work.
    replicas: int = 0  # That the spec asks for, where it does.

    def conditions(self, plan: Plan, outcome: Outcome) -> list[Condition]:
        degraded = failing.degraded(outcome, self._degraded())
        return [self.ready, self._progressing(plan, outcome), degraded]

    @property
    def works(self) -> bool:
        return self.rollout is not None and self.rollout.works

    @property
    def ready(self) -> Condition:
        if self.works and not self._starts:
            if self.rollout is not None and self.rollout.wanted == 0:
                return true(READY, "ScaledToZero", f"No {self.daemon} runs, as spec.replicas asks for.")
            return true(READY, "Serving", self.serving)
        for need in self.needs:
            return false(READY, need.reason, need.message)
        if self.rollout is None or self._starts:
            return false(READY, "Starting", f"{self.daemon} is being started.")
        return false(READY, "PodsNotReady", self._counted(self.rollout))

    @property
    def _starts(self) -> bool:
        """Its workload is still the one without pods, which the spec no longer asks for."""
        return self.rollout is not None and self.rollout.wanted == 0 and self.replicas > 0

    def _progressing(self, plan: Plan, outcome: Outcome) -> Condition:
        for wait in plan.waits:
            if wait.reason == "InUse":
                return true(PROGRESSING, wait.reason, wait.message)
        if outcome.failed:
            return true(PROGRESSING, "Retrying", failing.retried(outcome))
        for need in self.needs:
            if need.comes:
                return true(PROGRESSING, need.reason, need.message)
            return false(PROGRESSING, need.reason, "No changes will be made until this is fixed.")
        if self.rollout is None or self._starts:
            return true(PROGRESSING, "Starting", f"{self.daemon} is being started.")
        if not self.rollout.is_done:
            return true(PROGRESSING, "RollingOut", self._counted(self.rollout))
        return false(PROGRESSING, "UpToDate")

    def _degraded(self) -> Condition:
        for need in (*self.needs, *self.complaints):
            if not need.comes:
                return true(DEGRADED, need.reason, need.message)
        if self.rollout is not None and not self.works and (self.troubles or self.rollout.stuck):
            return true(DEGRADED, "PodsNotReady", self._counted(self.rollout))
        return false(DEGRADED, "AsExpected")

    def _counted(self, rollout: Rollout) -> str:
        why = "; ".join(self.troubles) or rollout.stuck
        counted = f"{min(rollout.available, rollout.wanted)} of {rollout.wanted} {self.daemon} pods are ready"
        if rollout.works and not rollout.is_done:
            counted += f", {rollout.updated} of them up to date"
        return f"{counted}: {why}" if why else f"{counted}."
