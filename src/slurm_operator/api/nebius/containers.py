"""Containers, images and pods, as SlurmCluster and the kinds beside it describe them."""

from typing import Any

from slurm_operator.api.schema.model import Choice, model, prop
from slurm_operator.api.schema.openapi import Quantity
from slurm_operator.api.shared.pods import AddedContainer, EnvVar, Json, Named, Toleration


class PullPolicy(Choice):
    """When the image is fetched."""

    ALWAYS = "Always", "at every start of the container."
    NEVER = "Never", "never; it has to be on the Kubernetes node already."
    IF_NOT_PRESENT = "IfNotPresent", "when the Kubernetes node does not have it yet."


class ProcMount(Choice):
    """How much of /proc the container sees."""

    DEFAULT = "Default", "the container runtime hides its sensitive parts."
    UNMASKED = "Unmasked", "all of it; needs a user namespace of its own."


PULL_POLICY: Any = prop("When to fetch the image.", default=PullPolicy.IF_NOT_PRESENT)
PULL_SECRETS: Any = prop(
    "Secrets in the same namespace with credentials for private registries.", default=[], shape=Named
)
APP_ARMOR_PROFILE: Any = prop(
    "AppArmor profile: `unconfined`, or `localhost/<name>` for a profile on the Kubernetes node.",
    default="unconfined",
)
AFFINITY: Any = prop("Affinity of the pods, as in Kubernetes.", default={})
NODE_SELECTOR: Any = prop("Labels that the Kubernetes node must have.", default={})
TOLERATIONS: Any = prop("Taints that the pods accept.", default=[], shape=Toleration)
HOST_USERS: Any = prop(
    "Whether the pods use the user namespace of the Kubernetes node. Left out: as Kubernetes decides.",
    default=None,
)


@model
class CustomContainer(AddedContainer):
    """A container of your own. Every field of Kubernetes is accepted."""

    name: str = prop("Name of the container.", min_length=1)


CUSTOM_INIT_CONTAINERS: Any = prop(
    "Init containers of your own, which run before those of the operator.", default=[], shape=CustomContainer
)
LIVENESS_PROBE: Any = prop("When to restart the container; none if left out.", default={})
READINESS_PROBE: Any = prop("When the container counts as ready; no check if left out.", default={})


@model
class NodeContainer:
    """One container of a pod."""

    image: str = prop("Image reference, such as `registry.example/slurmctld:26.05`.")
    command: list[str] = prop("Replaces the entry point of the image.", default=[])
    args: list[str] = prop("Replaces the arguments of the image.", default=[])
    custom_env: list[Json] = prop("More environment variables.", default=[], shape=EnvVar)
    image_pull_policy: PullPolicy = PULL_POLICY
    image_pull_secrets: list[Json] = PULL_SECRETS
    port: int | None = prop("Port on which the daemon listens.", default=None)
    resources: dict[str, Quantity] = prop(
        "What the container requests, such as `cpu: 4`, `memory: 16Gi`. Limits are the same, without cpu.",
        default={},
    )
    liveness_probe: Json = LIVENESS_PROBE
    readiness_probe: Json = READINESS_PROBE
    security_limits_config: str = prop(
        "Contents of /etc/security/limits.conf, one `* <soft|hard> <item> <value>` per line.", default=""
    )
    app_armor_profile: str = APP_ARMOR_PROFILE
    proc_mount: ProcMount | None = prop(
        "How much of /proc the container sees. Left out: Default.", default=None
    )

    @property
    def is_given(self) -> bool:
        """Whether there is an image; typed Go clients write an empty container for none."""
        return self.image != ""


@model
class SlurmNode:
    """What all parts of a Slurm cluster have: how many pods, and where they run."""

    size: int = prop("How many pods to run.", default=0)
    k8s_node_filter_name: str = prop("Where they run: the name of an entry of k8sNodeFilters.")
    custom_init_containers: list[Json] = CUSTOM_INIT_CONTAINERS
    priority_class: str = prop("PriorityClass of the pods.", default="")
    host_users: bool | None = HOST_USERS


@model
class Image:
    """An image in parts: `<repository>:<tag>`."""

    repository: str = prop("Image reference without its tag.")
    tag: str = prop("Tag of the image.", default="")
    pull_policy: PullPolicy = PULL_POLICY

    @property
    def reference(self) -> str:
        return f"{self.repository}:{self.tag}" if self.tag else self.repository


@model
class Security:
    """What the container may do."""

    limits_config: str = prop(
        "Contents of /etc/security/limits.conf, one `* <soft|hard> <item> <value>` per line.", default=""
    )
    app_armor_profile: str = APP_ARMOR_PROFILE
    proc_mount: ProcMount | None = prop(
        "How much of /proc the container sees. Left out: Default.", default=None
    )


SSSD_DEBUG_LEVEL: Any = prop("How much sssd logs; 0 is least.", default=0, minimum=0)
SSSD_CONF: Any = prop(
    "Secret with your own sssd.conf. Left out: the operator writes a plain one.", default=""
)
SSSD_CA: Any = prop(
    "ConfigMap with the certificates by which sssd trusts the LDAP server.",
    default="",
    name="sssdLdapCAConfigMapRefName",
)
