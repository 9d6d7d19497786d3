"""`slurm-operator crds`: the custom resource definitions, from the models."""

from pathlib import Path

import click
import yaml

from slurm_operator.api import KINDS
from slurm_operator.api.crd import crd
from slurm_operator.api.reference import pages


@click.command()
@click.option(
    "--reference",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write the reference pages there instead.",
)
def crds(reference: Path | None) -> None:
    """Print the custom resource definitions as YAML, for `kubectl apply -f -`."""
    if reference is None:
        click.echo(yaml.safe_dump_all((crd(kind) for kind in KINDS), sort_keys=False, width=110), nl=False)
        return
    reference.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (reference / name).write_text(text)
        click.echo(reference / name)
