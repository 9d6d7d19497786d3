"""Specs that slipped in while no webhook was there: nothing is made for them, and they say why."""

from kinds_rig import apply, condition, get, merge, ns, operator, ours, wait_for, wait_reason

from testing.managers import running_manager, until

__all__ = ["ns"]

CONTROLLER = {"external": True, "externalConfig": {"host": "c", "port": 6817},
              "slurmKeyRef": {"name": "k", "key": "slurm.key"}, "jwtKeyRef": {"name": "k", "key": "jwt.key"}}  # fmt: skip
WORKERS = {
    "controllerRef": {"name": "slurm"},
    "replicas": 1,
    "slurmd": {"image": "slurmd:1"},
    "template": {"spec": {"hostname": "gpu-"}},
}


def test_of_two_nodesets_with_one_name_in_slurm_the_younger_waits_and_says_why(plane, ns, tmp_path):
    apply(plane, ours("Controller", ns, "slurm", CONTROLLER), ours("NodeSet", ns, "b-first", WORKERS))
    until(lambda: get(plane, ns, "nodeset", "b-first") is not None, what="the first")
    created = get(plane, ns, "nodeset", "b-first")["metadata"]["creationTimestamp"]
    make_later(plane, ns, created)

    with running_manager(operator(plane, f"op-{ns}"), tmp_path / "log", "--namespaces", ns) as manager:
        manager.wait_ready()
        wait_for(plane, ns, "pod", "b-first-0")
        said = wait_reason(plane, ns, "nodeset", "a-second", "SpecRefused")

        assert "NodeSet 'b-first' is already known as 'gpu' to the same Controller" in said
        assert condition(plane, ns, "nodeset", "a-second", "Degraded")[:2] == ("True", "SpecRefused")
        assert get(plane, ns, "pod", "a-second-0") is None

        merge(plane, ns, "nodeset", "a-second", {"spec": {"template": {"spec": {"hostname": "cpu-"}}}})
        wait_for(plane, ns, "pod", "a-second-0")
        until(
            lambda: condition(plane, ns, "nodeset", "a-second", "Degraded")[1] != "SpecRefused",
            what="a NodeSet that is content",
        )


def make_later(plane, ns: str, before: str) -> None:
    """A second one, in another second: that is as fine as the API server notes it."""

    def is_younger() -> bool:
        plane.kubectl("delete", "nodeset", "a-second", "-n", ns, "--ignore-not-found")
        apply(plane, ours("NodeSet", ns, "a-second", WORKERS))
        return get(plane, ns, "nodeset", "a-second")["metadata"]["creationTimestamp"] > before

    until(is_younger, what="a younger one")
