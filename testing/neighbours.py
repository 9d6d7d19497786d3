"""Programs of other projects that stand beside the operator in real clusters, built from their Go modules for tests.

Their versions are pinned by the files below `modules/`. What was built is kept with the builds of Kubernetes.
The manifests are those that lie in their modules, with other images.
"""

import json
import platform
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import yaml

from slurm_local.build import builds
from slurm_local.build.builds import GoBuild
from slurm_local.build.stamps import once
from slurm_local.build.toolchain import go
from slurm_local.cluster import Cluster
from slurm_local.image.archive import Image, write_archive
from slurm_local.image.debian import built
from slurm_local.image.tars import File, write_layer
from slurm_local.paths import Paths
from slurm_local.progress import PlainProgress
from testing import prometheus

MODULES = Path(__file__).parent / "modules"

_NONROOT = "65532:65532"
_NODES_OWN_AUTHORITY = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Neighbour:
    """A project, and its programs by the place that each has in an image."""

    name: str
    path: str
    version: str
    programs: tuple[tuple[str, str], ...]
    minutes: int

    @property
    def build(self) -> GoBuild:
        return GoBuild(
            module=self.name,
            version=self.version,
            programs=tuple(program for program, _ in self.programs),
            minutes=f"about {self.minutes} minutes on two cores, once",
            pins=MODULES / self.name,
        )

    def image(self, program: str) -> str:
        return f"docker.io/local/{self.name}-{program}:{self.version}"

    def archive(self, paths: Paths) -> Path:
        """One image for each program; there is nothing else in them."""
        programs = builds.binaries(self.build, paths, PlainProgress())

        def fill(directory: Path) -> None:
            files = {place: File((programs / name).read_bytes(), 0o755) for name, place in self.programs}
            images = [Image(self.image(name), (place,), user=_NONROOT) for name, place in self.programs]
            write_layer(directory / "layer.tar", files)
            write_archive(directory / "images.tar", [directory / "layer.tar"], images, platform.machine())

        return once(paths.images / "archives" / f"beside-{programs.name}", fill) / "images.tar"

    def source(self, paths: Paths) -> Path:
        """The module that the programs were built from."""
        toolchain = go()
        program, environment = toolchain.ready(paths, PlainProgress())
        done = subprocess.run(
            [str(program), "mod", "download", "-json", self.path],
            cwd=builds.directory_of(self.build, toolchain, paths) / "source",
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        )
        return Path(json.loads(done.stdout)["Dir"])


METRICS_SERVER = Neighbour(
    name="metrics-server",
    path="sigs.k8s.io/metrics-server",
    version="0.9.0",
    programs=(("metrics-server", "/metrics-server"),),
    minutes=2,
)
PROMETHEUS_ADAPTER = Neighbour(
    name="prometheus-adapter",
    path="sigs.k8s.io/prometheus-adapter",
    version="0.12.0",
    programs=(("adapter", "/adapter"),),
    minutes=5,
)
KEDA = Neighbour(
    name="keda",
    path="github.com/kedacore/keda/v2",
    version="2.21.0",
    programs=(("operator", "/keda"), ("adapter", "/keda-adapter")),
    minutes=10,
)
PROMETHEUS_OPERATOR = Neighbour(
    name="prometheus-operator",
    path="github.com/prometheus-operator/prometheus-operator",
    version="0.85.0",
    programs=(("operator", "/operator"), ("prometheus-config-reloader", "/prometheus-config-reloader")),
    minutes=5,
)
CERT_MANAGER = Neighbour(
    name="cert-manager",
    path="github.com/cert-manager/cert-manager",
    version="1.11.5",
    programs=(("controller", "/controller"), ("webhook", "/webhook"), ("cainjector", "/cainjector")),
    minutes=5,
)
ALL = (METRICS_SERVER, PROMETHEUS_ADAPTER, KEDA, PROMETHEUS_OPERATOR, CERT_MANAGER)
BUILDS = {one.name: one.build for one in ALL}

