import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from slurm_operator.manifests.secrets import SecretHandle, filled, handles_in
from slurm_operator.slurm.conf.lines import parse

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

    assert handles_in(manifest) == [OTHER, PASSWORD]
    whole = filled(manifest, {PASSWORD: "s3cret", OTHER: "slurm"})
    assert whole["stringData"] == {"slurmdbd.conf": "StorageUser=slurm\nStoragePass=s3cret\n", "plain": "x"}
    assert handles_in(manifest) == [OTHER, PASSWORD]  # the plan itself stays without the value


def test_a_manifest_without_handles_has_none():
    assert handles_in({"kind": "ConfigMap", "data": {"a": "b"}}) == []


QUOTED = SecretHandle(namespace="ns", name="db", key="password", digest="ab12", form="conf")
CONF = {"kind": "Secret", "stringData": {"slurmdbd.conf": f"StoragePass={QUOTED.mark}\nDebugLevel=info\n"}}


@given(
    st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1)
    | st.text("ab #\\\t", min_size=1)
)
def test_a_password_reaches_slurmdbd_as_it_is_whatever_stands_in_it(password):
    assume(not (password[0] == password[-1] == '"'))  # Slurm would take such quotes for its own.
    conf = parse(filled(CONF, {QUOTED: password})["stringData"]["slurmdbd.conf"], "slurmdbd.conf")

    assert conf.last("StoragePass") == password
    assert conf.last("DebugLevel") == "info"


def test_a_line_break_at_the_end_of_a_password_is_not_part_of_it():
    assert "StoragePass=s3cret\nDebug" in filled(CONF, {QUOTED: "s3cret\n"})["stringData"]["slurmdbd.conf"]


@pytest.mark.parametrize("password", ["two\nlines", 'a "quoted" one', '"quoted"'])
def test_a_password_that_no_file_can_hold_is_refused_without_showing_it(password):
    with pytest.raises(ValueError, match="cannot be written") as refused:
        filled(CONF, {QUOTED: password})

    assert password not in str(refused.value)
    assert refused.value.__suppress_context__
