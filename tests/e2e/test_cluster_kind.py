"""One short manifest to a Slurm cluster that runs a job, and away again."""

import json
import uuid

import pytest
from e2e_pods import make_namespace
from operator_rig import install, until

from slurm_local.errors import LocalError
from slurm_operator.api.shared import names
from testing.examples import example

pytestmark = pytest.mark.timeout(900)

# The most that leaves room for a Service and for the label of a worker.
LONGEST = "a-cluster-with-quite-a-long-name-of-52-characters-ab"

# The machine under test need not give workers any privileges.
HERE = {"isolation": "process"}


@pytest.fixture(scope="module")
def operator(cluster, operator_image):
    install(cluster, operator_image)
    return cluster


class Demo:
    """A Cluster in a namespace of its own."""

    def __init__(self, cluster, spec: dict, name: str = "demo") -> None:
        self.cluster, self.namespace, self.name = cluster, f"demo-{uuid.uuid4().hex[:6]}", name
        make_namespace(cluster, self.namespace)
        self.apply(spec)

    def manifest(self, spec: dict) -> dict:
        metadata = {"name": self.name, "namespace": self.namespace}
        return {"apiVersion": "slinky.slurm.net/v1beta1", "kind": "Cluster", "metadata": metadata, "spec": {**HERE, **spec}}  # fmt: skip

    def apply(self, spec: dict) -> None:
        self.cluster.apply([self.manifest(spec)])

    def get(self, what: str, *flags: str) -> str:
        return self.cluster.kubectl("get", what, "-n", self.namespace, *flags)

    @property
    def status(self) -> dict:
        return json.loads(self.get(f"cluster/{self.name}", "-o", "json")).get("status") or {}

    def told(self) -> str:
        """What it says about itself; for messages of tests."""
        return json.dumps(
            {c["type"]: (c["status"], c.get("message", "")) for c in self.status.get("conditions", ())}
        )

    def wait_ready(self) -> None:
        until(lambda: self.status.get("isReady") is True, 300, lambda: f"Ready: {self.told()}")

    def run(self, *command: str) -> str:
        head = names.controller_pod(self.name, 0)
        where = ("exec", "-n", self.namespace, head, "-c", "slurmctld", "--", "timeout", "30")
        return self.cluster.kubectl(*where, *command, timeout_s=60)

    def ran(self, job: int) -> bool:
        try:
            return "JobState=COMPLETED" in self.run("scontrol", "show", "job", "--oneliner", str(job))
        except LocalError:
            return False

    def run_a_job(self) -> None:
        job = int(
            self.run(
                "sbatch", "--parsable", "--nodes=2", "--output=/dev/null", "--wrap=srun hostname"
            ).strip()
        )
        until(lambda: self.ran(job), 120, lambda: self.run("scontrol", "show", "job", str(job)))


@pytest.mark.parametrize(
    ("name", "isolation"),
    [
        ("cluster-smallest", "process"),
        ("cluster-mariadb", "process"),
        pytest.param("cluster-smallest", "auto", marks=pytest.mark.full),
    ],
)
def test_a_short_manifest_becomes_a_cluster_that_runs_a_job_and_goes_without_a_trace(
    operator, name, isolation
):
    demo = Demo(operator, {**example(name), "isolation": isolation})

    demo.wait_ready()
    until(lambda: demo.status.get("nodes", {}).get("idle") == 2, 120, demo.told)
    demo.run_a_job()

    assert demo.status["slurmVersion"].startswith("26.")
    assert demo.get("clusters", "--no-headers").split()[:2] == ["demo", "True"]
    operator.kubectl("delete", "cluster", "demo", "-n", demo.namespace, "--timeout=180s", timeout_s=200)
    left = "controllers,nodesets,restapis,accountings,loginsets,pods"
    until(lambda: "demo" not in demo.get(left, "--no-headers"), 120, lambda: demo.get(left))