# What the end-to-end tests of these files need, beside Prometheus.
OF_TESTS = {
    "test_autoscaling": (METRICS_SERVER, PROMETHEUS_ADAPTER),
    "test_keda": (KEDA,),
    "test_prometheus_operator": (PROMETHEUS_OPERATOR,),
    "test_cert_manager": (CERT_MANAGER,),
}


def prepare(beside: Iterable[Neighbour], paths: Paths) -> None:
    """Makes what takes minutes on a fresh machine."""
    prometheus_archive(paths)
    for one in beside:
        one.archive(paths)
        one.source(paths)


MONITORING = "monitoring"
PROMETHEUS_IMAGE = "docker.io/local/prometheus:3"


def prometheus_archive(paths: Paths) -> Path:
    """The distribution's Prometheus as an image."""
    root = built(prometheus.ROOT, paths, PlainProgress())
    image = Image(PROMETHEUS_IMAGE, ("/usr/bin/prometheus",), user=_NONROOT)

    def fill(directory: Path) -> None:
        write_archive(directory / "images.tar", [root.tar], [image], platform.machine())

    return once(paths.images / "archives" / f"beside-{root.directory.name}", fill) / "images.tar"


def read_manifests(files: Iterable[Path]) -> list[Manifest]:
    return [one for file in files for one in yaml.safe_load_all(file.read_text()) if one]


def kustomized(cluster: Cluster, directory: Path) -> list[Manifest]:
    return [one for one in yaml.safe_load_all(cluster.kubectl("kustomize", str(directory))) if one]


def run_from(manifests: Iterable[Manifest], images: dict[str, str]) -> list[Manifest]:
    """The same objects, whose containers of these names run the images that the nodes have."""
    made = list(manifests)
    for pod in (one["spec"]["template"]["spec"] for one in made if one["kind"] == "Deployment"):
        for container in pod["containers"]:
            if container["name"] in images:
                container |= {"image": images[container["name"]], "imagePullPolicy": "Never"}
    return made


def deployment(manifests: Iterable[Manifest], name: str) -> Manifest:
    (found,) = (one for one in manifests if (one["kind"], one["metadata"]["name"]) == ("Deployment", name))
    return found


def wait_served(cluster: Cluster, *apis: str) -> None:
    for api in apis:
        cluster.kubectl("wait", "--for=condition=Available", f"apiservice/{api}", "--timeout=240s")


def install_metrics_server(cluster: Cluster, paths: Paths) -> None:
    """metrics-server by its own manifests. The kubelets here are known by the cluster's own authority."""
    cluster.load_image(METRICS_SERVER.archive(paths))
    base = METRICS_SERVER.source(paths) / "manifests" / "base"
    images = {"metrics-server": METRICS_SERVER.image("metrics-server")}
    objects = run_from(kustomized(cluster, base), images)
    (container,) = deployment(objects, "metrics-server")["spec"]["template"]["spec"]["containers"]
    container["args"].append(f"--kubelet-certificate-authority={_NODES_OWN_AUTHORITY}")
    cluster.apply(objects)
    wait_served(cluster, "v1beta1.metrics.k8s.io")


def install_prometheus(cluster: Cluster, paths: Paths, configuration: str) -> None:
    """A Prometheus called `prometheus` in namespace `monitoring`."""
    cluster.load_image(prometheus_archive(paths))
    labels = {"app": "prometheus"}
    container = {
        "name": "prometheus", "image": PROMETHEUS_IMAGE, "imagePullPolicy": "Never",
        "args": ["--config.file=/etc/config/prometheus.yml", "--storage.tsdb.path=/data"],
        "ports": [{"name": "http", "containerPort": 9090}],
        "readinessProbe": {"httpGet": {"path": "/-/ready", "port": "http"}, "periodSeconds": 2},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/config"}, {"name": "data", "mountPath": "/data"}],
    }  # fmt: skip
    volumes = [{"name": "config", "configMap": {"name": "prometheus"}}, {"name": "data", "emptyDir": {}}]
    pod = {"securityContext": {"fsGroup": 65532}, "containers": [container], "volumes": volumes}
    where = {"name": "prometheus", "namespace": MONITORING}
    cluster.apply([
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": MONITORING}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": where, "data": {"prometheus.yml": configuration}},
        {"apiVersion": "v1", "kind": "Service", "metadata": where,
         "spec": {"selector": labels, "ports": [{"name": "http", "port": 9090, "targetPort": "http"}]}},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": where,
         "spec": {"selector": {"matchLabels": labels},
                  "template": {"metadata": {"labels": labels}, "spec": pod}}},
    ])  # fmt: skip
    cluster.kubectl("rollout", "status", "deployment/prometheus", "-n", MONITORING, "--timeout=180s")


