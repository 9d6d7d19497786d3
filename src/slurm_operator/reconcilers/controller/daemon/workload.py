"""The StatefulSet of slurmctld."""

from slurm_operator.api.shared import names
from slurm_operator.api.shared.auth import with_munge
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.key_secrets import munge_key
from slurm_operator.manifests.builders import hardening, key_ring, logs, munge
from slurm_operator.manifests.builders.dns import worker_domain
from slurm_operator.manifests.builders.parts import (
    apart_from,
    config_map_files,
    container,
    memory_volume,
    pod_spec,
    projected,
    secret_file,
    slurm_probe,
    with_affinity,
)
from slurm_operator.manifests.builders.workloads import Wish, input_notes
from slurm_operator.manifests.compare.differences import changes, settled_template
from slurm_operator.manifests.meta import Child, Manifest
from slurm_operator.reconcilers.controller.annotations import ETC_VOLUME, STATE
from slurm_operator.reconcilers.controller.configuration.slurm_conf import ETC, state_directory
from slurm_operator.reconcilers.controller.daemon import trial
from slurm_operator.reconcilers.controller.daemon.readiness import CONTAINER, OUR_CONTAINERS
from slurm_operator.reconcilers.controller.daemon.services import PORT_NAME, owner
from slurm_operator.reconcilers.controller.observe import Seen, replicas

ETC_MODE = 0o610

DEFAULT_CLAIM: Manifest = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "4Gi"}},
}

# slurmctld waits for slurmdbd before it answers for the first time. Five minutes, so that a database that is
# slow to start does not look like a slurmctld that crashes.
STARTUP_FAILURES = 300

FOLLOW_FILES = """\
trap 'exit 0' TERM INT
digest() { find -L /etc/slurm -type f -not -path '*/..*' -exec sha256sum {} + | sort | sha256sum; }
last=$(digest)
while true; do
  sleep 5 & wait $!
  now=$(digest)
  if [ "$now" != "$last" ]; then
    until scontrol reconfigure; do sleep 2 & wait $!; done
    last=$now
  fi
done
"""


def stateful_set(seen: Seen, port: int) -> Manifest:
    """slurmctld on the port that its configuration says."""
    controller = seen.controller
    head = owner(controller)
    is_ha = controller.spec.ha.enabled
    called = controller.child_names
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": head.metadata(called.workload, annotations=input_notes(inputs(seen, port))),
        "spec": {
            "replicas": replicas(controller),
            "revisionHistoryLimit": 0,
            "serviceName": called.internal_service,
            # A standby is never ready, so nobody may wait for that before making the next one.
            "podManagementPolicy": "Parallel" if is_ha else "OrderedReady",
            # Pods are replaced by the operator: a standby first, and no slurmctld while that would cost jobs.
            "updateStrategy": {"type": "OnDelete"},
            "selector": {"matchLabels": head.selector},
            "template": template(seen, port),
            **_claim_templates(controller),
        },
    }


def managed_as(there: Child | None, wanted: Manifest) -> Manifest:
    """The same, in a StatefulSet that goes on with the template it has: how its pods are made stays, too.

    The Slinky operator makes them in order, which nobody can change, and with its template that works.
    """
    if there is None:
        return wanted
    wanted = _with_claims_of(there, wanted)
    if settled_template(wanted, there)["spec"]["template"] == wanted["spec"]["template"]:
        return wanted
    policy = there.body["spec"].get("podManagementPolicy", "OrderedReady")
    return wanted | {"spec": wanted["spec"] | {"podManagementPolicy": policy}}


def _with_claims_of(there: Child, wanted: Manifest) -> Manifest:
    """Claim templates are one value that nobody can change. Where they mean the same, they stay as they are.

    The Slinky operator writes the namespace into them.
    """
    ours, live = (spec.get("volumeClaimTemplates") or [] for spec in (wanted["spec"], there.body["spec"]))
    is_plain = all(one["metadata"].keys() <= {"name"} for one in live)
    if is_plain or changes({"spec": {"volumeClaimTemplates": ours}}, there):
        return wanted
    return wanted | {"spec": wanted["spec"] | {"volumeClaimTemplates": live}}


