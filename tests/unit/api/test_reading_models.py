"""From JSON to models and back."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from slurm_operator import wire
from slurm_operator.api import KINDS, Cluster, Controller, NodeSet, Token
from slurm_operator.api.schema.codec import decoder, plain, read
from slurm_operator.api.shared.worker_parts import DrainType, ScalingMode
from slurm_operator.api.slinky.nodeset_updates import UpdateType

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
MODELS = {cls.KIND.kind: cls for cls in KINDS}


def nodeset(**spec: Any) -> NodeSet:
    return read(NodeSet, {"metadata": {"name": "cpu"}, "spec": {"controllerRef": {"name": "slurm"}, **spec}})


def test_defaults_are_there_when_the_manifest_says_nothing() -> None:
    spec = nodeset().spec

    assert (spec.replicas, spec.scaling_mode, spec.drain_policy.type) == (
        1,
        ScalingMode.STATEFUL_SET,
        DrainType.WAIT,
    )
    assert spec.update_strategy.type is UpdateType.ROLLING_UPDATE
    assert spec.update_strategy.rolling_update.max_unavailable == "25%"
    assert spec.workload_disruption_protection
    assert spec.termination_grace_period_seconds == 3600


@pytest.mark.parametrize("name", ["Controller", "Accounting", "Cluster"])
def test_kinds_that_need_no_spec_can_be_read_without_one(name: str) -> None:
    assert read(MODELS[name], {"metadata": {"name": "a"}}).spec == MODELS[name](metadata=read_meta()).spec


def read_meta() -> Any:
    return read(Controller, {"metadata": {"name": "a"}}).metadata


def test_durations_and_times_are_read_as_such() -> None:
    spec = nodeset(
        drainPolicy={"type": "Requeue", "deadline": "1h30m"},
        updateStrategy={"scheduledUpdate": {"startTime": "2030-01-05T22:00:00Z", "duration": "2h"}},
    ).spec

    assert spec.drain_policy.deadline == timedelta(minutes=90)
    window = spec.update_strategy.scheduled_update
    assert window is not None
    assert (window.start_time, window.duration) == (datetime(2030, 1, 5, 22, tzinfo=UTC), timedelta(hours=2))


def test_null_means_absent_in_our_fields_and_stays_in_overrides() -> None:
    spec = nodeset(
        replicas=None, partition=None, drainPolicy={"deadline": None}, slurmd={"livenessProbe": None}
    ).spec

    assert spec.replicas == 1
    assert not spec.partition.enabled
    assert spec.drain_policy.deadline is None
    assert spec.slurmd == {"livenessProbe": None}


def test_unknown_fields_are_passed_over() -> None:
    assert nodeset(somethingNew={"a": 1}).spec == nodeset().spec


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ({"replicas": "two"}, r"Expected `int`, got `str` - at `\$.spec.replicas`"),
        ({"scalingMode": "Daemonset"}, r"Invalid enum value 'Daemonset' - at `\$.spec.scalingMode`"),
        ({"drainPolicy": {"deadline": "2 days"}}, "'2 days' is not a duration"),
    ],
)
def test_what_does_not_fit_is_named(spec: dict[str, Any], complaint: str) -> None:
    with pytest.raises(wire.DecodeError, match=complaint):
        nodeset(**spec)


def test_models_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        nodeset().spec.replicas = 2  # type: ignore[misc]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_writing_and_reading_an_example_gives_the_same_model(path: Path) -> None:
    manifest = yaml.safe_load(path.read_text())
    cls = MODELS[manifest["kind"]]
    first = read(cls, manifest)

    assert decoder(cls)(wire.encode({"spec": plain(first.spec)})).spec == first.spec


def test_what_is_written_has_no_nulls_and_durations_as_people_type_them() -> None:
    token = read(
        Token, {"spec": {"username": "alice", "lifetime": "90m", "controllerRef": {"name": "slurm"}}}
    )

    assert plain(token.spec) == {
        "controllerRef": {"name": "slurm", "namespace": ""},
        "username": "alice",
        "lifetime": "1h30m",
        "refresh": True,
    }


def test_a_claim_carries_just_what_the_user_said() -> None:
    spec = read(
        Controller,
        {"spec": {"persistence": {"storageClassName": "", "resources": {"requests": {"storage": "4Gi"}}}}},
    ).spec

    assert spec.persistence.claim == {"storageClassName": "", "resources": {"requests": {"storage": "4Gi"}}}


def test_workers_of_a_cluster_may_be_scaled_by_somebody_else() -> None:
    cluster = read(Cluster, {"spec": {"nodeSets": [{"name": "cpu"}, {"name": "gpu", "replicas": 0}]}})

    assert [(part.name, part.replicas) for part in cluster.spec.node_sets] == [("cpu", None), ("gpu", 0)]
