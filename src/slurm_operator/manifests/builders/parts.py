"""The pieces that every child object is made of: metadata, Services, volumes, pod templates."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from slurm_operator.api.schema import codec
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared import names
from slurm_operator.api.shared.children import SELECTING
from slurm_operator.api.shared.meta import Meta
from slurm_operator.api.shared.pods import Metadata, PodTemplate
from slurm_operator.api.shared.services import Service
from slurm_operator.api.shared.slurm_series import has_http
from slurm_operator.manifests.builders.owners import owner_reference
from slurm_operator.manifests.compare.differences import APPLIED_DIGEST
from slurm_operator.manifests.merge import merged, merged_container, merged_pod
from slurm_operator.manifests.meta import Manifest

# What tools note on an object for themselves, and we on what a Cluster is made of; copied to a child it would
# be wrong there, and change its pods with every change of the object.
_PRIVATE_ANNOTATIONS = ("kubectl.kubernetes.io/", "meta.helm.sh/", "slinky.slurm.net/force", APPLIED_DIGEST)

# Labels of a chart's version: on a pod template they would replace every pod with each release of the chart.
RELEASE_LABELS = {"helm.sh/chart", "app.kubernetes.io/version", "app.kubernetes.io/managed-by"}


_TCP_PERIOD_SECONDS = 5


class HasPodMetadata(Protocol):
    """A pod template of any of our kinds."""

    @property
    def metadata(self) -> Metadata: ...


class Owner:
    """One of our kinds as the owner of its children: whose labels they carry, whom they follow."""

    def __init__(
        self, kind: Kind, meta: Meta, app: str, component: str, labels: Mapping[str, str] | None = None
    ) -> None:
        self.kind, self.meta, self.app, self.component = kind, meta, app, component
        self._wanted = labels or {}

    @property
    def selector(self) -> dict[str, str]:
        """Finds the pods of this object, and no others.

        Where the user's labels take the place of ours they may be those of a whole cluster, so then labels of
        our own tell which daemon it is, and of which object.
        """
        ours = {names.APP_NAME: self.app, names.APP_INSTANCE: self.meta.name}
        chosen = {key: self._wanted[key] for key in SELECTING if key in self._wanted}
        if not chosen:
            return ours
        part = {names.LABEL_PART: self.app, names.LABEL_PART_NAME: self.meta.name}
        return {**ours, names.APP_COMPONENT: self.component, **chosen, **part}

    @property
    def selector_text(self) -> str:
        """The same as `kubectl get -l` takes it."""
        return ",".join(f"{key}={value}" for key, value in sorted(self.selector.items()))

    @property
    def bare_labels(self) -> dict[str, str]:
        """Of objects that never said which component they belong to."""
        return {**self.selector, **self._wanted}

    @property
    def labels(self) -> dict[str, str]:
        return {**self.selector, names.APP_COMPONENT: self.component, **self._wanted}

    def metadata(self, name: str, *given: Metadata, annotations: Mapping[str, str] | None = None) -> Manifest:
        """Metadata of a child: the owner's labels and annotations, then what was given, then ours."""
        return {
            "name": name,
            "namespace": self.meta.namespace,
            "labels": {**self.meta.labels, **_labels(given), **self.labels},
            "annotations": {
                **public_annotations(self.meta.annotations),
                **_annotations(given),
                **(annotations or {}),
            },
            "ownerReferences": [owner_reference(self.kind, self.meta)],
        }

    def pod_metadata(
        self, template: HasPodMetadata, container: str, annotations: Mapping[str, str] | None = None
    ) -> Manifest:
        """Metadata of a pod template: without the chart's version, so that a release restarts nothing."""
        inherited = {key: value for key, value in self.meta.labels.items() if key not in RELEASE_LABELS}
        given = template.metadata
        labels = {key: value for key, value in given.labels.items() if key not in RELEASE_LABELS}
        return {
            "labels": {**inherited, **labels, **self.labels},
            "annotations": {
                names.DEFAULT_CONTAINER: container,
                **public_annotations(self.meta.annotations),
                **given.annotations,
                **(annotations or {}),
            },
        }

    def bare_child(self, kind: Kind, name: str) -> Manifest:
        """A child without content, to ask whose its name is."""
        return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": self.metadata(name)}

    def config_map(self, name: str, data: Mapping[str, str]) -> Manifest:
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": self.metadata(name), "data": dict(data)}

    def secret(self, name: str, text: Mapping[str, str]) -> Manifest:
        """A Secret whose texts may have marks of secret handles in them."""
        metadata = self.metadata(name)
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": metadata,
            "type": "Opaque",
            "stringData": dict(text),
        }

    def service(self, name: str, wishes: Service, port_name: str, port: int) -> Manifest:
        """The Service that clients use: the user's wishes, our selector, our port."""
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": self.metadata(name, wishes.metadata),
            "spec": self._service_spec(wishes, port_name, port),
        }

    def _service_spec(self, wishes: Service, port_name: str, port: int) -> Manifest:
        # Whoever may set external IPs can catch other people's traffic (CVE-2020-8554).
        spec = {key: value for key, value in wishes.spec.items() if key not in ("externalIPs", "ports")}
        ours: Manifest = {
            "name": port_name,
            "port": wishes.port or port,
            "protocol": "TCP",
            "targetPort": port_name,
        }
        if wishes.node_port:
            ours["nodePort"] = wishes.node_port
        theirs = [given for given in wishes.spec.get("ports") or () if given.get("name") != port_name]
        return {
            **spec,
            "selector": {**(wishes.spec.get("selector") or {}), **self.selector},
            "ports": [*theirs, ours],
        }

    def headless_service(self, name: str, port_name: str, port: int) -> Manifest:
        """Names for each pod, ready or not: how daemons of one cluster find each other."""
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": self.metadata(name),
            "spec": {
                "clusterIP": "None",
                "publishNotReadyAddresses": True,
                "selector": self.selector,
                "ports": [{"name": port_name, "port": port, "protocol": "TCP", "targetPort": port_name}],
            },
        }


