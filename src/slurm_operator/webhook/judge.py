"""What is wrong with an object of ours that somebody is about to write: api/ knows, here it is asked."""

import re
from collections.abc import Iterator
from typing import Any, Final

from slurm_operator import wire
from slurm_operator.api.edited import Edited, edited_object
from slurm_operator.api.schema.codec import read
from slurm_operator.api.schema.crd import Resource
from slurm_operator.api.schema.problems import Problem, Severity, warning
from slurm_operator.manifests.managers import OURS
from slurm_operator.webhook.lookup import Lookup
from slurm_operator.webhook.review import Request, Verdict

_WHERE: Final = re.compile(r"^(?P<what>.*) - at `\$\.?(?P<path>.*)`$", re.DOTALL)


class Judge:
    """Asks objects of one kind for their problems. In other namespaces than these nothing is examined."""

    def __init__(self, cls: type[Resource], look: Lookup, namespaces: tuple[str, ...] = ()) -> None:
        self._cls = cls
        self._look = look
        self._namespaces = namespaces

    async def __call__(self, request: Request) -> Verdict:
        if request.operation not in ("CREATE", "UPDATE") or request.sub_resource not in ("", "scale"):
            return Verdict()
        if self._namespaces and request.namespace not in self._namespaces:
            return Verdict()
        if request.sub_resource == "scale":
            return await self._scaled(request)
        kind = self._cls.KIND
        if (request.kind.group, request.kind.kind) != (kind.group, kind.kind):
            return Verdict(problems=(warning("", f"only {kind} is examined here; this passed unseen"),))
        try:
            new = self._read(request, request.object)
        except (wire.DecodeError, RecursionError) as error:
            return Verdict(problems=(unreadable(error),))
        if new.metadata.is_terminating:
            # Finalizers must be able to go, whatever else is wrong.
            return Verdict(problems=tuple(_in_vain(self._cls, new, self._before(request))))
        old = self._before(request)
        found = [*await self._problems(new, old), *_reverted(new, old, request.manager)]
        return Verdict(problems=tuple(found))

    async def _scaled(self, request: Request) -> Verdict:
        """`kubectl scale` sends no object of ours: whose part it is has to be looked up."""
        wanted, before = (_replicas(one) for one in (request.object, request.old_object))
        if wanted == before or request.manager == OURS:
            return Verdict()
        there = await self._look.live_object(self._cls, request.namespace, request.name)
        edited = edited_object(there) if there is not None else None
        return Verdict(problems=(_rescaled(edited),) if edited is not None else ())

    async def _problems(self, new: Any, old: Any) -> list[Problem]:
        refs = await self._look.references(new)
        known = {str(problem) for problem in old.problems(None, refs)} if old is not None else set()
        return [_mild(problem) if str(problem) in known else problem for problem in new.problems(old, refs)]

    def _before(self, request: Request) -> Any:
        """The object as it was; None when it is new, or was never readable."""
        try:
            return self._read(request, request.old_object) if request.old_object is not None else None
        except (wire.DecodeError, RecursionError):
            return None

    def _read(self, request: Request, plain: dict[str, Any] | None) -> Any:
        if plain is None:
            raise wire.DecodeError(f"{request.operation} came without an object")
        thing = read(self._cls, plain)
        meta = thing.metadata
        whole = wire.replace(
            meta, namespace=meta.namespace or request.namespace, name=meta.name or request.name
        )
        return wire.replace(thing, metadata=whole)


def _replicas(scale: dict[str, Any] | None) -> Any:
    return ((scale or {}).get("spec") or {}).get("replicas")


def _reverted(new: Any, old: Any, manager: str) -> Iterator[Problem]:
    """Who edits a part that the operator writes for something larger is told where to do that instead."""
    edited = edited_object(new)
    if edited is None or old is None or old.spec == new.spec or manager == OURS:
        return
    if hasattr(new.spec, "replicas") and wire.replace(new.spec, replicas=old.spec.replicas) == old.spec:
        yield _rescaled(edited)
    else:
        yield warning(
            "spec",
            f"{edited.part} is written for {edited.kind} {edited.name}: this edit is reverted. "
            f"Change it in {edited.where}.",
        )


def _rescaled(edited: Edited) -> Problem:
    return warning(
        "spec.replicas",
        f"{edited.part} is written for {edited.kind} {edited.name}: where that sets replicas, this is "
        f"reverted. Set them in {edited.where}.",
    )


def _in_vain(cls: type[Resource], new: Any, old: Any) -> Iterator[Problem]:
    """Who applies what is being deleted, as an installer does that comes too soon, gets nothing for it."""
    meta, kind = new.metadata, cls.KIND
    if old is None or not old.metadata.is_terminating or meta.finalizers != old.metadata.finalizers:
        return
    until = f"kubectl wait -n {meta.namespace} --for=delete {kind.plural}.{kind.group}/{meta.name}"
    yield warning(
        "",
        f"{kind.kind} {meta.name} is being deleted, and this does not keep it. To have it again, wait "
        f"until it is gone ({until}), then apply it.",
    )


def _mild(problem: Problem) -> Problem:
    """What was wrong before may stay so: otherwise nobody could fix anything else, or add a label."""
    return wire.replace(problem, severity=Severity.WARNING)


def unreadable(error: Exception) -> Problem:
    """Why an object does not fit its model, with the place as people write it."""
    found = _WHERE.match(str(error))
    if found is None:
        return Problem(path="", message=f"cannot be read: {error}")
    return Problem(path=found["path"], message=f"cannot be read: {found['what']}")
