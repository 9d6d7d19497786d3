"""Which records stand at a switch or block that a new topology lacks. While one does, the new files wait.

slurmctld ends at the next reconfigure or start when a record names a place that it cannot find, and does not
start again (seen on 26.05.5). A rehearsal has other records, and does not notice. Records of lines in
slurm.conf count by their line, which a rehearsal has too.
"""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime

from slurm_operator.api.shared import names
from slurm_operator.listing import first_few
from slurm_operator.reconcilers.controller.configuration.files import Files
from slurm_operator.reconcilers.controller.configuration.jobs_at_risk import (
    is_first_of_taken_over,
    may_have_jobs,
    unseen,
)
from slurm_operator.reconcilers.controller.observe import Seen
from slurm_operator.slurm.conf.networks import Network, lost, missing, networks
from slurm_operator.slurm.hostlist import compress
from slurm_operator.slurm.snapshot import Snapshot

_LACKS_TOLD = 5


def places_in_use(seen: Seen, new: Files) -> str:
    """What the new files lack and who names it; empty when nobody does, as far as Slurm was read."""
    if not isinstance(seen.slurm, Snapshot):
        return ""
    if not (found := named_in_vain(seen.slurm, networks(new.texts))):
        return ""
    every = sorted({name for slurm_nodes in found.values() for name in slurm_nodes})
    told = [f"{lack} ({compress(slurm_nodes)})" for lack, slurm_nodes in found.items()]
    return (
        f"The new topology lacks what Slurm nodes name: {first_few(told, _LACKS_TOLD)}. slurmctld would end "
        "with it and not start again, so nothing of the new configuration is used until no node names that. "
        f"Put it back, or move the nodes first: change or remove the annotation {names.TOPOLOGY} of their "
        f"Kubernetes nodes, or run `scontrol update nodename={compress(every)} topology=PLACE`."
    )


def named_in_vain(slurm: Snapshot, known: Mapping[str, Network]) -> dict[str, list[str]]:
    """What the topologies lack, and the Slurm nodes whose records name it."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name, record in sorted(slurm.nodes.items()):
        if record.topology and record.state.is_dynamic:
            for lack in missing(known, record.topology):
                found[lack].append(name)
    return dict(sorted(found.items()))


def places_unseen(seen: Seen, old: Files, new: Files, now: datetime) -> str:
    """Why nobody can tell whether a record names what the new files lack; empty when they lack nothing.

    Another operator had its topology in a file of its own, and whoever writes ours keeps what records name.
    """
    if is_first_of_taken_over(seen):
        return ""
    if not may_have_jobs(seen) or not (lacks := lost(networks(new.texts), networks(old.texts))):
        return ""
    if not (trouble := unseen(seen, now)):
        return ""
    return (
        f"The new topology lacks {first_few(lacks, _LACKS_TOLD)}. slurmctld would end with it if a Slurm "
        f"node names that, and whether one does {trouble}."
    )
