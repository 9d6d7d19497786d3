"""Containers, places and volumes of a SlurmCluster, in the words of Kubernetes."""

from collections.abc import Iterable, Mapping
from typing import Any

from slurm_operator.api.nebius import names
from slurm_operator.api.nebius.containers import NodeContainer, ProcMount
from slurm_operator.api.nebius.slurmcluster import NodeFilter
from slurm_operator.api.nebius.volumes import NodeVolume, NodeVolumeMount, WorkerVolumeMount, given
from slurm_operator.api.schema import codec
from slurm_operator.manifests.meta import Manifest

_PRIVATE = 0o400

# sssd in an image of ours. The volume that daemons share with it lacks its directory for private sockets,
# and sssd does not make it: it ends with "Unable to setup a D-Bus server".
SSSD_COMMAND = (
    "sh",
    "-c",
    'mkdir -p -m 700 /var/lib/sss/pipes/private && exec sssd -i --logger=stderr -d "$SSSD_DEBUG_LEVEL"',
)
UNCONFINED = "unconfined"


def place(chosen: NodeFilter | None) -> Manifest:
    """Where pods run: the fields of a pod that a filter gives."""
    if chosen is None:
        return {}
    fields = {
        "affinity": given(chosen.affinity),
        "nodeSelector": dict(chosen.node_selector),
        "tolerations": list(chosen.tolerations),
    }
    return filled(fields)


def filled(fields: Mapping[str, Any]) -> Manifest:
    """Only the fields with something in them; false counts as something."""
    return {name: codec.plain(value) for name, value in fields.items() if value or value is False}


def resources(asked: Mapping[str, Any], *, limits_cpu: bool = False) -> Manifest:
    """Requests as written; limits are the same, without CPUs unless jobs live here."""
    if not asked:
        return {}
    requests = {name: str(amount) for name, amount in asked.items()}
    limits = {name: amount for name, amount in requests.items() if limits_cpu or name != "cpu"}
    return filled({"requests": requests, "limits": limits})


def confinement(app_armor: str, proc_mount: ProcMount | None) -> Manifest:
    """The fields of a securityContext that a container of ours gets beside its own."""
    profile = app_armor.removeprefix("localhost/")
    armor = (
        {"type": "Unconfined"}
        if app_armor in ("", UNCONFINED)
        else {"type": "Localhost", "localhostProfile": profile}
    )
    return {"appArmorProfile": armor, **({"procMount": str(proc_mount)} if proc_mount is not None else {})}


def container(wished: NodeContainer, *, is_run_by_us: bool = True) -> Manifest:
    """What a manifest says of a container; one that we run keeps our command."""
    return filled(
        {
            "image": wished.image,
            "imagePullPolicy": str(wished.image_pull_policy),
            "command": [] if is_run_by_us else wished.command,
            "args": [] if is_run_by_us else wished.args,
            "env": wished.custom_env,
            "resources": resources(wished.resources),
            "livenessProbe": given(wished.liveness_probe),
            "readinessProbe": given(wished.readiness_probe),
            "securityContext": confinement(wished.app_armor_profile, wished.proc_mount),
        }
    )


def present(wished: NodeContainer | None) -> NodeContainer | None:
    """The container, unless it has no image: typed Go clients write an empty one for none."""
    return wished if wished is not None and wished.is_given else None


def pull_secrets(*containers: NodeContainer | None) -> list[Manifest]:
    """Of all containers of a pod, each once."""
    found = [secret for one in containers if one is not None for secret in one.image_pull_secrets]
    return [secret for index, secret in enumerate(found) if secret not in found[:index]]


def volume(name: str, wished: NodeVolume, sources: Mapping[str, Manifest]) -> Manifest:
    """A volume of a pod: from the catalogue, or a claim that lives as long as the pod."""
    if wished.volume_source_name:
        source = given(sources.get(wished.volume_source_name, {}))
        return {**{key: value for key, value in source.items() if key != "name"}, "name": name}
    return {"name": name, **ephemeral_claim(given(wished.volume_claim_template_spec))}


