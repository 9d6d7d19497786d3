"""JailedConfigs and what became of their files, in a line each."""

from datetime import UTC, datetime, timedelta

from slurm_operator.agents.sconfig.files import Fate, Result
from slurm_operator.agents.sconfig.groups import (
    ACTIONS_COMPLETED,
    FILES_WRITTEN,
    Group,
    Item,
    JailedConfig,
    UpdateAction,
    grouped,
)
from slurm_operator.conditions import Reason
from slurm_operator.plan.conditions import Condition, false, true

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

RECONFIGURE = (UpdateAction.RECONFIGURE,)

CONTENTS = {
    "slurm": {"slurm.conf": b"slurm", "gres.conf": b"gres"},
    "topology": {"topology.conf": b"topology"},
    "gone": None,
}


def config(name: str = "slurm", *paths: str, minutes: int = 0, **more) -> JailedConfig:
    """By default each path has the ConfigMap's key of its own name."""
    items = tuple(Item(path.rsplit("/", 1)[-1], path) for path in paths or ("/etc/slurm/slurm.conf",))
    given = {"config_map": name, "items": items, "created_at": NOON + timedelta(minutes=minutes)}
    return JailedConfig(name, **(given | more))


def topology(**more) -> JailedConfig:
    return config("topology", "/etc/slurm/topology.conf", **more)


def conditions(files: Condition, actions: Condition) -> tuple[Condition, Condition]:
    return files, actions


DONE = (
    true(FILES_WRITTEN, Reason.SUCCESS),
    true(ACTIONS_COMPLETED, Reason.SUCCESS, "Slurm has read the files."),
)
OWED = (false(FILES_WRITTEN, Reason.REFRESH), false(ACTIONS_COMPLETED, Reason.REFRESH))
OWED_AFTER_FAILURE = (
    true(FILES_WRITTEN, Reason.SUCCESS),
    false(ACTIONS_COMPLETED, Reason.RECONFIGURE_FAILED),
)
NOT_WRITTEN = (false(FILES_WRITTEN, Reason.ROOT_FULL), false(ACTIONS_COMPLETED, Reason.NOT_WRITTEN))


def one_group(*configs: JailedConfig, contents=CONTENTS) -> Group:
    (group,) = grouped(configs, contents)
    return group


def looked(group: Group, fate: Fate = Fate.UNCHANGED, **by_name: Fate) -> dict[str, Result]:
    """How the files of a group are; those named like `slurm_conf` differently."""
    names = {name.replace("_", "."): fate for name, fate in by_name.items()}
    return {
        file.path: Result(file.path, names.get(file.path.rsplit("/", 1)[-1], fate)) for file in group.files
    }
