from types import SimpleNamespace

import pytest

from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.shared.names import APP_NAME, LABEL_PART
from slurm_operator.kube.errors import ApiError, Conflict, NamespaceEnding, NotFound, Status
from slurm_operator.manifests import kinds
from slurm_operator.manifests.defaults import Defaults
from slurm_operator.manifests.meta import Meta
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.actions import Create, DeleteDaemonPod, PatchObject
from slurm_operator.runtime.act.perform import Performer
from slurm_operator.runtime.act.stages import ActionFailed, Pointless
from slurm_operator.runtime.loop.retries import NEXT_PASS

KEY = ObjectKey("ns", "gpu-0")


class Client:
    """Remembers what it was asked to delete."""

    def __init__(self) -> None:
        self.deleted: list[ObjectKey] = []

    async def delete_undecoded(self, kind, key, **_):
        self.deleted.append(key)


@pytest.mark.parametrize(
    ("labels", "deleted"),
    [
        ({APP_NAME: "slurmctld"}, [KEY]),
        ({APP_NAME: "slurmcluster", LABEL_PART: "slurmctld"}, [KEY]),
        ({APP_NAME: "slurmd"}, []),
        ({APP_NAME: "slurmctld", LABEL_PART: "slurmd"}, []),
    ],
    ids=["slurmctld", "slurmctld by another name", "slurmd", "slurmd by the name of slurmctld"],
)
async def test_a_worker_is_never_deleted_as_a_daemon_without_jobs(labels, deleted):
    pod = Pod(metadata=Meta(name="gpu-0", namespace="ns", uid="u", labels=labels))
    client, known = Client(), SimpleNamespace(records={Pod: {KEY: pod}}, note_deleted=lambda *_: None)
    action = DeleteDaemonPod(
        key=KEY, uid="u", app="slurmctld", reason="Restart", message="restarts slurmctld"
    )
    performer = Performer(client, known, lambda: None, NEXT_PASS, lambda: True)

    if deleted:
        await performer.perform(action)
    else:
        with pytest.raises(ActionFailed, match="not one of slurmctld"):
            await performer.perform(action)

    assert client.deleted == deleted


class Taking:
    """Takes every object, and remembers it."""

    def __init__(self) -> None:
        self.made: list[dict] = []

    async def create_undecoded(self, kind, manifest):
        self.made.append(manifest)
        return b'{"metadata":{"name":"gpu-0","namespace":"ns"}}'


async def test_what_is_created_carries_the_annotations_of_the_settings_file():
    client, known = Taking(), SimpleNamespace(note_answer=lambda *_: [])
    defaults = Defaults(annotations={"example.com/team": "hpc"})
    performer = Performer(client, known, lambda: None, NEXT_PASS, lambda: True, defaults=defaults)

    await performer.perform(CREATE)

    assert client.made[0]["metadata"]["annotations"] == {"example.com/team": "hpc"}


class Refusing:
    """Says no to every patch and every new object."""

    def __init__(self, error: ApiError) -> None:
        self.error = error

    async def json_patch_undecoded(self, kind, key, operations, **_):
        raise self.error

    async def create_undecoded(self, kind, manifest):
        raise self.error


PATCH = PatchObject(kind=kinds.POD, key=KEY, uid="u", operations=(), reason="Note", message="notes something")
CREATE = Create(manifest={"apiVersion": "v1", "kind": "Pod"}, reason="ScalingUp", message="one more")


@pytest.mark.parametrize(
    ("action", "error", "raised"),
    [
        pytest.param(PATCH, NotFound(Status(code=404)), Pointless, id="what was to be changed is gone"),
        pytest.param(PATCH, Conflict(Status(code=409)), ActionFailed, id="somebody else changed it"),
        pytest.param(CREATE, NotFound(Status(code=404)), ActionFailed, id="there is no place for it"),
        pytest.param(CREATE, NamespaceEnding(Status(code=403)), Pointless, id="its namespace ends"),
    ],
)
async def test_what_nobody_needs_any_more_is_no_failure(action, error, raised):
    performer = Performer(Refusing(error), SimpleNamespace(), lambda: None, NEXT_PASS, lambda: True)

    with pytest.raises(raised):
        await performer.perform(action)
