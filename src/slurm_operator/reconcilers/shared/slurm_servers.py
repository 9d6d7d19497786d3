"""Where the Slurm clusters answer: the RestApis of each Controller, oldest first, and the signing key.

A Slurm elsewhere has neither: its Cluster says where it is, and brings a token that somebody else signed.
"""

from collections import defaultdict
from collections.abc import Iterator

from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.api.shared.refs import SecretKey
from slurm_operator.api.slinky import key_secrets
from slurm_operator.api.slinky.cluster import Cluster, ClusterToken
from slurm_operator.api.slinky.controller import Controller, controller_pod
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.manifests.builders import signing_keys
from slurm_operator.manifests.objects import Pod, Secret, Unread
from slurm_operator.manifests.secrets import SecretHandle
from slurm_operator.plan.belonging import EVERYTHING, Scope
from slurm_operator.plan.reconciler import SlurmServer
from slurm_operator.plan.world import World
from slurm_operator.reconcilers.shared import dependencies
from slurm_operator.reconcilers.shared.dependencies import Need


def slurm_servers(world: World, scope: Scope = EVERYTHING) -> dict[ObjectKey, SlurmServer]:
    """The clusters that can be asked: those with a RestApi. Without a readable key, by who knows it still."""
    restapis: defaultdict[ObjectKey, list[RestApi]] = defaultdict(list)
    for restapi in world.all(RestApi):
        restapis[ObjectKey(restapi.metadata.namespace, restapi.spec.controller_ref.name)].append(restapi)
    servers = {}
    for controller in world.all(Controller):
        if not scope.covers(Controller.KIND, controller.metadata):
            continue
        asked = sorted(restapis.get(key_of(controller), ()), key=_age)
        if asked:
            keys = tuple(_keys(controller, world))
            servers[key_of(controller)] = SlurmServer(
                urls=tuple(map(url, asked)),
                key=keys[0] if keys else None,
                former=keys[1:],
                user=controller.user.name,
            )
    return servers | dict(_adopted(world, scope))


def slurm_of(cluster: Cluster) -> ObjectKey:
    """Under which key the World knows the Slurm of a Cluster: that of its Controller.

    A Slurm elsewhere must not be taken for the one of a Controller that has the same name by chance.
    """
    meta = cluster.metadata
    return ObjectKey(meta.namespace, f"cluster/{meta.name}" if cluster.spec.is_adopted else meta.name)


def adopted_token(cluster: Cluster, world: World) -> SecretHandle | Need:
    """The token for a Slurm elsewhere, or what is wrong with it."""
    token, namespace = cluster.spec.token or ClusterToken(secret_ref=""), cluster.metadata.namespace
    secret = world.secret(namespace, token.secret_ref)
    entries = sorted(secret.digests) if isinstance(secret, Secret) else []
    likely = [entry for entry in (names.TOKEN_KEY, "auth-token") if entry in entries]
    only = entries if len(entries) == 1 else []
    entry = token.key or next(iter([*likely, *only]), names.TOKEN_KEY)
    return dependencies.secret_value(
        world, namespace, SecretKey(name=token.secret_ref, key=entry), "spec.token"
    )


def _adopted(world: World, scope: Scope) -> Iterator[tuple[ObjectKey, SlurmServer]]:
    for cluster in world.all(Cluster):
        if not scope.covers(Cluster.KIND, cluster.metadata):
            continue
        token = adopted_token(cluster, world) if cluster.spec.server is not None else None
        if cluster.spec.server is not None and isinstance(token, SecretHandle):
            yield (
                slurm_of(cluster),
                SlurmServer(
                    (cluster.spec.server,),
                    token,
                    is_only_watched=True,
                    authorities=cluster.spec.server_ca_bundle,
                ),
            )


def url(restapi: RestApi) -> str:
    meta = restapi.metadata
    port = restapi.spec.service.port or names.SLURMRESTD_PORT
    return f"http://{restapi.child_names.service}.{meta.namespace}:{port}"


def _keys(controller: Controller, world: World) -> Iterator[SecretHandle]:
    """The key in the user's Secret, then copies of those that slurmctld may have; none when all are gone.

    A slurmctld without a volume cannot be replaced before it was asked, so it may have a previous key, and so
    may one of the Slinky operator. Of others with a volume the copies count only when there is nothing else.
    """
    key = _signing_key(controller, world)
    copies = world.secret(controller.metadata.namespace, names.signing_copies(controller.metadata.name))
    if isinstance(key, Unread):
        return  # Whether it is gone will be known.
    if key is not None:
        yield key
    if key is None or not controller.spec.persistence.enabled or _has_one_key(controller, world):
        is_copy = f"key-{key.digest}" if key is not None else ""
        yield from (one for one in signing_keys.in_order(copies) if one.key != is_copy)


def _has_one_key(controller: Controller, world: World) -> bool:
    """A slurmctld runs that was not made here: it has no ring, and is replaced when no job has begun."""
    meta, ha = controller.metadata, controller.spec.ha
    places = range(1 + ha.backups if ha.enabled else 1)
    pods = (world.get(Pod, meta.namespace, controller_pod(controller, place)) for place in places)
    return any(pod is not None and names.KEY_RING not in pod.metadata.annotations for pod in pods)


def _age(restapi: RestApi) -> tuple[str, str]:
    created = restapi.metadata.creation_timestamp
    return (created.isoformat() if created is not None else "", restapi.metadata.name)


def _signing_key(controller: Controller, world: World) -> SecretHandle | Unread | None:
    namespace = controller.metadata.namespace
    ref = key_secrets.signing_key(dependencies.with_shared_keys(controller, world))
    secret = world.secret(namespace, ref.name)
    if isinstance(secret, Unread):
        return secret
    if secret is None or ref.key not in secret.digests:
        return None
    return SecretHandle(namespace=namespace, name=ref.name, key=ref.key, digest=secret.digests[ref.key])
