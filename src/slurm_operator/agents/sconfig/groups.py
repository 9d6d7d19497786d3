"""JailedConfigs, sorted into groups that are written together: which files each of them asks for.

A group is everything with one aggregation label; without the label a JailedConfig stands alone. Slurm reads
the files of a group together, so a group is written whole: a member that cannot be read holds up the others.
Of two JailedConfigs that name one path the first keeps it, and the other is left out of its group: nobody can
stop a cluster's own configuration with a second object.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple

from slurm_operator.agents.sconfig.files import FILE_MODE, WantedFile
from slurm_operator.agents.sconfig.paths import BadPath, Place
from slurm_operator.api.shared.conditions import Condition
from slurm_operator.conditions import Reason

FILES_WRITTEN: Final = "FilesWritten"
ACTIONS_COMPLETED: Final = "UpdateActionsCompleted"

# By name what each ConfigMap holds, None where there is none. One that is not in here is not known yet.
Contents = Mapping[str, Mapping[str, bytes] | None]


class UpdateAction(StrEnum):
    """What is done after the files of a group were written."""

    RECONFIGURE = "Reconfigure"


@dataclass(frozen=True)
class Item:
    key: str
    path: str
    mode: int | None = None


@dataclass(frozen=True)
class JailedConfig:
    """One JailedConfig, as far as the writer looks at it."""

    name: str
    created_at: datetime
    config_map: str
    items: tuple[Item, ...] = ()
    default_mode: int | None = None
    actions: tuple[UpdateAction, ...] = ()
    aggregation: str = ""
    is_managed: bool = False  # It belongs to a SlurmCluster.
    conditions: tuple[Condition, ...] = ()

    def condition(self, type_: str) -> Condition | None:
        return next((condition for condition in self.conditions if condition.type == type_), None)


@dataclass(frozen=True)
class Trouble:
    """Why the files of a JailedConfig are not known, or not written: its author has to change something."""

    reason: Reason
    message: str


@dataclass(frozen=True)
class Member:
    """A JailedConfig in its group. Without `files` there is a trouble, or its ConfigMap is not known yet."""

    config: JailedConfig
    files: tuple[WantedFile, ...] = ()
    trouble: Trouble | None = None
    is_unread: bool = False
    notes: tuple[str, ...] = ()  # Whom it was preferred to.

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def is_left_out(self) -> bool:
        return self.trouble is not None and self.trouble.reason is Reason.PATH_CONFLICT


class GroupKey(NamedTuple):
    """The aggregation label, or without one the name of the only member."""

    aggregation: str
    name: str = ""

    def __str__(self) -> str:
        return self.aggregation or self.name


@dataclass(frozen=True)
class Group:
    key: GroupKey
    members: tuple[Member, ...]

    @property
    def active(self) -> tuple[Member, ...]:
        """Those whose files are written."""
        return tuple(member for member in self.members if not member.is_left_out)

    @property
    def files(self) -> tuple[WantedFile, ...]:
        return tuple(file for member in self.active for file in member.files)

    @property
    def blockers(self) -> tuple[Member, ...]:
        return tuple(member for member in self.active if member.trouble is not None)

    @property
    def unread(self) -> tuple[Member, ...]:
        return tuple(member for member in self.active if member.is_unread)

    @property
    def wants_reconfigure(self) -> bool:
        return any(UpdateAction.RECONFIGURE in member.config.actions for member in self.active)

    @property
    def is_aggregated(self) -> bool:
        return bool(self.key.aggregation)

    @property
    def digest(self) -> str:
        """Changes with whatever is wanted of this group."""
        found = hashlib.sha256()
        for member in self.members:
            found.update(
                repr((member.name, member.config.actions, member.trouble, member.is_unread)).encode()
            )
            for file in member.files:
                found.update(repr((file.path, file.mode, file.owner)).encode())
                found.update(hashlib.sha256(file.content).digest())
        return found.hexdigest()


def grouped(configs: Iterable[JailedConfig], contents: Contents) -> tuple[Group, ...]:
    """Every JailedConfig in its group, with its files or with what is wrong with it."""
    by_key: dict[GroupKey, list[Member]] = {}
    for member in _members(configs, contents):
        by_key.setdefault(_key(member.config), []).append(member)
    return tuple(
        Group(key, tuple(sorted(members, key=lambda member: member.name)))
        for key, members in sorted(by_key.items())
    )


def _key(config: JailedConfig) -> GroupKey:
    return GroupKey(config.aggregation) if config.aggregation else GroupKey("", config.name)


def _members(configs: Iterable[JailedConfig], contents: Contents) -> Iterable[Member]:
    """Each path belongs to the first who names it: the cluster's own, then the oldest, then by name."""
    owners: dict[tuple[str, ...], str] = {}
    found: dict[str, Member] = {}
    notes: dict[str, list[str]] = {}
    for config in sorted(configs, key=lambda each: (not each.is_managed, each.created_at, each.name)):
        rival, path = _rival(config, owners)
        if rival:
            found[config.name] = Member(config, trouble=_conflict(path, rival))
            notes.setdefault(rival, []).append(
                f"JailedConfig {config.name} also names {path}; it is ignored."
            )
            continue
        owners |= dict.fromkeys(_paths(config), config.name)
        found[config.name] = _member(config, contents)
    return [_with_notes(member, notes.get(name, [])) for name, member in found.items()]


