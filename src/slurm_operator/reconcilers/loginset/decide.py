"""What is missing of a LoginSet's objects, and what it waits for."""

from datetime import datetime

from slurm_operator.conditions import Reason
from slurm_operator.manifests.objects import Secret
from slurm_operator.plan.actions import Action, GenerateSecret, Wait
from slurm_operator.plan.plan import Lane, Plan, lane, plan
from slurm_operator.reconcilers.loginset import desired
from slurm_operator.reconcilers.loginset.observe import Seen
from slurm_operator.reconcilers.shared.children import (
    among,
    before_writing,
    missing_among,
    missing_secret,
    taken,
)
from slurm_operator.reconcilers.shared.dependencies import Need, look_again

RSA_BITS = 4096


def decide(seen: Seen, now: datetime) -> Plan:
    loginset = seen.loginset
    if loginset.metadata.is_terminating:
        return plan()
    return plan(
        lane("host keys", missing_host_keys(seen)),
        lane("sssd.conf", missing_sssd_conf(seen)),
        lane("service", missing_among(desired.services(loginset), seen.children)),
        login_pods(seen),
        lane("names", names_taken(seen)),
        look_again=look_again(seen.needs),
    )


def names_taken(seen: Seen) -> list[Wait]:
    """Names that another object has used before."""
    return taken(desired.named_objects(seen.loginset), among(seen.children))


def missing_host_keys(seen: Seen) -> list[Action]:
    """Host keys are made once, and then kept for as long as the LoginSet."""
    if not (isinstance(seen.host_keys, Need) and seen.host_keys.reason == Reason.HOST_KEYS_NOT_YET_GENERATED):
        return []
    manifest = desired.host_keys_secret(seen.loginset)
    return [
        GenerateSecret(
            manifest=manifest,
            recipe="ssh-host-keys",
            entry="",
            size=RSA_BITS,
            reason=Reason.GENERATED,
            message=f"generated ssh host keys in Secret {manifest['metadata']['name']}",
        )
    ]


def missing_sssd_conf(seen: Seen) -> list[Action]:
    if not seen.generates_sssd_conf:
        return []
    write = missing_secret(desired.sssd_secret(seen.loginset), seen.own_sssd_conf)
    return [write] if write is not None else []


def login_pods(seen: Seen) -> Lane:
    """The configuration of sshd first, which is right as soon as there are host keys; then the pods."""
    if not isinstance(seen.host_keys, Secret):
        return lane("login", {need.wait: None for need in seen.needs})
    config = desired.ssh_config(seen.loginset, seen.host_keys)
    written = missing_among([config], seen.children)
    waits = {need.wait: None for need in seen.needs}
    if waits:
        return lane("login", written, waits)
    pods = missing_among([desired.workload(seen)], seen.children)
    return lane("login", written, before_writing(pods, among(seen.children)), pods)
