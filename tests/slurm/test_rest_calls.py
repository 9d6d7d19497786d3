"""Every call of the client, and its effect as Slurm's own commands show it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from rest_rig import OURS, client_of, reason, running, shown, until

from slurm_operator.slurm.reservation import Reservation
from slurm_operator.slurm.writes import (
    DrainNodes,
    NodeWrite,
    PowerNodes,
    Reserve,
    ResumeNodes,
    SetNodesDown,
    UpdateNodes,
)
from slurm_operator.slurmrest import errors, session
from slurm_operator.slurmrest.client import SlurmRest
from slurm_operator.slurmrest.sender import node_fields
from slurm_operator.slurmrest.versions import NEWEST_FIRST
from testing.daemons import SlurmDaemons

BOTH = ("w-0", "w-1")


async def send(client: SlurmRest, write: NodeWrite) -> None:
    await client.send.update_nodes("try it", write.nodes, node_fields(write))


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_many_nodes_are_drained_and_resumed_in_one_request(
    slurm: SlurmDaemons, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "NEWEST_FIRST", (version,))
    client = client_of(slurm)
    await send(client, DrainNodes(nodes=BOTH, reason=OURS))
    assert all("DRAIN" in slurm.node_states(name) and reason(slurm, name) == OURS for name in BOTH)

    listing = await client.read.nodes()
    assert listing is not None
    assert all(listing.records[name].is_drained_by_us for name in BOTH)
    assert client.version == version
    await send(client, ResumeNodes(nodes=BOTH))

    assert all("DRAIN" not in slurm.node_states(name) and reason(slurm, name) == "none" for name in BOTH)


async def test_fields_of_a_node_are_set(slurm: SlurmDaemons) -> None:
    wanted = UpdateNodes(
        nodes=BOTH,
        comment='{"pod":"a-0"}',
        extra="x=1",
        features=("all", "k8s/zone-a"),
        active_features=("all", "k8s/zone-a"),
        weight=7,
    )
    client = client_of(slurm)
    await send(client, wanted)
    listing = await client.read.nodes()

    assert listing is not None
    node = shown(slurm, "node", "w-1")
    assert node["Comment"] == wanted.comment == listing.records["w-1"].comment
    assert node["Extra"] == wanted.extra == listing.records["w-1"].extra
    assert node["AvailableFeatures"] == node["ActiveFeatures"] == "all,k8s/zone-a"
    assert listing.records["w-1"].features == listing.records["w-1"].active_features == wanted.features
    assert node["Weight"] == "7" == str(listing.records["w-1"].weight)


async def test_a_node_is_set_down_and_brought_back(slurm: SlurmDaemons) -> None:
    client = client_of(slurm)
    await send(client, SetNodesDown(nodes=("w-0",), reason=OURS))

    # In one look: a worker that registers right afterwards is back in service, and has no reason any more.
    shown = slurm.run("sinfo", "--noheader", "--nodes", "w-0", "--format=%T %E").strip()
    assert shown.startswith("down")
    assert shown.endswith(OURS)


async def test_a_node_without_power_saving_is_not_powered(slurm: SlurmDaemons) -> None:
    client = client_of(slurm)
    with pytest.raises(errors.SlurmRefused):
        await send(client, PowerNodes(nodes=("w-0",), up=True))


async def test_a_node_is_moved_to_another_switch(new_slurm: Callable[..., SlurmDaemons]) -> None:
    slurm = new_slurm()
    topology = slurm.head.box.path("/etc/slurm/topology.conf")
    topology.write_text("SwitchName=root Switches=s1,s2\nSwitchName=s1\nSwitchName=s2\n")
    slurm.write_config({"TopologyPlugin": "topology/tree"})
    slurm.slurmctld.restart()
    slurm.add_worker("w-0", conf="Features=all Topology=default:s1")
    client = client_of(slurm)
    await send(client, UpdateNodes(nodes=("w-0",), topology="default:s2"))
    listing = await client.read.nodes()
    with pytest.raises(errors.SlurmRefused, match="opology"):
        await send(client, UpdateNodes(nodes=("w-0",), topology="default:nowhere"))

    assert listing is not None
    assert "s2" in listing.records["w-0"].topology
    assert "Nodes=w-0" in slurm.run("scontrol", "show", "topology", "unit=s2")

    await send(client, UpdateNodes(nodes=("w-0",), topology=""))
    listing = await client.read.nodes()

    assert listing is not None
    assert listing.records["w-0"].topology == ""
    assert "w-0" not in slurm.run("scontrol", "show", "topology"), "an empty place takes it out"


async def test_nodes_are_deleted_and_added(slurm: SlurmDaemons) -> None:
    client = client_of(slurm)
    await client.send.delete_nodes(["w-1"])
    assert slurm.node_states("w-1") == {"GONE"}
    with pytest.raises(errors.UnknownNode):
        await client.send.delete_nodes(["w-1"])

    await client.send.add_nodes(["fut-0", "fut-1"], "CPUs=1 RealMemory=100 Feature=all State=CLOUD")

    assert "CLOUD" in slurm.node_states("fut-1")


async def test_a_reservation_is_made_changed_and_deleted(slurm: SlurmDaemons) -> None:
    start = datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=10)
    wanted = Reserve(
        name="op-maint",
        nodes=BOTH,
        start_time=start,
        duration=timedelta(minutes=90),
        users=("slurm",),
        flags=("MAINT", "IGNORE_JOBS"),
    )
    client = client_of(slurm)
    await client.send.reserve(wanted)
    made = await client.read.reservations()
    assert shown(slurm, "reservation", "op-maint")["Nodes"] == "w-[0-1]"
    fewer = Reserve(name="op-maint", nodes=("w-1",), start_time=start, duration=timedelta(minutes=30))
    await client.send.reserve(fewer)
    assert shown(slurm, "reservation", "op-maint")["Nodes"] == "w-1"
    changed = await client.read.reservations()
    await client.send.unreserve("op-maint")
    with pytest.raises(errors.UnknownReservation):
        await client.send.unreserve("op-maint")

    assert made is not None
    assert changed is not None
    reservation = made.records["op-maint"]
    assert reservation.nodes == BOTH
    assert reservation.start_time == start
    assert reservation.end_time == start + timedelta(minutes=90)
    assert {"MAINT", "IGNORE_JOBS"} <= reservation.flags
    assert changed.records["op-maint"].end_time == start + timedelta(minutes=30)
    assert "No reservations" in slurm.run("scontrol", "show", "reservations")


@pytest.mark.parametrize(
    ("former", "wanted"), [("DAILY", "WEEKLY"), ("WEEKLY", "DAILY"), ("HOURLY", "WEEKDAY"), ("WEEKEND", "HOURLY")]
)  # fmt: skip
async def test_a_reservation_recurs_by_one_flag_at_a_time(
    slurm: SlurmDaemons, former: str, wanted: str
) -> None:
    start = datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=10)
    ours = ("MAINT", "IGNORE_JOBS")
    client = client_of(slurm)

    async def changed(*flags: str, minutes: int | None = None, at: datetime | None = None) -> Reservation:
        lasts = timedelta(minutes=minutes) if minutes is not None else None
        await client.send.reserve(
            Reserve(name="op-maint", nodes=BOTH, start_time=at, duration=lasts, users=("slurm",), flags=flags)
        )
        found = await client.read.reservations()
        assert found is not None
        return found.records["op-maint"]

    assert former in (await changed(*ours, former, at=start, minutes=30)).flags
    with pytest.raises(errors.SlurmRefused):
        await changed(*ours, wanted)
    assert former in (await changed(*ours)).flags, "what is merely left out stays"
    assert not (await changed(*ours, f"NO_{former}")).flags & {former, wanted}
    longer = await changed(*ours, wanted, minutes=45)

    assert wanted in longer.flags
    assert longer.start_time == start
    assert longer.end_time == start + timedelta(minutes=45)


async def test_a_job_runs_on_when_a_reservation_around_it_is_deleted(slurm: SlurmDaemons) -> None:
    job = await running(slurm, "--nodelist=w-0", "--time=10", "--mem=10")
    start = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=2)
    client = client_of(slurm)
    flags = ("MAINT", "IGNORE_JOBS")
    await client.send.reserve(
        Reserve("op-maint", BOTH, start, timedelta(minutes=30), users=("slurm",), flags=flags)
    )
    await until(lambda: "MAINTENANCE" in slurm.node_states("w-0"), "the window to open")

    await client.send.unreserve("op-maint")
    await until(lambda: "MAINTENANCE" not in slurm.node_states("w-0"), "the window to close")

    assert slurm.job_state(job) == "RUNNING"


async def test_jobs_are_read_marked_signalled_requeued_and_cancelled(slurm: SlurmDaemons) -> None:
    script = "trap 'echo heard > /tmp/heard' USR2; while true; do sleep 0.1; done"
    job = await running(slurm, "--nodelist=w-0", "--time=10", "--mem=10", script=script)
    waiting = slurm.submit("true", "--nodelist=w-1", "--hold", "--mem=10")
    client = client_of(slurm)
    listing = await client.read.jobs()
    assert listing is not None
    assert listing.records[job].nodes == ("w-0",)
    assert listing.records[job].deadline == listing.records[job].end_time
    assert listing.records[waiting].required_nodes == ("w-1",)
    assert listing.records[waiting].is_held
    assert listing.by_node == {"w-0": (job,), "w-1": (waiting,)}

    await client.send.update_job(job, {"admin_comment": "w-0 leaves at noon", "comment": "c", "extra": "e"})
    assert "AdminComment=w-0 leaves at noon" in slurm.run("scontrol", "show", "job", str(job))
    heard = slurm.workers["w-0"].box.path("/tmp/heard")
    # A batch script that has only just begun has no handler yet: it must be seen to run first.
    await until(lambda: bool(_steps(slurm, job)), "the script to run")
    await client.send.signal_job(str(job), "USR2")
    await until(heard.exists, "the signal to arrive")
    assert slurm.job_state(job) == "RUNNING"

    await client.send.requeue_job(str(job), hold=True)
    await until(lambda: slurm.job_state(job) == "PENDING", "the job to be back in the queue")
    await client.send.cancel_job(str(job))
    await until(lambda: slurm.job_state(job) == "CANCELLED", "the job to end")
    with pytest.raises(errors.JobFinished):
        await client.send.cancel_job(str(job))
    with pytest.raises(errors.UnknownJob):
        await client.send.update_job(99999, {"comment": "x"})
    with pytest.raises(errors.UnknownJob):
        await client.send.requeue_job("99999")


def _steps(slurm: SlurmDaemons, job: int) -> str:
    return slurm.run("squeue", "--steps", "--noheader", "--jobs", str(job))


async def test_jobs_of_a_hidden_partition_are_seen(new_slurm: Callable[..., SlurmDaemons]) -> None:
    """We read jobs with flags=ALL, without DETAIL: nothing may be missing for that."""
    lines = ("NodeSet=all Feature=all", "PartitionName=dark Nodes=ALL Default=YES Hidden=YES State=UP")
    slurm = new_slurm(lines=lines)
    slurm.reset("w-0")
    job = await running(slurm)

    client = client_of(slurm)
    listing = await client.read.jobs()
    partitions = await client.read.partitions()

    assert listing is not None
    assert partitions is not None
    assert listing.records[job].nodes == ("w-0",)
    assert "dark" in partitions.records


async def test_arrays_and_packs_name_their_nodes(new_slurm: Callable[..., SlurmDaemons]) -> None:
    slurm = new_slurm(settings={"SchedulerParameters": "bf_interval=1"})  # Only backfill starts packs.
    slurm.reset("w-0", "w-1")
    pack = slurm.submit("sleep 600", "--mem=10", "-n1", "--time=5", ":", "--mem=10", "-n1")
    await until(lambda: slurm.run("squeue", "--noheader", "--states=R").count("\n") == 2, "the pack to run")
    array = slurm.submit("sleep 600", "--array=0-3%2", "--mem=10", "--time=5")
    await until(lambda: slurm.run("squeue", "--noheader", "--states=R").count("\n") == 4, "two tasks to run")
    client = client_of(slurm)
    listing = await client.read.jobs()

    assert listing is not None
    tasks = [job for job in listing.records.values() if job.array_job_id == array]
    parts = [job for job in listing.records.values() if job.het_job_id == pack]
    assert len([job for job in tasks if job.nodes]) == 2
    assert len(parts) == 2
    assert all(job.job_id in listing.by_node[node] for job in tasks for node in job.nodes)


async def test_the_rest_is_read(new_slurm: Callable[..., SlurmDaemons]) -> None:
    lines = (
        "NodeSet=all Feature=all",
        "PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=60",
        "PartitionName=old Nodes=ALL State=INACTIVE",
    )
    slurm = new_slurm(settings={"Licenses": "matlab:4"}, lines=lines)
    slurm.reset("w-0")
    client = client_of(slurm)
    await client.send.reconfigure()
    partitions = await client.read.partitions()
    licences = await client.read.licenses()
    (ping,) = await client.read.ping()
    diagnosis = await client.read.diagnosis()
    parameters = await client.read.slurmctld_parameters()

    assert partitions is not None
    assert partitions.records["all"].max_time == timedelta(hours=1)
    assert partitions.records["all"].is_default
    assert partitions.records["all"].nodes == ("w-0",)
    assert not partitions.records["old"].takes_jobs
    assert licences["matlab"].total == 4
    assert ping.is_primary
    assert ping.is_responding
    assert ping.hostname == "ctld-0"
    assert diagnosis.counters["jobs_submitted"] == 0
    assert not diagnosis.is_database_behind
    assert parameters == ("enable_configless",)
