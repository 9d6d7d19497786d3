"""The objects of a LoginSet: configuration of sshd and sssd, Service, Deployment."""

from slurm_operator.api import names, reading
from slurm_operator.api.controller import Controller
from slurm_operator.api.images import default_image
from slurm_operator.api.loginset import LoginSet
from slurm_operator.manifests import key_ring, parts, sshd
from slurm_operator.manifests.digests import digest
from slurm_operator.manifests.dns import controller_address, worker_domain
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.objects import Secret
from slurm_operator.manifests.secrets import SecretHandle
from slurm_operator.manifests.workloads import Wish, with_input
from slurm_operator.reconcilers.loginset.observe import APP, SSSD_CONF, Seen

INITCONF = "initconf"

# sackd reads the key as Slurm's user, and only if nobody else can.
_PREPARE_FILES = f"""\
set -eu
cp -L /mnt/slurm/* /mnt/etc/slurm/
chown {names.SLURM_UID}:{names.SLURM_UID} /mnt/etc/slurm/*
chmod 600 /mnt/etc/slurm/*
"""


def owner(loginset: LoginSet) -> parts.Owner:
    return parts.Owner(LoginSet.KIND, loginset.metadata, app=APP, component="login")


def ssh_port(loginset: LoginSet) -> int:
    """Where sshd listens: the container port that the user calls `login`, or 22."""
    for port in loginset.spec.login.get("ports") or ():
        if port.get("name") == APP:
            return int(port["containerPort"])
    return names.SSH_PORT


def host_keys_secret(loginset: LoginSet) -> Manifest:
    """Where generated host keys go. Immutable: a host key that changed looks like an attack."""
    metadata = owner(loginset).metadata(names.ssh_host_keys(loginset.metadata.name))
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "immutable": True}


def sssd_secret(loginset: LoginSet) -> Manifest:
    """sssd.conf for users of the image, where the manifest names none."""
    name = names.sssd_secret(loginset.metadata.name)
    return owner(loginset).secret(name, {SSSD_CONF: sshd.LOCAL_USERS_SSSD_CONF})


def service(loginset: LoginSet) -> Manifest:
    name = names.login_workload(loginset.metadata.name)
    return owner(loginset).service(name, loginset.spec.service, APP, names.SSH_PORT)


def ssh_config(loginset: LoginSet, host_keys: Secret) -> Manifest:
    spec = loginset.spec
    forwards_x11 = not sshd.is_set_for_all("X11Forwarding", spec.extra_sshd_config)
    data = {
        "sshd_config": sshd_config(loginset, host_keys, forwards_x11=forwards_x11),
        "authorized_keys": sshd.authorized_keys(spec.root_ssh_authorized_keys),
    }
    return owner(loginset).config_map(names.ssh_config(loginset.metadata.name), data)


def sshd_config(loginset: LoginSet, host_keys: Secret, *, forwards_x11: bool) -> str:
    extra, files = loginset.spec.extra_sshd_config, sshd.host_key_files(host_keys.digests)
    port = ssh_port(loginset)
    lines = sshd.sshd_config(extra, port=port, host_keys=files, forwards_x11=forwards_x11)
    return lines + sshd.keys_of_root()


def deployment(seen: Seen) -> Manifest:
    """Login pods, once they have all that they need. New keys of root reach them while they run."""
    assert isinstance(seen.slurm_key, SecretHandle)
    assert isinstance(seen.sssd_conf, SecretHandle)
    assert isinstance(seen.host_keys, Secret)
    assert isinstance(seen.controller, Controller)
    loginset, spec, ours = seen.loginset, seen.loginset.spec, owner(seen.loginset)
    hashes = {
        names.SLURM_KEY_HASH: seen.key_hash,
        # Always with the line that the user's own replaces, as it once was written for everybody: that it is
        # left out now is no reason to end sessions.
        names.SSHD_CONF_HASH: digest(sshd_config(loginset, seen.host_keys, forwards_x11=True)),
        names.SSSD_CONF_HASH: seen.sssd_conf.digest,
        names.SSH_HOST_KEYS_HASH: digest(seen.host_keys.digests),
    }
    metadata = ours.pod_metadata(spec.template, APP, hashes)
    volumes = [
        parts.projected(
            "slurm-config",
            0o600,
            parts.secret_file(seen.slurm_key.name, seen.slurm_key.key, names.SLURM_KEY_FILE),
        ),
        host_keys_volume(seen.host_keys),
        parts.projected(
            "sssd-conf", 0o600, parts.secret_file(seen.sssd_conf.name, seen.sssd_conf.key, SSSD_CONF)
        ),
    ]
    address = controller_address(seen.controller)
    manifest: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": ours.metadata(names.login_workload(loginset.metadata.name), spec.template.metadata),
        "spec": {
            "replicas": spec.replicas,
            "revisionHistoryLimit": 0,
            "selector": {"matchLabels": ours.selector},
            **({"strategy": reading.plain(spec.strategy)} if spec.strategy else {}),
            "template": {"metadata": metadata, "spec": pod(loginset, address, with_ring(seen, volumes))},
        },
    }
    wishes = [Wish(one) for one in (spec.login, spec.initconf, spec.template)]
    return with_input(manifest, metadata, wishes, volumes, address)


