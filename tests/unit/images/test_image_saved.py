import pytest

from images.entry.saved import forgive_unsaved_usage

ACCOUNTING = "AccountingStorageType=accounting_storage/slurmdbd\n"


@pytest.mark.parametrize(
    ("accounting", "files", "forgiven"),
    [
        pytest.param(ACCOUNTING, ["clustername", "job_state"], True, id="killed before usage was saved"),
        pytest.param(ACCOUNTING, ["clustername", "job_state", "assoc_usage"], False, id="usage was saved"),
        pytest.param(ACCOUNTING, ["clustername", "assoc_usage.old"], False, id="usage was being saved"),
        pytest.param(ACCOUNTING, [], False, id="a first start"),
        pytest.param("", ["clustername", "job_state"], False, id="no accounting, no usage"),
    ],
)
def test_only_usage_that_was_never_saved_is_forgiven(tmp_path, accounting, files, forgiven):
    state = tmp_path / "state"
    state.mkdir()
    for name in files:
        (state / name).write_text("x")
    conf = tmp_path / "slurm.conf"
    conf.write_text(f"#StateSaveLocation=/old\nstatesavelocation = {state}\n{accounting}")

    assert forgive_unsaved_usage(conf) is forgiven

    left = set(files) - {"clustername"} if forgiven else set(files)
    assert {path.name for path in state.iterdir()} == left


def test_without_a_configuration_nothing_is_touched(tmp_path):
    assert forgive_unsaved_usage(tmp_path / "slurm.conf") is False