def inputs(seen: Seen, port: int) -> Manifest:
    """What the pod template is made from. While it means the same, a running slurmctld stays as it is.

    What tools write on the Controller itself is left out: a label is no reason to restart slurmctld.
    """
    spec = seen.controller.spec
    return {
        "cluster": seen.controller.cluster_name,
        "port": port,
        "containers": [Wish(one) for one in (spec.slurmctld, spec.logfile, spec.reconfigure)],
        "template": Wish(spec.template),
        "inplace": spec.inplace_reconfigure,
        "ha": spec.ha.enabled,
        "state": [spec.persistence.enabled, spec.persistence.existing_claim],
        "keys": [
            [seen.slurm_key.ref.name, seen.slurm_key.ref.key, slurm_key_hash(seen)],
            [seen.signing_key.ref.name, seen.signing_key.ref.key, seen.signing_key.digest],
        ],
        **_munge_inputs(seen),
    }


def _munge_inputs(seen: Seen) -> Manifest:
    """Only where there is a munge: without it nothing is noted that was not before."""
    auth, key = with_munge(seen.controller.spec.auth), seen.munge_key
    if auth is None or key is None:
        return {}
    return {"munge": [key.ref.name, key.ref.key, Wish(auth.munge)]}


def slurm_key_hash(seen: Seen) -> str:
    """The key that slurmctld was first started with. One that has the ring gets others while it runs."""
    there = seen.workload.body["spec"]["template"]["metadata"] if seen.workload is not None else {}
    notes: dict[str, str] = there.get("annotations") or {}
    return notes.get(names.SLURM_KEY_HASH, "") if names.KEY_RING in notes else seen.slurm_key.digest


def template(seen: Seen, port: int) -> Manifest:
    controller = seen.controller
    head = owner(controller)
    notes = {
        names.SLURM_KEY_HASH: slurm_key_hash(seen),
        names.JWT_KEY_HASH: seen.signing_key.digest,
        names.KEY_RING: key_ring.name_of(seen.slurm_key.ref.name),
    }
    metadata = head.pod_metadata(controller.spec.template, CONTAINER, notes)
    if not controller.spec.ha.enabled:
        metadata["labels"][names.LABEL_ACTIVE] = "true"  # The only one is always in charge.
    return hardening.noted({"metadata": metadata, "spec": pod(seen, port)})


def pod(seen: Seen, port: int) -> Manifest:
    controller = seen.controller
    head = owner(controller)
    base: Manifest = {
        "securityContext": {**controller.user.security, "fsGroup": controller.user.gid},
        "initContainers": [*munge_sidecars(controller), *sidecars(controller)],
        "containers": [slurmctld(controller, port)],
        "volumes": volumes(seen),
        # So that whoever works beside slurmctld calls workers by the names that Slurm shows.
        "dnsConfig": {"searches": [worker_domain(controller)]},
    }
    merged = pod_spec(base, controller.spec.template, OUR_CONTAINERS)
    placed = with_affinity(merged, apart_from(head.selector))
    return trial.tried_out(controller, hardening.confined(placed, OUR_CONTAINERS))


def settled_pod(seen: Seen) -> Manifest:
    """The pod that runs, or would run: with the template that is there, as long as it stays."""
    wanted = stateful_set(seen, names.SLURMCTLD_PORT)
    found: Manifest = settled_template(wanted, seen.workload)["spec"]["template"]["spec"]
    return found


