"""The files of a Controller are made once in a pass, and again when the facts are others."""

from dataclasses import replace

from slurm_operator.reconcilers.controller import RECONCILER
from slurm_operator.reconcilers.controller.configuration.files import wanted_files
from testing.controllers import KEY, controller, world


def test_all_who_ask_in_a_pass_are_given_the_same_files():
    seen = RECONCILER.observe(KEY, world(controller()))
    assert seen is not None

    assert wanted_files(seen) is wanted_files(seen)


def test_a_copy_with_other_facts_has_files_of_its_own():
    seen = RECONCILER.observe(KEY, world(controller()))
    assert seen is not None
    before = wanted_files(seen)

    after = wanted_files(replace(seen, controller=controller({"extraConf": "MinJobAge=5\n"})))

    assert after.digest != before.digest
    assert "MinJobAge=5" in after.texts["slurm.conf"]
