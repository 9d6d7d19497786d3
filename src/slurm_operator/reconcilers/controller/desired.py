"""The objects that one Controller should have, apart from what the configuration pipeline decides."""

from slurm_operator.api.slinky.controller import Controller, good_config
from slurm_operator.conditions import Reason
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Manifest
from slurm_operator.plan.actions import GenerateSecret
from slurm_operator.reconcilers.controller.configuration.files import Files, data
from slurm_operator.reconcilers.controller.daemon import services
from slurm_operator.reconcilers.controller.daemon.services import owner
from slurm_operator.reconcilers.controller.daemon.workload import stateful_set
from slurm_operator.reconcilers.controller.observe import Key, Seen

SLURM_KEY_BYTES = 1024
SIGNING_KEY_BYTES = 32
MUNGE_KEY_BYTES = 1024


def desired(seen: Seen, files: Files) -> list[Manifest]:
    """Every object of one Controller, with these files. Same facts in, same bytes out."""
    monitor = services.service_monitor(seen.controller) if seen.has_service_monitors else None
    workload = [] if seen.controller.spec.external else [stateful_set(seen, files.port)]
    return [*network(seen, files.port), config_map(seen, files), *workload, *([monitor] if monitor else [])]


def named_objects(controller: Controller) -> list[Manifest]:
    """What is made for it under a name that somebody may have chosen."""
    ours, called = owner(controller), controller.child_names
    shared = [
        ours.bare_child(kinds.SERVICE, called.workers),
        ours.bare_child(kinds.DISRUPTION_BUDGET, called.budget),
    ]
    config = ours.bare_child(kinds.CONFIG_MAP, called.config)
    if controller.spec.external:
        return [*shared, config]
    services = [ours.bare_child(kinds.SERVICE, name) for name in (called.service, called.internal_service)]
    return [*services, *shared, config, ours.bare_child(kinds.STATEFUL_SET, called.workload)]


def network(seen: Seen, port: int) -> list[Manifest]:
    """Services and the budget: wanted from the first moment, and whatever becomes of the configuration."""
    controller = seen.controller
    shared = [services.worker_service(controller, seen.nodesets), services.worker_budget(controller)]
    if controller.spec.external:
        return shared
    members = services.member_services(controller, port)
    by_label = controller.spec.ha.enabled and seen.has_inherited_pods
    return [
        services.internal_service(controller, port),
        services.client_service(controller, port, by_label=by_label),
        *members,
        *shared,
    ]


def config_map(seen: Seen, files: Files, notes: dict[str, str] | None = None) -> Manifest:
    """The files that slurmctld mounts; `notes` tell what was last refused."""
    head = owner(seen.controller)
    name = seen.controller.child_names.config
    manifest = head.config_map(name, {})
    return manifest | {"metadata": head.metadata(name, annotations=notes)} | data(files)


def good_config_map(seen: Seen, files: Files) -> Manifest:
    """The files that slurmctld is known to run with: what is put back when the next ones fail."""
    return owner(seen.controller).config_map(good_config(seen.controller), {}) | data(files)


def generated_keys(seen: Seen) -> list[GenerateSecret]:
    """Keys that nobody gave. Made once; nothing owns them, so nothing takes them along when it goes."""
    sizes = [(seen.slurm_key, SLURM_KEY_BYTES), (seen.signing_key, SIGNING_KEY_BYTES)]
    if seen.munge_key is not None:
        sizes.append((seen.munge_key, MUNGE_KEY_BYTES))
    return [_generated(seen, key, size) for key, size in sizes if key.is_ours_to_make]


def _generated(seen: Seen, key: Key, size: int) -> GenerateSecret:
    labels = {"app.kubernetes.io/managed-by": "slurm-operator"}
    metadata = {"name": key.ref.name, "namespace": seen.namespace, "labels": labels}
    return GenerateSecret(
        manifest={"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque"},
        recipe="random",
        entry=key.ref.key,
        size=size,
        reason=Reason.KEY_GENERATED,
        message=f"made a key in Secret {key.ref.name}; it stays when the Controller is deleted",
    )
