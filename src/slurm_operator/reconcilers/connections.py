"""Where the Slurm clusters answer: the RestApis of each Controller, oldest first, and the signing key."""

from collections import defaultdict

from slurm_operator.api import names, shared_keys
from slurm_operator.api.controller import Controller
from slurm_operator.api.meta import ObjectKey, key_of
from slurm_operator.api.restapi import RestApi
from slurm_operator.manifests.objects import Secret
from slurm_operator.manifests.secrets import SecretHandle
from slurm_operator.plan.wiring import SlurmServer
from slurm_operator.plan.world import World


def slurm_servers(world: World) -> dict[ObjectKey, SlurmServer]:
    """The clusters that can be asked: those with a RestApi and a readable signing key."""
    restapis: defaultdict[ObjectKey, list[RestApi]] = defaultdict(list)
    for restapi in world.all(RestApi):
        restapis[ObjectKey(restapi.metadata.namespace, restapi.spec.controller_ref.name)].append(restapi)
    servers = {}
    for controller in world.all(Controller):
        asked = sorted(restapis.get(key_of(controller), ()), key=_age)
        key = _signing_key(controller, world) if asked else None
        if key is not None:
            servers[key_of(controller)] = SlurmServer(urls=tuple(map(url, asked)), key=key)
    return servers


def url(restapi: RestApi) -> str:
    meta = restapi.metadata
    port = restapi.spec.service.port or names.SLURMRESTD_PORT
    return f"http://{names.restapi_workload(meta.name)}.{meta.namespace}:{port}"


def _age(restapi: RestApi) -> tuple[str, str]:
    created = restapi.metadata.creation_timestamp
    return (created.isoformat() if created is not None else "", restapi.metadata.name)


def _signing_key(controller: Controller, world: World) -> SecretHandle | None:
    namespace = controller.metadata.namespace
    ref = shared_keys.signing_key(controller)
    secret = world.secret(namespace, ref.name)
    if not isinstance(secret, Secret) or ref.key not in secret.digests:
        return None
    return SecretHandle(namespace=namespace, name=ref.name, key=ref.key, digest=secret.digests[ref.key])
