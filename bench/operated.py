"""The operator as it is, talking to stub slurmrestds: each Controller says in an annotation where its one is.

Run as a program: `python -m bench.operated KUBECONFIG METRICS_PORT [NAMESPACE]`.
"""

import os
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from bench.sampling import sampled
from slurm_operator import startup

with startup.loading(startup.MANAGER_WITHOUT):  # As the command line does.
    from slurm_operator.api.shared.meta import ObjectKey, key_of
    from slurm_operator.api.slinky import key_secrets
    from slurm_operator.api.slinky.controller import Controller
    from slurm_operator.http import loops
    from slurm_operator.kube.auth import config
    from slurm_operator.manifests.objects import Secret
    from slurm_operator.manifests.secrets import SecretHandle
    from slurm_operator.operator import program
    from slurm_operator.plan.reconciler import SlurmServer
    from slurm_operator.plan.world import World
    from slurm_operator.runtime.logs import configure
    from slurm_operator.runtime.manager import Manager
    from slurm_operator.runtime.settings import Address, Settings

STUB = "bench.slurm-operator/stub"


def stub_servers(world: World) -> dict[ObjectKey, SlurmServer]:
    found = {}
    for controller in world.all(Controller):
        url, ref = controller.metadata.annotations.get(STUB), key_secrets.signing_key(controller)
        secret = world.secret(controller.metadata.namespace, ref.name)
        if url and isinstance(secret, Secret) and ref.key in secret.digests:
            handle = SecretHandle(
                namespace=controller.metadata.namespace,
                name=ref.name,
                key=ref.key,
                digest=secret.digests[ref.key],
            )
            found[key_of(controller)] = SlurmServer(urls=(url,), key=handle)
    return found


def main(kubeconfig: str, metrics: str, *namespaces: str) -> int:
    configure("json", "info")
    settings = Settings(
        kubeconfig=Path(kubeconfig),
        namespaces=namespaces,
        health=Address("127.0.0.1", 0),
        metrics=Address("127.0.0.1", int(metrics)),
        leader_elect=True,
        leader_elect_namespace="default",
        lease_seconds=120,  # A machine that does much else at the same time must not end the run.
        renew_deadline_seconds=100,
    )
    bench = replace(program(settings), slurm_servers=stub_servers)
    samples = os.environ.get("BENCH_SAMPLES")
    with sampled(Path(samples)) if samples else nullcontext():
        return loops.run(Manager(config.find(settings.kubeconfig, ""), bench, settings).run())


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
