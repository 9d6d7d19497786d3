"""slurm.conf, line by line. Same facts in, same bytes out."""

from collections.abc import Iterator, Mapping, Sequence

from slurm_operator.api.shared import names
from slurm_operator.api.shared.auth import type_of, with_munge
from slurm_operator.api.shared.slurm_series import has_http
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.controller import Controller, controller_pod
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.api.slinky.references import first_come
from slurm_operator.manifests.builders import logs
from slurm_operator.reconcilers.controller.annotations import DIGEST_WORD
from slurm_operator.reconcilers.controller.configuration.held_sizes import line_of
from slurm_operator.reconcilers.controller.daemon.services import members
from slurm_operator.reconcilers.controller.observe import Seen
from slurm_operator.slurm.conf.lines import Pair, Setting, pair_text, parse, render
from slurm_operator.slurm.conf.merge import merged_settings

ETC = "/etc/slurm"
SLURMCTLD_LOG = f"{logs.DIRECTORY}/slurmctld.log"
MAX_NODE_COUNT = 1024

CGROUP_CONF = "CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\n"

# Which lines each kind of script gets: slurmctld runs its own from /etc/slurm, slurmd is sent the others.
Scripts = Mapping[str, tuple[str, ...]]


def slurm_conf(seen: Seen, scripts: Scripts, digest: str = "", kept: Sequence[str] = ()) -> str:
    """The whole file; with a digest, slurmctld reports it back once it has read the file.

    `kept` are lines that the spec no longer has.
    """
    before, extra, after = parts(seen, scripts, digest)
    left = "".join(f"{line}\n" for line in ("#", "# KEPT WHILE JOBS NAME THEM", *kept)) if kept else ""
    return before + extra + after + left


def parts(seen: Seen, scripts: Scripts, digest: str) -> tuple[str, str, str]:
    """Our lines, the user's, and the few that hold words of both."""
    if seen.controller.spec.external:
        return "".join(f"{line}\n" for line in _external_lines(seen)), "", ""
    shared = _shared_lists(seen.controller, digest)
    extra = seen.controller.spec.extra_conf
    if extra and not extra.endswith("\n"):
        extra += "\n"
    before = "".join(f"{line}\n" for line in _lines(seen, scripts, shared))
    if not extra:
        return before, "", ""
    merged = merged_settings(shared, extra)
    after = f"#\n# MERGED\n{render(merged)}" if merged else ""
    return f"{before}#\n# EXTRA\n", extra, after


def state_directory(controller: Controller) -> str:
    return f"/var/spool/slurmctld/{controller.cluster_name}"


def endpoint(controller: Controller) -> tuple[str, int]:
    """Where clients and workers find slurmctld."""
    spec, meta = controller.spec, controller.metadata
    if spec.external and spec.external_config is not None:
        return spec.external_config.host, spec.external_config.port
    return f"{controller.child_names.service}.{meta.namespace}", names.SLURMCTLD_PORT


def _shared_lists(controller: Controller, digest: str) -> dict[str, str]:
    """Lists in which the user may want words as well as we."""
    keys = [f"jwt_key={ETC}/{names.JWT_KEY_FILE}"]
    if controller.spec.jwks_key_ref is not None:
        keys.append(f"jwks={ETC}/{names.JWKS_FILE}")
    parameters = ["enable_configless", "reconfig_on_restart", *([DIGEST_WORD + digest] if digest else [])]
    is_munge = with_munge(controller.spec.auth) is not None
    return {
        "AuthAltParameters": ",".join(keys),
        # munge knows users by their numbers alone.
        **({} if is_munge else {"AuthInfo": "use_client_ids"}),
        "SlurmctldParameters": ",".join(parameters),
    }


