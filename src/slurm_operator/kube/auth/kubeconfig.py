"""kubeconfig files, as `kubectl` reads them: several merged, certificates inline or in files."""

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import yaml

from slurm_operator import wire
from slurm_operator.kube.auth.access import Access
from slurm_operator.kube.auth.credentials import Credentials, Fixed, Headers, Identity, TokenFile, bearer
from slurm_operator.kube.auth.exec_plugin import VERSIONS, ExecCommand, ExecPlugin, may_interact
from slurm_operator.kube.auth.tls import ClientCertificate, Pem, Trust
from slurm_operator.kube.errors import ConfigProblem

T = TypeVar("T")


class _Cluster(wire.Record, rename="kebab"):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""


class _EnvironmentVariable(wire.Record):
    name: str
    value: str = ""


class _Exec(wire.CamelRecord):
    command: str
    api_version: str = ""
    args: list[str] = []
    env: list[_EnvironmentVariable] = []
    install_hint: str = ""
    interactive_mode: str = "IfAvailable"
    provide_cluster_info: bool = False


class _User(wire.Record, rename="kebab"):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = wire.field(name="tokenFile", default="")
    exec: _Exec | None = None
    as_user: str = wire.field(name="as", default="")
    as_uid: str = ""
    as_groups: list[str] = []
    username: str = ""
    auth_provider: dict[str, Any] | None = None


class _Context(wire.Record):
    cluster: str = ""
    user: str = ""
    namespace: str = "default"


class _NamedCluster(wire.Record):
    name: str
    cluster: _Cluster


class _NamedUser(wire.Record):
    name: str
    user: _User


class _NamedContext(wire.Record):
    name: str
    context: _Context


class _File(wire.Record, rename="kebab"):
    clusters: list[_NamedCluster] = []
    users: list[_NamedUser] = []
    contexts: list[_NamedContext] = []
    current_context: str = ""


