"""How to watch named objects with few connections: one by one, a namespace, or the whole cluster.

Every watch is a connection. One by one we are told nothing that is not ours; a wider watch tells the names,
never the content, of everything of that kind. So it is used only when there would be too many otherwise.
"""

from collections import Counter
from collections.abc import Collection, Set

from slurm_operator.api.shared.meta import ObjectKey

# One object; with an empty name a whole namespace; with both empty the whole cluster.
Scope = ObjectKey

CLUSTER = Scope("", "")
# More named objects than this in a namespace, and it is watched as a whole.
HANDFUL = 4
# More connections than this, and the cluster is watched as a whole.
MOST_CONNECTIONS = 64


def watched_scopes(wanted: Collection[ObjectKey], now: Set[Scope], refused: Set[Scope]) -> set[Scope]:
    """What to watch. What is watched widely stays so while anything in it is wanted, so nothing flaps;
    what the server refused (our rights may cover a namespace, or single names only) is not tried again.
    """
    chosen = _by_namespace(wanted, now, refused, HANDFUL)
    if len(chosen) <= MOST_CONNECTIONS and CLUSTER not in now:
        return chosen
    if CLUSTER in refused:
        return _by_namespace(wanted, now, refused, 1)
    return {CLUSTER} if wanted else set()


def scope_of(key: ObjectKey, among: Set[Scope]) -> Scope | None:
    """The scope that covers this object."""
    candidates = (key, Scope(key.namespace, ""), CLUSTER)
    return next((scope for scope in candidates if scope in among), None)


def _by_namespace(
    wanted: Collection[ObjectKey], now: Set[Scope], refused: Set[Scope], handful: int
) -> set[Scope]:
    counts = Counter(key.namespace for key in wanted)
    wide = {
        namespace
        for namespace, count in counts.items()
        if (count > handful or Scope(namespace, "") in now) and Scope(namespace, "") not in refused
    }
    return {Scope(key.namespace, "") if key.namespace in wide else key for key in wanted}
