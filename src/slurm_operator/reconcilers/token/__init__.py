"""Token: a Slurm JWT in a Secret, signed again before it expires."""

from collections.abc import Iterator

from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.token import Token
from slurm_operator.plan.reconciler import Reconciler, Wake
from slurm_operator.plan.world import World
from slurm_operator.reconcilers.token.decide import decide
from slurm_operator.reconcilers.token.observe import Seen, observe
from slurm_operator.reconcilers.token.status import status


def tokens_of(controller: Controller, world: World) -> Iterator[ObjectKey]:
    """Tokens that are signed with this Controller's key."""
    for token in world.all(Token, controller.metadata.namespace):
        ref = token.spec.controller_ref
        if ref is not None and ref.name == controller.metadata.name:
            yield key_of(token)


# The signing key and the Secret that holds the token are asked for by name, so their changes wake us too.
RECONCILER = Reconciler[Seen](
    name="token",
    kind=Token.KIND,
    about=Token,
    observe=observe,
    decide=decide,
    status=status,
    wakes=(Wake(Controller, tokens_of),),
)
