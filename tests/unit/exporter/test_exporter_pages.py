"""Recorded answers of slurmrestd give exactly these series."""

from dataclasses import replace
from datetime import timedelta

import pytest

from slurm_operator import wire
from slurm_operator.exporter import records
from slurm_operator.exporter.classes import pod_info
from slurm_operator.exporter.facts import Facts, Place, clock_ahead
from slurm_operator.exporter.options import Compat, Options
from slurm_operator.exporter.tallies import Tallies
from slurm_operator.slurmrest.versions import NEWEST_FIRST
from unit.exporter.pages import (
    NOW,
    assert_golden,
    diag,
    jobs,
    labels,
    names,
    nodes,
    of,
    page,
    recorded,
    series,
)
from unit.slurmrest.fake_slurmrestd import body_of

COMMENT = wire.encode(
    {"namespace": "slurm", "podName": "gpu-3", "node": "kube-1", "nodeSetName": "gpu", "nodeSetUID": "u"}
).decode()


def tallied() -> Tallies:
    """Half a minute with eight GPUs, of which the node then fails."""
    tallies = Tallies()
    fine, drained = {"tres": "cpu=2,gres/gpu=8", "state": ["IDLE"], "reason": ""}, ["IDLE", "DRAIN"]
    tallies.nodes_read(nodes(fine), 0.0)
    tallies.nodes_read(nodes(fine | {"state": drained, "reason": "bad disk"}), 30.0)
    tallies.nodes_read(nodes(fine), 100.0)
    return tallies


@pytest.mark.parametrize(
    ("name", "options"),
    [
        pytest.param("ours", Options(), id="ours: no names of people"),
        pytest.param(
            "soperator",
            Options(compat=Compat.SOPERATOR, sums=False, aliases=True),
            id="soperator: all labels",
        ),
        pytest.param("slinky", Options(compat=Compat.SLINKY, sums=False), id="slinky: its families"),
    ],
)
def test_recorded_answers_give_exactly_these_series(name: str, options: Options):
    found = page(recorded(), options, tallied())

    assert_golden(name, found)
    assert all(("cluster", "demo") in key[1] for key in series(found))


@pytest.mark.parametrize("version", [version for version in NEWEST_FIRST if version != "v0.0.45"])
@pytest.mark.parametrize("compat", list(Compat))
def test_every_api_version_gives_the_same_families(version: str, compat: Compat):
    options = Options(compat=compat)

    assert names(series(page(recorded(version), options))) == names(series(page(recorded(), options)))


def test_booked_jobs_give_the_families_of_jobs_without_user_ids():
    found = wire.convert(body_of("books-jobs"), records.BookedJobsReply).jobs or []
    facts = Facts(jobs=tuple(map(records.booked_job, found)))

    info = of(series(page(facts, Options(compat=Compat.SOPERATOR))), "slurm_job_info")

    assert len(info) == len(found)
    assert all("user_id" not in dict(one) for one in info)
    assert {dict(one)["user_name"] for one in info} == {"tester"}


def test_names_of_people_are_shown_only_where_they_are_wanted():
    facts = recorded()
    personal = {"job_name", "user_name", "user_mail", "user_id", "standard_output", "standard_error"}

    def shown(options: Options, facts: Facts = facts) -> set[str]:
        found = of(series(page(facts, options)), "slurm_job_info")
        return {label for one in found for label, _ in one} & personal

    assert not shown(Options())
    assert shown(Options(personal_data=True)) >= {"job_name", "user_name"}
    assert shown(Options(compat=Compat.SOPERATOR)) >= {"user_mail", "standard_output"}
    assert not shown(Options(compat=Compat.SOPERATOR, personal_data=False))


def test_private_data_in_slurm_conf_hides_people_unless_somebody_insists():
    private = replace(recorded(), private_data=("jobs", "users"))

    hidden = page(private, Options(compat=Compat.SOPERATOR))
    shown = page(private, Options(compat=Compat.SOPERATOR, personal_data=True))
    slinky = names(series(page(private, Options(compat=Compat.SLINKY))))

    assert "tester" not in hidden
    assert "slurm_controller_rpc_user_calls_total" not in hidden
    assert "tester" in shown
    assert not any(name.startswith("slurm_user_") for name in slinky)
    assert any(name.startswith("slurm_account_") for name in slinky)


