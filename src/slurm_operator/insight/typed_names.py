"""Names as people type them: short ones, those of `kubectl get -o name`, and mistyped ones."""

import difflib
from collections.abc import Iterable, Mapping

# Of Kubernetes itself, and as everybody abbreviates them.
_SHORT: Mapping[str, str] = {"po": "pod", "pods": "pod", "no": "node", "nodes": "node", "jobs": "job"}

# What may stand before the name of a whole cluster.
_CLUSTER_WORDS = frozenset(
    {
        *("cluster", "clusters", "scl", "slurmcluster", "slurmclusters"),
        *("controller", "controllers", "slurmctld"),
    }
)


def did_you_mean(typed: str, known: Iterable[str]) -> str:
    """A question for somebody who mistyped a name; empty when nothing is like it."""
    near = difflib.get_close_matches(typed.lower(), sorted(known), n=3, cutoff=0.7)
    return f" Did you mean {' or '.join(near)}?" if near else ""


def of_kubernetes(word: str) -> str:
    """`po` is `pod`; any other word stays as it is."""
    return _SHORT.get(word.lower(), word.lower())


def cluster_name(typed: str) -> str:
    """`demo`, `slurm/demo`, `cluster/demo` and `cluster.slinky.slurm.net/demo`: as `slurm/demo` or `demo`."""
    kind, slash, name = typed.partition("/")
    return name if slash and kind.lower().partition(".")[0] in _CLUSTER_WORDS else typed
