"""What this operator would say of an object that another one serves now."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from slurm_operator import wire
from slurm_operator.api.registry import Registered
from slurm_operator.api.schema import codec
from slurm_operator.api.schema.problems import References, Severity
from slurm_operator.insight.doctor.finding import Finding, Level, fail, note
from slurm_operator.manifests.meta import Manifest

WithoutEffect = Callable[[Any], Iterable[str]]


def about_spec(
    check: str, one: Registered, thing: Manifest, without_effect: WithoutEffect = lambda read: ()
) -> Iterator[Finding]:
    """What is wrong with it, and which of its fields count for nothing."""
    meta = thing["metadata"]
    name = f"{one.kind.kind} {meta['namespace']}/{meta['name']}"
    try:
        read: Any = codec.read(one.model, thing)
        problems = list(read.problems(None, References()))
        ignored = list(without_effect(read))
    except (wire.DecodeError, ValueError) as error:
        yield fail(check, f"{name} cannot be read: {error}", "Correct it first; until then it is left alone.")
        return
    for problem in problems:
        is_error = problem.severity is Severity.ERROR
        yield Finding(
            check=check,
            level=Level.FAIL if is_error else Level.NOTE,
            message=f"{name}: {problem}.",
            remedy="Correct it first; until then nothing of it is changed."
            if is_error
            else "It goes on to work.",
        )
    for text in ignored:
        yield note(check, f"{name}: no effect: {text}.", "Nothing stops; FieldsSupported says it, too.")
