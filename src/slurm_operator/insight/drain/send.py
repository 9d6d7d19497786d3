"""Sends what `drain` and `undrain` decided, and looks at what came of it."""

from collections.abc import Callable, Mapping, Sequence

from slurm_operator.clock import SystemClock
from slurm_operator.insight.drain.decide import Decision, Outcome, outcomes
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurm.writes import Answer, DrainNodes, ResumeNodes, Verdict
from slurm_operator.slurmrest.client import SlurmRest
from slurm_operator.slurmrest.errors import SlurmFailure
from slurm_operator.slurmrest.sender import few_names, node_fields
from slurm_operator.slurmsync.pending_writes import Ledger
from slurm_operator.slurmsync.poller import SlurmPoller
from slurm_operator.slurmsync.results import answer_to, for_all

Decide = Callable[[Mapping[str, SlurmNode]], Decision]


async def carry_out(rest: SlurmRest, wanted: Sequence[str], decide: Decide) -> list[Outcome]:
    """What became of each node. Raises SlurmFailure when Slurm cannot even be asked."""
    listing = await rest.read.nodes()
    assert listing is not None, "only a list asked for with a mark may be unchanged"
    decision = decide(listing.records)
    answers = dict(decision.answers)
    if decision.write is not None:
        answers |= await _sent(rest, decision.write)
    return outcomes(wanted, answers, await _after(rest))


async def _sent(rest: SlurmRest, write: DrainNodes | ResumeNodes) -> dict[str, Answer]:
    verb = "drain" if isinstance(write, DrainNodes) else "undrain"
    try:
        await rest.send.update_nodes(f"{verb} {few_names(write.nodes)}", write.nodes, node_fields(write))
    except SlurmFailure as failure:
        return dict.fromkeys(write.nodes, answer_to(failure))
    return for_all(write.nodes, Verdict.DONE)


async def _after(rest: SlurmRest) -> Snapshot | None:
    """Nodes and jobs as they are now; None when Slurm went away meanwhile."""
    poller = SlurmPoller(rest, SystemClock(), Ledger())
    await poller.poll()
    facts = poller.latest()
    return facts if isinstance(facts, Snapshot) else None