class _Merged:
    """What several files say together. An entry keeps its directory: paths in it are relative to that."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.where = ", ".join(str(path) for path in paths)
        self.current = ""
        self.clusters: dict[str, tuple[_Cluster, Path]] = {}
        self.users: dict[str, tuple[_User, Path]] = {}
        self.contexts: dict[str, _Context] = {}
        # As kubectl does it: a file that is not there is passed over when several are named.
        for path in paths if len(paths) == 1 else [path for path in paths if path.exists()]:
            self._add(_read(path), path.parent)

    def _add(self, file: _File, directory: Path) -> None:
        self.current = self.current or file.current_context
        for cluster in file.clusters:
            self.clusters.setdefault(cluster.name, (cluster.cluster, directory))
        for user in file.users:
            self.users.setdefault(user.name, (user.user, directory))
        for context in file.contexts:
            self.contexts.setdefault(context.name, context.context)


def load(paths: Sequence[Path], context: str = "") -> Access:
    """One context of the files merged; the first file that says something wins. Raises ConfigProblem."""
    merged = _Merged(paths)
    name = context or merged.current
    if not name:
        raise ConfigProblem(
            f"kubeconfig {merged.where}: no current-context; name one of {_names(merged.contexts)}"
        )
    chosen = _entry(merged.contexts, name, "context", merged.where)
    cluster, directory = _entry(merged.clusters, chosen.cluster, "cluster", merged.where)
    if not cluster.server:
        raise ConfigProblem(f"kubeconfig {merged.where}: cluster {chosen.cluster!r} has no server")
    if not _is_address(cluster.server):
        raise ConfigProblem(
            f"kubeconfig {merged.where}: the server {cluster.server!r} of cluster {chosen.cluster!r} is no "
            "address such as https://10.0.0.1:6443"
        )
    user, user_directory = (
        _entry(merged.users, chosen.user, "user", merged.where) if chosen.user else (_User(), directory)
    )
    if cluster.proxy_url:
        raise ConfigProblem(
            f"kubeconfig {merged.where}: cluster {chosen.cluster!r} is behind a proxy (proxy-url), and this "
            "program speaks to API servers only directly. Name a cluster without proxy-url, or run it where "
            "the API server can be reached."
        )
    return Access(
        server=cluster.server.rstrip("/"),
        namespace=chosen.namespace or "default",
        trust=_trust(cluster, directory),
        credentials=_credentials(user, user_directory, f"user {chosen.user!r}", cluster),
    )


def _is_address(server: str) -> bool:
    try:
        parts = urlsplit(server)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _read(path: Path) -> _File:
    try:
        return wire.convert(_without_nulls(yaml.safe_load(path.read_text()) or {}), _File)
    except OSError as error:
        raise ConfigProblem(f"cannot read kubeconfig {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError, wire.DecodeError, RecursionError) as error:
        raise ConfigProblem(f"kubeconfig {path} is damaged: {error}") from error


def _trust(cluster: _Cluster, directory: Path) -> Trust:
    return Trust(
        authority=_pem(cluster.certificate_authority_data, cluster.certificate_authority, directory),
        insecure=cluster.insecure_skip_tls_verify,
        server_name=cluster.tls_server_name,
    )


def _credentials(user: _User, directory: Path, who: str, cluster: _Cluster) -> Credentials:
    for given, what in ((user.username, "username and password"), (user.auth_provider, "auth-provider")):
        if given:
            raise ConfigProblem(
                f"{who} in the kubeconfig uses {what}, which API servers and we no longer know; use exec"
            )
    others = _impersonation(user)
    if user.exec is not None:
        return ExecPlugin(_command(user.exec, directory, who, cluster), others)
    # As kubectl does it: the file wins over the token, because it can be renewed.
    if user.token_file:
        return TokenFile(directory / user.token_file, others)
    token = (bearer(user.token),) if user.token else ()
    return Fixed(Identity((*others, *token), _certificate(user, directory, who)))


def _certificate(user: _User, directory: Path, who: str) -> ClientCertificate | None:
    certificate = _pem(user.client_certificate_data, user.client_certificate, directory)
    key = _pem(user.client_key_data, user.client_key, directory)
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise ConfigProblem(f"{who} in the kubeconfig has a client certificate or a key, but needs both")
    return ClientCertificate(certificate, key)


def _command(asked: _Exec, directory: Path, who: str, cluster: _Cluster) -> ExecCommand:
    if asked.api_version not in VERSIONS:
        raise ConfigProblem(
            f"{who} in the kubeconfig wants exec with apiVersion {asked.api_version!r}; "
            f"known are {', '.join(VERSIONS)}"
        )
    # A bare name is looked for on PATH; a path is relative to the file that names it.
    command = str(directory / asked.command) if "/" in asked.command else asked.command
    return ExecCommand(
        api_version=asked.api_version,
        command=command,
        args=tuple(asked.args),
        env={variable.name: variable.value for variable in asked.env},
        install_hint=asked.install_hint,
        interactive=may_interact(asked.interactive_mode),
        cluster=_cluster_info(cluster, directory) if asked.provide_cluster_info else None,
    )


def _cluster_info(cluster: _Cluster, directory: Path) -> dict[str, Any]:
    authority = _pem(cluster.certificate_authority_data, cluster.certificate_authority, directory)
    content = authority.read_bytes() if isinstance(authority, Path) else authority or b""
    return {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(content).decode(),
    }


def _impersonation(user: _User) -> Headers:
    named = [("Impersonate-User", user.as_user), ("Impersonate-Uid", user.as_uid)]
    groups = [("Impersonate-Group", group) for group in user.as_groups]
    return tuple((header, value) for header, value in named + groups if value)


def _pem(inline: str, file: str, directory: Path) -> Pem | None:
    """Inline data wins over a file, as in kubectl."""
    if inline:
        try:
            return base64.b64decode(inline, validate=True)
        except binascii.Error as error:
            raise ConfigProblem(f"certificate data in the kubeconfig is no base64: {error}") from error
    return directory / file if file else None


def _entry(entries: Mapping[str, T], name: str, what: str, where: str) -> T:
    if name not in entries:
        raise ConfigProblem(f"kubeconfig {where}: no {what} {name!r}; there are {_names(entries)}")
    return entries[name]


def _names(entries: Iterable[str]) -> str:
    return ", ".join(sorted(repr(name) for name in entries)) or "none"


def _without_nulls(value: Any) -> Any:
    """YAML's `users: null` means the same as leaving it out."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
