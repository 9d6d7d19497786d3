"""The whole writer: JailedConfigs of an API server become files, Slurm reads them, and conditions say so."""

import asyncio
import base64
import os
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from fake_slurmrestd import FakeSlurmrestd, answer
from slurmrest_replies import NODES, OK, RECONFIGURE
from small_api import JAILED, LEASES, MAPS, SECRETS, SmallApi
from test_reconfigure import nodes

from slurm_operator.agents.sconfig.paths import is_temporary
from slurm_operator.agents.sconfig.program import LOST_LEASE, Program, Settings
from slurm_operator.kube.auth.access import Access
from slurm_operator.runtime.settings import Address

VIRTUAL_TIME = True

DONE = {"FilesWritten": "True/Success", "UpdateActionsCompleted": "True/Success"}


class Rig:
    """A writer and everything around it."""

    def __init__(self, api: SmallApi, slurm: FakeSlurmrestd, root: Path) -> None:
        self.api, self.slurm, self.root = api, slurm, root

    def program(self, **settings) -> Program:
        off = Address("localhost", 0)
        chosen = {"cluster": "demo", "namespace": "slurm", "root": str(self.root), "slurm_url": self.slurm.url, "health": off, "metrics": off, "leader_elect": False}  # fmt: skip
        return Program(
            Access(server=self.api.url), Settings(**(chosen | settings)), asyncio.get_running_loop().time
        )

    @asynccontextmanager
    async def running(self, **settings) -> AsyncIterator["asyncio.Task[int]"]:
        task = asyncio.create_task(self.program(**settings).run())
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def files(self) -> dict[str, str]:
        return {
            str(file.relative_to(self.root)): file.read_text()
            for file in self.root.rglob("*")
            if file.is_file()
        }

    @property
    def reconfigures(self) -> int:
        return len(self.slurm.calls(RECONFIGURE))


async def until(check: Callable[[], object], seconds: float = 600.0) -> None:
    """Of imagined time."""
    async with asyncio.timeout(seconds):
        while not check():  # noqa: ASYNC110 - files tell nobody that they change
            await asyncio.sleep(0.25)


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    slurm = FakeSlurmrestd()
    slurm.on(RECONFIGURE, OK)
    slurm.on(NODES, nodes())
    await slurm.start()
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    async with SmallApi() as api:
        with tempfile.TemporaryDirectory(dir=memory) as root:
            await api.put(
                SECRETS, "demo-rest-jwt-key", data={"rest_jwt.key": base64.b64encode(b"k" * 32).decode()}
            )
            yield Rig(api, slurm, Path(root))
    await slurm.stop()


async def slurm_and_topology(api: SmallApi) -> None:
    await api.put(MAPS, "configs", data={"slurm.conf": "ClusterName=demo\n"})
    await api.put(MAPS, "topology", data={"topology.conf": "old\n"})
    await api.jailed("configs", "/etc/slurm/slurm.conf", group="common")
    await api.jailed("topology", "/etc/slurm/topology.conf", group="common", actions=False)


async def test_files_are_written_and_read_by_slurm_once(rig):
    await slurm_and_topology(rig.api)

    async with rig.running():
        await until(lambda: rig.api.reasons("configs") == rig.api.reasons("topology") == DONE)
        await asyncio.sleep(1000)

    assert rig.files() == {"etc/slurm/slurm.conf": "ClusterName=demo\n", "etc/slurm/topology.conf": "old\n"}
    assert rig.reconfigures == 1
    assert rig.api.message("configs", "FilesWritten") == "1 file of ConfigMap configs is in the shared root."
    told = [reasons["UpdateActionsCompleted"][1] for name, reasons in rig.api.statuses if name == "configs"]
    assert told == ["Init", "Refresh", "Success"]