def _lines(seen: Seen, scripts: Scripts, shared: Mapping[str, str]) -> Iterator[str]:
    controller = seen.controller
    yield from ("#", "# GENERAL")
    yield _line("ClusterName", controller.cluster_name)
    yield f"SlurmUser={controller.user.name}"
    yield from _hosts(controller)
    yield f"SlurmctldPort={names.SLURMCTLD_PORT}"
    yield f"SlurmctldAddr={controller.child_names.service}.{seen.namespace}"
    yield _line("StateSaveLocation", state_directory(controller))
    yield "SlurmdUser=root"
    yield f"SlurmdPort={names.SLURMD_PORT}"
    yield "SlurmdSpoolDir=/var/spool/slurmd"
    yield f"MaxNodeCount={MAX_NODE_COUNT}"
    yield from ("#", "# LOGGING")
    yield f"SlurmctldLogFile={SLURMCTLD_LOG}"
    yield f"SlurmSchedLogFile={SLURMCTLD_LOG}"
    yield f"SlurmdLogFile={logs.DIRECTORY}/slurmd.log"
    yield from ("#", "# PLUGINS AND PARAMETERS")
    yield from _auth_lines(controller)
    yield from (_line(key, value) for key, value in shared.items())
    if controller.spec.metrics.enabled and has_http(controller.spec.slurmctld_image):
        yield "MetricsType=metrics/openmetrics"
    yield from _accounting_lines(seen.accounting)
    for key in ("PrologSlurmctld", "EpilogSlurmctld"):
        yield from (_line(key, f"{ETC}/{name}") for name in scripts.get(key, ()))
    for key in ("Prolog", "Epilog"):
        yield from (_line(key, name) for name in scripts.get(key, ()))
    yield from _worker_lines(seen)


def _auth_lines(controller: Controller) -> Iterator[str]:
    type_ = type_of(controller.spec.auth)
    yield from (f"AuthType=auth/{type_}", f"CredType=cred/{type_}", "AuthAltTypes=auth/jwt")


def _hosts(controller: Controller) -> Iterator[str]:
    """Where each slurmctld is: the only one by its pod's name, several by Services that are always there."""
    namespace = controller.metadata.namespace
    pod, internal = controller_pod(controller, 0), controller.child_names.internal_service
    if not controller.spec.ha.enabled:
        yield f"SlurmctldHost={pod}({pod}.{internal}.{namespace})"
    yield from (f"SlurmctldHost={member}({member}.{namespace})" for member in members(controller))


def _external_lines(seen: Seen) -> Iterator[str]:
    """What slurmrestd needs to find a slurmctld that runs elsewhere."""
    host, port = endpoint(seen.controller)
    yield _line("ClusterName", seen.controller.cluster_name)
    yield f"SlurmUser={seen.controller.user.name}"
    yield _line("SlurmctldHost", host)
    yield f"SlurmctldPort={port}"
    yield from _auth_lines(seen.controller)
    yield from _accounting_lines(seen.accounting)


def _accounting_lines(accounting: Accounting | None) -> Iterator[str]:
    yield from ("#", "# ACCOUNTING")
    if accounting is None:
        yield "AccountingStorageType=accounting_storage/none"
        return
    host, port = slurmdbd_address(accounting)
    yield "AccountingStorageType=accounting_storage/slurmdbd"
    yield _line("AccountingStorageHost", host)
    yield f"AccountingStoragePort={port}"


def slurmdbd_address(accounting: Accounting) -> tuple[str, int]:
    spec = accounting.spec
    if spec.external and spec.external_config is not None:
        return spec.external_config.host, spec.external_config.port
    return accounting.child_names.service, spec.service.port or names.SLURMDBD_PORT


def _worker_lines(seen: Seen) -> Iterator[str]:
    nodesets = seen.nodesets
    if not nodesets:
        return
    yield from ("#", "# NODESETS AND PARTITIONS")
    # A second one of the same name is refused and says so itself; a partition it had does not go for that.
    for nodeset in first_come(nodesets):
        if line := line_of(nodeset, seen):
            yield line
        yield f"NodeSet={nodeset.slurm_name} Feature={nodeset.slurm_name}"
    for nodeset in first_come(nodeset for nodeset in nodesets if nodeset.spec.partition.enabled):
        yield partition_line(nodeset)


def partition_line(nodeset: NodeSet) -> str:
    """The partition of a NodeSet. One that is leaving takes no new jobs, but keeps those that it has."""
    name, config = nodeset.slurm_name, nodeset.spec.partition.config.strip()
    line = f"PartitionName={name} Nodes={name} {config}".rstrip()
    if not nodeset.metadata.is_terminating:
        return line
    pairs = [
        pair for setting in parse(line, "").settings for pair in setting.pairs if pair.key.lower() != "state"
    ]
    return render([Setting((*pairs, Pair("State", "INACTIVE")))]).rstrip("\n")


def _line(key: str, value: str) -> str:
    return pair_text(Pair(key, value))
