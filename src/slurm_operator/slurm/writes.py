"""What can be asked of a Slurm cluster, and what comes of it. Data: nothing happens until it is sent.

There is no compare-and-set in Slurm, so a write says what it may touch: a drain or a resume leaves every node
alone whose reason is neither ours nor named in `over`, and whoever sends it reads the nodes right before.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum

from slurm_operator import wire

# Names that slurmrestd understands, without KILL: to end a job is CancelJob.
SIGNALS = (
    "HUP",
    "INT",
    "QUIT",
    "ABRT",
    "ALRM",
    "TERM",
    "USR1",
    "USR2",
    "URG",
    "CONT",
    "STOP",
    "TSTP",
    "XCPU",
)


class DrainNodes(wire.Record, tag="DrainNodes"):
    """No new job on these nodes. A node that already drains keeps its reason and the time it was given.

    `over` are reasons, word for word, that may be replaced all the same: slurmctld's own about a node that it
    lost, and ours when it has become untrue.
    `unless_in_use` spares a node that takes jobs again: it was only chosen because it took none.
    """

    nodes: tuple[str, ...]
    reason: str
    over: frozenset[str] = frozenset()
    unless_in_use: bool = False


class ResumeNodes(wire.Record, tag="ResumeNodes"):
    """Lift our own drain from these nodes, and those whose reason stands in `over`, word for word.

    With `from_down` also what made slurmctld give them up: it keeps a node DOWN until somebody says so.
    """

    nodes: tuple[str, ...]
    over: frozenset[str] = frozenset()
    from_down: bool = False


class UpdateNodes(wire.Record, tag="UpdateNodes"):
    """Set fields of these nodes; None leaves a field as it is. Not for states: a drain has its own verbs.

    A comment is set where there is none, or the one that stands in `comment_over`, word for word. Features
    are set where those without our prefix stay the same.
    """

    nodes: tuple[str, ...]
    comment: str | None = None
    comment_over: str = ""
    extra: str | None = None
    features: tuple[str, ...] | None = None
    active_features: tuple[str, ...] | None = None
    topology: str | None = None
    weight: int | None = None
    gres: str | None = None


class SetNodesDown(wire.Record, tag="SetNodesDown"):
    """These nodes are gone, so slurmctld **ends or requeues their jobs**. Only where no process is left."""

    nodes: tuple[str, ...]
    reason: str
    over: frozenset[str] = frozenset()


class ExplainNodes(wire.Record, tag="ExplainNodes"):
    """Say why these nodes are down, in place of a reason that stands in `over`, word for word.

    No state changes. A node that is up by now, or of which somebody else has said something, is left alone.
    """

    nodes: tuple[str, ...]
    reason: str
    over: frozenset[str] = frozenset()


class PowerNodes(wire.Record, tag="PowerNodes"):
    """Power these nodes up, or down once they are idle."""

    nodes: tuple[str, ...]
    up: bool


class DeleteNodes(wire.Record, tag="DeleteNodes"):
    """Remove these records. slurmctld refuses while a job is there; what people drained is left alone."""

    nodes: tuple[str, ...]


class AddNodes(wire.Record, tag="AddNodes"):
    """Records before any slurmd registers. `conf` is what a line of slurm.conf says behind the names.

    A record that is there already is left as it is.
    """

    nodes: tuple[str, ...]
    conf: str


class Reconfigure(wire.Record, tag="Reconfigure"):
    """Read the configuration files again. Several within a short time become one."""


class Reserve(wire.Record, tag="Reserve"):
    """Make the reservation, or change the one of that name; None leaves a time as it is.

    slurmctld takes no new start for a reservation that is under way.
    """

    name: str
    nodes: tuple[str, ...]
    start_time: datetime | None
    duration: timedelta | None
    users: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


class Unreserve(wire.Record, tag="Unreserve"):
    name: str


class UpdateJob(wire.Record, tag="UpdateJob"):
    """Set fields of a job; None leaves a field as it is. `admin_comment` is how its owner is told.

    Here an id means this job alone, also where it is that of a whole array or heterogeneous job (seen).
    """

    job_id: int
    admin_comment: str | None = None
    comment: str | None = None
    extra: str | None = None
    excluded_nodes: tuple[str, ...] | None = None
    hold: bool | None = None


class SignalJob(wire.Record, tag="SignalJob"):
    """Send a signal to a job, by its name without SIG. What does not know the signal ends on most of them.

    The name is checked here, because slurmrestd answers an unknown one by cancelling the job.
    """

    job_id: int
    address: str
    signal: str

    def __post_init__(self) -> None:
        if self.signal not in SIGNALS:
            raise ValueError(f"{self.signal!r} is none of {', '.join(SIGNALS)}")


class RequeueJob(wire.Record, tag="RequeueJob"):
    """Back into the queue: what it computed since its last checkpoint is lost.

    `address` is what slurmctld is told, as for signals and cancellations: an id may mean more than this job.
    """

    job_id: int
    address: str
    hold: bool = False


class CancelJob(wire.Record, tag="CancelJob"):
    """End a job. Only ever because a user asked for exactly that."""

    job_id: int
    address: str


NodeWrite = (
    DrainNodes | ResumeNodes | UpdateNodes | SetNodesDown | ExplainNodes | PowerNodes | DeleteNodes | AddNodes
)
JobWrite = UpdateJob | SignalJob | RequeueJob | CancelJob
SlurmWrite = NodeWrite | JobWrite | Reconfigure | Reserve | Unreserve


class Verdict(StrEnum):
    """What became of a write, for one node, job or reservation."""

    DONE = "Done"
    ALREADY = "Already"  # It was so before, and nothing was sent.
    FOREIGN = "Foreign"  # Somebody else's drain or reason; left alone.
    UNKNOWN = "Unknown"  # Slurm does not know this name.
    REFUSED = "Refused"  # Slurm said no.
    UNSURE = "Unsure"  # No answer: it may have happened, or may yet.
    NOT_SENT = "NotSent"  # We held it back, or never reached Slurm.
    LATE = "Late"  # There was no time for it, or no longer a cause; it may be asked for again.


class Answer(wire.Record):
    """The verdict, and a sentence for people where it is not plainly done."""

    verdict: Verdict
    message: str = ""

    @property
    def is_good(self) -> bool:
        """What was asked for is so now."""
        return self.verdict in (Verdict.DONE, Verdict.ALREADY)


class WriteResult(wire.Record):
    """An answer for every subject of the write: node and reservation names, job ids as text, `slurmctld`."""

    answers: Mapping[str, Answer]

    @property
    def is_good(self) -> bool:
        return all(answer.is_good for answer in self.answers.values())

    @property
    def is_late(self) -> bool:
        """Nothing went wrong, but it was not done either."""
        return any(answer.verdict is Verdict.LATE for answer in self.answers.values())

    @property
    def problems(self) -> dict[str, Answer]:
        return {subject: answer for subject, answer in self.answers.items() if not answer.is_good}


def subjects(write: SlurmWrite) -> tuple[str, ...]:
    """What the write is about; the keys of its result."""
    match write:
        case DrainNodes() | ResumeNodes() | UpdateNodes() | SetNodesDown() | ExplainNodes():
            return write.nodes
        case PowerNodes() | DeleteNodes() | AddNodes():
            return write.nodes
        case UpdateJob() | SignalJob() | RequeueJob() | CancelJob():
            return (str(write.job_id),)
        case Reserve() | Unreserve():
            return (write.name,)
        case Reconfigure():
            return ("slurmctld",)
