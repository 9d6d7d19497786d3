"""What to do about each reason that the operator gives, and the next command.

The reason and its message are the operator's; here is only the way on. `{ns}`, `{name}` and `{kind}` are
those of the object that gives the reason; `{other}` is the one that its message is about.
"""

import re
from typing import NamedTuple

from slurm_operator.api.edited import edited_object
from slurm_operator.api.shared.meta import HasMeta, key_of
from slurm_operator.insight.explain.chain import Remedy


class _Way(NamedTuple):
    advice: str
    commands: tuple[str, ...] = ()


_SHOW = "kubectl -n {ns} get {kind} {name} -o yaml"
_EDIT = "kubectl -n {ns} edit {edited}"
_SECRETS = "kubectl -n {ns} get secrets"
_RIGHTS = _Way(
    "The operator's rights do not cover this. Install its ClusterRole, or grant what the message names.",
    ("kubectl slurm doctor -n {ns}",),
)
_DATABASE = "kubectl -n {ns} get {kind} {name} -o jsonpath='{{.status.database}}'"

_BY_REASON: dict[str, _Way] = {
    "SecretNotFound": _Way("Create the Secret, or correct its name in the spec.", (_SECRETS, _EDIT)),
    "SecretEntryNotFound": _Way(
        "Add the entry to the Secret, or correct its key in the spec.", (_SECRETS, _EDIT)
    ),
    "SecretUnread": _RIGHTS,
    "ConfigMapUnread": _RIGHTS,
    "ConfigUnread": _RIGHTS,
    "KeyMissing": _Way("Put the key into the Secret that the spec names.", (_SECRETS, _EDIT)),
    "SigningKeyMissing": _Way(
        "Create the Secret with the signing key, or correct spec.jwtKeyRef.", (_SECRETS, _EDIT)
    ),
    "SecretTaken": _Way("Delete that Secret, or name another one in the spec.", (_SECRETS,)),
    "NotRefreshed": _Way(
        "Delete the Secret to have a new token signed, or set spec.refresh to true.", (_EDIT,)
    ),
    "ConfigMapNotFound": _Way(
        "Create the ConfigMap, or correct its name in the spec.", ("kubectl -n {ns} get configmaps", _EDIT)
    ),
    "AccountingNotFound": _Way(
        "Create the Accounting, or correct spec.accountingRef.", ("kubectl -n {ns} get accountings", _EDIT)
    ),
    "ControllerNotFound": _Way(
        "Create the Controller, or delete this object and create it again with the right controllerRef.",
        ("kubectl -n {ns} get controllers", _SHOW),
    ),
    "ClusterNotFound": _Way(
        "Create the SlurmCluster, or correct spec.clusterName.", ("kubectl -n {ns} get slurmclusters", _EDIT)
    ),
    "PopulateFailed": _Way(
        "Fix what the message names; the next attempt starts without you.",
        ("kubectl -n {ns} logs job/{name}-populate-jail", _EDIT),
    ),
    "RootTaken": _Way("Give this SlurmCluster a volume of its own in spec.volumeSources.", (_EDIT,)),
    "Maintenance": _Way(
        "When the maintenance is over, set spec.maintenance of the SlurmCluster to none.",
        ("kubectl -n {ns} get slurmclusters",),
    ),
    "ConfigRefused": _Way(
        "Correct the line that the message names. The previous files stay in force until then.", (_EDIT,)
    ),
    "RehearsalRefused": _Way(
        "Correct what slurmctld complains about. The previous files stay in force until then.", (_EDIT,)
    ),
    "ConfigNotTaken": _Way(
        "See in slurmctld's log why it does not take the files.", ("kubectl slurm logs -d slurmctld -n {ns}",)
    ),
    "SpecRefused": _Way("Correct the field that the message names.", (_EDIT,)),
    "FilesCollide": _Way("Rename one of the files.", (_EDIT,)),
    "NameTaken": _Way(
        "Delete the other object if nobody needs it, or choose another name.",
        ("kubectl -n {ns} get {other} -o yaml", _EDIT),
    ),
    "HostnameInvalid": _Way(
        "Correct or remove that annotation of the node; then its worker is created.",
        ("kubectl annotate node NODE nodeset.slinky.slurm.net/hostname-override-",),
    ),
    "FormerPart": _Way("Delete what is left of the former one, or choose another name.", (_SHOW,)),
    "KeysDiffer": _Way("Set slurmKeyRef of both to the same Secret.", (_EDIT,)),
    "DatabaseNotConfigured": _Way("Say which database to use.", (_EDIT,)),
    "DatabaseAddress": _Way(
        "Start the database, let this namespace connect to it, or correct its host and port. slurmdbd then "
        "starts within seconds.",
        (_DATABASE, "kubectl slurm logs -d slurmdbd -n {ns}"),
    ),
    "DatabaseGrant": _Way(
        "Run the GRANT of the message in the database. slurmdbd then starts within seconds.",
        (_DATABASE,),
    ),
    "DatabaseLogin": _Way(
        "Correct the password in the Secret, or the account in the database.", (_DATABASE, _SECRETS)
    ),
    "SlurmUnreachable": _Way(
        "See whether slurmrestd and slurmctld run, and what they say.",
        ("kubectl slurm logs -d slurmrestd -n {ns}", "kubectl slurm logs -d slurmctld -n {ns}"),
    ),
    "DrainOverdue": _Way(
        "Wait, or ask the owners of the jobs; drainPolicy.type says what may be ended.",
        ("squeue -w {name}", _EDIT),
    ),
    "Unresponsive": _Way(
        "See what the slurmd of that worker waits for. When it answers again, it takes jobs again.",
        ("kubectl -n {ns} get pods -l app.kubernetes.io/instance={name}",),
    ),
    "JobsAtStake": _Way(
        "Wait for these jobs, or ask their owners; then the change is made automatically.", ("squeue",)
    ),
    "PlacesInUse": _Way(
        "Put the switches or blocks back into the topology file, or move the nodes first.",
        ("scontrol show nodes", _EDIT),
    ),
    "NodeSetUnreadable": _Way(
        "Correct the field of the NodeSet that the operator's log names, or delete the NodeSet.",
        ("kubectl -n {ns} get nodesets -o yaml",),
    ),
    "StateLost": _Way("See the message; running jobs go on without slurmctld knowing them.", (_SHOW,)),
}

