"""Every field of an ActiveCheck counts for something: another value of it changes what is decided."""

import json
from functools import cache

import pytest

from slurm_operator.api.nebius.activecheck import ActiveCheckSpec
from slurm_operator.api.schema import codec
from slurm_operator.manifests import kinds
from slurm_operator.manifests.platform import PodTemplate
from slurm_operator.slurm.reservation import Reservation
from testing import children
from testing.checks import SLURM as CLUSTER
from testing.checks import check, decide, ended, with_run, with_slurm, world
from testing.nebius import walk

CONTAINER = {
    "image": "registry.example/slurm_check_job:1", "command": ["sh"], "args": ["-c", "true"], "workingDir": "/w",
    "env": [{"name": "A", "value": "b"}], "volumeMounts": [{"name": "jail", "mountPath": "/mnt/jail"}],
    "volumes": [{"name": "jail", "emptyDir": {}}], "appArmorProfile": "localhost/p", "imagePullPolicy": "Always",
    "imagePullSecrets": [{"name": "registry"}],
}  # fmt: skip
REACTIONS = {
    "drainSlurmNode": {"drainReasonPrefix": "[a]"}, "commentSlurmNode": {"commentPrefix": "[b]"},
    "addReservation": {"prefix": "c"}, "removeReservation": {"prefix": "d"},
}  # fmt: skip
WHOLE = {
    "nodeSelector": {"a": "b"}, "affinity": {"nodeAffinity": {}}, "tolerations": [{"key": "a"}], "hostUsers": True,
    "podTemplateNameRef": "t", "successReactions": REACTIONS, "failureReactions": REACTIONS,
    "brake": {"maxPercent": 100},
}  # fmt: skip
SLURM = {
    **WHOLE,
    "slurmJobSpec": {"jobContainer": CONTAINER, "mungeContainer": CONTAINER, "sbatchScript": "true\n"},
}
K8S = {**WHOLE, "k8sJobSpec": {"jobContainer": CONTAINER, "mungeContainer": CONTAINER, "scriptRefName": "s"}}
OLDER = {
    "failureReactions": None,
    "brake": {"maxPercent": 100},
    "reactions": {"drainSlurmNode": True, "commentSlurmNode": True, "setCondition": False},
}
BODIES = {
    "slurmJob": check(**SLURM),
    "k8sJob": check(type_="k8sJob", **K8S),
    "older": check(**OLDER),
    "braked": check(brake={}),
}

VALUES = {
    "spec.schedule": "5 5 * * *",
    "spec.name": "another",
    "spec.brake.maxPercent": 0,
    "spec.brake.window": "1m",
    "spec.slurmClusterRefName": "another",
    "spec.checkType": "k8sJob",
    "spec.runAfterCreation": False,
}
# A munge container is ours but for these: munged runs as we run it, and its pod has one profile for each container.
OURS = ("workingDir", "volumeMounts", "appArmorProfile")


def decided(body: dict) -> str:
    """Everything that a pass does: with the first run still to come, and with one whose jobs ended."""
    texts = []
    for has_run in (False, True):
        there = world(body)
        there.served.add(kinds.POD_TEMPLATE)
        there.things.append(PodTemplate(metadata=children._meta({"name": "t", "namespace": "ns"})))
        if has_run:
            with_run(there, body["metadata"]["name"], ids="1,2,3,4")
            there.job_ends = {
                1: (ended(1, "COMPLETED", "cpu-0"),), 2: (ended(2, "FAILED", "cpu-1"),),
                3: (ended(3, "FAILED", "cpu-2"),), 4: (ended(4, "FAILED", "cpu-3"),),
            }  # fmt: skip
            there_already = {f"d-cpu-{number}": Reservation(name=f"d-cpu-{number}") for number in range(4)}
            with_slurm(there, dict(there.slurms[CLUSTER].nodes), reservations=there_already)
        _, plan = decide(there, body["metadata"]["name"])
        texts.append(json.dumps(codec.plain([repr(action) for action in plan.actions()])))
    return "\n".join(texts)


CASES = [
    (name, path, field)
    for name, body in BODIES.items()
    for path, field in walk.leaves(ActiveCheckSpec, body["spec"], ("spec",))
]


@cache
def before(name: str) -> str:
    return decided(BODIES[name])


def changed(name: str, path: tuple, field) -> bool:
    body, text = BODIES[name], walk.text(path)
    value = VALUES.get(text, walk.another(field, walk.value_at(body, path)))
    return before(name) != decided(walk.with_value(body, path, value))


@pytest.mark.parametrize("text", sorted({walk.text(path) for _, path, _ in CASES}))
def test_a_field_counts_for_something(text):
    is_of_munge = "mungeContainer" in text and text.rpartition(".")[2] in OURS
    counts = any(changed(name, path, field) for name, path, field in CASES if walk.text(path) == text)

    assert counts or is_of_munge, "nobody would notice what this says"