def test_a_cluster_that_is_deleted_lets_its_jobs_end_first(operator):
    demo = Demo(operator, example("cluster-smallest"))
    demo.wait_ready()
    until(lambda: demo.status.get("nodes", {}).get("idle") == 2, 120, demo.told)
    # So that slurmctld can be asked afterwards what became of the job.
    hold(demo, ["example.org/hold"])
    until_told = "--wrap=until [ -e /tmp/may-end ]; do sleep 0.2; done"
    job = int(demo.run("sbatch", "--parsable", "--output=/dev/null", until_told).strip())
    until(lambda: "RUNNING" in demo.run("squeue", "--noheader", "--format=%T"), 60)

    operator.kubectl("delete", "cluster", "demo", "-n", demo.namespace, "--wait=false")

    until(lambda: "waiting for NodeSet demo-cpu" in demo.told(), 60, demo.told)
    until(lambda: "drng" in demo.run("sinfo", "--noheader", "--format=%t"), 60, demo.told)
    state, worker = demo.run("squeue", "--noheader", "--format=%T %N").split()
    assert state == "RUNNING"
    operator.kubectl("exec", "-n", demo.namespace, worker, "-c", "slurmd", "--", "touch", "/tmp/may-end")
    until(lambda: "demo-cpu" not in demo.get("nodesets", "--no-headers"), 180, demo.told)
    assert demo.ran(job)
    until(lambda: "waiting for Controller demo" in demo.told(), 60, demo.told)
    hold(demo, [])
    until(lambda: "demo" not in demo.get("clusters", "--no-headers"), 120, demo.told)


@pytest.mark.full
def test_a_cluster_with_the_longest_name_runs_a_job_on_workers_that_find_each_other(operator):
    demo = Demo(operator, example("cluster-smallest"), name=LONGEST)
    demo.wait_ready()
    until(lambda: demo.status.get("nodes", {}).get("idle") == 2, 120, demo.told)

    demo.run_a_job()
    found = demo.run("srun", "--nodes=1", "getent", "hosts", f"{LONGEST}-cpu-1").split()
    assert found[1].startswith(f"{LONGEST}-cpu-1.{names.worker_service(LONGEST)}."), found
    operator.kubectl("delete", "cluster", LONGEST, "-n", demo.namespace, "--timeout=180s", timeout_s=200)


@pytest.mark.full
def test_a_partition_that_is_taken_out_of_a_cluster_goes_with_the_last_of_its_jobs(operator):
    both = [{"name": "all", "default": True}, {"name": "old", "nodeSets": ["cpu"]}]
    demo = Demo(operator, {**example("cluster-smallest"), "partitions": both})
    demo.wait_ready()
    until(lambda: demo.status.get("nodes", {}).get("idle") == 2, 120, demo.told)
    job = int(
        demo.run("sbatch", "--parsable", "--partition=old", "--output=/dev/null", "--wrap=sleep 20").strip()
    )
    until(lambda: "RUNNING" in demo.run("squeue", "--noheader", "--format=%T"), 60)

    demo.apply({**example("cluster-smallest"), "partitions": both[:1]})

    until(lambda: f"jobs {job}" in demo.told(), 60, demo.told)
    until(lambda: "State=DRAIN" in demo.run("scontrol", "--oneliner", "show", "partition", "old"), 60)
    until(
        lambda: "PartitionName=old" not in demo.run("scontrol", "--oneliner", "show", "partition"),
        120,
        demo.told,
    )
    assert demo.ran(job)
    until(lambda: "PartitionInUse" not in json.dumps(demo.status), 60, demo.told)
    operator.kubectl("delete", "cluster", "demo", "-n", demo.namespace, "--timeout=180s", timeout_s=200)


def hold(demo: Demo, finalizers: list[str]) -> None:
    """Puts a finalizer of ours onto the Controller beside what is there, or takes it away."""
    found = json.loads(demo.get("controller/demo", "-o", "json"))["metadata"].get("finalizers", [])
    wanted = [name for name in found if not name.startswith("example.org/")] + finalizers
    patch = json.dumps({"metadata": {"finalizers": wanted}})
    demo.cluster.kubectl("patch", "controller", "demo", "-n", demo.namespace, "--type=merge", "-p", patch)
