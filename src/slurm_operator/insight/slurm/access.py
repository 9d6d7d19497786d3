"""The way to one Slurm cluster for somebody who wants to change it: an address, and a token it accepts."""

from collections.abc import Iterator

from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.api.slinky import key_secrets
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.api.slinky.token import Token
from slurm_operator.clock import SystemClock
from slurm_operator.insight.clusters import SlurmCluster
from slurm_operator.insight.collect import Looker
from slurm_operator.insight.slurm.proxy import slurm_through
from slurm_operator.insight.world_snapshot import Picture
from slurm_operator.kube.errors import Forbidden, KubeError, NotFound
from slurm_operator.kube.secret_values import read_secret
from slurm_operator.reconcilers.shared.slurm_servers import url
from slurm_operator.slurmrest.client import SlurmRest
from slurm_operator.slurmrest.tokens import KeyProvider, ReadyToken


class NoWay(Exception):  # noqa: N818 - it says what is the case
    """This Slurm cannot be written to, and why."""


async def way(looker: Looker, picture: Picture, cluster: SlurmCluster, token: str = "") -> SlurmRest:
    """A client that may write. Without the name of a Token, the cluster's own key signs one. Raises NoWay."""
    if cluster.is_elsewhere:
        raise NoWay(
            f"The Slurm of Cluster {cluster.key} runs elsewhere and is only watched; change it there."
        )
    urls = tuple(url(part) for part in cluster.parts if isinstance(part, RestApi))
    if not urls:
        raise NoWay(f"{cluster.key} has no RestApi, so Slurm cannot be asked. Make one for its Controller.")
    key = (
        await _named_token(looker, picture, cluster, token)
        if token
        else await _any_key(looker, picture, cluster)
    )
    return slurm_through(looker.client, urls, key, now=SystemClock().now)


async def _any_key(looker: Looker, picture: Picture, cluster: SlurmCluster) -> KeyProvider | ReadyToken:
    """The signing key; a token of somebody who may write, when the key is not for our eyes."""
    controller = next(part for part in cluster.parts if isinstance(part, Controller))
    ref = key_secrets.signing_key(controller)
    where = ObjectKey(cluster.key.namespace, ref.name)
    try:
        value = (await read_secret(looker.client, where)).get(ref.key, b"")
    except Forbidden as error:
        for ready in tokens_of(picture, cluster):
            try:
                return await _ready(looker, ready)
            except KubeError:
                continue
        raise NoWay(
            f"You may not read the key that signs Slurm's tokens: the right `get secrets` for {where} is "
            "missing. A Token that you may read works too: see --token."
        ) from error
    except NotFound as error:
        raise NoWay(f"There is no Secret {where} with the key that signs Slurm's tokens.") from error
    return lambda: value


async def _named_token(looker: Looker, picture: Picture, cluster: SlurmCluster, name: str) -> ReadyToken:
    found = next((one for one in tokens_of(picture, cluster) if one.metadata.name == name), None)
    if found is None:
        there = ", ".join(one.metadata.name for one in tokens_of(picture, cluster)) or "none"
        raise NoWay(f"There is no Token {name!r} for {cluster.key}. There are: {there}.")
    try:
        return await _ready(looker, found)
    except Forbidden as error:
        secret = ObjectKey(found.metadata.namespace, found.secret_name)
        raise NoWay(
            f"You may not read Token {name}: the right `get secrets` for {secret} is missing."
        ) from error
    except NotFound as error:
        raise NoWay(f"Token {name} has no Secret yet. See `kubectl get token {name}`.") from error


def tokens_of(picture: Picture, cluster: SlurmCluster) -> Iterator[Token]:
    """Tokens that are signed with this cluster's key."""
    controller = next(part for part in cluster.parts if isinstance(part, Controller))
    ref = key_secrets.signing_key(controller)
    for token in picture.all(Token, cluster.key.namespace):
        borrowed, own = token.spec.controller_ref, token.spec.jwt_key_ref or token.spec.jwt_hs256_key_ref
        if own is not None:
            if (own.name, own.key) == (ref.name, ref.key):
                yield token
        elif borrowed is not None and borrowed.name == key_of(controller).name:
            yield token


async def _ready(looker: Looker, token: Token) -> ReadyToken:
    secret = await read_secret(looker.client, ObjectKey(token.metadata.namespace, token.secret_name))
    return ReadyToken(secret.get(token.secret_key, b"").decode(errors="replace"))
