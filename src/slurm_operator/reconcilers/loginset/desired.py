"""The objects of a LoginSet: configuration of sshd and sssd, Services, and what its pods belong to."""

from slurm_operator.api.schema import codec
from slurm_operator.api.shared import names
from slurm_operator.api.shared.auth import SlurmUser, with_munge
from slurm_operator.api.shared.config_source import ConfigSource
from slurm_operator.api.shared.images import default_image
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.key_secrets import munge_key
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.manifests import kinds
from slurm_operator.manifests.builders import hardening, key_ring, munge, parts, sshd
from slurm_operator.manifests.builders.dns import controller_address, service_domain, worker_domain
from slurm_operator.manifests.builders.workloads import Wish, login_kind, with_input
from slurm_operator.manifests.digests import digest
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.objects import Secret
from slurm_operator.manifests.secrets import SecretHandle
from slurm_operator.reconcilers.loginset.observe import APP, SSSD_CONF, Seen

INITCONF = "initconf"

# sackd reads the key as Slurm's user, and only if nobody else can.
_PREPARE_FILES = """\
set -eu
cp -L /mnt/slurm/* /mnt/etc/slurm/
chown {uid}:{gid} /mnt/etc/slurm/*
chmod 600 /mnt/etc/slurm/*
"""


def owner(loginset: LoginSet) -> parts.Owner:
    return parts.Owner(
        LoginSet.KIND, loginset.metadata, app=APP, component="login", labels=loginset.spec.children.labels
    )


def named_objects(loginset: LoginSet) -> list[Manifest]:
    """What is made for it under a name that somebody may have chosen."""
    called, ours = loginset.child_names, owner(loginset)
    headless = ((kinds.SERVICE, called.headless_service),) if loginset.spec.ordered else ()
    named = (
        (kinds.SERVICE, called.service),
        *headless,
        (login_kind(loginset), called.workload),
        (kinds.CONFIG_MAP, called.ssh_config),
    )
    return [ours.bare_child(kind, name) for kind, name in named]


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
    return owner(loginset).service(loginset.child_names.service, loginset.spec.service, APP, names.SSH_PORT)


def services(loginset: LoginSet) -> list[Manifest]:
    """The one that people use, and the one that gives each of the ordered pods a name."""
    return [service(loginset), *([headless_service(loginset)] if loginset.spec.ordered else [])]


def headless_service(loginset: LoginSet) -> Manifest:
    return owner(loginset).headless_service(loginset.child_names.headless_service, APP, names.SSH_PORT)


def ssh_config(loginset: LoginSet, host_keys: Secret) -> Manifest:
    spec = loginset.spec
    forwards_x11 = not sshd.is_set_for_all("X11Forwarding", spec.extra_sshd_config)
    data = {
        "sshd_config": sshd_config(loginset, host_keys, forwards_x11=forwards_x11),
        "authorized_keys": sshd.authorized_keys(spec.root_ssh_authorized_keys),
    }
    return owner(loginset).config_map(loginset.child_names.ssh_config, data)


def sshd_config(loginset: LoginSet, host_keys: Secret, *, forwards_x11: bool) -> str:
    extra, files = loginset.spec.extra_sshd_config, sshd.host_key_files(host_keys.digests)
    port = ssh_port(loginset)
    lines = sshd.sshd_config(extra, port=port, host_keys=files, forwards_x11=forwards_x11)
    return lines + sshd.keys_of_root()


def workload(seen: Seen) -> Manifest:
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
        *_key_volumes(seen.controller, seen.slurm_key),
        host_keys_volume(seen.host_keys),
        parts.projected(
            "sssd-conf", 0o600, parts.secret_file(seen.sssd_conf.name, seen.sssd_conf.key, SSSD_CONF)
        ),
    ]
    manifest: Manifest = {
        "apiVersion": "apps/v1",
        "kind": login_kind(loginset).kind,
        "metadata": ours.metadata(loginset.child_names.workload, spec.template.metadata),
        "spec": {
            "replicas": spec.replicas,
            "revisionHistoryLimit": 0,
            "selector": {"matchLabels": ours.selector},
            **_replacement(loginset),
            "template": hardening.noted(
                {"metadata": metadata, "spec": pod(loginset, seen.controller, with_ring(seen, volumes))}
            ),
        },
    }
    wishes = [Wish(one) for one in (spec.login, spec.initconf, spec.template)]
    inputs = [metadata, wishes, volumes, controller_address(seen.controller)]
    if spec.config_source is not ConfigSource.CONFIGLESS:
        inputs.append(spec.config_source)
    if (auth := with_munge(seen.controller.spec.auth)) is not None:
        inputs.append([munge.volumes(munge_key(seen.controller)), Wish(auth.munge)])
    return with_input(manifest, *inputs)


def _replacement(loginset: LoginSet) -> Manifest:
    """How pods are named and replaced. Ordered ones need not wait for each other to start."""
    spec = loginset.spec
    if spec.ordered:
        return {"serviceName": loginset.child_names.headless_service, "podManagementPolicy": "Parallel"}
    return {"strategy": codec.plain(spec.strategy)} if spec.strategy else {}


def _key_volumes(controller: Controller, key: SecretHandle) -> list[Manifest]:
    """The Slurm key; none with munge, for a sackd that has one uses auth/slurm (seen with 26.05)."""
    if with_munge(controller.spec.auth) is not None:
        return []
    return [
        parts.projected("slurm-config", 0o600, parts.secret_file(key.name, key.key, names.SLURM_KEY_FILE))
    ]


