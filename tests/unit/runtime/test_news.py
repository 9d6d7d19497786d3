"""What people are told about a pass: one event per kind of news."""

from slurm_operator.plan.actions import Create, Tell
from slurm_operator.plan.plan import Failure
from slurm_operator.runtime.report import events


def created(name: str) -> Create:
    return Create(manifest={}, reason="ScalingUp", message=f"created worker {name}")


def test_a_thousand_new_workers_are_one_event():
    [told] = events([created(f"gpu-{n}") for n in range(1000)], [])

    assert told == (
        "ScalingUp",
        "created worker gpu-0; created worker gpu-1; created worker gpu-2; and 997 more of the kind",
        "Normal",
    )


def test_what_went_wrong_is_told_apart_from_what_went_well():
    done = [created("gpu-0"), Tell(subject="gpu-1", reason="Drained", message="ada drained it", warning=True)]
    failed = [Failure(action=created("gpu-2"), error="quota exceeded")]

    assert events(done, failed) == [
        ("ScalingUp", "created worker gpu-0", "Normal"),
        ("Drained", "ada drained it", "Warning"),
        ("ScalingUp", "created worker gpu-2: quota exceeded", "Warning"),
    ]
