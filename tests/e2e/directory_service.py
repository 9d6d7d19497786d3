"""A directory of users that nobody operates: slapd in a pod, for sssd to ask."""

from pathlib import Path

from foreign_database import secret

from slurm_local.image.debian import DebianRoot, unpacked
from slurm_local.image.images import slurm_image
from slurm_local.paths import Paths
from slurm_local.progress import Progress

NAME = "directory"
USER, NUMBER = "ada", 20001
SSSD_SECRET = "sssd"
BASE = "dc=example,dc=org"

ROOT = DebianRoot(name="directory", packages=("slapd",), minutes="about a minute, once")

_SLAPD_CONF = f"""\
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
include /etc/ldap/schema/nis.schema
modulepath /usr/lib/ldap
moduleload back_mdb
database mdb
suffix "{BASE}"
directory /var/lib/ldap
"""

_USERS = f"""\
dn: {BASE}
objectClass: dcObject
objectClass: organization
o: example
dc: example

dn: uid={USER},{BASE}
objectClass: inetOrgPerson
objectClass: posixAccount
uid: {USER}
cn: Ada
sn: Lovelace
uidNumber: {NUMBER}
gidNumber: {NUMBER}
homeDirectory: /home/{USER}
loginShell: /bin/bash

dn: cn=makers,{BASE}
objectClass: posixGroup
cn: makers
gidNumber: {NUMBER}
"""

# Without StartTLS, which sssd asks for by default: the directory has no certificates.
_SSSD_CONF = f"""\
[sssd]
services = nss, pam
domains = example

[domain/example]
id_provider = ldap
auth_provider = none
access_provider = permit
ldap_uri = ldap://{NAME}
ldap_id_use_start_tls = false
ldap_search_base = {BASE}
"""

_START = (
    "slapd -T add -f /mnt/slapd.conf -l /mnt/users.ldif && exec slapd -f /mnt/slapd.conf -h ldap:/// -d 0"
)


def manifests(namespace: str, paths: Paths, progress: Progress) -> list[dict]:
    """The pod, its Service, and sssd.conf in a Secret. Its root is that of this machine, which all nodes are."""
    labels = {"app": NAME}
    meta = {"name": NAME, "namespace": namespace, "labels": labels}
    files = {"slapd.conf": _SLAPD_CONF, "users.ldif": _USERS}
    mounts = {"root": "/directory", "data": "/directory/var/lib/ldap", "files": "/directory/mnt"}
    pod = {
        "containers": [
            {
                "name": "slapd",
                "image": slurm_image("slurmd"),
                "imagePullPolicy": "Never",
                "command": ["chroot", "/directory", "sh", "-c", _START],
                "readinessProbe": {"tcpSocket": {"port": 389}, "periodSeconds": 1},
                "volumeMounts": [{"name": name, "mountPath": path} for name, path in mounts.items()],
            }
        ],
        "volumes": [
            {"name": "root", "hostPath": {"path": str(_root(paths, progress))}},
            {"name": "data", "emptyDir": {}},
            {"name": "files", "configMap": {"name": NAME}},
        ],
        "terminationGracePeriodSeconds": 1,
    }
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": files},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": meta,
            "spec": {"selector": labels, "ports": [{"port": 389}]},
        },
        {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod},
        secret(namespace, SSSD_SECRET, **{"sssd.conf": _SSSD_CONF}),
    ]


def _root(paths: Paths, progress: Progress) -> Path:
    return unpacked(ROOT, paths, progress)