def with_ring(seen: Seen, volumes: list[Manifest]) -> list[Manifest]:
    """The same volumes, with all Slurm keys beside the one; where slurmctld is not ours there is only one."""
    assert isinstance(seen.slurm_key, SecretHandle)
    assert isinstance(seen.controller, Controller)
    if seen.controller.spec.external or with_munge(seen.controller.spec.auth) is not None:
        return volumes
    first = volumes[0]["projected"]
    sources = [*first["sources"], key_ring.file(seen.slurm_key.name)]
    return [{**volumes[0], "projected": {**first, "sources": sources}}, *volumes[1:]]


def pod(loginset: LoginSet, controller: Controller, volumes: list[Manifest]) -> Manifest:
    spec, config = loginset.spec, loginset.child_names.ssh_config
    login = container(loginset, controller, volumes)
    auth = with_munge(controller.spec.auth)
    base: Manifest = {
        "enableServiceLinks": False,
        "dnsConfig": {"searches": searched(loginset, controller)},
        "initContainers": [
            munge.sidecar(auth, login["image"])
            if auth is not None
            else initconf(login["image"], spec.initconf, controller.user)
        ],
        "containers": [login],
        "volumes": [
            *volumes,
            parts.memory_volume("slurm-etc"),
            parts.memory_volume("sackd-dir"),
            parts.projected("ssh-config", 0o600, parts.config_map_file(config, "sshd_config", "sshd_config")),
            parts.projected(
                "authorized-keys", 0o600, parts.config_map_file(config, "authorized_keys", "root")
            ),
            *(munge.volumes(munge_key(controller)) if auth is not None else []),
        ],
    }
    whole = parts.pod_spec(base, spec.template, required=(APP, INITCONF, munge.NAME))
    return hardening.confined(whole, (munge.NAME,))


def searched(loginset: LoginSet, controller: Controller) -> list[str]:
    """The domains in which workers, and ordered login pods, have their bare host names."""
    workers = worker_domain(controller)
    own = service_domain(loginset.child_names.headless_service, loginset.metadata.namespace)
    return [workers, own] if loginset.spec.ordered else [workers]


def initconf(image: str, wishes: Manifest, user: SlurmUser) -> Manifest:
    """Copies the Slurm key to where sackd finds it, with the owner and the mode that it insists on."""
    base: Manifest = {
        "name": INITCONF,
        "image": image,
        "command": ["sh", "-c", _PREPARE_FILES.format(uid=user.uid, gid=user.gid)],
        "env": [{"name": "SLURM_USER", "value": user.name}],
        "volumeMounts": [
            {"name": "slurm-config", "mountPath": "/mnt/slurm", "readOnly": True},
            {"name": "slurm-etc", "mountPath": "/mnt/etc/slurm"},
        ],
    }
    return parts.container(base, codec.plain(wishes))


def container(loginset: LoginSet, controller: Controller, volumes: list[Manifest]) -> Manifest:
    is_munge, address = with_munge(controller.spec.auth) is not None, controller_address(controller)
    port = ssh_port(loginset)
    wishes = codec.plain(loginset.spec.login)
    is_given = any(given.get("name") == APP for given in wishes.get("ports") or ())
    ports = [] if is_given else [{"name": APP, "containerPort": port, "protocol": "TCP"}]
    base: Manifest = {
        "name": APP,
        "image": default_image(APP),
        "env": [
            *_options(loginset, address),
            *([] if is_munge else _key_environment(loginset, volumes)),
            *_user_environment(controller),
        ],
        "ports": ports,
        # A supervisor keeps the programs in the pod running. A liveness probe would end the sessions of
        # everybody logged in here, so there is none.
        "readinessProbe": {
            "exec": {
                "command": munge.ready(loginset.spec.config_source)
                if is_munge
                else ["test", "-S", "/run/slurm/sack.socket"]
            },
            "periodSeconds": 1,
            "failureThreshold": 3,
        },
        "volumeMounts": [*mounts(loginset, volumes), *([munge.mount()] if is_munge else [])],
    }
    return parts.container(base, wishes)


def _user_environment(controller: Controller) -> list[Manifest]:
    """Whom sackd runs as, where that is not the usual user."""
    name = controller.user.name
    return [{"name": "SLURM_USER", "value": name}] if name != names.SLURM_USER else []


def _options(loginset: LoginSet, address: str) -> list[Manifest]:
    """How sackd is started; with files of its own it needs no server."""
    is_configless = loginset.spec.config_source is ConfigSource.CONFIGLESS
    return [{"name": "SACKD_OPTIONS", "value": f"--conf-server {address}"}] if is_configless else []


def _key_environment(loginset: LoginSet, volumes: list[Manifest]) -> list[Manifest]:
    has_ring = len(volumes[0]["projected"]["sources"]) > 1
    return key_ring.environment(loginset.spec.config_source, has_ring=has_ring)


def mounts(loginset: LoginSet, volumes: list[Manifest]) -> list[Manifest]:
    """Files at their places. The keys of root are a whole directory: single files are never updated."""
    [host_keys] = [volume for volume in volumes if volume["name"] == "ssh-host-keys"]
    items = host_keys["projected"]["sources"][0]["secret"]["items"]
    return [
        {
            "name": "slurm-etc",
            "mountPath": key_ring.directory(loginset.spec.config_source),
            "readOnly": True,
        },
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