async def test_a_changed_configmap_is_written_and_the_previous_file_is_kept_for_a_while(rig):
    await slurm_and_topology(rig.api)
    async with rig.running():
        await until(lambda: rig.api.reasons("configs") == rig.api.reasons("topology") == DONE)

        await rig.api.put(MAPS, "topology", data={"topology.conf": "new\n"})
        await until(lambda: rig.files()["etc/slurm/topology.conf"] == "new\n")
        assert [text for name, text in rig.files().items() if is_temporary(name)] == ["old\n"]
        assert rig.reconfigures == 1, "first every node sees the new file"
        await until(lambda: rig.reconfigures == 2)
        await until(lambda: rig.api.reasons("topology") == DONE)

    assert not [name for name in rig.files() if is_temporary(name)]


async def test_a_new_writer_writes_nothing_and_reconfigures_nothing(rig):
    await slurm_and_topology(rig.api)
    async with rig.running():
        await until(lambda: rig.api.reasons("configs") == rig.api.reasons("topology") == DONE)
    told = len(rig.api.statuses)

    async with rig.running():
        await asyncio.sleep(1000)

    assert (rig.reconfigures, len(rig.api.statuses)) == (1, told)


async def test_a_writer_that_ended_before_the_reconfigure_leaves_it_to_the_next(rig):
    await slurm_and_topology(rig.api)
    async with rig.running():
        await until(lambda: rig.api.reasons("configs") == rig.api.reasons("topology") == DONE)
        await rig.api.put(MAPS, "configs", data={"slurm.conf": "changed\n"})
        await until(lambda: rig.files()["etc/slurm/slurm.conf"] == "changed\n")
    assert rig.reconfigures == 1
    assert rig.api.reasons("configs")["UpdateActionsCompleted"] == "False/Refresh"

    async with rig.running():
        await until(lambda: rig.api.reasons("configs") == DONE)

    assert rig.reconfigures == 2
    assert not [name for name in rig.files() if is_temporary(name)]


async def test_a_deleted_jailedconfig_leaves_its_file(rig):
    await slurm_and_topology(rig.api)
    async with rig.running():
        await until(lambda: rig.api.reasons("configs") == rig.api.reasons("topology") == DONE)
        await rig.api.delete(JAILED, "topology")
        await rig.api.put(MAPS, "topology", data={"topology.conf": "new\n"})
        await asyncio.sleep(1000)

    assert rig.files()["etc/slurm/topology.conf"] == "old\n"
    assert rig.reconfigures == 1


async def test_a_file_that_a_user_changed_is_put_back(rig):
    await slurm_and_topology(rig.api)
    async with rig.running():
        await until(lambda: rig.api.reasons("configs") == rig.api.reasons("topology") == DONE)
        (rig.root / "etc/slurm/slurm.conf").write_text("mine\n")
        await until(lambda: rig.reconfigures == 2)

    assert rig.files()["etc/slurm/slurm.conf"] == "ClusterName=demo\n"


async def test_a_missing_configmap_holds_up_its_group_until_it_is_there(rig):
    await slurm_and_topology(rig.api)
    await rig.api.delete(MAPS, "topology")

    async with rig.running():
        await until(lambda: rig.api.reasons("topology").get("FilesWritten") == "False/NotFound")
        await asyncio.sleep(100)
        assert rig.files() == {}
        assert rig.api.reasons("configs")["FilesWritten"] == "False/NotWritten"
        await rig.api.put(MAPS, "topology", data={"topology.conf": "new\n"})
        await until(lambda: rig.api.reasons("configs") == rig.api.reasons("topology") == DONE)

    assert rig.reconfigures == 1


async def test_jailedconfigs_of_another_cluster_are_not_ours(rig):
    await slurm_and_topology(rig.api)
    await rig.api.put(MAPS, "other", data={"x": "x"})
    await rig.api.jailed("other", "/x", labels={"app.kubernetes.io/instance": "another"})

    async with rig.running():
        await until(lambda: rig.api.reasons("configs") == DONE)
        await asyncio.sleep(100)

    assert "x" not in rig.files()
    assert rig.api.reasons("other") == {}


