"""What a change would lead to, played through: objects by name, pods by uid, jobs by id."""

import pytest

from slurm_operator.api.schema import codec
from slurm_operator.api.slinky.cluster import Cluster
from slurm_operator.cli.kubectl.plan import read_files
from slurm_operator.insight.forecast import simulate
from slurm_operator.insight.forecast.differences import Difference, differences
from slurm_operator.insight.forecast.outcome import Forecast, forecast
from slurm_operator.insight.forecast.patches import patched, three_way
from slurm_operator.insight.forecast.proposal import BadFile, changes_nothing, laid_over, manifests, without
from slurm_operator.insight.text.plan_text import duration, text
from slurm_operator.insight.world_snapshot import Picture
from slurm_operator.manifests.objects import Pod
from testing.pictures import NS, RECONCILERS, SLURM, SPEC, cluster, existing, job, slurm, state, working

BUSY = {name: {"state": state("ALLOCATED")} for name in ("demo-cpu-0", "demo-cpu-1")}


@pytest.fixture(scope="module")
def running() -> Picture:
    return existing(working())


def changed(now: Picture, **spec) -> Forecast:
    old = now.get(Cluster, NS, "demo")
    body = codec.plain(old)
    body["spec"] = {**body["spec"], **spec}
    body["metadata"]["generation"] += 1
    then = now.copy()
    then.put(codec.read(Cluster, body))
    return forecast(now, then, RECONCILERS)


def cpus(replicas: int, **more) -> dict:
    return {"nodeSets": [{"name": "cpu", "replicas": replicas, **more}]}


def named(effects) -> list[str]:
    return [f"{effect.kind} {effect.name}" for effect in effects]


def test_the_same_spec_changes_nothing(running: Picture) -> None:
    found = changed(running)

    assert found.is_empty
    assert "This changes nothing." in text(found).plain


def test_scaling_in_deletes_the_last_worker_by_its_uid(running: Picture) -> None:
    found = changed(running, **cpus(1))

    pod = running.get(Pod, NS, "demo-cpu-1")
    assert [(one.name, one.uid) for one in found.deleted if one.kind == "Pod"] == [
        ("demo-cpu-1", pod.metadata.uid)
    ]
    assert named(found.changed) == ["Cluster demo", "NodeSet demo-cpu"]
    assert found.restarted == found.created == found.waited_for == ()
    assert Difference(field="spec.replicas", before="2", after="1") in found.changed[1].fields


def test_scaling_in_waits_for_the_job_on_that_worker_until_its_time_limit(running: Picture) -> None:
    now = running.copy()
    slurm(now, nodes=BUSY, jobs=(job(7, "demo-cpu-1", name="train"), job(8, "demo-cpu-0", minutes=600)))
    found = changed(now, **cpus(1))

    assert [one.job_id for one in found.waited_for] == [7]
    assert found.waited_for[0].user == "ada"
    assert abs((found.waited_for[0].seconds_left or 0) - 3600) < 60
    assert found.seconds is not None
    assert 3500 < found.seconds < 3700
    assert named(found.deleted) == ["Pod demo-cpu-1", "SlurmNode demo-cpu-1"]
    assert "7 (train) of ada, 59 min left, is waited for" in text(found).plain


def test_a_job_without_a_time_limit_is_waited_for_without_an_end(running: Picture) -> None:
    now = running.copy()
    slurm(now, nodes=BUSY, jobs=(job(7, "demo-cpu-1", "demo-cpu-0", minutes=None),))
    found = changed(now, **cpus(0))

    assert found.seconds is None
    assert [one.job_id for one in found.waited_for] == [7]
    assert "a job without a time limit is in the way" in text(found).plain
    assert {"Pod demo-cpu-0", "Pod demo-cpu-1"} <= set(named(found.deleted)), "when it has ended"
    assert found.stuck == ()


@pytest.mark.parametrize(
    ("minutes", "seconds"),
    [
        pytest.param((60, 60), 3600, id="both end at the same time"),
        pytest.param((60, 600), 36000, id="who goes first would end last"),
        pytest.param((600, 60), 36000, id="who goes first would end first"),
        pytest.param((None, 60), None, id="one has no limit"),
        pytest.param((None, None), None, id="none has a limit"),
    ],
)
def test_a_job_on_a_worker_whose_turn_comes_later_is_waited_for_too(
    running: Picture, minutes: tuple[int | None, int | None], seconds: int | None
) -> None:
    now = running.copy()
    jobs = [job(number, f"demo-cpu-{index}", minutes=minutes[index]) for index, number in enumerate((7, 8))]
    slurm(now, nodes=BUSY, jobs=tuple(jobs))
    found = changed(now, **cpus(2, slurmd={"image": "slurmd:next"}))

    assert [one.job_id for one in found.waited_for] == [7, 8]
    assert named(found.restarted) == ["Pod demo-cpu-0", "Pod demo-cpu-1"]
    assert found.stuck == ()
    assert found.seconds == seconds or abs((found.seconds or 0) - (seconds or 0)) < 60


