"""What one NodeConfigurator lacks, and why it has no pods."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from slurm_operator.api.nebius import names
from slurm_operator.conditions import Reason
from slurm_operator.manifests import kinds
from slurm_operator.plan.actions import Action, Wait
from slurm_operator.plan.plan import Plan, lane, plan
from slurm_operator.reconcilers.nebius.nodeconfigurator.desired import desired, has_image
from slurm_operator.reconcilers.nebius.nodeconfigurator.observe import Program, Seen
from slurm_operator.reconcilers.shared.children import among, bindings_last, missing_among, surplus, taken

NOTHING_ENABLED: Final = Reason.NOTHING_ENABLED
SPEC_REFUSED: Final = Reason.SPEC_REFUSED

_FORMATS: Final = ("", "json", "plain")


def decide(seen: Seen, now: datetime) -> Plan:
    if seen.meta.is_terminating:
        return plan()
    if seen.program is Program.NONE:
        return plan(lane("container", [_nothing(seen)]), lane("pods", _without_pods(seen)))
    if refused := list(_problems(seen)):
        return plan(lane("spec", refused))
    wanted = desired(seen)
    return plan(
        lane("names", taken(wanted, among(seen.children))),
        lane("objects", *bindings_last(missing_among(wanted, seen.children))),
    )


def _nothing(seen: Seen) -> Wait:
    """A pod without a container is refused by the API server, so none is asked for."""
    if seen.configurator.spec is None:
        message = "spec is missing, so no pods run. Write one to have the rebooter on every Kubernetes node."
    else:
        message = (
            "Neither spec.rebooter nor spec.customContainer is enabled, so no pods run. Enable one of them."
        )
    return Wait(subject="spec", reason=NOTHING_ENABLED, message=message)


def _without_pods(seen: Seen) -> list[Action]:
    """One that belongs to somebody else stays."""
    there = seen.daemon_set
    owner = there.metadata.owner if there is not None else None
    if there is None or owner is None or owner.uid != seen.meta.uid:
        return []
    return [*surplus(kinds.DAEMON_SET, [there], [], "neither the rebooter nor a container is enabled")]


def _problems(seen: Seen) -> Iterator[Wait]:
    """What no pod could be started with; the DaemonSet stays as it is."""
    if seen.program is Program.REBOOTER:
        written = seen.spec.rebooter.log_format
        if written not in _FORMATS:
            yield _refused("spec.rebooter.logFormat", f"is {written!r}; it may be json or plain")
        if seen.settings.host_users is False:
            text = (
                "is false; the rebooter needs the processes of the Kubernetes node, and its users with them"
            )
            yield _refused("spec.rebooter.hostUsers", text)
    elif not has_image(seen.settings):
        field = "customContainer" if seen.program is Program.CUSTOM else "nodeConfigurator"
        yield _refused(f"spec.{field}.image.repository", "is missing: the container runs in this image")


def _refused(path: str, text: str) -> Wait:
    message = f"{path} {text}. Nothing changes until the spec is fixed."
    return Wait(subject=path, reason=SPEC_REFUSED, message=message)


def binding_command(seen: Seen) -> str:
    """What gives the account of the rebooter its rights, typed once by an administrator."""
    account = names.rebooter_account(seen.name)
    return (
        f"kubectl create clusterrolebinding {seen.meta.namespace}-{account} "
        f"--clusterrole={names.REBOOTER_ROLE} --serviceaccount={seen.meta.namespace}:{account}"
    )
