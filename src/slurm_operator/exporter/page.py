"""The page that Prometheus reads, from what was last read of Slurm. A pure function."""

from collections.abc import Iterator
from datetime import datetime

from slurm_operator.exporter import slinky, soperator, sums
from slurm_operator.exporter.facts import Facts
from slurm_operator.exporter.options import Compat, Options
from slurm_operator.exporter.table import Family, Table, capped
from slurm_operator.exporter.tallies import Tallies


def table(facts: Facts, tallies: Tallies, now: datetime, options: Options) -> Table:
    """Every family of the page, each within its cap."""
    return capped(_families(facts, tallies, now, options), options.most_series)


def _families(facts: Facts, tallies: Tallies, now: datetime, options: Options) -> Iterator[Family]:
    people = options.shows_people(facts)
    if options.compat is Compat.SLINKY:
        yield from slinky.families(facts, people=people)
    else:
        yield from soperator.families(facts, tallies, now, people=people, aliases=options.aliases)
    if options.sums:
        yield from sums.families(facts, tallies, now)
