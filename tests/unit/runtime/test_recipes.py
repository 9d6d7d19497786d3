"""Secret contents that are made: in the form that their readers want."""

import pytest

from slurm_operator.runtime.act.secret_generators import fingerprints, make

# As `ssh-keygen -l` tells it.
PUBLIC = b"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPBh1KgkqTSnm/7MwforHt6LAccFzzoSSj5PQJ0HAiTm host\n"
FINGERPRINT = "SHA256:7OE9oL0rFXsNwkv109dm3tYOzy2W/J56oCcvgBPSaXY"


async def test_host_keys_come_in_pairs_as_sshd_wants_them():
    entries = await make("ssh-host-keys", "", 2048)

    assert sorted(entries) == sorted(
        f"ssh_host_{kind}_key{end}" for kind in ("rsa", "ed25519", "ecdsa") for end in ("", ".pub")
    )
    assert all(
        entries[name].startswith(b"-----BEGIN OPENSSH") for name in entries if not name.endswith(".pub")
    )
    assert [told.split()[0] for told in fingerprints(entries)] == ["ECDSA", "ED25519", "RSA"]


def test_fingerprints_are_those_that_ssh_keygen_tells():
    assert fingerprints({"ssh_host_ed25519_key.pub": PUBLIC, "other": b"x"}) == [f"ED25519 {FINGERPRINT}"]


@pytest.mark.parametrize(("recipe", "size"), [("random", 1024), ("password", 24)])
async def test_random_contents_have_their_size_and_are_new_each_time(recipe, size):
    one, other = await make(recipe, "entry", size), await make(recipe, "entry", size)

    assert one != other
    assert len(one["entry"]) >= size
    assert fingerprints(one) == []


async def test_a_password_needs_no_quoting_anywhere():
    password = (await make("password", "password", 24))["password"].decode()

    assert password.replace("-", "").replace("_", "").isalnum()
