"""Where the API server is and who we are: the pod's own service account, or a kubeconfig."""

import os
from collections.abc import Mapping
from pathlib import Path

from slurm_operator.kube.auth import kubeconfig as kubeconfigs
from slurm_operator.kube.auth.access import Access
from slurm_operator.kube.auth.credentials import TokenFile
from slurm_operator.kube.auth.tls import Trust
from slurm_operator.kube.errors import ConfigProblem

SERVICE_ACCOUNT_FILES = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def find(
    kubeconfig: Path | None = None,
    context: str = "",
    *,
    environ: Mapping[str, str] = os.environ,
    mounted: Path = SERVICE_ACCOUNT_FILES,
) -> Access:
    """The given kubeconfig; else KUBECONFIG, the pod's service account, `~/.kube/config`, in that order.

    Raises ConfigProblem with what is missing and where it was looked for.
    """
    if kubeconfig is not None:
        return kubeconfigs.load([kubeconfig], context)
    if named := [Path(part) for part in environ.get("KUBECONFIG", "").split(os.pathsep) if part]:
        return kubeconfigs.load(named, context)
    if not context and is_in_cluster(environ, mounted):
        return in_cluster(environ=environ, mounted=mounted)
    usual = Path(environ.get("HOME", "~")).expanduser() / ".kube" / "config"
    if usual.exists():
        return kubeconfigs.load([usual], context)
    raise ConfigProblem(
        f"no API server: KUBECONFIG is not set, there is no {usual}, and this is no pod with a service "
        f"account ({mounted}/token). Set KUBECONFIG or name a file with --kubeconfig."
    )


def is_in_cluster(environ: Mapping[str, str] = os.environ, mounted: Path = SERVICE_ACCOUNT_FILES) -> bool:
    return bool(environ.get("KUBERNETES_SERVICE_HOST")) and (mounted / "token").exists()


def in_cluster(*, environ: Mapping[str, str] = os.environ, mounted: Path = SERVICE_ACCOUNT_FILES) -> Access:
    """The API server of the pod we run in, with its mounted token (read again as it is renewed) and CA."""
    host = environ.get("KUBERNETES_SERVICE_HOST", "")
    if not host:
        raise ConfigProblem("KUBERNETES_SERVICE_HOST is not set: this is no pod of a Kubernetes cluster")
    for name in ("token", "ca.crt"):
        if not (mounted / name).exists():
            raise ConfigProblem(
                f"{mounted / name} is missing; the pod needs `automountServiceAccountToken: true`"
            )
    port = environ.get("KUBERNETES_SERVICE_PORT", "443")
    return Access(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        namespace=_text(mounted / "namespace") or "default",
        trust=Trust(authority=mounted / "ca.crt"),
        credentials=TokenFile(mounted / "token"),
    )


def _text(path: Path) -> str:
    return path.read_text().strip() if path.exists() else ""
