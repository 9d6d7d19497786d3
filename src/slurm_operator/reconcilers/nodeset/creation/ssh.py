"""ssh into workers, for users with a job there: sshd's configuration, and what pods note about it."""

from slurm_operator.api.shared import names
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.conditions import Reason
from slurm_operator.manifests import kinds
from slurm_operator.manifests.builders.sshd import sshd_config
from slurm_operator.manifests.digests import digest
from slurm_operator.manifests.meta import Manifest, key_of
from slurm_operator.manifests.objects import Secret, Unread
from slurm_operator.plan.actions import Action, DeleteObject
from slurm_operator.reconcilers.nodeset import identity
from slurm_operator.reconcilers.nodeset.creation.pod import RESOURCES_DIGEST
from slurm_operator.reconcilers.nodeset.creation.revisions import Revision
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.reconcilers.shared import dependencies
from slurm_operator.reconcilers.shared.children import missing_write
from slurm_operator.reconcilers.shared.dependencies import Need

# Either will do. The line stands before the user's, and sshd takes the first.
AUTHENTICATION = "AuthenticationMethods publickey password\n"


def config_map(nodeset: NodeSet) -> Manifest:
    text = sshd_config(AUTHENTICATION + nodeset.spec.ssh.extra_sshd_config)
    made = identity.owner(nodeset).config_map(names.ssh_config(nodeset.metadata.name), {"sshd_config": text})
    made["metadata"]["labels"][names.LABEL_CLUSTER] = nodeset.spec.controller
    return made


def config_writes(seen: Seen, revision: Revision) -> list[Action]:
    """Makes the ConfigMap so, or takes it away when no worker was made with ssh any more."""
    nodeset, there = seen.nodeset, seen.ssh_config
    if nodeset.metadata.is_terminating:
        return []
    if nodeset.spec.ssh.enabled:
        write = missing_write(config_map(nodeset), lambda kind, namespace, name: there)
        return [write] if write is not None else []
    if (
        there is None
        or there.metadata.is_terminating
        or any(m.revision != revision.hash for m in seen.workers)
    ):
        return []
    return [
        DeleteObject(
            kind=kinds.CONFIG_MAP,
            key=key_of(there),
            uid=there.metadata.uid,
            reason=Reason.DELETED,
            message=f"deleted ConfigMap {there.metadata.name}: no worker runs sshd any more",
        )
    ]


def notes(seen: Seen) -> dict[str, str]:
    """Annotations by which people see what a pod's sshd was started with."""
    ssh = seen.nodeset.spec.ssh
    if not ssh.enabled:
        return {}
    found = {names.SSHD_CONF_HASH: digest(config_map(seen.nodeset)["data"]["sshd_config"])}
    if ssh.sssd_conf_ref is not None and isinstance(seen.sssd_conf, Secret):
        found[names.SSSD_CONF_HASH] = _sssd_digest(seen)
    return found


def missing_sssd_conf(seen: Seen) -> Need | None:
    """What keeps new workers from starting. Their kubelets wait for it, and say so only in events.

    A Secret that only the operator cannot read keeps nobody.
    """
    ssh = seen.nodeset.spec.ssh
    if not ssh.enabled or ssh.sssd_conf_ref is None or isinstance(seen.sssd_conf, Unread):
        return None
    found = dependencies.value_in(
        seen.sssd_conf, seen.nodeset.metadata.namespace, ssh.sssd_conf_ref, "spec.ssh.sssdConfRef"
    )
    return found if isinstance(found, Need) else None


def with_old_sssd_conf(seen: Seen) -> list[str]:
    """Workers, by name, that were made with another sssd.conf than there is now. It never reaches them.

    Pods of another operator note its digest in their own way, so nothing is said about those.
    """
    now = _sssd_digest(seen)
    if not now:
        return []
    return [
        worker.name
        for worker in seen.workers
        if not worker.is_terminating
        and RESOURCES_DIGEST in (notes := worker.pod.metadata.annotations)
        and notes.get(names.SSSD_CONF_HASH, "") not in ("", now)
    ]


def _sssd_digest(seen: Seen) -> str:
    """Of the sssd.conf that new workers get; empty when there is none, or it cannot be read."""
    ssh = seen.nodeset.spec.ssh
    if not ssh.enabled or ssh.sssd_conf_ref is None or not isinstance(seen.sssd_conf, Secret):
        return ""
    return seen.sssd_conf.digests.get(ssh.sssd_conf_ref.key, "")