# What the message says decides, where the reason alone does not.
_BY_WORDS: tuple[tuple[re.Pattern[str], _Way], ...] = (
    (
        re.compile(r"exceeded quota", re.IGNORECASE),
        _Way(
            "The namespace's ResourceQuota is used up: raise it, delete what is not needed, or ask for less "
            "in the spec. The pod is created as soon as it fits.",
            ("kubectl -n {ns} describe resourcequota",),
        ),
    ),
    (
        re.compile(r"database space exceeded", re.IGNORECASE),
        _Way(
            "The etcd of the API server is full: nothing can be written, and jobs go on. Compact "
            "and defragment it, raise its quota, then take back its alarm.",
            ("etcdctl endpoint status -w table", "etcdctl defrag", "etcdctl alarm disarm"),
        ),
    ),
    (
        re.compile(r"too many requests", re.IGNORECASE),
        _Way(
            "The API server has more to do than it takes from the operator. The write is tried again at most "
            "every 30 s. The chart's flowSchema gives the operator's urgent requests a share of their own.",
            ("kubectl get --raw /debug/api_priority_and_fairness/dump_priority_levels",),
        ),
    ),
    (
        re.compile(r"violates PodSecurity", re.IGNORECASE),
        _Way(
            "The namespace's Pod Security level forbids this pod. Choose `isolation: process`, which needs "
            "no privileges, or label the namespace with a level that allows it.",
            (
                "kubectl get namespace {ns} --show-labels",
                "kubectl label --overwrite namespace {ns} pod-security.kubernetes.io/enforce=privileged",
            ),
        ),
    ),
    (
        re.compile(
            r"is forbidden|cannot (get|list|watch|create|update|patch|delete) resource", re.IGNORECASE
        ),
        _Way(
            "The API server forbids it to the operator: grant its ServiceAccount the right that the message "
            "names, or install the operator's ClusterRole again. The operator retries automatically.",
            ("kubectl slurm doctor -n {ns}",),
        ),
    ),
)


# Whose name it is: `LoginSet demo-login exists already …`.
_TAKEN = re.compile(r"(\w+) (\S+) exists already")


def remedy(reason: str, message: str, about: HasMeta, kind: str) -> Remedy:
    """The way on from what the operator says about an object."""
    for pattern, way in _BY_WORDS:
        if pattern.search(message):
            return _filled(way, about, kind, message)
    unknown = _Way("See what the object and its events say.", ("kubectl -n {ns} describe {kind} {name}",))
    return _filled(_BY_REASON.get(reason, unknown), about, kind, message)


def _filled(way: _Way, about: HasMeta, kind: str, message: str) -> Remedy:
    key, edited = key_of(about), edited_object(about)
    taken = _TAKEN.search(message)
    other = f"{taken[1].lower()} {taken[2]}" if taken is not None else f"{kind.lower()} {key.name}"
    commands = (
        command.format(
            ns=key.namespace,
            name=key.name,
            kind=kind.lower(),
            other=other,
            edited=f"{edited.kind.lower()} {edited.name}" if edited else f"{kind.lower()} {key.name}",
        )
        for command in way.commands
    )
    advice = f"{way.advice} {edited.advice}" if edited and _EDIT in way.commands else way.advice
    return Remedy(advice=advice, commands=tuple(commands))