def with_ring(seen: Seen, volumes: list[Manifest]) -> list[Manifest]:
    """The same volumes, with all Slurm keys beside the one; where slurmctld is not ours there is only one."""
    assert isinstance(seen.slurm_key, SecretHandle)
    assert isinstance(seen.controller, Controller)
    if seen.controller.spec.external:
        return volumes
    first = volumes[0]["projected"]
    sources = [*first["sources"], key_ring.file(seen.slurm_key.name)]
    return [{**volumes[0], "projected": {**first, "sources": sources}}, *volumes[1:]]


def pod(loginset: LoginSet, address: str, volumes: list[Manifest]) -> Manifest:
    spec, meta = loginset.spec, loginset.metadata
    config = names.ssh_config(meta.name)
    login = container(loginset, address, volumes)
    base: Manifest = {
        "enableServiceLinks": False,
        "dnsConfig": {"searches": [worker_domain(spec.controller_ref.name, meta.namespace)]},
        "initContainers": [initconf(login["image"], spec.initconf)],
        "containers": [login],
        "volumes": [
            *volumes,
            parts.memory_volume("slurm-etc"),
            parts.memory_volume("sackd-dir"),
            parts.projected("ssh-config", 0o600, parts.config_map_file(config, "sshd_config", "sshd_config")),
            parts.projected(
                "authorized-keys", 0o600, parts.config_map_file(config, "authorized_keys", "root")
            ),
        ],
    }
    return parts.pod_spec(base, spec.template, required=(APP, INITCONF))


def initconf(image: str, wishes: Manifest) -> Manifest:
    """Copies the Slurm key to where sackd finds it, with the owner and the mode that it insists on."""
    base: Manifest = {
        "name": INITCONF,
        "image": image,
        "command": ["sh", "-c", _PREPARE_FILES],
        "env": [{"name": "SLURM_USER", "value": "slurm"}],
        "volumeMounts": [
            {"name": "slurm-config", "mountPath": "/mnt/slurm", "readOnly": True},
            {"name": "slurm-etc", "mountPath": "/mnt/etc/slurm"},
        ],
    }
    return parts.container(base, reading.plain(wishes))


def container(loginset: LoginSet, address: str, volumes: list[Manifest]) -> Manifest:
    port = ssh_port(loginset)
    wishes = reading.plain(loginset.spec.login)
    is_given = any(given.get("name") == APP for given in wishes.get("ports") or ())
    ports = [] if is_given else [{"name": APP, "containerPort": port, "protocol": "TCP"}]
    base: Manifest = {
        "name": APP,
        "image": default_image(APP),
        "env": [{"name": "SACKD_OPTIONS", "value": f"--conf-server {address}"}, *_key_environment(volumes)],
        "ports": ports,
        # The programs in the pod are kept running by themselves. A liveness probe would end the sessions of
        # everybody logged in here, so there is none.
        "readinessProbe": {
            "exec": {"command": ["test", "-S", "/run/slurm/sack.socket"]},
            "periodSeconds": 1,
            "failureThreshold": 3,
        },
        "volumeMounts": mounts(volumes),
    }
    return parts.container(base, wishes)


def _key_environment(volumes: list[Manifest]) -> list[Manifest]:
    return [key_ring.ENVIRONMENT] if len(volumes[0]["projected"]["sources"]) > 1 else []


def mounts(volumes: list[Manifest]) -> list[Manifest]:
    """Files at their places. The keys of root are a whole directory: single files are never updated."""
    [host_keys] = [volume for volume in volumes if volume["name"] == "ssh-host-keys"]
    items = host_keys["projected"]["sources"][0]["secret"]["items"]
    return [
        {"name": "slurm-etc", "mountPath": "/etc/slurm", "readOnly": True},
        {"name": "sackd-dir", "mountPath": "/run/slurm"},
        *(_file("ssh-host-keys", "/etc/ssh", item["path"]) for item in items),
        _file("ssh-config", "/etc/ssh", "sshd_config"),
        {"name": "authorized-keys", "mountPath": sshd.AUTHORIZED_KEYS_DIRECTORY, "readOnly": True},
        _file("sssd-conf", "/etc/sssd", SSSD_CONF),
    ]


def host_keys_volume(secret: Secret) -> Manifest:
    """The private keys for root only, or sshd does not take them, and the public ones that there are."""
    items = []
    for private in sshd.host_key_files(secret.digests):
        items.append({"key": private, "path": private, "mode": 0o600})
        if f"{private}.pub" in secret.digests:
            items.append({"key": f"{private}.pub", "path": f"{private}.pub", "mode": 0o644})
    source = {"secret": {"name": secret.metadata.name, "items": items}}
    return parts.projected("ssh-host-keys", 0o600, source)


def _file(volume: str, directory: str, name: str) -> Manifest:
    return {"name": volume, "mountPath": f"{directory}/{name}", "subPath": name, "readOnly": True}
