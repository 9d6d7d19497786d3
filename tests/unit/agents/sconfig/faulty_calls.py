"""The writer's file calls, of which one goes wrong: before or after the kernel carried it out."""

import contextlib
import errno
import os
from collections.abc import Callable
from typing import Any

from slurm_operator.agents.sconfig.calls import CREATING, Calls

CALLS = [name for name in vars(Calls) if not name.startswith("_")]
OPENING = {"open_root", "open_inside", "open"}
CHANGING = {"make_directory", "write", "change_mode", "change_owner", "exchange", "rename_new", "rename", "remove"}  # fmt: skip


class Killed(BaseException):
    """The process ends here. Nothing of it runs any more."""


class WithoutOpenat2(Calls):
    """A kernel before 5.6, or a container runtime that does not know the call."""

    def open_inside(self, path: str, *, root: int) -> int:
        raise OSError(errno.ENOSYS, "Function not implemented")


class WithoutExchange(Calls):
    """A file system that can only rename."""

    def exchange(self, one: str, other: str, *, at: int) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    def rename_new(self, old: str, new: str, *, at: int) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")


class FaultyCalls(Calls):
    """The call of this number fails; with `lasting` every later one that would change something, too."""

    def __init__(
        self,
        real: Calls,
        number: int,
        fault: int | type[Killed],
        *,
        after: bool = False,
        lasting: bool = False,
    ) -> None:
        self.real, self.number, self.fault, self.after, self.lasting = real, number, fault, after, lasting
        self.log: list[str] = []
        self.is_dead = False

    @property
    def happened(self) -> bool:
        return len(self.log) > self.number


def _faulty(name: str) -> Callable[..., Any]:
    def call(self: FaultyCalls, *args: Any, **named: Any) -> Any:
        return _carried_out(self, name, args, named)

    return call


def _carried_out(self: FaultyCalls, name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    if self.is_dead:
        if name == "close":  # The kernel closes what a dead process had open.
            self.real.close(*args)
        raise Killed
    turn = len(self.log)
    self.log.append(name)
    changes = name in CHANGING or (name == "open" and args[1] == CREATING)
    if turn != self.number and not (self.lasting and turn > self.number and changes):
        return getattr(self.real, name)(*args, **named)
    if self.after or name == "close":
        with contextlib.suppress(OSError):
            answer = getattr(self.real, name)(*args, **named)
            if name in OPENING:
                os.close(answer)
    if self.fault is Killed:
        self.is_dead = True
        raise Killed
    raise OSError(self.fault, os.strerror(self.fault))


for _name in CALLS:
    setattr(FaultyCalls, _name, _faulty(_name))