def _with_notes(member: Member, notes: list[str]) -> Member:
    return Member(member.config, member.files, member.trouble, member.is_unread, tuple(notes))


def _paths(config: JailedConfig) -> Iterable[tuple[str, ...]]:
    for item in config.items:
        try:
            place = Place.parse(item.path)
        except BadPath:
            continue
        yield (*place.directories, place.name)


def _rival(config: JailedConfig, owners: Mapping[tuple[str, ...], str]) -> tuple[str, str]:
    """Who has one of its paths, or needs it as a directory, or the other way round; and which path."""
    for parts in _paths(config):
        for owned, owner in owners.items():
            length = min(len(owned), len(parts))
            if owned[:length] == parts[:length]:
                return owner, "/" + "/".join(parts)
    return "", ""


def _conflict(path: str, rival: str) -> Trouble:
    message = (
        f"{path} belongs to JailedConfig {rival}, which names it too. "
        "Nothing of this JailedConfig is written. Remove the path from one of the two."
    )
    return Trouble(Reason.PATH_CONFLICT, message)


def _member(config: JailedConfig, contents: Contents) -> Member:
    trouble = _invalid(config)
    if trouble is not None:
        return Member(config, trouble=trouble)
    if config.config_map not in contents:
        return Member(config, is_unread=True)
    content = contents[config.config_map]
    if content is None:
        message = f"There is no ConfigMap {config.config_map}. The files are written as soon as there is one."
        return Member(config, trouble=Trouble(Reason.NOT_FOUND, message))
    missing = sorted({item.key for item in config.items} - content.keys())
    if missing:
        has = ", ".join(sorted(content)) or "nothing"
        message = f"ConfigMap {config.config_map} has no key {', '.join(missing)}. It has {has}."
        return Member(config, trouble=Trouble(Reason.INVALID_ITEM, message))
    return Member(config, files=tuple(_file(config, item, content) for item in config.items))


def _file(config: JailedConfig, item: Item, content: Mapping[str, bytes]) -> WantedFile:
    return WantedFile(str(Place.parse(item.path)), content[item.key], _mode(config, item))


def _mode(config: JailedConfig, item: Item) -> int:
    given = (mode for mode in (item.mode, config.default_mode) if mode is not None)
    return next(given, FILE_MODE)


def _invalid(config: JailedConfig) -> Trouble | None:
    problem = next(_problems(config), None)
    return Trouble(Reason.INVALID_ITEM, problem) if problem is not None else None


def _problems(config: JailedConfig) -> Iterator[str]:
    if not config.items:
        yield "spec.items is empty. Name the path of each key: a key is no absolute path."
    seen: set[str] = set()
    for index, item in enumerate(config.items):
        try:
            path = str(Place.parse(item.path))
        except BadPath as why:
            yield f"spec.items[{index}].path: {why}"
            continue
        if path in seen:
            yield f"spec.items[{index}].path: {path} is named twice."
        seen.add(path)
        mode = _mode(config, item)
        if not (0 <= mode <= 0o777 and mode & 0o400):
            yield f"spec.items[{index}]: mode {mode:o} (octal) is not allowed; use 400 to 777."
