"""Why something is as it is: from the symptom to the root cause, in the operator's own words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from slurm_operator import wire
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.insight.collect import Unseen, is_whole
from slurm_operator.insight.world_snapshot import Picture
from slurm_operator.plan.reconciler import Reconciler
from slurm_operator.slurm.accounting import AccountedJob
from slurm_operator.slurm.jobs.detail import JobDetail


class Link(wire.Record):
    """One thing in the chain, and what is the matter with it."""

    subject: str
    says: str


class Remedy(wire.Record):
    """What to do about the last link, and the commands that come next."""

    advice: str
    commands: tuple[str, ...] = ()


class Finding(wire.Record):
    """Links from a symptom to its cause. Without a remedy nothing has to be done.

    One that `needs_nothing` has advice for whoever wants it sooner or otherwise, and nothing is wrong.
    """

    chain: tuple[Link, ...] = ()
    remedy: Remedy | None = None
    needs_nothing: bool = False

    @property
    def is_well(self) -> bool:
        return self.remedy is None or self.needs_nothing

    def after(self, *links: Link) -> "Finding":
        """The same, as the cause of these."""
        return Finding(chain=(*links, *self.chain), remedy=self.remedy, needs_nothing=self.needs_nothing)


class Explanation(wire.Record):
    """What `kubectl slurm explain` says. `meanwhile` is what the operator does or waits for."""

    subject: str
    is_well: bool
    summary: str
    chain: tuple[Link, ...] = ()
    remedy: Remedy | None = None
    meanwhile: tuple[str, ...] = ()
    unseen: tuple[Unseen, ...] = ()


class NotThere(Exception):  # noqa: N818 - it says what is the case
    """There is no such thing to explain; the message says what there is."""


@dataclass(frozen=True)
class Case:
    """What explanations are made of: a picture, those who judge it, and who asks."""

    picture: Picture
    reconcilers: Sequence[Reconciler[Any]]
    namespace: str
    user: str = ""  # Who asks, as the API server knows them; empty where nobody could say.
    unseen: tuple[Unseen, ...] = ()
    is_operator_away: bool = False
    jobs: Mapping[ObjectKey, tuple[JobDetail, ...]] = field(
        default_factory=dict
    )  # Where somebody asked for one.
    booked: Mapping[ObjectKey, tuple[AccountedJob, ...]] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether the reader sees what the operator sees."""
        return is_whole(self.unseen)

    def is_forbidden(self, *rights: str) -> bool:
        """Whether the reader lacks one of these rights, such as `list pods`."""
        return any(one.right.startswith(rights) for one in self.unseen if one.right)

    def kubectl(self, words: str) -> str:
        return f"kubectl -n {self.namespace} {words}"

    def kubectl_slurm(self, words: str) -> str:
        return f"kubectl slurm {words} -n {self.namespace}"


def explained(subject: str, finding: Finding, meanwhile: Sequence[str] = (), well: str = "") -> Explanation:
    """A finding as an answer. The first link is the symptom, and so the summary."""
    first = finding.chain[0].says if finding.chain else well
    told = " ".join(link.says for link in finding.chain)
    return Explanation(
        subject=subject,
        is_well=finding.is_well,
        summary=first or "It is healthy.",
        chain=finding.chain[1:],
        remedy=finding.remedy,
        meanwhile=tuple(one for one in meanwhile if one.partition(": ")[2] not in told),
    )
