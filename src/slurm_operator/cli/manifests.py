"""`slurm-operator manifests`: the whole installation, without Helm."""

from collections.abc import Iterable

import click
import yaml

import slurm_operator
from slurm_operator.api import registry
from slurm_operator.api.schema.crd import crd
from slurm_operator.cli.echo import echo
from slurm_operator.cli.flags import api_option, comma_separated
from slurm_operator.install import Installation, installation
from slurm_operator.install.objects import access, protected
from slurm_operator.manifests.meta import Manifest

# A megabyte of YAML: seconds in Python, a blink where PyYAML comes with libyaml.
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

# Slinky's operator, which is another program.
_SLINKYS = "slinkyproject/slurm-operator"
_EXAMPLE = f"--image REGISTRY/slurm-operator:{slurm_operator.__version__}"


@click.command()
@click.option("--namespace", default="slurm-operator", show_default=True, help="Where the operator lives.")
@click.option(
    "--image", default="", help="The operator's image, in a registry of yours; there is no default."
)
@click.option(
    "--webhook-image",
    default="",
    help="The webhook's; else as the operator's, with -webhook behind its name.",
)
@click.option("--webhook/--no-webhook", default=True, show_default=True, help="With the admission webhook.")
@click.option(
    "--protection/--no-protection",
    default=True,
    show_default=True,
    help="With the policies that protect workers with jobs, and CRDs with all their objects, from deletion.",
)
@click.option(
    "--user-policies/--no-user-policies",
    default=False,
    show_default=True,
    help="With policies: privileged pods, and Tokens for root and slurm, only for those who may `use` them.",
)
@click.option(
    "--image-pull-policy",
    type=click.Choice(["Always", "IfNotPresent", "Never"]),
    default="IfNotPresent",
    show_default=True,
)
@click.option("--replicas", type=click.IntRange(min=1), default=1, show_default=True)
@click.option(
    "--slurm-images",
    default="",
    metavar="PATTERN",
    help="Images for manifests that name none, such as registry/{daemon}:26.05.",
)
@click.option("--mariadb-image", default="", help="The image of managed databases.")
@click.option(
    "--namespaces", default="", help="Comma-separated: where Slurm clusters may be; empty is everywhere."
)
@click.option(
    "--cluster-reader/--no-cluster-reader",
    default=True,
    show_default=True,
    help="With --namespaces: whether a ClusterRole lets the operator look at machines and storage classes.",
)
@click.option("--record", is_flag=True, help="Keep the last decisions, for `kubectl slurm record fetch`.")
@click.option(
    "--only-protection",
    is_flag=True,
    help="Only the policy that protects workers, for an operator that was installed otherwise.",
)
@click.option(
    "--only-rights",
    is_flag=True,
    help="Only roles and their bindings, for an operator that was installed otherwise.",
)
@click.option(
    "--service-account",
    default="slurm-operator",
    show_default=True,
    help="With --only-protection or --only-rights: the operator's ServiceAccount.",
)
@api_option
@click.option("--crds/--no-crds", default=True, show_default=True, help="With the resource definitions.")
def manifests(
    namespace: str,
    image: str,
    webhook_image: str,
    image_pull_policy: str,
    replicas: int,
    slurm_images: str,
    mariadb_image: str,
    namespaces: str,
    service_account: str,
    apis: tuple[str, ...],
    *,
    only_protection: bool,
    only_rights: bool,
    webhook: bool,
    protection: bool,
    user_policies: bool,
    cluster_reader: bool,
    record: bool,
    crds: bool,
) -> None:
    """Print everything that an installation consists of, for `kubectl apply --server-side -f -`."""
    if not (only_protection or only_rights):
        webhook_image = _checked(webhook_image or _webhook_of(image)) if webhook else ""
    chosen = Installation(
        image=_checked(image) if not (only_protection or only_rights) else image,
        webhook_image=webhook_image if webhook else "",
        is_protecting=protection,
        limits_users=user_policies,
        is_recording=record,
        sees_cluster=cluster_reader,
        namespace=namespace,
        pull_policy=image_pull_policy,
        replicas=replicas,
        slurm_images=slurm_images,
        mariadb_image=mariadb_image,
        namespaces=comma_separated(namespaces),
        kinds=registry.ALL.on(apis),
    )
    if only_protection:
        # By names of their own, so that a chart with the policies can be installed beside them or after.
        echo(_yaml(protected(chosen, service_account, f"-{namespace}")), nl=False)
        return
    if only_rights:
        echo(_yaml(access(chosen, service_account)), nl=False)
        return
    objects = [*([crd(model) for model in chosen.needed.models] if crds else []), *installation(chosen)]
    echo(_yaml(objects), nl=False)


def _checked(image: str) -> str:
    """Whoever published an image of a default name would run with the operator's rights: there is none."""
    if not image:
        raise click.UsageError(
            "No image is named, and there is no default. Bring the operator's images to a registry of yours "
            f"and name them: {_EXAMPLE}"
        )
    if _SLINKYS in image:
        raise click.UsageError(
            f"{image} is the image of Slinky's operator, which is another program. "
            f"Name this operator's: {_EXAMPLE}"
        )
    return image


def _webhook_of(image: str) -> str:
    """The same repository with `-webhook` behind it, and the same tag. A digest says nothing of it."""
    if "@" in image:
        raise click.UsageError(
            "An image with a digest says nothing of the webhook's: name --webhook-image too."
        )
    name, colon, tag = image.rpartition(":")
    if not colon or "/" in tag:  # The colon of a port.
        return f"{image}-webhook" if image else ""
    return f"{name}-webhook:{tag}"


def _yaml(objects: Iterable[Manifest]) -> str:
    return str(yaml.dump_all(objects, Dumper=_Plain, sort_keys=False, width=110))


class _Plain(_DUMPER):  # type: ignore[misc,valid-type]
    """Writes a value that stands in two places twice: people read this, and anchors do not help them."""

    def ignore_aliases(self, data: object) -> bool:
        return True