async def test_binary_data_and_modes_reach_the_file(rig):
    await rig.api.put(MAPS, "bin", binaryData={"tool": base64.b64encode(b"\0\xff").decode()})
    await rig.api.jailed("bin", "/opt/tool", actions=False)
    rig.api.things[f"{JAILED}/bin"]["spec"]["defaultMode"] = 0o755

    async with rig.running():
        await until(lambda: rig.api.reasons("bin").get("UpdateActionsCompleted") == "True/MissingAction")

    file = rig.root / "opt/tool"
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"\0\xff", 0o755)


async def test_a_path_through_a_link_is_refused_until_the_link_is_gone(rig):
    await slurm_and_topology(rig.api)
    (rig.root / "etc").mkdir()
    (rig.root / "etc/slurm").symlink_to("/tmp")

    async with rig.running():
        await until(lambda: rig.api.reasons("configs").get("FilesWritten") == "False/PathRefused")
        assert "is a symbolic link" in rig.api.message("configs", "FilesWritten")
        (rig.root / "etc/slurm").unlink()
        await until(lambda: rig.api.reasons("configs") == DONE)

    assert rig.reconfigures == 1


async def test_slurm_that_is_away_is_asked_again(rig):
    await slurm_and_topology(rig.api)
    rig.slurm.on(NODES, answer("nodes-slurmctld-gone"))

    async with rig.running():
        await until(
            lambda: rig.api.reasons("configs").get("UpdateActionsCompleted") == "False/ReconfigureFailed"
        )
        assert rig.api.reasons("configs")["FilesWritten"] == "True/Success"
        rig.slurm.on(NODES, nodes())
        await until(lambda: rig.api.reasons("configs") == rig.api.reasons("topology") == DONE)

    assert rig.reconfigures == 1


async def test_without_a_key_for_slurm_it_says_which_secret(rig):
    await slurm_and_topology(rig.api)
    await rig.api.delete(SECRETS, "demo-rest-jwt-key")

    async with rig.running():
        await until(
            lambda: rig.api.reasons("configs").get("UpdateActionsCompleted") == "False/ReconfigureFailed"
        )

    assert "Secret slurm/demo-rest-jwt-key" in rig.api.message("configs", "UpdateActionsCompleted")


async def test_nothing_is_written_before_the_api_server_knows_that_it_is_owed(rig):
    await slurm_and_topology(rig.api)
    rig.api.refuses.add("PATCH")

    async with rig.running():
        await asyncio.sleep(200)
        assert rig.files() == {}
        rig.api.refuses.clear()
        await until(lambda: rig.api.reasons("configs") == DONE)

    assert rig.reconfigures == 1


async def test_a_status_that_could_not_be_told_costs_no_second_reconfigure(rig):
    await slurm_and_topology(rig.api)
    rig.slurm.before_answer = lambda: rig.api.refuses.update({"PATCH"} if rig.reconfigures else ())

    async with rig.running():
        await until(lambda: rig.reconfigures)
        await asyncio.sleep(1000)
        assert rig.reconfigures == 1
        assert rig.api.reasons("configs")["UpdateActionsCompleted"] == "False/Refresh"
        rig.api.refuses.clear()
        await until(lambda: rig.api.reasons("configs") == rig.api.reasons("topology") == DONE)

    assert rig.reconfigures == 1


async def test_with_a_lease_only_one_of_two_writes(rig):
    await slurm_and_topology(rig.api)

    async with rig.running(leader_elect=True) as first:
        await until(lambda: rig.api.reasons("configs") == DONE)
        lease = rig.api.things[f"{LEASES}/demo.vqeyz6ae.nebius.ai"]
        assert lease["spec"]["holderIdentity"]
        await rig.api.put(
            LEASES, "demo.vqeyz6ae.nebius.ai", spec=lease["spec"] | {"holderIdentity": "another"}
        )
        rig.api.refuses.add("PUT")
        assert await asyncio.wait_for(first, 600) == LOST_LEASE
