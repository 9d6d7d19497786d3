"""Choose the facts about one Accounting: keys, database, pods, and the Controllers that depend on it."""

from collections.abc import Mapping
from dataclasses import dataclass

from slurm_operator import wire
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared import keys, names
from slurm_operator.api.shared.auth import Auth, type_of, with_munge
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.shared.refs import ConfigMapKey, SecretKey
from slurm_operator.api.slinky import key_secrets
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.conditions import Reason
from slurm_operator.manifests import kinds
from slurm_operator.manifests.builders.workloads import Rollout, rollout
from slurm_operator.manifests.events import Event
from slurm_operator.manifests.meta import Child
from slurm_operator.manifests.objects import ConfigMap, Pod, Secret, Unread
from slurm_operator.manifests.pod_troubles import refusals, troubles
from slurm_operator.manifests.secrets import SecretHandle
from slurm_operator.plan.world import World
from slurm_operator.reconcilers.accounting import check, conf, database, lost_secrets
from slurm_operator.reconcilers.shared import dependencies
from slurm_operator.reconcilers.shared.dependencies import Need

APP = "slurmdbd"

# What an Accounting owns. The volume of a MariaDB is not among them: it stays when the Accounting goes.
OWNED = (kinds.SERVICE, kinds.STATEFUL_SET)


@dataclass(frozen=True)
class Seen:
    accounting: Accounting
    address: database.Address | None
    password: SecretHandle | Need | None
    slurm_key: SecretHandle | Need
    signing_key: SecretHandle | Need
    munge_key: SecretHandle | Need | None
    jwks: Need | None
    conf_secret: Secret | Unread | None
    children: Mapping[tuple[Kind, str], Child]
    rollout: Rollout | None
    mariadb: Rollout | None
    troubles: list[str]
    mariadb_troubles: list[str]
    verdict: check.Verdict | None
    controllers: list[Controller]
    key_hash: str = ""

    @property
    def name(self) -> str:
        return self.accounting.metadata.name

    @property
    def is_external(self) -> bool:
        return self.accounting.spec.external

    @property
    def needs(self) -> list[Need]:
        """What slurmdbd cannot start without."""
        if self.is_external:
            return []
        found = (
            self.slurm_key,
            self.signing_key,
            self.munge_key,
            self.jwks,
            self._database_need,
            self._conf_need,
            self._stamp_need,
        )
        return [fact for fact in found if isinstance(fact, Need)]

    @property
    def _database_need(self) -> Need | None:
        if self.address is None:
            message = "slurmdbd needs a database: set spec.storageConfig, or spec.managed for one of its own."
            return Need(subject="database", reason=Reason.DATABASE_NOT_CONFIGURED, message=message)
        if isinstance(self.password, Need):
            return self.password
        # Once slurmdbd runs, it waits for a database that is away.
        is_first_start = self.rollout is None
        if self.address.is_managed and is_first_start and not (self.mariadb and self.mariadb.works):
            why = "; ".join(self.mariadb_troubles) or "it is starting"
            message = f"waiting for MariaDB at {self.address}: {why}."
            return Need(subject="MariaDB", reason=Reason.DATABASE_STARTING, message=message, comes=True)
        return None

    @property
    def knows_stamp(self) -> bool:
        """The Secret that says which password the pods were made for has been read."""
        return not isinstance(self.conf_secret, Unread)

    @property
    def _stamp_need(self) -> Need | None:
        if not isinstance(self.conf_secret, Unread):
            return None
        subject = f"Secret {self.accounting.child_names.config}"
        message = f"waiting for {subject}, which cannot be read: {self.conf_secret.why}."
        return Need(subject=subject, reason=Reason.SECRET_UNREAD, message=message)

    @property
    def _conf_need(self) -> Need | None:
        complaint = conf.complaint(self.accounting)
        if not complaint:
            return None
        message = f"spec.extraConf would stop slurmdbd, so it is not applied: {complaint}."
        return Need(subject=conf.FILE, reason=Reason.CONFIG_REFUSED, message=message)


