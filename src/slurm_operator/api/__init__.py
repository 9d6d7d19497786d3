"""The CRDs as frozen models: fields, defaults, problems, child names. Knows no client."""

from slurm_operator.api.registry import DEFAULT
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.cluster import Cluster
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.api.slinky.token import Token

# The models of the kinds that are on when nobody asks for more.
KINDS = DEFAULT.models

__all__ = ["KINDS", "Accounting", "Cluster", "Controller", "LoginSet", "NodeSet", "RestApi", "Token"]
