"""The CRDs as frozen models: fields, defaults, problems, child names. Knows no client."""

from slurm_operator.api.accounting import Accounting
from slurm_operator.api.cluster import Cluster
from slurm_operator.api.controller import Controller
from slurm_operator.api.crd import Resource
from slurm_operator.api.loginset import LoginSet
from slurm_operator.api.nodeset import NodeSet
from slurm_operator.api.restapi import RestApi
from slurm_operator.api.token import Token

# Every kind we define, in the order in which people meet them.
KINDS: tuple[type[Resource], ...] = (Cluster, Controller, NodeSet, LoginSet, Accounting, RestApi, Token)

__all__ = ["KINDS", "Accounting", "Cluster", "Controller", "LoginSet", "NodeSet", "RestApi", "Token"]
