"""What an object cannot do without, and the words for its absence."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from slurm_operator import wire
from slurm_operator.api.shared import belonging, keys, names
from slurm_operator.api.shared.auth import Auth, AuthType, type_of
from slurm_operator.api.shared.meta import Meta
from slurm_operator.api.shared.refs import SecretKey
from slurm_operator.api.slinky import key_secrets
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.conditions import Reason
from slurm_operator.listing import first_few
from slurm_operator.manifests.builders.key_ring import name_of, ring_of
from slurm_operator.manifests.kinds import CONFIG_MAP
from slurm_operator.manifests.objects import Pod, Secret, Unread
from slurm_operator.manifests.secrets import SecretHandle
from slurm_operator.plan.actions import Wait
from slurm_operator.plan.world import OWNER, World

# The first line of slurm.conf about it is ours.
_AUTH_TYPE: Final = re.compile(r"^AuthType=auth/(slurm|munge)$", re.MULTILINE)

# So many Controllers are named to somebody who named one that is not there.
CONTROLLERS_TOLD: Final = 8

# Whoever makes an object makes its Controller in the same moment, and either of them may be seen first.
FOLLOWS_WITHIN: Final = timedelta(seconds=5)


class Need(wire.Record):
    """Something that is missing. Either it `comes` without help, or somebody has to do something about it.

    `look_again`: when that it does not come would be known, and nothing tells.
    """

    subject: str
    reason: Reason
    message: str
    comes: bool = False
    look_again: timedelta | None = None

    @property
    def wait(self) -> Wait:
        return Wait(subject=self.subject, reason=self.reason, message=self.message)


def secret_value(world: World, namespace: str, ref: SecretKey, field: str) -> SecretHandle | Need:
    """One entry of a Secret that `field` of a manifest names, or what is wrong with it."""
    return value_in(world.secret(namespace, ref.name), namespace, ref, field)


def value_in(
    found: Secret | Unread | None, namespace: str, ref: SecretKey, field: str
) -> SecretHandle | Need:
    """The same, of a Secret that was looked for."""
    where = f"Secret {ref.name!r} in namespace {namespace!r}"
    match found:
        case None:
            return _need(
                ref, Reason.SECRET_NOT_FOUND, f"waiting for {where}, which {field} names: there is none yet."
            )
        case Unread(why=why):
            return _need(ref, Reason.SECRET_UNREAD, f"waiting for {where}, which cannot be read: {why}.")
        case Secret(digests=digests) if ref.key not in digests:
            entries = ", ".join(sorted(digests)) or "none"
            message = f"{where} has no entry {ref.key!r} (it has: {entries}). Correct {field}.key, or add it."
            return _need(ref, Reason.SECRET_ENTRY_NOT_FOUND, message)
        case Secret(digests=digests):
            return SecretHandle(namespace=namespace, name=ref.name, key=ref.key, digest=digests[ref.key])


def generated_value(world: World, namespace: str, ref: SecretKey, whose: str) -> SecretHandle | Need:
    """One entry of a Secret that somebody among us generates; until then it is on its way."""
    found = secret_value(world, namespace, ref, whose)
    if isinstance(found, Need) and found.reason == Reason.SECRET_NOT_FOUND:
        message = f"waiting for Secret {ref.name!r}, which is generated for {whose}."
        return wire.replace(found, reason=Reason.KEY_NOT_YET_GENERATED, message=message, comes=True)
    return found


def controller(world: World, meta: Meta, name: str, kind: str) -> Controller | Need:
    """The Controller that an object names, or what to do about its absence."""
    found = world.get(Controller, meta.namespace, name)
    if found is not None:
        return with_shared_keys(found, world)
    subject, left = f"Controller {name}", _may_follow_for(meta, world.now)
    absent = f"waiting for Controller {name!r}: there is none in namespace {meta.namespace!r}"
    if left is not None:
        message = f"{absent} yet."
        return Need(
            subject=subject, reason=Reason.CONTROLLER_MAY_FOLLOW, message=message, comes=True, look_again=left
        )
    message = (
        f"{absent}; {listed_controllers(known_controllers(world, meta.namespace))} "
        "Pods start as soon as there is one; if the name is a typo, correct spec.controllerRef, or create "
        f"the {kind} again."
    )
    return Need(subject=subject, reason=Reason.CONTROLLER_NOT_FOUND, message=message)


def known_controllers(world: World, namespace: str) -> tuple[str, ...]:
    return tuple(one.metadata.name for one in world.all(Controller, namespace))


def listed_controllers(found: Sequence[str]) -> str:
    """Those that somebody may have meant, in words."""
    return f"there are: {first_few(found, CONTROLLERS_TOLD)}." if found else "there is no other."


def _may_follow_for(meta: Meta, now: datetime) -> timedelta | None:
    """For how long what an object names may still be made together with it."""
    made_at = meta.creation_timestamp
    left = made_at + FOLLOWS_WITHIN - now if made_at is not None else timedelta(0)
    # By a clock that is ahead of ours it may be made minutes from now.
    return left if timedelta(0) < left <= FOLLOWS_WITHIN else None


def look_again(needs: Iterable[Need]) -> timedelta | None:
    """When the first of them has not come."""
    return min((need.look_again for need in needs if need.look_again is not None), default=None)


def with_shared_keys(of: Controller, world: World) -> Controller:
    """The Controller as if it named the keys that its Accounting names: they only work with the same ones."""
    there = world.get(Accounting, of.metadata.namespace, of.spec.accounting) if of.spec.accounting else None
    if is_auth_held(of, world):
        of = _with_other_auth(of, _asked_auth(of, world) or Auth())
    if there is None:
        return of
    spec = of.spec
    if spec.auth is None and there.spec.auth is not None:
        spec = wire.replace(spec, auth=there.spec.auth)
    if spec.slurm_key_ref is None and there.spec.slurm_key_ref is not None:
        spec = wire.replace(spec, slurm_key_ref=there.spec.slurm_key_ref)
    if keys.signing_key(spec) is None and keys.signing_key(there.spec) is not None:
        spec = wire.replace(spec, jwt_key_ref=keys.signing_key(there.spec))
    return of if spec is of.spec else wire.replace(of, spec=spec)


def is_auth_held(of: Controller, world: World) -> bool:
    """Whether its spec asks for another authentication than its daemons have, and there are workers.

    Daemons of two sorts do not understand each other, and a step that runs could never report its end. So
    everything goes on as it was until the last worker is gone.
    """
    return _asks_for_other_auth(of, world) and _has_workers(of, world)


def is_auth_changing(of: Controller, world: World) -> bool:
    """Whether slurm.conf is about to get another authentication, now that no worker is in the way.

    A worker that is made before that would hold it up, and slurmctld would not understand it.
    """
    return _asks_for_other_auth(of, world) and not _has_workers(of, world)


def _asks_for_other_auth(of: Controller, world: World) -> bool:
    child = world.child(CONFIG_MAP, of.metadata.namespace, of.child_names.config)
    text = (child.body.get("data") or {}).get("slurm.conf", "") if child is not None else ""
    found = _AUTH_TYPE.search(text)
    return found is not None and found[1] != type_of(_asked_auth(of, world))


def _has_workers(of: Controller, world: World) -> bool:
    return any(not pod.has_ended for pod in _workers_of(of, world))


def _workers_of(of: Controller, world: World) -> Iterator[Pod]:
    """Workers of its NodeSets, and those whose NodeSet is gone, which may have jobs as well."""
    namespace, name = of.metadata.namespace, of.metadata.name
    for nodeset in world.all(NodeSet, namespace):
        if nodeset.spec.controller == name:
            yield from world.find(Pod, OWNER, nodeset.metadata.uid)
    for pod in world.all(Pod, namespace):
        labels = pod.metadata.labels
        if labels.get(names.LABEL_CLUSTER) == name and belonging.daemon_of(labels) == "slurmd":
            yield pod


def _asked_auth(of: Controller, world: World) -> Auth | None:
    """As its spec says, else as its Accounting's does."""
    if of.spec.auth is not None or not of.spec.accounting:
        return of.spec.auth
    there = world.get(Accounting, of.metadata.namespace, of.spec.accounting)
    return there.spec.auth if there is not None else None