def install_prometheus_adapter(cluster: Cluster, paths: Paths, configuration: str) -> None:
    """The adapter by its own manifests, with the rules of a guide; it serves external metrics only."""
    cluster.load_image(PROMETHEUS_ADAPTER.archive(paths))
    files = sorted((PROMETHEUS_ADAPTER.source(paths) / "deploy" / "manifests").glob("*.yaml"))
    images = {"prometheus-adapter": PROMETHEUS_ADAPTER.image("adapter")}
    resource_metrics = ("api-service.yaml", "cluster-role-aggregated-metrics-reader.yaml")
    objects = run_from(read_manifests(f for f in files if f.name not in resource_metrics), images)
    made = deployment(objects, "prometheus-adapter")["spec"]
    made["replicas"] = 1
    (container,) = made["template"]["spec"]["containers"]
    replaced = {"--prometheus-url": "http://prometheus.monitoring:9090/", "--metrics-relist-interval": "5s"}
    container["args"] = [
        f"{flag}={replaced.get(flag, value)}"
        for flag, _, value in (argument.partition("=") for argument in container["args"])
    ]
    (rules,) = (one for one in objects if one["kind"] == "ConfigMap")
    rules["data"] = {"config.yaml": configuration}
    cluster.apply([*objects, *external_metrics("prometheus-adapter", MONITORING)])
    wait_served(cluster, "v1beta1.external.metrics.k8s.io")


def external_metrics(service: str, namespace: str) -> list[Manifest]:
    """What the adapter's manifests leave to the user: its Service serves external metrics, and HPAs may read them."""
    group = "external.metrics.k8s.io"
    reader = {"kind": "ServiceAccount", "name": "horizontal-pod-autoscaler", "namespace": "kube-system"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "external-metrics-reader"}
    rule = {"apiGroups": [group], "resources": ["*"], "verbs": ["get", "list", "watch"]}
    rbac = "rbac.authorization.k8s.io/v1"
    return [
        {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": f"v1beta1.{group}"},
         "spec": {"group": group, "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100,
                  "insecureSkipTLSVerify": True, "service": {"name": service, "namespace": namespace}}},
        {"apiVersion": rbac, "kind": "ClusterRole", "metadata": {"name": role["name"]}, "rules": [rule]},
        {"apiVersion": rbac, "kind": "ClusterRoleBinding", "metadata": {"name": role["name"]}, "roleRef": role,
         "subjects": [reader]},
    ]  # fmt: skip


def install_keda(cluster: Cluster, paths: Paths) -> None:
    """KEDA by its own manifests, without its admission webhook."""
    cluster.load_image(KEDA.archive(paths))
    images = {"keda-operator": KEDA.image("operator"), "keda-metrics-apiserver": KEDA.image("adapter")}
    cluster.apply(run_from(kustomized(cluster, KEDA.source(paths) / "config" / "minimal"), images))
    for name in images:
        cluster.kubectl("rollout", "status", f"deployment/{name}", "-n", "keda", "--timeout=240s")
    wait_served(cluster, "v1beta1.external.metrics.k8s.io")


