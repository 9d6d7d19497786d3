"""`slurm-operator crds`: the custom resource definitions, from the models."""

from pathlib import Path

import click
import yaml

from slurm_operator.api import KINDS
from slurm_operator.api.crd import crd
from slurm_operator.api.reference import pages

# A megabyte of YAML: seconds in Python, a blink where PyYAML comes with libyaml.
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


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
        definitions = (crd(kind) for kind in KINDS)
        click.echo(yaml.dump_all(definitions, Dumper=_DUMPER, sort_keys=False, width=110), nl=False)
        return
    for name, text in pages().items():
        page = reference / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text)
        click.echo(page)