def ephemeral_claim(claim: Manifest) -> Manifest:
    return {"ephemeral": {"volumeClaimTemplate": {"spec": claim}}}


def worker_volume(wished: WorkerVolumeMount) -> Manifest | None:
    """A volume of a worker; None where it has a claim of its own, which is a template."""
    source = given(wished.volume_source)
    return {"name": wished.name, **source} if source else None


def mount(name: str, path: str, *, sub_path: str = "", read_only: bool = False) -> Manifest:
    return {
        "name": name,
        "mountPath": path,
        **({"subPath": sub_path} if sub_path else {}),
        **({"readOnly": True} if read_only else {}),
    }


def mounted(wished: NodeVolumeMount | WorkerVolumeMount, *, below: str = "") -> Manifest:
    """Where a volume appears; `below` is the directory that its path starts from."""
    path = f"{below}/{wished.mount_path.strip('/')}" if below else wished.mount_path
    return mount(wished.name, path, sub_path=wished.sub_path, read_only=wished.read_only)


def custom_mounts(
    wished: Iterable[NodeVolumeMount], sources: Mapping[str, Manifest], *, below: str = ""
) -> tuple[list[Manifest], list[Manifest]]:
    """Volumes, and where they appear."""
    every = list(wished)
    return [volume(one.name, one, sources) for one in every], [mounted(one, below=below) for one in every]


def config_map_volume(name: str, config_map: str, *, optional: bool = False) -> Manifest:
    return {"name": name, "configMap": {"name": config_map, **({"optional": True} if optional else {})}}


def secret_volume(name: str, secret: str, mode: int = _PRIVATE) -> Manifest:
    return {"name": name, "secret": {"secretName": secret, "defaultMode": mode}}


def host_keys_volume(name: str, secret: str) -> Manifest:
    """Private host keys for root only, or sshd does not take them."""
    items = [
        {"key": f"ssh_host_{kind}_key{end}", "path": f"ssh_host_{kind}_key{end}", "mode": mode}
        for kind in ("ecdsa", "ed25519", "rsa")
        for end, mode in (("", 0o600), (".pub", 0o644))
    ]
    return {"name": name, "secret": {"secretName": secret, "items": items}}


def memory_volume(name: str, size: object) -> Manifest:
    limit = {"sizeLimit": str(size)} if size else {}
    return {"name": name, "emptyDir": {"medium": "Memory", **limit}}


def ldap_ca(config_map: str) -> tuple[list[Manifest], list[Manifest]]:
    """The certificates of the directory service: where sssd finds them, and the volume."""
    if not config_map:
        return [], []
    mounts = [mount("sssd-ldap-ca", "/mnt/ldapCA", read_only=True)]
    return mounts, [config_map_volume("sssd-ldap-ca", config_map)]


def sssd_container(image: Manifest, conf: str, debug_level: int, ca: str) -> tuple[Manifest, list[Manifest]]:
    """sssd beside a daemon, and the volumes that it shares with it."""
    mounts = [mount("sssd-socket", "/var/lib/sss/pipes"), mount("sssd-conf", "/etc/sssd")]
    volumes: list[Manifest] = [
        {"name": "sssd-socket", "emptyDir": {}},
        secret_volume("sssd-conf", conf, mode=0o600),
    ]
    ca_mounts, ca_volumes = ldap_ca(ca)
    mounts, volumes = [*mounts, *ca_mounts], [*volumes, *ca_volumes]
    container_ = {
        "name": "sssd",
        **image,
        "env": [*image.get("env", ()), {"name": "SSSD_DEBUG_LEVEL", "value": str(debug_level)}],
        "volumeMounts": mounts,
    }
    return container_, volumes


SSSD_MOUNTS = (mount("sssd-socket", "/var/lib/sss/pipes"), mount("sssd-conf", "/etc/sssd", read_only=True))
JAIL_MOUNT = mount(names.JAIL, names.ROOT)
