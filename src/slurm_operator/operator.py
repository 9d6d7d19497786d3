"""The operator, put together: what it watches and which reconcilers decide about it."""

from typing import Any

from slurm_operator.api import reading
from slurm_operator.api.controller import Controller
from slurm_operator.api.token import Token
from slurm_operator.manifests import kinds
from slurm_operator.reconcilers import token
from slurm_operator.runtime.manager import Program
from slurm_operator.runtime.sources import Source, Sources

# Whatever we make for a Slurm cluster carries one of these names; so does what the operator before us made.
OUR_CHILDREN = "app.kubernetes.io/name in (slurmctld,slurmrestd,slurmdbd,slurmd,login,mariadb)"

OUR_KINDS: tuple[type[Any], ...] = (Controller, Token)

RECONCILERS = (token.RECONCILER,)

# Reconcilers that get a `--NAME-workers` flag, whether they run yet or not: existing Deployments pass them.
RECONCILER_NAMES = ("controller", "restapi", "accounting", "nodeset", "loginset", "token")


def program() -> Program:
    return Program(
        sources=Sources(
            records=tuple(Source(kind, kind.KIND, reading.decoder(kind)) for kind in OUR_KINDS),
            children=(),
            child_selector=OUR_CHILDREN,
        ),
        reconcilers=RECONCILERS,
        optional_kinds=(kinds.SERVICE_MONITOR,),
    )