def slurmctld(controller: Controller, port: int) -> Manifest:
    image = controller.spec.slurmctld_image
    base: Manifest = {
        "name": CONTAINER,
        "image": image,
        "ports": [{"name": PORT_NAME, "containerPort": port, "protocol": "TCP"}],
        "startupProbe": slurm_probe(image, "/livez", PORT_NAME, period_seconds=1, failures=STARTUP_FAILURES),
        "livenessProbe": slurm_probe(image, "/livez", PORT_NAME, period_seconds=10, failures=6),
        "readinessProbe": slurm_probe(image, "/readyz", PORT_NAME, period_seconds=1, failures=3),
        "securityContext": controller.user.security,
        "volumeMounts": [
            {"name": ETC_VOLUME, "mountPath": ETC, "readOnly": True},
            {"name": "run", "mountPath": "/run"},
            {"name": STATE, "mountPath": state_directory(controller)},
            {"name": "slurm-authsocket", "mountPath": "/run/slurmctld"},
            logs.mount(),
            *munge_mounts(controller),
        ],
    }
    return container(base, controller.spec.slurmctld)


def sidecars(controller: Controller) -> list[Manifest]:
    """Containers that start before slurmctld and run beside it; without an image of their own, on its."""
    spec = controller.spec
    image = spec.slurmctld_image
    reconfigure: Manifest = {
        "name": "reconfigure",
        "image": image,
        "restartPolicy": "Always",
        "command": ["tini", "--", "bash", "-c", FOLLOW_FILES],
        "volumeMounts": [
            {"name": ETC_VOLUME, "mountPath": ETC, "readOnly": True},
            {"name": "slurm-authsocket", "mountPath": "/run/slurmctld", "readOnly": True},
            *munge_mounts(controller),
        ],
    }
    logfile = logs.sidecar("slurmctld.log", image, spec.logfile)
    if not spec.inplace_reconfigure:
        return [logfile]
    return [container(reconfigure, spec.reconfigure), logfile]


def volumes(seen: Seen) -> list[Manifest]:
    claim = seen.controller.spec.persistence
    state: list[Manifest] = []
    if claim.enabled and claim.existing_claim:
        state = [{"name": STATE, "persistentVolumeClaim": {"claimName": claim.existing_claim}}]
    elif not claim.enabled:
        state = [{"name": STATE, "emptyDir": {}}]
    return [
        etc_volume(seen, seen.controller.child_names.config),
        logs.volume(),
        memory_volume("run"),
        {"name": "slurm-authsocket", "emptyDir": {}},
        *state,
        *munge_volumes(seen.controller),
    ]


def munge_sidecars(controller: Controller) -> list[Manifest]:
    auth = with_munge(controller.spec.auth)
    image = controller.spec.slurmctld_image
    return [munge.sidecar(auth, image)] if auth is not None else []


def munge_mounts(controller: Controller) -> list[Manifest]:
    return [munge.mount()] if with_munge(controller.spec.auth) is not None else []


def munge_volumes(controller: Controller) -> list[Manifest]:
    return munge.volumes(munge_key(controller)) if with_munge(controller.spec.auth) is not None else []


def etc_volume(seen: Seen, config_map: str) -> Manifest:
    """/etc/slurm: the files of one ConfigMap, which change together, and the keys."""
    slurm_key, signing_key = seen.slurm_key.ref, seen.signing_key.ref
    return projected(
        ETC_VOLUME,
        ETC_MODE,
        config_map_files(config_map),
        secret_file(slurm_key.name, slurm_key.key, names.SLURM_KEY_FILE),
        key_ring.file(slurm_key.name),
        secret_file(signing_key.name, signing_key.key, names.JWT_KEY_FILE),
    )


def _claim_templates(controller: Controller) -> Manifest:
    persistence = controller.spec.persistence
    if not persistence.enabled or persistence.existing_claim:
        return {}
    claim = {**DEFAULT_CLAIM, **persistence.claim}
    return {"volumeClaimTemplates": [{"metadata": {"name": STATE}, "spec": claim}]}
