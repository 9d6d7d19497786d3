import gc

import pytest

from slurm_operator import collector


@pytest.fixture
def _thawed():
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("_thawed")
def test_what_was_loaded_is_not_looked_through_for_garbage():
    before = gc.get_freeze_count()
    with collector.loading():
        assert not gc.isenabled()
        loaded = [[number] for number in range(1000)]

    assert gc.isenabled()
    assert gc.get_freeze_count() >= before + len(loaded)


@pytest.mark.usefixtures("_thawed")
def test_a_collector_that_was_off_stays_off():
    gc.disable()
    try:
        with collector.loading():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
