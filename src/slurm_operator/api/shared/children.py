"""Names and labels of what is made for an object: one option of several kinds.

A role that nobody names has the name that it always had, and without labels nothing here changes anything.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeVar, cast

from slurm_operator.api.schema.cel import looks_like, matches, stays, unchanged
from slurm_operator.api.schema.model import Rule, fields_of, model, prop
from slurm_operator.api.schema.problems import Problem
from slurm_operator.api.shared import names

# Those that select pods: a workload keeps them for life.
SELECTING: Final = (names.APP_NAME, names.APP_INSTANCE, names.APP_COMPONENT)
# The labels of ours that may be replaced.
REPLACED: Final = (*SELECTING, names.APP_PART_OF, names.APP_MANAGED_BY)

# What app.kubernetes.io/name may say. The operator finds its objects by it, so it has to know the words.
APP_NAMES: Final = (
    "slurmctld",
    "slurmrestd",
    "slurmdbd",
    "slurmd",
    "login",
    "mariadb",
    "slurm-rehearsal",
    "slurm-exporter",
    "slurmcluster",
)

_NAME: Final = r"^([a-z]([-a-z0-9]*[a-z0-9])?)?$"
_WORD: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_KEY: Final = re.compile(
    r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
# A pod of a StatefulSet carries `<name>-<hash>` as a label, which has 63 characters at most.
_WORKLOAD_LENGTH: Final = 52

N = TypeVar("N")


def _name(description: str, length: int = 63, otherwise: str = "the usual name") -> Any:
    return prop(
        f"{description} Left out: {otherwise}.",
        default="",
        max_length=length,
        rules=[
            Rule(
                expression=matches(_NAME),
                message="is the name of an object: lower-case letters, digits and -, a letter first",
                holds=looks_like(_NAME),
            )
        ],
    )


@model
class ControllerNames:
    """Names of what is made for a Controller."""

    service: str = _name("The Service that clients use.")
    internal_service: str = _name("The headless Service of the slurmctld pods.")
    workload: str = _name("The StatefulSet of slurmctld; its pods are called after it.", _WORKLOAD_LENGTH)
    config: str = _name("The ConfigMap with slurm.conf.", 58)
    workers: str = _name("The headless Service of all workers.")
    budget: str = _name("The PodDisruptionBudget of the workers.")


@model
class AccountingNames:
    """Names of what is made for an Accounting."""

    service: str = _name("The Service that slurmctld uses.")
    workload: str = _name("The StatefulSet of slurmdbd.", _WORKLOAD_LENGTH)
    config: str = _name("The Secret with slurmdbd.conf.")


@model
class RestApiNames:
    """Names of what is made for a RestApi."""

    service: str = _name("The Service in front of slurmrestd.")
    workload: str = _name("The Deployment of slurmrestd.")


@model
class LoginSetNames:
    """Names of what is made for a LoginSet."""

    service: str = _name("The Service in front of sshd.")
    headless_service: str = _name("The headless Service of ordered login pods.")
    workload: str = _name("The workload with the login pods.", _WORKLOAD_LENGTH)
    ssh_config: str = _name("The ConfigMap with sshd_config.")


@model
class NodeSetNames:
    """Names of what is made for a NodeSet."""

    service: str = _name(
        "A headless Service of these workers alone, beside the one of all workers.", otherwise="there is none"
    )


@model
class Children:
    """What the objects that are made for this one are called, and which labels they carry."""

    labels: dict[str, str] = prop(
        "Labels of every object and pod that is made, beside ours. app.kubernetes.io/name, instance, "
        "component, part-of and managed-by replace ours, in selectors too; the first three cannot change. "
        f"app.kubernetes.io/name is one of {', '.join(APP_NAMES)}.",
        default={},
        nullable=True,
    )

    def problems(self) -> Iterator[Problem]:
        for key, value in sorted(self.labels.items()):
            path = f"labels[{key}]"
            if not _KEY.fullmatch(key):
                yield Problem(path=path, message=f"{key!r} is no key of a label in Kubernetes")
            elif not _WORD.fullmatch(value):
                yield Problem(path=path, message=f"{value!r} is no value of a label in Kubernetes")
            elif names.GROUP in key.partition("/")[0]:
                yield Problem(path=path, message=f"labels of {names.GROUP} are the operator's own")
        said = self.labels.get(names.APP_NAME)
        if said is not None and said not in APP_NAMES:
            yield Problem(
                path=f"labels[{names.APP_NAME}]",
                message=f"{said!r} is no name that the operator looks for, so it would not find its own "
                f"objects; use one of {', '.join(APP_NAMES)}",
            )


@model
class ControllerChildren(Children):
    """What the objects made for a Controller are called, and which labels they carry."""

    names: ControllerNames | None = prop("Names by role. They cannot change.", default=None)


@model
class AccountingChildren(Children):
    """What the objects made for an Accounting are called, and which labels they carry."""

    names: AccountingNames | None = prop("Names by role. They cannot change.", default=None)


@model
class RestApiChildren(Children):
    """What the objects made for a RestApi are called, and which labels they carry."""

    names: RestApiNames | None = prop("Names by role. They cannot change.", default=None)


@model
class LoginSetChildren(Children):
    """What the objects made for a LoginSet are called, and which labels they carry."""

    names: LoginSetNames | None = prop("Names by role. They cannot change.", default=None)


@model
class NodeSetChildren(Children):
    """What the objects made for a NodeSet are called, and which labels they carry."""

    names: NodeSetNames | None = prop("Names by role. They cannot change.", default=None)


DESCRIPTION: Final = "Names and labels of the objects that are made for this one. Left out: the usual ones."


def children_stay(roles: Any) -> tuple[Rule, ...]:
    """Rules of a spec: the objects exist under their names, and workloads keep what selects their pods."""
    named_before = (f"self.?children.names.{field.name}.orValue('')" for field in fields_of(roles))
    selected = (f"self.?children.labels[?'{key}'].orValue('')" for key in SELECTING)
    return (
        Rule(
            expression=" && ".join(map(unchanged, named_before)),
            message="children.names cannot change: the objects exist under their names",
            path=".children",
            holds=stays(lambda spec: spec.children.names or roles()),
        ),
        Rule(
            expression=" && ".join(map(unchanged, selected)),
            message="labels that select pods cannot change: app.kubernetes.io/name, instance and component "
            "in children.labels",
            path=".children",
            holds=stays(lambda spec: [spec.children.labels.get(key, "") for key in SELECTING]),
        ),
    )


def effective_names(given: N | None, usual: N) -> N:
    """The names that count: those given, and the usual ones for other roles."""
    if given is None:
        return usual
    roles: Any = type(usual)
    counting = {
        field.attribute: getattr(given, field.attribute) or getattr(usual, field.attribute)
        for field in fields_of(roles)
    }
    return cast("N", roles(**counting))


def colliding(resolved: Mapping[str, str]) -> Iterator[Problem]:
    """A problem for each role whose object would have the name of another of the same kind."""
    first: dict[str, str] = {}
    for role, name in resolved.items():
        other = first.setdefault(name, role)
        if other != role:
            yield Problem(
                path=f"children.names.{role}",
                message=f"{name!r} is the name of {other} already; two objects of a kind need two names",
            )
