"""`slurm-operator crds`: the custom resource definitions, from the models."""

from pathlib import Path

import click
import yaml

from slurm_operator.api import registry
from slurm_operator.api.reference import pages
from slurm_operator.api.schema.crd import crd
from slurm_operator.cli.echo import echo
from slurm_operator.cli.flags import api_option

# A megabyte of YAML: seconds in Python, a blink where PyYAML comes with libyaml.
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


@click.command()
@click.option(
    "--reference",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write the reference pages there instead.",
)
@api_option
def crds(reference: Path | None, apis: tuple[str, ...]) -> None:
    """Print the custom resource definitions as YAML, for `kubectl apply -f -`."""
    if reference is None:
        definitions = (crd(model) for model in registry.ALL.on(apis).models)
        echo(yaml.dump_all(definitions, Dumper=_DUMPER, sort_keys=False, width=110), nl=False)
        return
    for name, text in pages().items():
        page = reference / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text)
        echo(str(page))
