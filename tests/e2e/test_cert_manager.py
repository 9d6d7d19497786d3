"""cert-manager beside the operator: it makes and renews the webhook's certificate, and may come and leave."""

import base64
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from helm_rig import CHARTS, HOME, Helm
from operator_rig import until

from slurm_local import image
from slurm_local.errors import LocalError
from slurm_local.progress import Quiet
from testing import neighbours

pytestmark = pytest.mark.minutes

WEBHOOK = "slurm-operator-webhook"
SECRET = "slurm-operator-webhook-ca"
NAMESPACE = "asks"

# Only the webhook knows what is in the ConfigMap.
FILES = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "files", "namespace": NAMESPACE},
         "data": {"slurm.conf": "ClusterName=mine\n"}}  # fmt: skip
REFUSED = """
apiVersion: slinky.slurm.net/v1beta1
kind: Controller
metadata: {name: refused, namespace: asks}
spec: {configFileRefs: [{name: files}]}
"""


@pytest.fixture(scope="module")
def helm(fragile_cluster, paths, tmp_path_factory) -> Helm:
    fragile_cluster.load_image(image.operator_archive(paths, Quiet()))
    fragile_cluster.load_image(neighbours.CERT_MANAGER.archive(paths))
    helm = Helm(fragile_cluster)
    chart = neighbours.cert_manager_chart(paths, tmp_path_factory.mktemp("chart"))
    where = ("-n", neighbours.CERTIFICATES, "--create-namespace", "--wait", "--timeout", "300s")
    helm("install", neighbours.CERTIFICATES, str(chart), *where, values=neighbours.cert_manager_values())
    helm("install", "slurm-operator-crds", str(CHARTS / "slurm-operator-crds"))
    for namespace in (HOME, NAMESPACE):
        fragile_cluster.kubectl("create", "namespace", namespace)
    fragile_cluster.apply([FILES])
    return helm


def test_the_webhook_answers_with_its_own_certificate_then_with_cert_managers_then_with_its_own_again(helm):
    helm.install_operator()
    until(lambda: is_refused(helm), 60, lambda: "the webhook to answer with its own certificate")
    own = authority(helm)

    helm.install_operator(certManager={"enabled": True})
    until(lambda: authority(helm) == in_secret(helm, "ca.crt") != "", 120, lambda: conditions(helm))
    until(
        lambda: is_refused(helm),
        60,
        lambda: f"the webhook with cert-manager's certificate: {conditions(helm)}",
    )
    assert authority(helm) != own

    before = in_secret(helm, "tls.crt")
    with never_accepted(helm):
        renew(helm)
        until(lambda: in_secret(helm, "tls.crt") not in ("", before), 120, lambda: conditions(helm))
        until(
            lambda: served(helm) == certificate(helm), 180, lambda: "the webhook to serve the new certificate"
        )
    assert is_refused(helm)

    helm.install_operator(certManager={"enabled": False})
    until(
        lambda: authority(helm) not in ("", in_secret(helm, "ca.crt")), 120, lambda: "an authority of its own"
    )
    until(lambda: is_refused(helm), 60, lambda: "the webhook to answer with its own certificate again")
    assert "slurm-operator-webhook" not in helm.cluster.kubectl(
        "get", "certificates", "-n", HOME, "-o", "name"
    )


def is_refused(helm: Helm) -> bool:
    """Whether the webhook was asked, and could be believed: failurePolicy is Ignore."""
    try:
        helm.cluster.kubectl("apply", "--dry-run=server", "-f", "-", stdin=REFUSED)
    except LocalError as error:
        return "slurm.conf" in str(error)
    return False


@contextmanager
def never_accepted(helm: Helm) -> Iterator[None]:
    """Asks all the time meanwhile."""
    answers, is_over = [], threading.Event()

    def ask() -> None:
        while not is_over.is_set():
            answers.append(is_refused(helm))

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield
    finally:
        is_over.set()
        asking.join()
    assert len(answers) > 3
    assert all(answers)


def authority(helm: Helm) -> str:
    hooks = helm.get("validatingwebhookconfiguration", WEBHOOK)["webhooks"]
    (found,) = {one["clientConfig"].get("caBundle", "") for one in hooks}
    return found


def in_secret(helm: Helm, entry: str) -> str:
    try:
        return helm.get("secret", SECRET, "-n", HOME)["data"].get(entry, "")
    except LocalError:
        return ""


def certificate(helm: Helm) -> str:
    return base64.b64decode(in_secret(helm, "tls.crt")).decode().strip()


def served(helm: Helm) -> str:
    """The certificate that the webhook shows, as its pod's own Python sees it."""
    script = f"import ssl; print(ssl.get_server_certificate(('{WEBHOOK}.{HOME}.svc', 443)))"
    where = ("exec", "-n", HOME, f"deployment/{WEBHOOK}", "--", "python3", "-c", script)
    return helm.cluster.kubectl(*where).strip()


def renew(helm: Helm) -> None:
    """As cert-manager's own command line asks for it."""
    condition = '{"type":"Issuing","status":"True","reason":"ManuallyTriggered","message":"renew","lastTransitionTime":"2026-01-01T00:00:00Z"}'
    patch = f'[{{"op":"add","path":"/status/conditions/-","value":{condition}}}]'
    where = ("-n", HOME, "--subresource=status", "--type=json", "-p", patch)
    helm.cluster.kubectl("patch", "certificate", WEBHOOK, *where)


def conditions(helm: Helm) -> str:
    return helm.cluster.kubectl("get", "certificates,certificaterequests,issuers", "-n", HOME, "-o", "wide")