def test_scaling_out_creates_workers(running: Picture) -> None:
    found = changed(running, **cpus(4))

    assert named(found.created) == [
        "Pod demo-cpu-2", "Pod demo-cpu-3", "SlurmNode demo-cpu-2", "SlurmNode demo-cpu-3",
    ]  # fmt: skip
    assert found.deleted == found.restarted == ()


def test_another_image_restarts_every_worker_and_nobody_else(running: Picture) -> None:
    found = changed(running, **cpus(2, slurmd={"image": "slurmd:next"}))

    assert named(found.restarted) == ["Pod demo-cpu-0", "Pod demo-cpu-1"]
    assert all(one.uid for one in found.restarted)
    assert not [one for one in found.deleted if one.kind == "Pod"]


def test_what_slurmctld_takes_by_reconfigure_restarts_nothing(running: Picture) -> None:
    found = changed(running, extraConf="KillWait=45\n")

    assert named(found.restarted) == []
    files = next(one for one in found.changed if one.name == "demo-config")
    assert any("KillWait=45" in field.after for field in files.fields)


def test_what_needs_a_restart_restarts_slurmctld(running: Picture) -> None:
    found = changed(running, extraConf="SelectType=select/linear\n")

    assert "Pod demo-controller-0" in named(found.restarted)


def test_an_added_node_set_is_created_with_everything_it_needs(running: Picture) -> None:
    found = changed(running, nodeSets=[{"name": "cpu", "replicas": 2}, {"name": "gpu", "replicas": 1}])

    assert {"NodeSet demo-gpu", "Pod demo-gpu-0", "SlurmNode demo-gpu-0"} <= set(named(found.created))
    assert named(found.restarted) == named(found.deleted) == []


def test_a_removed_login_is_deleted_with_its_pods(running: Picture) -> None:
    found = changed(running, logins=[])

    assert {"LoginSet demo-login", "Deployment demo-login"} <= set(named(found.deleted))
    assert any(one.kind == "Pod" and one.name.startswith("demo-login-") for one in found.deleted)
    assert not [one for one in found.deleted if one.name.startswith("demo-cpu")]


def test_deleting_the_cluster_waits_for_its_jobs_and_takes_everything_but_the_keys(running: Picture) -> None:
    now = running.copy()
    slurm(now, nodes={"demo-cpu-0": {"state": state("ALLOCATED")}}, jobs=(job(7, "demo-cpu-0"),))
    given = [
        {
            "apiVersion": "slinky.slurm.net/v1beta1",
            "kind": "Cluster",
            "metadata": {"name": "demo", "namespace": NS},
        }
    ]
    found = forecast(now, without(now, given), RECONCILERS)

    gone = set(named(found.deleted))
    assert {"Cluster demo", "Controller demo", "NodeSet demo-cpu", "Pod demo-cpu-0", "Pod demo-cpu-1"} <= gone
    assert "Secret demo-auth-slurm" not in gone
    assert [one.job_id for one in found.waited_for] == [7]


def test_pending_jobs_of_a_partition_that_leaves_are_told_to_wait(running: Picture) -> None:
    now = running.copy()
    slurm(now, jobs=(job(9, words=("PENDING",), state_reason="Priority"),))
    given = [
        {
            "apiVersion": "slinky.slurm.net/v1beta1",
            "kind": "Cluster",
            "metadata": {"name": "demo", "namespace": NS},
        }
    ]
    found = forecast(now, without(now, given), RECONCILERS)

    assert [one.job_id for one in found.waiting] == [9]
    assert "9 of ada" in text(found).plain


def test_what_cannot_be_seen_is_not_planned_away(running: Picture) -> None:
    """Without Slurm's answer no worker is let go, in the plan as in reality."""
    now = running.copy()
    del now.slurms[SLURM]
    found = changed(now, **cpus(1))

    assert not [one for one in found.deleted if one.kind == "Pod"]
    assert any("cannot see its jobs" in one for one in found.stuck)


def test_a_new_cluster_beside_the_first_touches_nothing_of_it(running: Picture) -> None:
    body = codec.plain(cluster({**SPEC, "logins": []}, name="other"))
    body |= {"apiVersion": "slinky.slurm.net/v1beta1", "kind": "Cluster"}
    found = forecast(running, laid_over(running, [body]), RECONCILERS)

    assert {"Cluster other", "Controller other", "Pod other-controller-0", "Pod other-cpu-0"} <= set(
        named(found.created)
    )
    assert found.changed == found.restarted == found.deleted == ()


def test_a_play_leaves_the_pictures_as_they_were(running: Picture) -> None:
    before = running.copy()
    changed(running, **cpus(0))

    assert running.records == before.records
    assert running.parts == before.parts
    assert running.slurms == before.slurms


