"""When certificates are made again, and that whoever trusts the old meets nothing unknown."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from slurm_operator.webhook.authority import (
    AUTHORITY_LIFE,
    AUTHORITY_RENEWED,
    SERVING_LIFE,
    SERVING_RENEWED,
    Bundle,
    Unusable,
    first,
    renewed,
)
from slurm_operator.webhook.serving import Served, read_files

NOW = datetime(2030, 1, 1, tzinfo=UTC)
HOSTS = ("slurm-operator-webhook.slurm.svc", "127.0.0.1")
A_DAY = timedelta(days=1)


def is_trusted(bundle: Bundle, trusted: bytes, at: datetime) -> bool:
    """Whether somebody who trusts these authorities believes what the bundle serves."""
    for authority in x509.load_pem_x509_certificates(trusted):
        try:
            bundle.serving.verify_directly_issued_by(authority)
        except Exception:  # noqa: S112 - another authority may have signed it
            continue
        return (
            authority.not_valid_before_utc
            <= at
            < min(authority.not_valid_after_utc, bundle.serving.not_valid_after_utc)
        )
    return False


def test_the_first_certificate_is_for_our_names_and_trusted():
    bundle = first(HOSTS, NOW)

    names = bundle.serving.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {str(name.value) for name in names} == set(HOSTS)
    assert is_trusted(bundle, bundle.trusted, NOW)
    assert renewed(bundle, HOSTS, NOW) is bundle


def test_a_bundle_comes_back_from_its_secret_as_it_was():
    bundle = first(HOSTS, NOW)

    assert Bundle.of(bundle.entries) == bundle


@pytest.mark.parametrize(
    "broken",
    [
        {"tls.key": b""},
        {"ca.crt": b"not PEM"},
        {"tls.key": first(HOSTS, NOW).key},
        {"ca.key": first(HOSTS, NOW).signing_key},
        {"next-ca.key": first(HOSTS, NOW).signing_key},
    ],
    ids=lambda broken: ", ".join(broken),
)
def test_entries_that_do_not_belong_together_are_not_used(broken):
    with pytest.raises(Unusable):
        Bundle.of({**first(HOSTS, NOW).entries, **broken})


def test_a_missing_entry_is_named():
    with pytest.raises(Unusable, match=r"tls\.key"):
        Bundle.of({key: value for key, value in first(HOSTS, NOW).entries.items() if key != "tls.key"})


def test_a_serving_certificate_is_renewed_in_good_time_by_the_same_authority():
    bundle = first(HOSTS, NOW)
    due = NOW + SERVING_LIFE - SERVING_RENEWED

    assert renewed(bundle, HOSTS, due - A_DAY) is bundle
    later = renewed(bundle, HOSTS, due)

    assert later.certificate != bundle.certificate
    assert later.trusted == bundle.trusted
    assert is_trusted(later, bundle.trusted, due)


def test_another_name_needs_another_certificate_at_once():
    bundle = first(HOSTS, NOW)

    assert renewed(bundle, (*HOSTS, "elsewhere"), NOW).certificate != bundle.certificate
    assert renewed(bundle, HOSTS[:1], NOW) is bundle


def test_over_twenty_years_nobody_meets_an_authority_that_was_unknown_the_day_before():
    bundle, trusted, authorities = first(HOSTS, NOW), b"", set()
    for day in range(0, 20 * 365, 20):
        at = NOW + timedelta(days=day)
        for step in range(3):  # As a keeper that looks every minute would.
            bundle = renewed(bundle, HOSTS, at + timedelta(minutes=step))
            if trusted:
                assert is_trusted(bundle, trusted, at), f"day {day}: served before it was trusted"
        trusted = bundle.trusted
        authorities.add(bundle.certificates[0].serial_number)
        assert bundle.serving.not_valid_after_utc - at > SERVING_RENEWED - timedelta(days=21)
        assert len(bundle.certificates) <= 3

    assert len(authorities) == 3


def test_after_years_without_anybody_running_everything_is_made_anew():
    bundle = first(HOSTS, NOW)
    late = NOW + AUTHORITY_LIFE + A_DAY

    fresh = renewed(bundle, HOSTS, late)

    assert is_trusted(fresh, fresh.trusted, late)
    assert fresh.certificates[0].not_valid_after_utc - late > AUTHORITY_RENEWED


def test_a_bad_pair_does_not_spoil_the_good_one():
    served, bundle = Served(), first(HOSTS, NOW)
    assert served.use(bundle.certificate, bundle.key)

    with pytest.raises(Unusable, match="belong together"):
        served.use(bundle.certificate, first(HOSTS, NOW).key)
    with pytest.raises(Unusable):
        served.use(b"", b"")

    assert served.is_ready
    assert served.expires_at == NOW + SERVING_LIFE
    assert not served.use(bundle.certificate, bundle.key), "it is still the one in use"


def test_certificate_and_key_may_stand_in_two_files_or_in_one(tmp_path):
    bundle = first(HOSTS, NOW)
    (tmp_path / "tls.crt").write_bytes(bundle.certificate)
    with pytest.raises(Unusable, match=r"tls\.key"):
        read_files(tmp_path)
    (tmp_path / "tls.key").write_bytes(bundle.key)
    (tmp_path / "both.pem").write_bytes(bundle.key + bundle.certificate)

    assert Served().use(*read_files(tmp_path))
    assert Served().use(*read_files(tmp_path / "both.pem"))
    assert Served().use(*read_files(tmp_path / "tls.crt")), "the key is beside it"
