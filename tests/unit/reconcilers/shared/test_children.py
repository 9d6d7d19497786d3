"""Which writes are missing, and what a new version of the operator does not write."""

from slurm_operator import wire
from slurm_operator.manifests import kinds
from slurm_operator.manifests.compare.differences import INPUT_DIGEST, settled_template, stamped
from slurm_operator.manifests.meta import Child, Meta
from slurm_operator.manifests.objects import Secret, Unread
from slurm_operator.manifests.secrets import CONTENT_DIGEST, content_digest
from slurm_operator.reconcilers.shared.children import missing_secret, missing_writes, surplus


def workload(image="slurm:1", digest="i1", replicas=1) -> dict:
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "c-controller", "namespace": "ns", "annotations": {INPUT_DIGEST: digest}},
        "spec": {
            "replicas": replicas,
            "template": {"spec": {"containers": [{"name": "slurmctld", "image": image}]}},
        },
    }


def service(port=6817) -> dict:
    return {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "c-controller", "namespace": "ns"},
        "spec": {"ports": [{"name": "slurmctld", "port": port}]},
    }  # fmt: skip


def applied(manifest: dict) -> dict:
    return stamped(settled_template(manifest, None))


def live(*manifests: dict):
    """These objects, as they are after they were applied."""
    made = {
        (kinds.kind_of(m), m["metadata"]["name"]): Child(
            metadata=Meta(
                name=m["metadata"]["name"], namespace="ns", uid="u",
                annotations=applied(m)["metadata"]["annotations"],
            ),
            body=applied(m),
        )
        for m in manifests
    }  # fmt: skip
    return lambda kind, namespace, name: made.get((kind, name))


def test_what_is_there_is_not_written_again():
    assert missing_writes([service(), workload()], live(service(), workload())) == []


def test_an_absent_object_is_created():
    [write] = missing_writes([service()], live())

    assert (write.reason, write.message) == ("Created", "created Service c-controller")


def test_a_changed_field_is_named():
    [write] = missing_writes([service(port=1)], live(service()))

    assert write.message == "updated Service c-controller: spec.ports[name=slurmctld].port"


def test_a_template_that_only_the_operator_built_differently_restarts_nothing():
    assert missing_writes([workload(image="built-by-a-newer-operator")], live(workload())) == []


def inherited(image="slurm:1"):
    """As the Slinky operator made it: no digest of ours, and a template with an oddity of its own."""
    body = workload(image)
    body["metadata"]["annotations"] = {}
    body["spec"]["template"]["spec"]["oddity"] = "theirs"
    child = Child(metadata=Meta(name="c-controller", namespace="ns", uid="u"), body=body)
    return lambda kind, namespace, name: child


def test_a_workload_of_the_operator_before_us_is_taken_over_with_the_template_it_has():
    [write] = missing_writes([workload(digest="i1")], inherited())

    template = write.manifest["spec"]["template"]
    taken = Child(metadata=wire.decode(wire.encode(write.manifest["metadata"]), Meta), body=write.manifest)
    assert template["spec"]["oddity"] == "theirs"
    assert missing_writes([workload(digest="i1")], lambda kind, namespace, name: taken) == []
    [later] = missing_writes([workload(digest="i2")], lambda kind, namespace, name: taken)
    assert "oddity" not in later.manifest["spec"]["template"]["spec"]


def test_a_workload_that_the_operator_before_us_had_not_brought_up_to_date_is_written():
    [write] = missing_writes([workload("slurm:2")], inherited("slurm:1"))

    assert write.manifest["spec"]["template"]["spec"]["containers"][0]["image"] == "slurm:2"


def test_a_template_that_somebody_else_edited_is_put_back():
    there = live(workload())
    there(kinds.STATEFUL_SET, "ns", "c-controller").body["spec"]["template"] = workload(image="foreign")[
        "spec"
    ]["template"]

    [write] = missing_writes([workload()], there)

    assert "containers[name=slurmctld].image" in write.message
    assert write.manifest["spec"]["template"]["spec"]["containers"][0]["image"] == "slurm:1"


def test_a_template_whose_input_changed_is_rolled():
    [write] = missing_writes([workload(image="slurm:2", digest="i2")], live(workload()))

    assert write.manifest["spec"]["template"]["spec"]["containers"][0]["image"] == "slurm:2"


def test_the_rest_of_a_workload_is_corrected_without_touching_its_template():
    [write] = missing_writes([workload(image="other", replicas=2)], live(workload()))

    assert write.manifest["spec"]["replicas"] == 2
    assert write.manifest["spec"]["template"]["spec"]["containers"][0]["image"] == "slurm:1"


def test_what_is_no_longer_wanted_is_deleted_by_uid():
    there = live(service())(kinds.SERVICE, "ns", "c-controller")

    [delete] = surplus(kinds.SERVICE, [there], [], "metrics are off")

    assert (delete.uid, delete.message) == ("u", "deleted Service c-controller: metrics are off")
    assert surplus(kinds.SERVICE, [there], [service()], "") == []


def config(text="Port=1") -> dict:
    return {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "conf", "namespace": "ns"},
        "type": "Opaque", "stringData": {"slurmdbd.conf": text},
    }  # fmt: skip


def written(manifest: dict, digests: dict[str, str]) -> Secret:
    """The Secret after we wrote this, and after its values came to have these digests."""
    noted = content_digest({"slurmdbd.conf": "d1"}, ["slurmdbd.conf"])
    annotations = {**stamped(manifest)["metadata"]["annotations"], CONTENT_DIGEST: noted}
    return Secret(
        metadata=Meta(name="conf", namespace="ns", uid="u", annotations=annotations), digests=digests
    )


def test_a_secret_that_holds_what_we_wrote_is_left_alone():
    assert missing_secret(config(), written(config(), {"slurmdbd.conf": "d1"})) is None
    assert missing_secret(config(), written(config(), {"slurmdbd.conf": "d1", "somebody's": "d9"})) is None


def test_a_secret_whose_values_were_edited_is_written_again():
    write = missing_secret(config(), written(config(), {"slurmdbd.conf": "d2"}))

    assert write.message == "updated Secret conf: data"


def test_a_secret_of_which_we_want_another_text_is_written_again():
    assert missing_secret(config("Port=2"), written(config(), {"slurmdbd.conf": "d1"})).reason == "Updated"
    assert missing_secret(config(), None).reason == "Created"


def test_a_secret_that_cannot_be_read_is_not_written():
    assert missing_secret(config(), Unread(why="forbidden")) is None
