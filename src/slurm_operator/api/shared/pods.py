"""The parts of pods, containers and claims that manifests may override.

What users write there is passed on as it stands, so any field of Kubernetes works, now and later. The models
in this file describe the fields that people type most, and so mistype most: the API server checks those.
"""

from typing import Any, ClassVar

from slurm_operator.api.schema.model import Rule, model, prop
from slurm_operator.api.schema.openapi import Amount

Json = dict[str, Any]


@model
class EnvVar:
    OPEN: ClassVar[bool] = True

    name: str = prop("Name of the variable.")
    value: str = prop("Its value. Numbers and booleans need quotes.", default="")
    value_from: Json = prop("Takes the value from a Secret, a ConfigMap or the pod itself.", default={})


@model
class ContainerPort:
    OPEN: ClassVar[bool] = True

    name: str = prop("Name of the port, for Services and probes.", default="")
    container_port: int = prop("Port number inside the container.", minimum=1, maximum=65535)
    host_port: int | None = prop(
        "Port number on the Kubernetes node.", default=None, minimum=0, maximum=65535
    )
    protocol: str = prop("TCP, UDP or SCTP.", default="")


@model
class VolumeMount:
    OPEN: ClassVar[bool] = True

    name: str = prop("Which volume of the pod.")
    mount_path: str = prop("Where it appears in the container.")
    sub_path: str = prop("Only this path of the volume.", default="")
    read_only: bool | None = prop("Whether the container may only read it.", default=None)


@model
class Resources:
    OPEN: ClassVar[bool] = True

    limits: dict[str, Amount] = prop("The most it may use, such as `cpu: 4`, `memory: 16Gi`.", default={})
    requests: dict[str, Amount] = prop("What is set aside for it; as `limits` if left out.", default={})


@model
class AddedContainer:
    """A container beside those of the operator. Every field of Kubernetes is accepted."""

    OPEN: ClassVar[bool] = True

    name: str = prop("Name of the container.", default="")
    image: str = prop("Image reference.", default="")
    env: list[Json] = prop("Environment variables, merged by name.", default=[], shape=EnvVar)
    resources: Json = prop("CPU, memory, GPUs.", default={}, shape=Resources)
    volume_mounts: list[Json] = prop("Volumes to mount, merged by path.", default=[], shape=VolumeMount)


@model
class Container(AddedContainer):
    """What to lay over a container of the operator. Every field of Kubernetes is accepted."""

    # The API server lets no null through where the words are an enum, so they are a rule.
    image_pull_policy: str = prop(
        "When to fetch the image: Always, IfNotPresent or Never.",
        default="",
        rules=[
            Rule(
                expression="self in ['', 'Always', 'IfNotPresent', 'Never']",
                message="is Always, IfNotPresent or Never",
            )
        ],
    )
    ports: list[Json] = prop("Ports, merged by number.", default=[], shape=ContainerPort)
    command: list[str] = prop("Replaces the image's entry point.", default=[])
    args: list[str] = prop("Arguments; added after those of the operator.", default=[])
    env_from: list[Json] = prop("Secrets or ConfigMaps whose entries become variables.", default=[])
    security_context: Json = prop("User, capabilities, privileges.", default={})
    liveness_probe: Json = prop("When to restart it.", default={})
    readiness_probe: Json = prop("When it counts as ready.", default={})
    startup_probe: Json = prop("When it counts as started.", default={})
    lifecycle: Json = prop("Hooks after the start and before the end.", default={})


@model
class Named:
    OPEN: ClassVar[bool] = True

    name: str = prop("Its name.", default="")


@model
class Toleration:
    OPEN: ClassVar[bool] = True

    key: str = prop("Key of the taint; empty means any.", default="")
    operator: str = prop("Equal or Exists.", default="")
    value: str = prop("Value of the taint.", default="")
    effect: str = prop("NoSchedule, PreferNoSchedule or NoExecute; empty means any.", default="")
    toleration_seconds: int | None = prop(
        "How long a NoExecute taint is tolerated; absent means forever.", default=None, format="int64"
    )


@model
class PodSpec:
    """A pod, as in Kubernetes. Every field is accepted; containers are added to those of the operator."""

    OPEN: ClassVar[bool] = True

    affinity: Json = prop("Where the pod may or should run.", default={})
    automount_service_account_token: bool | None = prop("Whether the pod gets a token.", default=None)
    containers: list[Json] = prop("More containers.", default=[], shape=AddedContainer)
    dns_config: Json = prop("Nameservers, search domains, options.", default={})
    dns_policy: str = prop("How names are looked up.", default="")
    host_network: bool | None = prop("Whether to use the machine's network.", default=None)
    hostname: str = prop("Host name of the pod.", default="", max_length=253)
    image_pull_secrets: list[Json] = prop("Secrets for private registries.", default=[], shape=Named)
    init_containers: list[Json] = prop("Containers that run first.", default=[], shape=AddedContainer)
    node_selector: dict[str, str] = prop("Labels that the Kubernetes node must have.", default={})
    priority_class_name: str = prop("PriorityClass of the pod.", default="")
    runtime_class_name: str = prop("RuntimeClass of the pod.", default="")
    security_context: Json = prop("User, group and privileges of all containers.", default={})
    service_account_name: str = prop("ServiceAccount of the pod.", default="")
    termination_grace_period_seconds: int | None = prop(
        "How long the pod may take to end.", default=None, minimum=0, format="int64"
    )
    tolerations: list[Json] = prop("Taints that the pod accepts.", default=[], shape=Toleration)
    topology_spread_constraints: list[Json] = prop("How pods spread over zones or machines.", default=[])
    volumes: list[Json] = prop("More volumes, merged by name.", default=[], shape=Named)


@model
class Metadata:
    """Labels and annotations to put on a generated object."""

    labels: dict[str, str] = prop("Labels.", default={}, nullable=True)
    annotations: dict[str, str] = prop("Annotations.", default={}, nullable=True)


@model
class PodTemplate:
    """Laid over the pods that the operator makes."""

    metadata: Metadata = prop("Labels and annotations of the pods.", default=Metadata())
    spec: Json = prop("Any part of a pod.", default={}, shape=PodSpec)


@model
class ClaimMetadata:
    OPEN: ClassVar[bool] = True

    name: str = prop("Name of the claim; a volume of this name refers to it.", min_length=1)


@model
class ClaimSpec:
    """A PersistentVolumeClaim, as in Kubernetes. Every field is accepted."""

    OPEN: ClassVar[bool] = True

    access_modes: list[str] = prop("How the volume may be mounted.", default=[])
    resources: Json = prop("`requests.storage` is the size.", default={}, shape=Resources)
    storage_class_name: str | None = prop(
        "StorageClass; absent means the default one, empty means none.", default=None
    )
    volume_name: str = prop("A certain PersistentVolume.", default="")
    volume_mode: str = prop("Filesystem or Block.", default="")
    selector: Json = prop("Labels of acceptable PersistentVolumes.", default={})
    data_source: Json = prop("Where the first content comes from.", default={})
    data_source_ref: Json = prop("Where the first content comes from.", default={})
    volume_attributes_class_name: str | None = prop("VolumeAttributesClass.", default=None)


@model
class ClaimTemplate:
    """One PersistentVolumeClaim per pod. Every field of Kubernetes is accepted."""

    OPEN: ClassVar[bool] = True

    metadata: Json = prop("Name, labels, annotations.", shape=ClaimMetadata)
    spec: Json = prop("The claim itself.", default={}, shape=ClaimSpec)
