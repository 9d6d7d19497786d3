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

DEFAULT_IMAGE = f"docker.io/local/slurm-operator:{slurm_operator.__version__}"
WEBHOOK_IMAGE = f"docker.io/local/slurm-operator-webhook:{slurm_operator.__version__}"


@click.command()
@click.option("--namespace", default="slurm-operator", show_default=True, help="Where the operator lives.")
@click.option("--image", default=DEFAULT_IMAGE, show_default=True, help="The operator's image.")
@click.option("--webhook-image", default=WEBHOOK_IMAGE, show_default=True, help="The webhook's image.")
@click.option("--webhook/--no-webhook", default=True, show_default=True, help="With the admission webhook.")
@click.option(
    "--protection/--no-protection",
    default=True,
    show_default=True,
    help="With the policies that protect workers with jobs, and CRDs with all their objects, from deletion.",
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
    cluster_reader: bool,
    record: bool,
    crds: bool,
) -> None:
    """Print everything that an installation consists of, for `kubectl apply --server-side -f -`."""
    chosen = Installation(
        image=image,
        webhook_image=webhook_image if webhook else "",
        is_protecting=protection,
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


def _yaml(objects: Iterable[Manifest]) -> str:
    return str(yaml.dump_all(objects, Dumper=_Plain, sort_keys=False, width=110))


class _Plain(_DUMPER):  # type: ignore[misc,valid-type]
    """Writes a value that stands in two places twice: people read this, and anchors do not help them."""

    def ignore_aliases(self, data: object) -> bool:
        return True