def public_annotations(annotations: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in annotations.items() if not key.startswith(_PRIVATE_ANNOTATIONS)}


def _labels(given: Iterable[Metadata]) -> dict[str, str]:
    return {key: value for metadata in given for key, value in metadata.labels.items()}


def _annotations(given: Iterable[Metadata]) -> dict[str, str]:
    return {key: value for metadata in given for key, value in metadata.annotations.items()}


def pod_spec(base: Manifest, template: PodTemplate, required: Sequence[str]) -> Manifest:
    """Our pod with the user's template over it; pods of ours never get a token of the API server."""
    ours = {"automountServiceAccountToken": False, **base}
    return merged_pod(ours, codec.plain(template.spec), required)


def container(base: Manifest, wishes: Mapping[str, Any]) -> Manifest:
    """Our container with the user's wishes over it; its name stays."""
    return merged_container(base, {**wishes, "name": base["name"]})


def projected(name: str, mode: int, *sources: Manifest) -> Manifest:
    return {"name": name, "projected": {"defaultMode": mode, "sources": list(sources)}}


def secret_file(secret: str, key: str, path: str) -> Manifest:
    """One entry of a Secret as a file in a projected volume."""
    return {"secret": {"name": secret, "items": [{"key": key, "path": path}]}}


def config_map_file(config_map: str, key: str, path: str) -> Manifest:
    return {"configMap": {"name": config_map, "items": [{"key": key, "path": path}]}}


def config_map_files(config_map: str) -> Manifest:
    """Every entry of a ConfigMap as a file."""
    return {"configMap": {"name": config_map}}


def memory_volume(name: str) -> Manifest:
    return {"name": name, "emptyDir": {"medium": "Memory"}}


def http_probe(path: str, port: str, *, period_seconds: int, failures: int) -> Manifest:
    return {
        "httpGet": {"path": path, "port": port},
        "periodSeconds": period_seconds,
        "failureThreshold": failures,
    }


def tcp_probe(port: str, *, period_seconds: int, failures: int) -> Manifest:
    return {"tcpSocket": {"port": port}, "periodSeconds": period_seconds, "failureThreshold": failures}


def slurm_probe(image: str, path: str, port: str, *, period_seconds: int, failures: int) -> Manifest:
    """Asks a daemon of Slurm how it is; one that knows no HTTP, whether it listens.

    To that one each question is a connection without a message, which it logs, so it is asked less often.
    """
    if has_http(image):
        return http_probe(path, port, period_seconds=period_seconds, failures=failures)
    return tcp_probe(port, period_seconds=max(period_seconds, _TCP_PERIOD_SECONDS), failures=failures)


def apart_from(labels: Mapping[str, str]) -> Manifest:
    """Never two pods with these labels on one machine."""
    term = {"labelSelector": {"matchLabels": dict(labels)}, "topologyKey": "kubernetes.io/hostname"}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def with_affinity(spec: Manifest, ours: Manifest) -> Manifest:
    """Our affinity terms beside the user's: both must hold."""
    return {**spec, "affinity": merged(ours, spec.get("affinity") or {})}
