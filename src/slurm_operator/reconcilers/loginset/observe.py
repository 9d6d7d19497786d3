"""Choose the facts about one LoginSet: its Controller and key, host keys, sssd.conf, and its pods."""

from collections.abc import Mapping
from dataclasses import dataclass

from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.shared.refs import SecretKey
from slurm_operator.api.slinky import key_secrets
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.conditions import Reason
from slurm_operator.manifests import kinds
from slurm_operator.manifests.builders.sshd import host_key_files
from slurm_operator.manifests.builders.workloads import Rollout, login_kind, rollout
from slurm_operator.manifests.meta import Child
from slurm_operator.manifests.objects import Secret, Unread
from slurm_operator.manifests.pod_troubles import troubles
from slurm_operator.manifests.secrets import SecretHandle
from slurm_operator.plan.world import World
from slurm_operator.reconcilers.shared import dependencies
from slurm_operator.reconcilers.shared.children import seen_children, seen_pods
from slurm_operator.reconcilers.shared.dependencies import Need

APP = "login"
SSSD_CONF = "sssd.conf"


@dataclass(frozen=True)
class Seen:
    loginset: LoginSet
    controller: Controller | Need
    slurm_key: SecretHandle | Need
    host_keys: Secret | Need
    sssd_conf: SecretHandle | Need
    own_sssd_conf: Secret | Unread | None
    children: Mapping[tuple[Kind, str], Child]
    rollout: Rollout | None
    troubles: list[str]
    key_hash: str = ""
    ring: Need | None = None

    @property
    def needs(self) -> list[Need]:
        """What login pods cannot start without."""
        found = (self.controller, self.slurm_key, self.ring, self.host_keys, self.sssd_conf)
        return [fact for fact in found if isinstance(fact, Need)]

    @property
    def generates_sssd_conf(self) -> bool:
        return self.loginset.spec.sssd_conf_ref is None


def observe(key: ObjectKey, world: World) -> Seen | None:
    loginset = world.get(LoginSet, key.namespace, key.name)
    if loginset is None:
        return None
    controller = dependencies.controller(
        world, loginset.metadata, loginset.spec.controller_ref.name, "LoginSet"
    )
    called = loginset.child_names
    children = seen_children(
        world,
        key.namespace,
        (kinds.SERVICE, called.service),
        *([(kinds.SERVICE, called.headless_service)] if loginset.spec.ordered else []),
        (login_kind(loginset), called.workload),
        (kinds.CONFIG_MAP, called.ssh_config),
    )
    progress = rollout(children.get((login_kind(loginset), called.workload)))
    is_own = loginset.spec.sssd_conf_ref is None
    return Seen(
        loginset=loginset,
        controller=controller,
        slurm_key=controller
        if isinstance(controller, Need)
        else dependencies.controllers_slurm_key(world, controller),
        host_keys=host_keys(loginset, world),
        sssd_conf=sssd_conf(loginset, world),
        own_sssd_conf=world.secret(key.namespace, names.sssd_secret(key.name)) if is_own else None,
        children=children,
        rollout=progress,
        troubles=[]
        if progress is None or progress.works
        else troubles(seen_pods(world, key.namespace, APP, key.name)),
        key_hash=""
        if isinstance(controller, Need)
        else dependencies.slurm_key_hash(world, key.namespace, key_secrets.slurm_key(controller)),
        ring=dependencies.key_ring(world, controller) if isinstance(controller, Controller) else None,
    )


def host_keys(loginset: LoginSet, world: World) -> Secret | Need:
    """The Secret with the host keys, given or made by us, or what is wrong with it."""
    namespace, given = loginset.metadata.namespace, loginset.spec.ssh_host_keys_ref
    name = given.name if given is not None else names.ssh_host_keys(loginset.metadata.name)
    subject = f"Secret {name}"
    match world.secret(namespace, name):
        case None if given is None:
            message = f"waiting for {subject}: host keys are being made."
            return Need(
                subject=subject, reason=Reason.HOST_KEYS_NOT_YET_GENERATED, message=message, comes=True
            )
        case None:
            message = f"waiting for {subject}, which spec.sshHostKeysRef names: there is none yet."
            return Need(subject=subject, reason=Reason.SECRET_NOT_FOUND, message=message)
        case Unread(why=why):
            message = f"waiting for {subject}, which cannot be read: {why}."
            return Need(subject=subject, reason=Reason.SECRET_UNREAD, message=message)
        case Secret() as secret if host_key_files(secret.digests):
            return secret
        case Secret(digests=digests):
            entries = ", ".join(sorted(digests)) or "none"
            message = f"{subject} has no host key (it has: {entries}). Add ssh_host_ed25519_key to it."
            return Need(subject=subject, reason=Reason.SECRET_ENTRY_NOT_FOUND, message=message)


def sssd_conf(loginset: LoginSet, world: World) -> SecretHandle | Need:
    meta, given = loginset.metadata, loginset.spec.sssd_conf_ref
    if given is not None:
        return dependencies.secret_value(world, meta.namespace, given, "spec.sssdConfRef")
    own = SecretKey(name=names.sssd_secret(meta.name), key=SSSD_CONF)
    return dependencies.generated_value(world, meta.namespace, own, f"LoginSet {meta.name!r}")
