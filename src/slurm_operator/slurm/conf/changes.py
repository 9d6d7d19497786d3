"""What differs between two configurations, in effect: comments, order and spelling cost nothing."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from slurm_operator.slurm.conf.costs import EXCEPTIONS, Cost, Daemon, Rule, rule
from slurm_operator.slurm.conf.includes import included, load
from slurm_operator.slurm.conf.keys import Table
from slurm_operator.slurm.conf.lines import Pair, Setting


@dataclass(frozen=True, slots=True)
class Change:
    """One key that differs between two configurations."""

    file: str
    key: str
    rule: Rule


def changes(old: Mapping[str, str], new: Mapping[str, str], tables: Mapping[str, Table]) -> list[Change]:
    """Every key that differs in effect, sorted. Comments, order and spelling cost nothing."""
    if old == new:
        return []
    found: list[Change] = []
    parts = included(old, tables) | included(new, tables)
    for file in sorted(old.keys() | new.keys()):
        if file in tables:
            found.extend(_of_file(file, old, new, tables[file]))
        elif old.get(file) != new.get(file) and file not in parts:
            found.append(Change(file, "", rule(file, "")))
    return found


def cost(found: Iterable[Change]) -> Cost:
    """The greatest of them; nothing when there are none."""
    return max((change.rule.cost for change in found), default=Cost.NOTHING)


def restarts(found: Iterable[Change]) -> frozenset[Daemon]:
    """The daemons that must restart before all of these changes are in force."""
    return frozenset(daemon for change in found for daemon in change.rule.daemons)


def _of_file(file: str, old: Mapping[str, str], new: Mapping[str, str], table: Table) -> Iterator[Change]:
    before, after = _effective(old, file, table), _effective(new, file, table)
    for key in sorted(before.keys() | after.keys()):
        if before.get(key) != after.get(key):
            yield from _of_key(file, key, before.get(key, []), after.get(key, []), table)


def _of_key(
    file: str, key: str, before: list[Setting], after: list[Setting], table: Table
) -> Iterator[Change]:
    """The key itself, and of lines with options, each option that differs somewhere."""
    known = table.get(key)
    name = known.name if known else key
    yield Change(file, name, rule(file, name))
    if known and known.options:
        options = {pair.key.lower() for setting in (*before, *after) for pair in setting.pairs[1:]}
        for option in sorted(options):
            if [one.option(option) for one in before] != [one.option(option) for one in after]:
                spelled = known.options[option].name if option in known.options else option
                if spelled in EXCEPTIONS.get(file, {}):
                    yield Change(file, spelled, rule(file, spelled))


def _effective(files: Mapping[str, str], file: str, table: Table) -> dict[str, list[Setting]]:
    """The lines in force by lower-case key: all of a key that repeats, the last of any other."""
    lines: dict[str, list[Setting]] = {}
    for setting in load(files, file).settings if file in files else ():
        key = setting.key.lower()
        known = table.get(key)
        bare = Setting(tuple(_bare(setting)))
        lines[key] = [*lines.get(key, []), bare] if known and known.repeats else [bare]
    return lines


def _bare(setting: Setting) -> Iterator[Pair]:
    """The pairs as Slurm sees them: keys in one case."""
    for pair in setting.pairs:
        yield Pair(pair.key.lower(), pair.value, pair.operator)
