"""Secrets that are made once: a lost one is not made again while somebody still uses the old one."""

from collections.abc import Iterable, Iterator

from slurm_operator import wire
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared import names
from slurm_operator.api.shared.refs import SecretKey
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.conditions import Reason
from slurm_operator.manifests import kinds
from slurm_operator.manifests.secrets import SecretHandle
from slurm_operator.plan.world import World
from slurm_operator.reconcilers.shared import dependencies
from slurm_operator.reconcilers.shared.dependencies import Need

User = tuple[Kind, str]


def made_once(
    world: World, namespace: str, ref: SecretKey, whose: str, users: Iterable[User]
) -> SecretHandle | Need:
    """One entry of a generated Secret; without it, whether it is still to be made or was lost."""
    found = dependencies.generated_value(world, namespace, ref, whose)
    if not isinstance(found, Need) or found.reason != Reason.KEY_NOT_YET_GENERATED:
        return found
    for kind, name in users:
        if world.child(kind, namespace, name) is not None:
            message = (
                f"Secret {ref.name!r} is gone, and {kind.kind} {name!r} goes on with what was in it. "
                f"Put it back from a copy; to start over, delete {kind.kind} {name!r}."
            )
            return wire.replace(found, reason=Reason.KEY_LOST, message=message, comes=False)
    return found


def users_of_keys(accounting: Accounting, world: World) -> Iterator[User]:
    """Daemons that were started with the keys of this Accounting."""
    namespace, name = accounting.metadata.namespace, accounting.metadata.name
    yield kinds.STATEFUL_SET, accounting.child_names.workload
    for controller in world.all(Controller, namespace):
        if controller.spec.accounting == name:
            yield kinds.STATEFUL_SET, controller.child_names.workload


def users_of_password(accounting: Accounting) -> Iterator[User]:
    """The data of a MariaDB know the password that they were made with, and no other."""
    name = names.database_workload(accounting.metadata.name)
    yield kinds.STATEFUL_SET, name
    yield kinds.PERSISTENT_VOLUME_CLAIM, name
