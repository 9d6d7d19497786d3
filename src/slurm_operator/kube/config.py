"""Where the API server is and who we are: the pod's own service account, or a kubeconfig."""

from pathlib import Path

from slurm_operator.kube.access import Access


def find(kubeconfig: Path | None = None, context: str = "") -> Access:
    """The given kubeconfig; else KUBECONFIG, the pod's service account, `~/.kube/config`, in that order.

    Raises ConfigProblem with what is missing and where it was looked for.
    """
    raise NotImplementedError


def in_cluster() -> Access:
    """The API server of the pod we run in, with its mounted token (read again as it is renewed) and CA."""
    raise NotImplementedError
