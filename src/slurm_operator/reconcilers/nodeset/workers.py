"""The workers of a NodeSet as decisions see them: pod, Kubernetes node, Slurm node, all in one place."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Self

from slurm_operator.api.shared import names
from slurm_operator.api.shared.worker_parts import Records, ScalingMode
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.manifests.objects import KubeNode, Pod
from slurm_operator.manifests.worker_names import registers_from
from slurm_operator.reconcilers.nodeset import identity
from slurm_operator.safety.gate import Candidate, is_record_of, is_record_of_crashed_worker, jobs_on
from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.reasons import OurReason, is_cordoned_by_operator
from slurm_operator.slurm.snapshot import Snapshot, Unreachable

# A worker that was unready for so long is taken for one that stays so.
UNREADY_FOR = timedelta(seconds=30)


class Worker(Candidate, kw_only=True):
    """One worker of a NodeSet. What a pass asks many times of each is found once, when it is made.

    `record`: Slurm's record of this very worker; None when there is none, or it is about another pod.
    `drain`: our own drain of this worker, as its reason tells it.
    `jobs`: unfinished ones on this worker, as far as we can see.
    `newest_made_at`: when the newest of them all was made.
    """

    nodeset: NodeSet
    kube_node: KubeNode | None
    ordinal: int | None
    uid: str
    revision: str
    is_terminating: bool
    is_ready: bool
    record: SlurmNode | None
    drain: OurReason | None
    jobs: Sequence[SlurmJob]
    newest_made_at: datetime | None = None

    @classmethod
    def of(
        cls,
        pod: Pod,
        nodeset: NodeSet,
        kube_node: KubeNode | None,
        slurm: Snapshot | Unreachable,
        *,
        state_lost_since: datetime | None = None,
        newest_made_at: datetime | None = None,
        revision: str = "",
    ) -> Self:
        slurm_node = identity.slurm_node_name(pod)
        snapshot = slurm if isinstance(slurm, Snapshot) else None
        found = snapshot.nodes.get(slurm_node) if snapshot is not None else None
        record = found if found is not None and is_record_of(found, pod) else None
        is_busy = snapshot is not None and slurm_node in snapshot.jobs_by_node  # Mostly nobody is.
        return cls(
            pod,
            slurm_node,
            slurm,
            state_lost_since,
            nodeset=nodeset,
            kube_node=kube_node,
            ordinal=identity.ordinal_of(pod, nodeset),
            uid=pod.metadata.uid,
            revision=revision,
            is_terminating=pod.metadata.is_terminating,
            is_ready=pod.is_ready,
            record=record,
            drain=OurReason.read(record.reason) if record is not None and record.state.is_drain else None,
            jobs=jobs_on(slurm_node, snapshot) if snapshot is not None and is_busy else (),
            newest_made_at=newest_made_at,
        )

    @property
    def name(self) -> str:
        return self.pod.metadata.name

    @property
    def mode(self) -> ScalingMode:
        return identity.mode_of(self.pod)

    @property
    def is_renamed(self) -> bool:
        """Slurm will know the next worker of its number by another name."""
        return identity.is_renamed(self.pod, self.nodeset)

    @property
    def ready_changed_at(self) -> datetime | None:
        """When it became ready, or stopped being so."""
        ready = self.pod.status.condition("Ready")
        return ready.last_transition_time if ready is not None else None

    def ready_again_in(self, now: datetime) -> timedelta:
        """How long an unready worker is waited for. Nothing may tell when that is over."""
        since = self.ready_changed_at
        return since + UNREADY_FOR - now if since is not None else timedelta(0)

    def ends_within(self, seconds: int) -> bool:
        """It is terminating, and will not wait for its jobs much longer."""
        return self.is_terminating and (self.pod.metadata.deletion_grace_period_seconds or 0) <= seconds

    @property
    def is_retired(self) -> bool:
        """Its record was to be removed from Slurm, so it never takes a job again."""
        return self.pod.metadata.annotations.get(names.POD_RETIRED) == self.uid

    @property
    def namesake(self) -> SlurmNode | None:
        """Slurm's record of this name, whichever pod it is about."""
        return self.slurm.nodes.get(self.slurm_node) if isinstance(self.slurm, Snapshot) else None

    @property
    def has_created_record(self) -> bool:
        """Slurm has a record of its name that was there before it, and may have given it a job."""
        return self.nodeset.spec.records is not Records.REGISTERED and self.namesake is not None

    @property
    def last_record(self) -> SlurmNode | None:
        """Slurm's record of this very worker, also while its slurmd has crashed and is not up again."""
        found = self.namesake
        if self.record is not None or found is None:
            return self.record
        return found if is_record_of_crashed_worker(found, self) else None

    @property
    def known_record(self) -> SlurmNode | None:
        """Its record to tell of, also while slurmctld has forgotten when its slurmd started.

        It forgets that at every reconfigure and restart, until slurmd has registered again. The address is
        this pod's own, which says enough for a status, and nothing to the gate.
        """
        if self.record is not None:  # Nearly always, and this is asked of thousands.
            return self.record
        found = self.namesake
        if found is None or found.slurmd_start_time is not None or self.has_crashed or not self._has_started:
            return None
        return found if registers_from(found.address, self.pod) else None

    @property
    def _has_started(self) -> bool:
        """Its slurmd ran at least once, as its kubelet says: before that there was nothing to forget."""
        return self.slurmd is not None and self.slurmd.has_ever_started

    @property
    def is_drained_itself(self) -> bool:
        """Our drain is about this very pod, and not about an earlier one of its name."""
        ours = self.drain
        return ours is not None and ours.is_about(self.uid, self.pod.metadata.creation_timestamp)

    @property
    def has_remains(self) -> bool:
        """Slurm has a record at this pod's address, though no slurmd may be running there any more."""
        found = self.namesake
        return found is not None and bool(found.address) and found.address == self.pod.status.pod_ip

    @property
    def is_registered(self) -> bool:
        return self.record is not None

    def is_available(self, now: datetime, min_ready_seconds: int) -> bool:
        """Ready for long enough."""
        if not self.is_ready or self.is_terminating:
            return False
        if not min_ready_seconds:
            return True
        since = self.ready_changed_at
        return since is not None and now - since >= timedelta(seconds=min_ready_seconds)

    @property
    def deadline(self) -> datetime | None:
        """When its last job ends at the latest: None when idle, the end of time when one may run forever."""
        jobs = self.jobs  # Mostly none, and this is asked of thousands.
        return max(job.deadline or FOREVER for job in jobs) if jobs else None

    @property
    def is_user_cordoned(self) -> bool:
        return self.pod.metadata.annotations.get(names.POD_CORDON) == "true" and not self.has_others_cordon

    @property
    def has_others_cordon(self) -> bool:
        """Not a user but the operator before us cordoned the pod, for a cause that its drain tells."""
        record = self.record
        if names.POD_CORDON not in self.pod.metadata.annotations or record is None:
            return False
        return record.state.is_drain and is_cordoned_by_operator(record.reason)

    @property
    def is_node_cordoned(self) -> bool:
        return self.kube_node is not None and self.kube_node.spec.unschedulable


FOREVER = datetime(9999, 12, 31, tzinfo=UTC)
