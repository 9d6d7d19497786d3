"""What is missing of an Accounting's objects, in which order, and what it waits for."""

from collections.abc import Iterator
from datetime import datetime

from slurm_operator.api.shared import keys, names
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.slinky import key_secrets
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.conditions import Reason
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.objects import Secret
from slurm_operator.manifests.secrets import SecretHandle
from slurm_operator.plan.actions import Action, DeleteObject, GenerateSecret, Wait
from slurm_operator.plan.plan import Lane, Plan, lane, plan
from slurm_operator.reconcilers.accounting import database, desired, password_stamp
from slurm_operator.reconcilers.accounting.observe import OWNED, Seen
from slurm_operator.reconcilers.shared.children import missing_among, missing_secret, surplus
from slurm_operator.reconcilers.shared.deletion_hold import holding
from slurm_operator.reconcilers.shared.dependencies import Need

SLURM_KEY_BYTES = 1024
JWT_KEY_BYTES = 32
MUNGE_KEY_BYTES = 1024
PASSWORD_BYTES = 24

COST_OF_FORCE = "slurmdbd ends at once, and jobs that go on are recorded only when there is one again"


def decide(seen: Seen, now: datetime) -> Plan:
    meta = seen.accounting.metadata
    dependents = [f"Controller {controller.metadata.name}" for controller in seen.controllers]
    steps = holding(Accounting.KIND, meta, dependents, cost=COST_OF_FORCE)
    held = lane("holding", steps)
    if meta.is_terminating and not any(isinstance(step, Wait) for step in steps):
        return plan(held)
    if meta.is_terminating:
        return plan(held, *_missed(seen))  # What runs stays as it is until nobody needs it.
    if seen.is_external:
        return plan(held, lane("leftovers", leftovers(seen, [])))
    mariadb = mariadb_objects(seen)
    service = desired.service(seen.accounting)
    return plan(
        held,
        lane("keys", missing_keys(seen)),
        lane("service", missing_among([service], seen.children)),
        lane("mariadb", missing_password(seen), missing_among(mariadb, seen.children)),
        slurmdbd(seen),
        lane("leftovers", leftovers(seen, [service, *mariadb]) if seen.knows_stamp else []),
    )


def _missed(seen: Seen) -> Iterator[Lane]:
    """What somebody else deleted, or what could not be made before, and slurmctld does not start without."""
    if seen.is_external:
        return
    yield lane("keys", missing_keys(seen))
    yield lane("service", missing_among(_absent([desired.service(seen.accounting)], seen), seen.children))
    mariadb = _absent(mariadb_objects(seen), seen)
    yield lane("mariadb", missing_password(seen), missing_among(mariadb, seen.children))
    if (kinds.STATEFUL_SET, names.accounting_workload(seen.name)) not in seen.children:
        yield slurmdbd(seen)


def _absent(manifests: list[Manifest], seen: Seen) -> list[Manifest]:
    return [one for one in manifests if (kinds.kind_of(one), one["metadata"]["name"]) not in seen.children]


def missing_keys(seen: Seen) -> Iterator[GenerateSecret]:
    """Keys that the manifest does not name and that are not there yet."""
    accounting, spec = seen.accounting, seen.accounting.spec
    if spec.slurm_key_ref is None and _is_absent(seen.slurm_key):
        ref = key_secrets.slurm_key(accounting)
        yield _generate(desired.key_secret(accounting, ref.name), ref.key, SLURM_KEY_BYTES)
    if keys.signing_key(spec) is None and _is_absent(seen.signing_key):
        ref = key_secrets.signing_key(accounting)
        yield _generate(desired.key_secret(accounting, ref.name), ref.key, JWT_KEY_BYTES)
    if spec.auth is not None and spec.auth.munge_key_ref is None and _is_absent(seen.munge_key):
        ref = key_secrets.munge_key(accounting)
        yield _generate(desired.key_secret(accounting, ref.name), ref.key, MUNGE_KEY_BYTES)


def missing_password(seen: Seen) -> list[GenerateSecret]:
    if seen.address is None or not seen.address.is_managed or not _is_absent(seen.password):
        return []
    manifest = database.password_secret(seen.accounting)
    return [
        GenerateSecret(
            manifest=manifest,
            recipe="password",
            entry=seen.address.password.key,
            size=PASSWORD_BYTES,
            reason=Reason.GENERATED,
            message=f"generated a password for MariaDB in Secret {manifest['metadata']['name']}",
        )
    ]


def mariadb_objects(seen: Seen) -> list[Manifest]:
    managed = seen.accounting.spec.managed
    if managed is None or not isinstance(seen.password, SecretHandle) or not seen.knows_stamp:
        return []
    stamp = password_stamp.stamp_of_mariadb(seen, seen.password)
    return database.mariadb(seen.accounting, managed, seen.password, stamp)


def slurmdbd(seen: Seen) -> Lane:
    """Its configuration first, then the pod that reads it; neither before it has all that it needs."""
    waits = {need.wait: None for need in seen.needs}
    if waits or seen.address is None or not isinstance(seen.password, SecretHandle):
        return lane("slurmdbd", waits)
    stamp = password_stamp.stamp(seen, seen.password)
    config = desired.conf_secret(seen.accounting, seen.address, seen.password, stamp)
    conf_hash = password_stamp.conf_hash(seen, seen.address, seen.password, stamp)
    workload = desired.stateful_set(seen, seen.address, conf_hash)
    write = missing_secret(config, seen.conf_secret)
    return lane("slurmdbd", [write] if write is not None else [], missing_among([workload], seen.children))


def leftovers(seen: Seen, wanted: list[Manifest]) -> Iterator[Action]:
    """Objects of a slurmdbd or MariaDB that the manifest has replaced by one elsewhere.

    The volume and the password of a MariaDB stay. So does all of it while nothing has taken its place.
    """
    spec = seen.accounting.spec
    for kind in OWNED:
        for (there, name), child in seen.children.items():
            is_database = name == names.database_workload(seen.name)
            is_replaced = spec.external or (is_database and spec.storage_config is not None)
            if there == kind and is_replaced:
                yield from surplus(kind, [child], wanted, "it runs elsewhere now")
    if spec.external and isinstance(seen.conf_secret, Secret) and _is_ours(seen.conf_secret, seen):
        meta = seen.conf_secret.metadata
        yield DeleteObject(
            kind=kinds.SECRET,
            key=ObjectKey(meta.namespace, meta.name),
            uid=meta.uid,
            reason=Reason.DELETED,
            message=f"deleted Secret {meta.name}: slurmdbd runs elsewhere now",
        )


def _is_ours(secret: Secret, seen: Seen) -> bool:
    owner = secret.metadata.owner
    return owner is not None and owner.uid == seen.accounting.metadata.uid


def _is_absent(fact: SecretHandle | Need | None) -> bool:
    return isinstance(fact, Need) and fact.reason == Reason.KEY_NOT_YET_GENERATED


def _generate(manifest: Manifest, entry: str, size: int) -> GenerateSecret:
    return GenerateSecret(
        manifest=manifest,
        recipe="random",
        entry=entry,
        size=size,
        reason=Reason.GENERATED,
        message=f"generated a key in Secret {manifest['metadata']['name']}",
    )