def _with_other_auth(of: Controller, asked: Auth) -> Controller:
    other = AuthType.SLURM if asked.type is AuthType.MUNGE else AuthType.MUNGE
    return wire.replace(of, spec=wire.replace(of.spec, auth=wire.replace(asked, type=other)))


def controllers_slurm_key(world: World, of: Controller) -> SecretHandle | Need:
    """The key that the daemons of a Controller trust each other by."""
    whose = f"Controller {of.metadata.name!r}"
    return generated_value(world, of.metadata.namespace, key_secrets.slurm_key(of), whose)


def key_ring(world: World, of: Controller) -> Need | None:
    """What keeps pods from having all Slurm keys; where slurmctld is not ours there is only the one."""
    name = name_of(key_secrets.slurm_key(of).name)
    if of.spec.external or ring_of(world.secret(of.metadata.namespace, name)) is not None:
        return None
    message = f"waiting for Secret {name!r}, which is made for Controller {of.metadata.name!r}."
    return Need(subject=f"Secret {name}", reason=Reason.KEY_NOT_YET_GENERATED, message=message, comes=True)


def slurm_key_hash(world: World, namespace: str, ref: SecretKey) -> str:
    """Changes when a daemon that reads Slurm keys only when it starts has to be restarted.

    While a key is changed that is when the ring says so, and else when the key does.
    """
    ring = ring_of(world.secret(namespace, name_of(ref.name)))
    if ring is not None:
        return ring.hash
    found = world.secret(namespace, ref.name)
    return found.digests.get(ref.key, "") if isinstance(found, Secret) else ""


def _need(ref: SecretKey, reason: Reason, message: str) -> Need:
    return Need(subject=f"Secret {ref.name}", reason=reason, message=message)