def test_sums_count_every_job_and_node_once_for_each_partition_and_pool():
    pending = {"job_state": ["PENDING"], "nodes": "", "submit_time": int(NOW.timestamp()) - 600}
    facts = Facts(
        nodes=nodes(
            {"name": "a", "state": ["IDLE"], "reason": "", "alloc_cpus": 0, "comment": COMMENT},
            {"name": "b", "state": ["MIXED"], "reason": "", "comment": COMMENT},
            {
                "name": "c",
                "state": ["IDLE", "DRAIN"],
                "reason": "bad disk",
                "alloc_cpus": 0,
                "comment": COMMENT,
            },
            {"name": "d", "state": ["DOWN", "NOT_RESPONDING"], "reason": "Not responding", "alloc_cpus": 0},
        ),
        jobs=jobs(
            {"job_id": 1},
            pending | {"job_id": 2, "partition": "all,big", "state_reason": "Resources"},
            pending | {"job_id": 3, "state_reason": "QOSMaxJobsPerUserLimit"},
        ),
    )
    found = series(page(facts, Options()))

    assert of(found, "slurm_queue_jobs") == {
        labels(state="RUNNING", partition="all", reason_class="none"): 1,
        labels(state="PENDING", partition="all", reason_class="resources"): 1,
        labels(state="PENDING", partition="big", reason_class="resources"): 1,
        labels(state="PENDING", partition="all", reason_class="limit"): 1,
    }
    assert (
        of(found, "slurm_queue_oldest_pending_seconds")[labels(partition="big", reason_class="resources")]
        == 600
    )
    assert of(found, "slurm_pool_nodes") == {
        labels(pool="gpu", state="idle"): 1,
        labels(pool="gpu", state="mixed"): 1,
        labels(pool="gpu", state="drained"): 1,
        labels(pool="all", state="down"): 1,
    }
    assert of(found, "slurm_pool_cpus") == {
        labels(pool="gpu", state="allocated"): 1,
        labels(pool="gpu", state="idle"): 3,
        labels(pool="gpu", state="drained"): 2,
        labels(pool="all", state="allocated"): 0,
        labels(pool="all", state="down"): 2,
    }
    (drain,) = of(found, "slurm_pool_oldest_drain_seconds").items()
    assert drain == (labels(owner="user", pool="gpu"), NOW.timestamp() - 1794785941)
    assert of(found, "slurm_node_pod_info")[
        labels(node_name="a", pool="gpu", namespace="slurm", pod="gpu-3", kube_node="kube-1")
    ]


def test_the_operators_own_comment_names_pool_and_pod():
    info = pod_info(COMMENT)

    assert info is not None
    assert (info.node_set_name, info.pod_name, info.node) == ("gpu", "gpu-3", "kube-1")
    assert pod_info("a note of somebody") is None
    assert pod_info('{"namespace": 3}') is None


def test_gpus_follow_from_tres_and_seconds_follow_the_state():
    found = series(page(Facts(nodes=()), Options(), tallied()))

    state = {
        "node_name": "w-0",
        "state_base": "IDLE",
        "state_is_maintenance": "false",
        "state_is_reserved": "false",
    }
    assert of(found, "slurm_node_gpu_seconds_total") == {
        labels(**state, state_is_drain="false"): 560,
        labels(**state, state_is_drain="true"): 240,
    }
    assert of(found, "slurm_node_fails_total") == {
        labels(**state, state_is_drain="true", reason="bad disk"): 1
    }
    assert of(found, "slurm_node_unavailability_duration_seconds_sum") == {labels(node_name="w-0"): 70}
    assert of(found, "slurm_pool_node_seconds_total") == {
        labels(pool="all", state="idle", reason_class="none"): 70,
        labels(pool="all", state="drained", reason_class="user"): 30,
    }


def test_nodes_that_are_gone_take_their_counters_with_them():
    tallies = tallied()

    tallies.nodes_read(nodes({"name": "other"}), 130.0)

    assert not tallies.gpu_seconds
    assert not tallies.fails
    assert not tallies.unavailable


def test_queue_waits_count_each_start_once_and_none_from_before():
    tallies = Tallies()
    first = {"job_id": 1, "submit_time": 1000, "start_time": 1100}
    second = {"job_id": 2, "submit_time": 2000, "start_time": 2007}

    tallies.jobs_read(jobs(first))
    tallies.jobs_read(jobs(first, second))
    tallies.jobs_read(jobs(first, second))
    tallies.jobs_read(jobs(first, second | {"start_time": 9000}))  # requeued, and started again

    found = series(page(Facts(jobs=()), Options(), tallies))
    assert of(found, "slurm_queue_wait_seconds_count") == {labels(partition="all"): 2}
    assert of(found, "slurm_queue_wait_seconds_sum") == {labels(partition="all"): 7007}
    assert of(found, "slurm_queue_wait_seconds_bucket")[labels(partition="all", le="15")] == 1


def test_a_partition_has_its_histogram_of_waits_before_the_first_start():
    tallies = Tallies()

    tallies.jobs_read(jobs({"job_state": ["PENDING"], "nodes": "", "partition": "all,big"}))

    found = series(page(Facts(jobs=()), Options(), tallies))
    assert of(found, "slurm_queue_wait_seconds_count") == {
        labels(partition="all"): 0,
        labels(partition="big"): 0,
    }


def test_a_clock_that_differs_moves_no_duration():
    start = (
        int(NOW.timestamp()) + 3600
    )  # slurmctld is an hour ahead, and the job has run for ten minutes there.
    facts = Facts(
        jobs=jobs({"start_time": start - 600}),
        clock_ahead=clock_ahead(diag(req_time=start).asked_at, NOW),
    )

    assert list(of(series(page(facts, Options())), "slurm_job_duration_seconds").values()) == [600]
    assert clock_ahead(NOW + timedelta(seconds=1), NOW) == timedelta(0)


def test_nvlink_groups_follow_the_labels_of_kubernetes_nodes():
    facts = Facts(
        nodes=nodes({"name": "gpu-3", "comment": COMMENT}),
        jobs=jobs({"job_id": 7, "nodes": "gpu-3"}),
        places={"kube-1": Place("nvl-9")},
    )
    found = series(page(facts, Options()))

    group = {"nvlink_instance_group": "nvl-9", "nodeset_name": "gpu"}
    assert of(found, "slurm_node_nvlink_instance_group") == {labels(node_name="gpu-3", **group): 1}
    assert of(found, "slurm_node_job") == {labels(job_id="7", node_name="gpu-3", **group): 1}