def install_prometheus_operator(cluster: Cluster, paths: Paths) -> None:
    """The Prometheus operator by its own bundle, and a Prometheus that reads every monitor and rule there is."""
    for archive in (PROMETHEUS_OPERATOR.archive(paths), prometheus_archive(paths)):
        cluster.load_image(archive)
    source = PROMETHEUS_OPERATOR.source(paths)
    # Seventy thousand lines, which Python's YAML takes half a minute for.
    bundle = (source / "bundle.yaml").read_text()
    for program, named in (("operator", "prometheus-operator"), ("prometheus-config-reloader",) * 2):
        theirs = f"quay.io/prometheus-operator/{named}:v{PROMETHEUS_OPERATOR.version}"
        assert theirs in bundle
        bundle = bundle.replace(theirs, PROMETHEUS_OPERATOR.image(program))
    cluster.kubectl("apply", "--server-side", "-f", "-", stdin=bundle)
    cluster.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    cluster.kubectl("rollout", "status", "deployment/prometheus-operator", "-n", "default", "--timeout=180s")

    cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": MONITORING}}])
    rights = read_manifests(
        sorted((source / "example" / "rbac" / "prometheus").glob("prometheus-*role*.yaml"))
    )
    for one in rights:
        for subject in one.get("subjects", ()):
            subject["namespace"] = MONITORING
    everything: Manifest = {}
    selectors = {
        f"{kind}{scope}Selector": everything
        for kind in ("serviceMonitor", "podMonitor", "rule")
        for scope in ("", "Namespace")
    }
    where = {"name": "prometheus", "namespace": MONITORING}
    made = {
        "image": PROMETHEUS_IMAGE, "imagePullPolicy": "Never", "version": "3.5.0", "replicas": 1,
        "serviceAccountName": "prometheus", "scrapeInterval": "2s", "evaluationInterval": "2s",
        "securityContext": {"runAsUser": 65532, "runAsNonRoot": True, "fsGroup": 65532}, **selectors,
    }  # fmt: skip
    cluster.apply([
        *rights,
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": where},
        {"apiVersion": "monitoring.coreos.com/v1", "kind": "Prometheus", "metadata": where, "spec": made},
    ])  # fmt: skip
    cluster.kubectl(
        "wait", "--for=condition=Available", "prometheus/prometheus", "-n", MONITORING, "--timeout=240s"
    )


def ask_prometheus(cluster: Cluster, service: str, path: str, **query: str) -> Any:
    """What the API of the Prometheus behind that Service says."""
    url = f"/api/v1/namespaces/{MONITORING}/services/{service}:9090/proxy/api/v1/{path}?{urlencode(query)}"
    answer = json.loads(cluster.kubectl("get", "--raw", url))
    assert answer["status"] == "success", answer
    return answer["data"]


CERTIFICATES = "cert-manager"  # The release, and its namespace.


def cert_manager_chart(paths: Paths, place: Path) -> Path:
    """The chart in the module, which becomes one when it is released: it gets its name and its definitions."""
    deploy = CERT_MANAGER.source(paths) / "deploy"
    chart = place / "cert-manager"
    for file in sorted((deploy / "charts" / "cert-manager").rglob("*")):
        if file.is_file():
            copy = chart / file.relative_to(deploy / "charts" / "cert-manager")
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes())
    for file in sorted((deploy / "crds").glob("crd-*.yaml")):
        (chart / "templates" / file.name).write_bytes(file.read_bytes())
    template = yaml.safe_load((chart / "Chart.template.yaml").read_text())
    told = template | {"version": CERT_MANAGER.version, "appVersion": CERT_MANAGER.version, "annotations": {}}
    (chart / "Chart.yaml").write_text(yaml.safe_dump(told))
    return chart


def cert_manager_values() -> Manifest:
    def image(program: str) -> Manifest:
        repository, _, tag = CERT_MANAGER.image(program).rpartition(":")
        return {"repository": repository, "tag": tag, "pullPolicy": "Never"}

    return {
        "image": image("controller"),
        "webhook": {"image": image("webhook")},
        "cainjector": {"image": image("cainjector")},
        "startupapicheck": {"enabled": False},
    }
