from types import SimpleNamespace

import pytest

from slurm_operator.api.meta import ObjectKey
from slurm_operator.api.names import APP_NAME
from slurm_operator.manifests.meta import Meta
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.actions import DeleteDaemonPod
from slurm_operator.runtime.act import ActionFailed
from slurm_operator.runtime.perform import Performer
from slurm_operator.runtime.retries import NEXT_PASS

KEY = ObjectKey("ns", "gpu-0")


class Client:
    """Remembers what it was asked to delete."""

    def __init__(self) -> None:
        self.deleted: list[ObjectKey] = []

    async def delete_undecoded(self, kind, key, **_):
        self.deleted.append(key)


@pytest.mark.parametrize(("app", "deleted"), [("slurmctld", [KEY]), ("slurmd", [])])
async def test_a_worker_is_never_deleted_as_a_daemon_without_jobs(app, deleted):
    pod = Pod(metadata=Meta(name="gpu-0", namespace="ns", uid="u", labels={APP_NAME: app}))
    client, known = Client(), SimpleNamespace(records={Pod: {KEY: pod}}, note_deleted=lambda *_: None)
    action = DeleteDaemonPod(
        key=KEY, uid="u", app="slurmctld", reason="Restart", message="restarts slurmctld"
    )
    performer = Performer(client, known, lambda: None, NEXT_PASS)

    if app == "slurmctld":
        await performer.perform(action)
    else:
        with pytest.raises(ActionFailed, match="not one of slurmctld"):
            await performer.perform(action)

    assert client.deleted == deleted