TWO = """
apiVersion: slinky.slurm.net/v1alpha1
kind: NodeSet
metadata: {name: a}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: other}
"""


def test_documents_get_the_namespace_of_the_command_unless_they_name_one() -> None:
    found = manifests(TWO, "here")

    assert [one["metadata"]["namespace"] for one in found] == ["here", "other"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        pytest.param("a: [", "no YAML", id="no YAML"),
        pytest.param("", "no object", id="empty"),
        pytest.param(
            "kind: Pod\napiVersion: v1\nmetadata: {name: x}", "Nothing is known about Pod", id="another kind"
        ),
        pytest.param(
            "kind: NodeSet\napiVersion: slinky.slurm.net/v1beta1", "without metadata.name", id="no name"
        ),
    ],
)
def test_a_file_that_cannot_be_planned_with_says_why(given: str, why: str) -> None:
    with pytest.raises(BadFile, match=why):
        manifests(given, "ns")


def test_a_field_that_left_the_file_is_taken_back_and_one_of_others_is_kept() -> None:
    last = {"spec": {"a": 1, "b": {"c": 2}}}
    live = {"spec": {"a": 1, "b": {"c": 2, "d": 3}, "theirs": 4}}

    assert three_way(last, {"spec": {"b": {"c": 5}}}, live) == {"spec": {"b": {"c": 5}, "a": None}}


def test_a_patch_goes_through_lists_and_names_with_slashes() -> None:
    operations = [
        {"op": "test", "path": "/a", "value": "anything"},
        {"op": "add", "path": "/labels/x~1y", "value": "1"},
        {"op": "remove", "path": "/items/0"},
        {"op": "add", "path": "/items/-", "value": 3},
    ]
    assert patched({"items": [1, 2]}, operations) == {"items": [2, 3], "labels": {"x/y": "1"}}


def test_of_long_texts_only_the_lines_that_differ_are_shown() -> None:
    found = list(differences({"data": {"slurm.conf": "A=1\nB=2\n"}}, {"data": {"slurm.conf": "A=1\nB=3\n"}}))

    assert found == [Difference(field="data.slurm.conf", before="B=2", after="B=3")]


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(5, "5 s"), (65, "1 min"), (3900, "1 h 5 min"), (90000, "1 d 1 h")],
)
def test_durations_are_as_exact_as_people_need_them(seconds: int, told: str) -> None:
    assert duration(seconds) == told


def test_a_configuration_that_the_operator_would_refuse_is_refused(running: Picture) -> None:
    found = changed(running, extraConf="SchedulerTyp=sched/backfill\n")

    assert found.refused
    assert "line 1 of spec.extraConf of Cluster demo" in found.refused[0]
    assert "refused" in text(found).plain
    assert not [one for one in found.stuck if "SchedulerTyp" in one]


def test_what_is_applied_already_changes_nothing_whatever_the_operator_cannot_write(running: Picture) -> None:
    applied = {"apiVersion": "slinky.slurm.net/v1beta1", "kind": "Cluster", **codec.plain(running.get(Cluster, NS, "demo"))}  # fmt: skip
    other = {**applied, "spec": {**applied["spec"], "extraConf": "KillWait=5"}}

    assert changes_nothing(running, [applied])
    assert not changes_nothing(running, [other])


def test_a_play_that_never_ends_is_no_news_if_it_does_not_end_anyway(
    running: Picture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulate, "MOST_ROUNDS", 1)

    assert not [one for one in changed(running).stuck if "circles" in one]


def test_a_deletion_says_what_stays(running: Picture) -> None:
    body = {
        "apiVersion": "slinky.slurm.net/v1beta1",
        "kind": "Cluster",
        "metadata": {"name": "demo", "namespace": NS},
    }
    found = forecast(running, without(running, [body]), RECONCILERS, deletes=True)

    assert "Secret demo-auth-slurm" in named(found.kept)
    assert "keeps    Secret demo-auth-slurm" in text(found).plain
    assert not {*named(found.kept)} & {*named(found.deleted)}


def test_files_are_read_as_kubectl_reads_them(tmp_path) -> None:
    (tmp_path / "below").mkdir()
    for name in ("b.yaml", "a.json", "notes.txt", "below/c.yml"):
        (tmp_path / name).write_text(name)
    one = str(tmp_path / "notes.txt")

    assert [text_ for _, text_ in read_files([str(tmp_path), one], recursive=False)] == [
        "a.json",
        "b.yaml",
        "notes.txt",
    ]
    assert [text_ for _, text_ in read_files([str(tmp_path)], recursive=True)] == [
        "a.json",
        "b.yaml",
        "below/c.yml",
    ]
    with pytest.raises(BadFile, match="Cannot read"):
        list(read_files(["/nowhere/x.yaml"], recursive=False))
    (tmp_path / "below" / "c.yml").unlink()
    with pytest.raises(BadFile, match=r"no \.yaml"):
        list(read_files([str(tmp_path / "below")], recursive=False))
