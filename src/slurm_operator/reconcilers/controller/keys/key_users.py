"""Who shares a Slurm key: everybody who must have read the ring before it may change again."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.api.slinky import key_secrets
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.controller import Controller, controller_pod
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.manifests import kinds
from slurm_operator.manifests.builders.workloads import Rollout, login_kind, rollout
from slurm_operator.manifests.meta import Child
from slurm_operator.manifests.objects import Pod
from slurm_operator.manifests.worker_names import slurm_node_name
from slurm_operator.plan.world import OWNER, World
from slurm_operator.reconcilers.shared.dependencies import with_shared_keys
from slurm_operator.slurm.snapshot import Snapshot, Unreachable


@dataclass(frozen=True)
class Head:
    """One slurmctld that shares the key, with its workers by their names in Slurm."""

    key: ObjectKey
    pods: tuple[Pod, ...]
    workers: Mapping[str, Pod]
    slurm: Snapshot | Unreachable


@dataclass(frozen=True)
class Reader:
    """A workload whose daemon reads its keys only when it starts."""

    subject: str
    key_hash: str
    rollout: Rollout


@dataclass(frozen=True)
class Sharing:
    """The Controller that looks after the ring comes first."""

    heads: tuple[Head, ...] = ()
    readers: tuple[Reader, ...] = ()


def sharing(controller: Controller, world: World) -> Sharing | None:
    """Everybody who shares the key of this Controller; None when another Controller looks after that."""
    namespace, secret = controller.metadata.namespace, key_secrets.slurm_key(controller).name
    all_heads = [
        one
        for one in world.all(Controller, namespace)
        if not one.spec.external and key_secrets.slurm_key(with_shared_keys(one, world)).name == secret
    ]
    if not all_heads or all_heads[0].metadata.name != controller.metadata.name:
        return None
    return Sharing(
        tuple(_head(one, world) for one in all_heads),
        tuple(reader for one in all_heads for reader in _readers(one, world)),
    )


def worker_pods(controller: Controller, world: World) -> Iterator[tuple[str, Pod]]:
    """Workers that are to stay in Slurm. Those that leave for good are taken out of it on purpose."""
    for nodeset in world.all(NodeSet, controller.metadata.namespace):
        if nodeset.spec.controller != controller.metadata.name:
            continue
        for pod in world.find(Pod, OWNER, nodeset.metadata.uid):
            is_leaving = pod.metadata.is_terminating or names.POD_RETIRED in pod.metadata.annotations
            if not is_leaving and not pod.has_ended:
                yield slurm_node_name(pod), pod


def _head(controller: Controller, world: World) -> Head:
    meta = controller.metadata
    places = 1 + controller.spec.ha.backups if controller.spec.ha.enabled else 1
    pods = (world.get(Pod, meta.namespace, controller_pod(controller, place)) for place in range(places))
    return Head(
        key=key_of(controller),
        pods=tuple(pod for pod in pods if pod is not None and not pod.metadata.is_terminating),
        workers=dict(worker_pods(controller, world)),
        slurm=world.slurm(meta.namespace, meta.name),
    )


def _readers(controller: Controller, world: World) -> Iterator[Reader]:
    namespace, name = controller.metadata.namespace, controller.metadata.name
    for loginset in world.all(LoginSet, namespace):
        if loginset.spec.controller_ref.name == name:
            login = loginset.metadata.name
            there = world.child(login_kind(loginset), namespace, loginset.child_names.workload)
            yield from _reader(f"LoginSet {login}", there)
    if accounting := controller.spec.accounting:
        found = world.get(Accounting, namespace, accounting)
        workload = found.child_names.workload if found is not None else names.accounting_workload(accounting)
        yield from _reader(f"Accounting {accounting}", world.child(kinds.STATEFUL_SET, namespace, workload))


def _reader(subject: str, workload: Child | None) -> Iterator[Reader]:
    state = rollout(workload)
    if workload is not None and state is not None:
        notes = workload.body["spec"]["template"]["metadata"].get("annotations") or {}
        yield Reader(subject, notes.get(names.SLURM_KEY_HASH, ""), state)