def observe(key: ObjectKey, world: World) -> Seen | None:
    accounting = world.get(Accounting, key.namespace, key.name)
    if accounting is None:
        return None
    controllers = [one for one in world.all(Controller, key.namespace) if one.spec.accounting == key.name]
    accounting = _as_held(accounting, controllers, world)
    uid = accounting.metadata.uid
    children = {(kind, c.metadata.name): c for kind in OWNED for c in world.children(kind, uid)}
    workload, mariadb = accounting.child_names.workload, names.database_workload(key.name)
    if claim := world.child(kinds.PERSISTENT_VOLUME_CLAIM, key.namespace, mariadb):
        children[kinds.PERSISTENT_VOLUME_CLAIM, mariadb] = claim
    address = database.address(accounting)
    pod = world.get(Pod, key.namespace, f"{workload}-0")
    mariadb_pod = world.get(Pod, key.namespace, f"{mariadb}-0")
    spec = accounting.spec
    return Seen(
        accounting=accounting,
        address=address,
        password=password(accounting, address, world),
        slurm_key=given_or_generated(
            accounting, spec.slurm_key_ref, key_secrets.slurm_key(accounting), "spec.slurmKeyRef", world
        ),
        signing_key=given_or_generated(
            accounting, keys.signing_key(spec), key_secrets.signing_key(accounting), "spec.jwtKeyRef", world
        ),
        munge_key=_munge_key(accounting, world),
        jwks=_jwks(key.namespace, spec.jwks_key_ref, world),
        conf_secret=world.secret(key.namespace, accounting.child_names.config),
        children=children,
        rollout=rollout(children.get((kinds.STATEFUL_SET, workload))),
        mariadb=rollout(children.get((kinds.STATEFUL_SET, mariadb))),
        troubles=_troubles(children.get((kinds.STATEFUL_SET, workload)), pod, world),
        mariadb_troubles=_troubles(children.get((kinds.STATEFUL_SET, mariadb)), mariadb_pod, world),
        verdict=check.verdict(pod, address) if address is not None else None,
        controllers=[dependencies.with_shared_keys(controller, world) for controller in controllers],
        key_hash=dependencies.slurm_key_hash(world, key.namespace, key_secrets.slurm_key(accounting)),
    )


def _as_held(accounting: Accounting, controllers: list[Controller], world: World) -> Accounting:
    """While workers keep a Controller from another authentication, slurmdbd keeps the previous one, too."""
    held = [one for one in controllers if dependencies.is_auth_held(one, world)]
    if not held:
        return accounting
    former = type_of(dependencies.with_shared_keys(held[0], world).spec.auth)
    auth = wire.replace(accounting.spec.auth or Auth(), type=former)
    return wire.replace(accounting, spec=wire.replace(accounting.spec, auth=auth))


def _munge_key(accounting: Accounting, world: World) -> SecretHandle | Need | None:
    auth = with_munge(accounting.spec.auth)
    if auth is None:
        return None
    ref = key_secrets.munge_key(accounting)
    return given_or_generated(accounting, auth.munge_key_ref, ref, "spec.auth.mungeKeyRef", world)


def _troubles(workload: Child | None, pod: Pod | None, world: World) -> list[str]:
    """What keeps the one pod of a StatefulSet from being ready, or from being made."""
    events = world.all(Event, workload.metadata.namespace) if workload is not None else ()
    return [*refusals(workload, events), *troubles([pod] if pod is not None else [])]


def password(
    accounting: Accounting, address: database.Address | None, world: World
) -> SecretHandle | Need | None:
    namespace = accounting.metadata.namespace
    if address is None or accounting.spec.external:
        return None
    if address.is_managed:
        users = lost_secrets.users_of_password(accounting)
        return lost_secrets.made_once(world, namespace, address.password, "MariaDB", users)
    return dependencies.secret_value(world, namespace, address.password, "spec.storageConfig.passwordKeyRef")


def given_or_generated(
    accounting: Accounting, given: SecretKey | None, ref: SecretKey, field: str, world: World
) -> SecretHandle | Need:
    """A key of the user's, or the one that we make; `ref` is whichever of them counts."""
    namespace = accounting.metadata.namespace
    if given is not None:
        return dependencies.secret_value(world, namespace, ref, field)
    whose, users = f"Accounting {accounting.metadata.name!r}", lost_secrets.users_of_keys(accounting, world)
    return lost_secrets.made_once(world, namespace, ref, whose, users)


def _jwks(namespace: str, ref: ConfigMapKey | None, world: World) -> Need | None:
    """What is wrong with the JWKS file that the manifest names, if anything."""
    if ref is None:
        return None
    subject = f"ConfigMap {ref.name}"
    match world.config_map(namespace, ref.name):
        case ConfigMap(data=data) if ref.key in data:
            return None
        case Unread(why=why):
            message = f"waiting for {subject}, which cannot be read: {why}."
        case ConfigMap():
            message = f"{subject} has no entry {ref.key!r}, which spec.jwksKeyRef names."
        case _:
            message = f"waiting for {subject}, which spec.jwksKeyRef names: there is none yet."
    return Need(subject=subject, reason=Reason.JWKS_NOT_FOUND, message=message)
