"""JailedConfig: entries of a ConfigMap as files in the root directory that all nodes share."""

from collections.abc import Iterator
from typing import ClassVar, Self

from slurm_operator.api.nebius import names
from slurm_operator.api.schema.crd import METADATA, Column, Definition
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.schema.model import Choice, model, prop
from slurm_operator.api.schema.problems import Problem, References, spec_problems
from slurm_operator.api.shared.conditions import Condition, Truth
from slurm_operator.api.shared.meta import Meta


class UpdateAction(Choice):
    """What is done when files have changed."""

    RECONFIGURE = "Reconfigure", "Slurm reads its configuration again."


@model
class ConfigMapReference:
    """A ConfigMap in the same namespace."""

    name: str = prop("Name of the ConfigMap.")


@model
class JailedFile:
    """One file."""

    key: str = prop("Which entry of the ConfigMap.")
    path: str = prop("Where the file is written: an absolute path in the shared root directory.")
    mode: int | None = prop("Mode of the file, such as 0644; defaultMode if left out.", default=None)


_OCTAL_MODES = range(0o1000)


def _mode_problems(path: str, mode: int | None) -> Iterator[Problem]:
    if mode is not None and mode not in _OCTAL_MODES:
        yield Problem(path=path, message="must be 0 to 0777 (511 in decimal)")


@model
class JailedConfigSpec:
    """Which files are written."""

    config_map: ConfigMapReference = prop("The ConfigMap that holds the files.")
    items: list[JailedFile] = prop("The files.", default=[], list_type="atomic")
    default_mode: int | None = prop(
        "Mode of files that have none of their own; 0644 if left out.", default=None
    )
    update_actions: list[UpdateAction] = prop(
        "What is done when files have changed.", default=[], list_type="atomic"
    )

    def problems(self, old: Self | None, refs: References) -> Iterator[Problem]:
        yield from _mode_problems("defaultMode", self.default_mode)
        for index, item in enumerate(self.items):
            path = f"items[{index}]"
            yield from _mode_problems(f"{path}.mode", item.mode)
            if not item.path.startswith("/"):
                message = "must be an absolute path in the shared root directory"
                yield Problem(path=f"{path}.path", message=message)
            elif ".." in item.path.split("/"):
                yield Problem(path=f"{path}.path", message="must not contain '..'")


@model
class JailedConfigStatus:
    """How far the files are."""

    observed_generation: int = prop("Generation of the spec this is about.", default=0, format="int64")
    conditions: list[Condition] = prop("FilesWritten, UpdateActionsCompleted.", default=[], keys=["type"])

    @property
    def is_written(self) -> bool:
        """Whether every file holds what its ConfigMap said when it was last looked at."""
        return any(one.type == "FilesWritten" and one.status is Truth.TRUE for one in self.conditions)


def _reason(name: str, condition: str, description: str) -> Column:
    return Column(
        name=name, path=f'.status.conditions[?(@.type=="{condition}")].reason', description=description
    )


@model
class JailedConfig:
    """Entries of a ConfigMap as files in the root directory that all nodes share."""

    KIND: ClassVar[Kind] = Kind(
        group=names.GROUP, version="v1alpha1", kind="JailedConfig", plural="jailedconfigs"
    )
    CRD: ClassVar[Definition] = Definition(
        columns=(
            _reason("Files Written", "FilesWritten", "How far the files are."),
            _reason(
                "Reconfiguration Status", "UpdateActionsCompleted", "How far the actions after that are."
            ),
            Column(name="Jailed Path", path=".spec.items[0].path", description="The first of the files."),
        ),
    )

    metadata: Meta = METADATA
    spec: JailedConfigSpec = prop("What you want.")
    status: JailedConfigStatus = prop("How it is; written by the operator.", default=JailedConfigStatus())

    def problems(self, old: Self | None, refs: References) -> Iterator[Problem]:
        """What a schema cannot express; the webhook and the reconciler both ask."""
        yield from spec_problems(self.spec, old.spec if old else None, refs)
