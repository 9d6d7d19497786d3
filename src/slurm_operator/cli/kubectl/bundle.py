"""`kubectl slurm bundle`."""

from pathlib import Path

import click
from rich.text import Text

from slurm_operator import wire
from slurm_operator.cli.kubectl.shared.session import Session, output, run, where
from slurm_operator.insight.bundle.archive import About, Files, about, pack
from slurm_operator.insight.bundle.collection import Collector, NothingThere, default_name
from slurm_operator.insight.text import output as show


class Packed(wire.Record):
    """What was written."""

    file: str
    bytes: int
    files: int
    is_scrubbed: bool
    missing_rights: tuple[str, ...] = ()


@click.command()
@click.option("-f", "--file", type=click.Path(dir_okay=False, path_type=Path), help="Where to write it.")
@click.option("--tail", type=click.IntRange(min=0), default=500, show_default=True, help="Lines of each log.")
@output
@where
def bundle(session: Session, file: Path | None, tail: int, output: str) -> None:
    """Pack what support needs into one archive: objects, events, ends of logs, what Slurm says.

    Secrets are left out, and their values taken out of everything else. Users, jobs, nodes and images are in
    it by name. Whoever has the archive sees what you see: `kubectl slurm status --bundle FILE`.
    """
    try:
        files = run(_collect(session, tail))
    except NothingThere as problem:
        raise click.ClickException(str(problem)) from problem
    told = about(files)
    to = file or Path(default_name(session.namespace))
    try:
        size = pack(files, to, told.taken_at)
    except OSError as error:
        raise click.ClickException(f"Cannot write {to}: {error}") from error
    packed = _packed(to, size, files, told)
    show.emit(output, packed, lambda: _text(packed))


async def _collect(session: Session, tail: int) -> Files:
    async with session.looker() as looker:
        return await Collector(looker, tail=tail).collect()


def _packed(to: Path, size: int, files: Files, told: About) -> Packed:
    rights = tuple(sorted({one.right for one in told.unseen if one.right}))
    return Packed(
        file=str(to), bytes=size, files=len(files), is_scrubbed=told.is_scrubbed, missing_rights=rights
    )


def _text(packed: Packed) -> Text:
    size = f"{packed.bytes / 1024:.0f} KiB"
    lines = [show.paragraph(f"{packed.file}: {show.counted(packed.files, 'file')}, {size}.")]
    if not packed.is_scrubbed:
        warning = "Secrets could not be read, so their values were not looked for in logs and objects."
        lines.append(show.paragraph(show.Cell(warning, show.BUSY)))
    if packed.missing_rights:
        lines.append(show.paragraph(f"Left out for want of rights: {', '.join(packed.missing_rights)}."))
    lines.append(
        show.paragraph("Look it through before you hand it on; README.txt in it says what is where.")
    )
    return show.joined(lines)
