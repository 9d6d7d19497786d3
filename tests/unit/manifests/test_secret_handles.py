from slurm_operator.manifests.secrets import SecretHandle, filled, handles_in

PASSWORD = SecretHandle(namespace="ns", name="db", key="password", digest="ab12")
OTHER = SecretHandle(namespace="ns", name="db", key="user")


def test_a_handle_stands_in_for_its_value_until_it_is_filled_in():
    manifest = {
        "kind": "Secret",
        "stringData": {
            "slurmdbd.conf": f"StorageUser={OTHER.mark}\nStoragePass={PASSWORD.mark}\n",
            "plain": "x",
        },
    }

    assert handles_in(manifest) == {PASSWORD, OTHER}
    whole = filled(manifest, {PASSWORD: "s3cret", OTHER: "slurm"})
    assert whole["stringData"] == {"slurmdbd.conf": "StorageUser=slurm\nStoragePass=s3cret\n", "plain": "x"}
    assert handles_in(manifest) == {PASSWORD, OTHER}  # the plan itself stays without the value


def test_a_manifest_without_handles_has_none():
    assert handles_in({"kind": "ConfigMap", "data": {"a": "b"}}) == set()
