"""Who we are, and what somebody may do, as the API server says."""

import asyncio
from collections.abc import Iterable, Iterator

from slurm_operator.api import registry
from slurm_operator.api.registry import Registry
from slurm_operator.insight.doctor.facts import Right
from slurm_operator.install import rights as operators_rights
from slurm_operator.kube.client import Client

_ACCESS = "/apis/authorization.k8s.io/v1"
_WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


async def user_name(client: Client) -> str:
    """Who the API server says we are."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = await client.request("POST", _WHO, body=review)
    return str(answer["status"]["userInfo"]["username"])


async def missing(client: Client, wanted: Iterable[Right], account: str = "") -> tuple[Right, ...]:
    """Those of the rights that we, or this user, do not have."""
    asked = list(wanted)
    allowed = await asyncio.gather(*(_may(client, right, account) for right in asked))
    return tuple(right for right, may in zip(asked, allowed, strict=True) if not may)


def needed_rights(namespace: str, kinds: Registry = registry.DEFAULT) -> Iterator[Right]:
    """What a user of every command needs, in one namespace."""
    for one in kinds:
        where = namespace if one.kind.namespaced else ""
        yield Right(verb="list", resource=one.plural, group=one.group, namespace=where)
    for resource, verb in (("pods", "list"), ("pods/log", "get"), ("configmaps", "list"), ("events", "list")):
        yield Right(verb=verb, resource=resource, namespace=namespace)
    # Slurm is asked through the API server, with a token signed by the cluster's own key.
    yield Right(verb="get", resource="services/proxy", namespace=namespace)
    yield Right(verb="create", resource="services/proxy", namespace=namespace)
    yield Right(verb="get", resource="secrets", namespace=namespace)
    yield Right(verb="list", resource="nodes")


def operators_needs(namespace: str, kinds: Registry = registry.DEFAULT) -> Iterator[Right]:
    """What the operator needs, by the table that its Roles are made from."""
    for right in operators_rights.cluster_wide(kinds):
        yield from _single(right, "")
    for right in operators_rights.in_namespaces(kinds):
        yield from _single(right, namespace)


def _single(right: operators_rights.Right, namespace: str) -> Iterator[Right]:
    for resource in right.resources:
        for verb in right.verbs:
            yield Right(verb=verb, resource=resource, group=right.group, namespace=namespace)


async def _may(client: Client, right: Right, account: str) -> bool:
    resource, _, subresource = right.resource.partition("/")
    attributes = {
        "verb": right.verb,
        "group": right.group,
        "resource": resource,
        "subresource": subresource,
        "namespace": right.namespace,
    }
    kind = "SubjectAccessReview" if account else "SelfSubjectAccessReview"
    spec = {"resourceAttributes": attributes} | ({"user": account} if account else {})
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}
    answer = await client.request("POST", f"{_ACCESS}/{kind.lower()}s", body=review)
    return bool(answer["status"].get("allowed"))
