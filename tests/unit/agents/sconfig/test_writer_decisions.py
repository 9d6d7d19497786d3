"""What the writer does about a group now, and what it tells."""

import contextlib
import errno
import itertools
import math
import os

import pytest
from writer_cases import (
    CONTENTS,
    DONE,
    NOT_WRITTEN,
    OWED,
    OWED_AFTER_FAILURE,
    RECONFIGURE,
    config,
    looked,
    one_group,
    topology,
)

from slurm_operator.agents.sconfig import decide as deciding
from slurm_operator.agents.sconfig.decide import Hold, Keep, Pace, Reconfigure, Wait, Write, decide, paced
from slurm_operator.agents.sconfig.files import Batch, Cause, Fate, Leftover, Result
from slurm_operator.agents.sconfig.groups import JailedConfig, grouped
from slurm_operator.agents.sconfig.report import Reconfigured, finished, starting
from slurm_operator.api.shared.conditions import Truth

NOW = 1000.0
LONG_AGO = Pace("", changed_at=0.0, since=0.0)
REFUSED = Result("/etc/slurm/slurm.conf", Fate.REFUSED, Cause.BAD_PATH, "/etc/slurm is a symbolic link.")


def step(group, looks, pace: Pace = LONG_AGO):
    (only,) = decide([group], looks, {group.key: pace}, NOW)
    return only


def common(*configs: JailedConfig) -> list[JailedConfig]:
    return [type(each)(**(vars(each) | {"aggregation": "common"})) for each in configs]


@pytest.mark.parametrize(
    ("configs", "fates", "pace", "expected"),
    [
        pytest.param([config(actions=RECONFIGURE, conditions=DONE)], {}, LONG_AGO, Keep, id="equal bytes: nothing to do"),
        pytest.param([config(actions=RECONFIGURE)], {}, LONG_AGO, Keep, id="seen for the first time, and equal: no reconfigure"),
        pytest.param([config(actions=RECONFIGURE, conditions=DONE)], {"slurm_conf": Fate.DIFFERS}, LONG_AGO, Write, id="different"),
        pytest.param([config(actions=RECONFIGURE, conditions=OWED)], {}, LONG_AGO, Reconfigure, id="the writer ended between write and reconfigure"),
        pytest.param([config(actions=RECONFIGURE, conditions=OWED_AFTER_FAILURE)], {}, LONG_AGO, Reconfigure, id="the reconfigure failed"),
        pytest.param([config(conditions=OWED)], {}, LONG_AGO, Keep, id="nobody asks for a reconfigure any more"),
        pytest.param([config(actions=RECONFIGURE, conditions=NOT_WRITTEN)], {}, LONG_AGO, Keep, id="never written, then equal again: nothing owed"),
        pytest.param([config(actions=RECONFIGURE), topology(conditions=OWED)], {}, LONG_AGO, Reconfigure, id="owed by one member, asked for by another"),
        pytest.param([config(), topology(config_map="gone")], {"slurm_conf": Fate.DIFFERS}, LONG_AGO, Hold, id="a member without ConfigMap holds up its group"),
        pytest.param([config(), topology(config_map="later")], {"slurm_conf": Fate.DIFFERS}, LONG_AGO, Wait, id="a ConfigMap that was not read yet"),
        pytest.param([config()], {"slurm_conf": Fate.DIFFERS}, Pace("", NOW - 0.5, NOW - 0.5), Wait, id="changed just now: more may follow"),
        pytest.param([config()], {"slurm_conf": Fate.DIFFERS}, Pace("", NOW - 1.0, NOW - 3.0), Write, id="quiet for a second"),
        pytest.param([config()], {"slurm_conf": Fate.DIFFERS}, Pace("", NOW - 0.5, NOW - 10.0), Write, id="never quiet: written all the same"),
        pytest.param([config()], {"slurm_conf": Fate.DIFFERS}, Pace("", 0, 0, retry_at=NOW + 1), Wait, id="failed a moment ago"),
        pytest.param([config()], {"slurm_conf": Fate.DIFFERS}, Pace("", 0, 0, retry_at=NOW), Write, id="back-off is over"),
        pytest.param([config(actions=RECONFIGURE, conditions=OWED)], {}, Pace("", 0, 0, retry_at=NOW + 1), Wait, id="reconfigure failed a moment ago"),
        pytest.param([config(actions=RECONFIGURE, conditions=OWED)], {}, Pace("", NOW, NOW), Reconfigure, id="owed: nothing to gather"),
    ],
)  # fmt: skip
def test_one_step_for_each_group(configs, fates, pace, expected):
    group = one_group(*common(*configs))

    assert type(step(group, looked(group, **fates), pace)) is expected


@pytest.mark.parametrize("fate", [Fate.REFUSED, Fate.FAILED])
def test_a_root_that_cannot_be_written_to_holds_up_the_group_before_anything_is_marked(fate):
    group = one_group(*common(config(actions=RECONFIGURE, conditions=DONE), topology(conditions=DONE)))
    trouble = Result("/etc/slurm/slurm.conf", fate, Cause.BAD_PATH, "/etc/slurm is a symbolic link.")

    held = step(group, looked(group, Fate.DIFFERS) | {trouble.path: trouble})
    told = {name: (files.reason, actions.reason) for name, (files, actions) in finished(held).items()}

    assert isinstance(held, Hold)
    assert starting(held) == {}
    assert told == {"slurm": ("PathRefused", "NotWritten"), "topology": ("NotWritten", "NotWritten")}


def test_a_change_ends_a_back_off_and_starts_a_new_quiet_time():
    before, after = one_group(config()), one_group(config(default_mode=0o600))
    pace = deciding.failed(paced({}, [before], 10.0)[before.key], 10.0)

    same, changed = paced({before.key: pace}, [before], 11.0), paced({before.key: pace}, [after], 11.0)

    assert same[before.key] is pace
    assert (changed[after.key].retry_at, changed[after.key].quiet_at) == (-math.inf, 12.0)


def test_unrest_counts_from_the_first_change_that_was_not_dealt_with():
    groups = [one_group(config(default_mode=0o600 + number)) for number in range(30)]
    paces = {}
    for number, group in enumerate(groups):
        paces = paced(paces, [group], number * 0.5)

    assert paces[groups[0].key].quiet_at == 10.0


def test_groups_that_are_gone_are_forgotten():
    group = one_group(config())

    assert paced(paced({}, [group], 1.0), [], 2.0) == {}


def test_retries_become_rarer_up_to_a_minute():
    pace, waits = LONG_AGO, []
    for _ in range(5):
        pace = deciding.failed(pace, NOW)
        waits.append(pace.retry_at - NOW)

    assert waits == [15, 30, 60, 60, 60]
    assert deciding.succeeded(pace).retry_at < NOW


@pytest.mark.parametrize(
    ("steps", "seconds"),
    [
        pytest.param(lambda group: Keep(group), 300, id="files may be changed by users of the root"),
        pytest.param(lambda group: Wait(group, NOW + 2, ""), 2, id="a wait that ends"),
        pytest.param(lambda group: Wait(group, math.inf, ""), 300, id="a wait that a change ends"),
        pytest.param(
            lambda group: Hold(group, {REFUSED.path: REFUSED}, ""),
            15,
            id="nobody tells when the root is in order",
        ),
        pytest.param(lambda group: Hold(group, {}, ""), 300, id="a ConfigMap is told by its watch"),
    ],
)
def test_when_to_look_again(steps, seconds):
    assert deciding.look_again_at([steps(one_group(config()))], {}, NOW) == NOW + seconds


def test_when_to_look_again_after_a_failure():
    group = one_group(config())

    assert (
        deciding.look_again_at([Write(group, "")], {group.key: deciding.failed(LONG_AGO, NOW)}, NOW)
        == NOW + 15
    )


# What is told.


def batch(*results: tuple[str, Fate, Cause | None]) -> Batch:
    return Batch(
        tuple(
            Result(path, fate, cause, "why" * bool(cause), fate is Fate.WRITTEN)
            for path, fate, cause in results
        )
    )


WRITTEN = batch(
    ("/etc/slurm/slurm.conf", Fate.WRITTEN, None), ("/etc/slurm/topology.conf", Fate.UNCHANGED, None)
)
FULL = batch(
    ("/etc/slurm/slurm.conf", Fate.FAILED, Cause.FULL),
    ("/etc/slurm/topology.conf", Fate.HELD_BACK, Cause.OTHER_FILE),
)
SAME = batch(
    ("/etc/slurm/slurm.conf", Fate.UNCHANGED, None), ("/etc/slurm/topology.conf", Fate.UNCHANGED, None)
)
BOTH = common(config(actions=RECONFIGURE), topology())
BOTH_OWED = common(config(actions=RECONFIGURE, conditions=OWED), topology(conditions=OWED))
FAILED = Reconfigured("cannot reach Slurm.")


def write(group):
    return Write(group, "")


def hold(group):
    return step(group, looked(group))


T, F = "True", "False"


@pytest.mark.parametrize(
    ("configs", "of", "outcome", "expected"),
    [
        pytest.param(BOTH, write, (WRITTEN, Reconfigured()), {"slurm": (T, "Success", T, "Success"), "topology": (T, "Success", T, "Success")}, id="written and read"),
        pytest.param(BOTH, write, (WRITTEN, FAILED), {"slurm": (T, "Success", F, "ReconfigureFailed"), "topology": (T, "Success", F, "ReconfigureFailed")}, id="written, reconfigure failed"),
        pytest.param(BOTH, write, (WRITTEN, None), {"slurm": (T, "Success", F, "Refresh"), "topology": (T, "Success", F, "Refresh")}, id="written, reconfigure not tried: still owed"),
        pytest.param(BOTH, write, (FULL, None), {"slurm": (F, "RootFull", F, "NotWritten"), "topology": (F, "NotWritten", F, "NotWritten")}, id="root full"),
        pytest.param(BOTH_OWED, write, (FULL, None), {"slurm": (F, "RootFull", F, "Refresh"), "topology": (F, "NotWritten", F, "Refresh")}, id="root full, and an older write still owed"),
        pytest.param(BOTH, write, (SAME, None), {"slurm": (T, "Success", T, "Success"), "topology": (T, "Success", T, "Success")}, id="somebody else wrote the same: nothing to read"),
        pytest.param([config()], write, (batch(("/etc/slurm/slurm.conf", Fate.WRITTEN, None)), None), {"slurm": (T, "Success", T, "MissingAction")}, id="alone and without action"),
        pytest.param(common(config()), write, (batch(("/etc/slurm/slurm.conf", Fate.WRITTEN, None)), None), {"slurm": (T, "Success", T, "Success")}, id="a group without action"),
        pytest.param([config(config_map="gone")], hold, (), {"slurm": (F, "NotFound", F, "NotWritten")}, id="ConfigMap missing, alone"),
        pytest.param(common(config(actions=RECONFIGURE, conditions=DONE), topology(config_map="gone")), hold, (), {"slurm": (T, "Success", T, "Success"), "topology": (F, "NotFound", F, "NotWritten")}, id="held up, but its own files are right"),
        pytest.param(common(config(actions=RECONFIGURE, conditions=OWED), topology(config_map="gone")), hold, (), {"slurm": (T, "Success", F, "Refresh"), "topology": (F, "NotFound", F, "Refresh")}, id="held up and owed"),
        pytest.param([config("slurm", "relative")], hold, (), {"slurm": (F, "InvalidItem", F, "NotWritten")}, id="bad path"),
        pytest.param([config(), config("late", config_map="slurm", minutes=1)], None, (), {"slurm": (T, "Success", T, "MissingAction"), "late": (F, "PathConflict", F, "NotWritten")}, id="two for one path"),
        pytest.param(BOTH, lambda group: Wait(group, 0.0, ""), (), {}, id="a wait tells nothing new"),
    ],
)  # fmt: skip
def test_both_conditions_of_every_jailedconfig(configs, of, outcome, expected):
    groups = grouped(configs, CONTENTS)
    told = {}
    for group in groups:
        told |= finished(of(group) if of is not None else step(group, looked(group)), *outcome)

    assert {
        name: (files.status.value, files.reason, actions.status.value, actions.reason)
        for name, (files, actions) in told.items()
    } == expected
    assert all(condition.message for pair in told.values() for condition in pair)


def test_who_is_held_up_is_told_by_whom():
    group = one_group(*common(config(), topology(config_map="gone")))

    told = finished(step(group, looked(group, Fate.DIFFERS)))

    assert told["slurm"][0].message == (
        "Not written: group common is written as a whole and waits for topology. See the conditions there."
    )


def test_a_full_root_says_what_happens_next():
    told = finished(Write(one_group(*BOTH), ""), FULL)

    assert told["slurm"][0].message.endswith(
        "It is tried again automatically; Slurm goes on with the files that it has."
    )


def test_the_winner_of_a_path_is_told_about_the_other():
    groups = grouped([config(), config("late", config_map="slurm", minutes=1)], CONTENTS)
    told = {}
    for group in groups:
        told |= finished(step(group, looked(group)))

    assert told["slurm"][0].message.endswith(
        "JailedConfig late also names /etc/slurm/slurm.conf; it is ignored."
    )


def test_before_the_first_byte_every_member_says_that_it_is_about_to_change():
    told = starting(Write(one_group(*BOTH), ""))

    assert {
        name: (files.status.value, files.reason, actions.status.value, actions.reason)
        for name, (files, actions) in told.items()
    } == {
        "slurm": (F, "Refresh", F, "Refresh"),
        "topology": (F, "Refresh", F, "Refresh"),
    }


def test_at_first_sight_nothing_is_known():
    group = one_group(*common(config(config_map="later"), topology(conditions=DONE)))

    told = starting(step(group, looked(group)))

    assert {name: [(each.status, each.reason) for each in pair] for name, pair in told.items()} == {
        "slurm": [(Truth.UNKNOWN, "Init"), (Truth.UNKNOWN, "Init")]
    }


def test_what_was_told_once_stays_in_its_words():
    """Otherwise a pass that does nothing would write a status."""
    group = one_group(config(actions=RECONFIGURE, conditions=DONE))

    assert finished(step(group, looked(group)))["slurm"][1] == DONE[1]


@pytest.mark.parametrize(
    ("configs", "found", "is_due"),
    [
        pytest.param(BOTH, WRITTEN, True, id="written"),
        pytest.param(BOTH, SAME, False, id="equal after all"),
        pytest.param(BOTH_OWED, SAME, True, id="equal, but owed from before"),
        pytest.param(BOTH_OWED, FULL, False, id="not whole: slurmctld must not read half of a group"),
        pytest.param(common(config(), topology()), WRITTEN, False, id="no action"),
    ],
)
def test_slurm_reads_a_group_only_when_it_is_whole_and_new(configs, found, is_due):
    group = one_group(*configs)

    assert bool(deciding.to_reconfigure([Write(group, "")], {group.key: found})) is is_due


def test_one_reconfigure_serves_all_groups():
    groups = grouped([config(actions=RECONFIGURE), topology(actions=RECONFIGURE)], CONTENTS)
    steps = [Write(groups[0], ""), Reconfigure(groups[1], "")]

    assert (
        deciding.to_reconfigure(steps, {groups[0].key: batch(("/etc/slurm/slurm.conf", Fate.WRITTEN, None))})
        == groups
    )


# Played to the end, with a crash anywhere.


class Crash(BaseException):
    pass


class Play:
    """The writer against a root, an API server and a slurmctld that are dictionaries."""

    def __init__(self, faults: list[str]) -> None:
        self.faults = faults
        self.root: dict[str, bytes] = {}
        self.read_by_slurm: dict[str, bytes] = {}
        self.statuses: dict[str, tuple] = {}
        self.contents = {"slurm": {"slurm.conf": b"0"}, "topology": {"topology.conf": b"0"}}
        self.now = 0.0
        self.paces: dict = {}
        self.reconfigures = 0

    def configs(self) -> list[JailedConfig]:
        first, second = self.statuses.get("slurm", ()), self.statuses.get("topology", ())
        return common(config(actions=RECONFIGURE, conditions=first), topology(conditions=second))

    def fault(self) -> bool:
        """Whether the next thing goes wrong; or it is the last one that this writer did."""
        kind = self.faults.pop(0) if self.faults else "no"
        if kind == "crash":
            self.paces = {}
            raise Crash
        return kind == "fail"

    def one_pass(self) -> None:
        groups = grouped(self.configs(), self.contents)
        self.paces = paced(self.paces, groups, self.now)
        steps = decide(
            groups,
            {file.path: self.looked(file) for group in groups for file in group.files},
            self.paces,
            self.now,
        )
        self.fault()
        self.statuses |= starting(steps[0])
        self.fault()
        found = {step.group.key: self.written(step.group) for step in steps if isinstance(step, Write)}
        self.fault()
        due = deciding.to_reconfigure(steps, found)
        outcome = self.reconfigured() if due else None
        self.fault()
        for each in steps:
            key = each.group.key
            is_bad = (key in found and not found[key].is_complete) or (
                outcome is not None and outcome.trouble
            )
            self.statuses |= finished(each, found.get(key), outcome)
            self.paces[key] = (
                deciding.failed(self.paces[key], self.now) if is_bad else deciding.succeeded(self.paces[key])
            )

    def looked(self, file) -> Result:
        return Result(file.path, Fate.UNCHANGED if self.root.get(file.path) == file.content else Fate.DIFFERS)

    def written(self, group) -> Batch:
        if self.fault():
            why = os.strerror(errno.ENOSPC)
            return Batch(tuple(Result(file.path, Fate.FAILED, Cause.FULL, why) for file in group.files))
        results = []
        for file in group.files:
            is_same = self.root.get(file.path) == file.content
            self.root[file.path] = file.content
            results.append(Result(file.path, Fate.UNCHANGED if is_same else Fate.WRITTEN, is_new=not is_same))
            self.fault()
        return Batch(tuple(results), (Leftover((), "x"),))

    def reconfigured(self) -> Reconfigured:
        if self.fault():
            return Reconfigured("cannot reach Slurm.")
        self.read_by_slurm = dict(self.root)
        self.reconfigures += 1
        return Reconfigured()

    def passes(self, seconds: float, step: float = 1.0) -> None:
        end = self.now + seconds
        while self.now < end:
            with contextlib.suppress(Crash):
                self.one_pass()
            self.now += step


def test_one_change_is_one_reconfigure_and_no_change_is_none():
    play = Play([])
    play.passes(20)
    assert play.reconfigures == 1

    play.contents = {"slurm": {"slurm.conf": b"1"}, "topology": {"topology.conf": b"1"}}
    play.passes(20)
    assert play.reconfigures == 2

    play.paces = {}  # A new writer.
    play.passes(20)
    assert play.reconfigures == 2


def test_changes_that_follow_each_other_are_gathered():
    play = Play([])
    play.passes(20)
    for number, name in itertools.product(range(3), ("slurm", "topology")):
        play.contents |= {name: {f"{name}.conf": b"%d" % (number + 1)}}
        play.one_pass()
        play.now += 0.3
    play.passes(20)

    assert play.reconfigures == 2


@pytest.mark.parametrize("kinds", list(itertools.product(["fail", "crash"], repeat=2)), ids=" then ".join)
def test_slurm_has_read_the_last_files_whatever_went_wrong_before(kinds):
    """Each of two faults at every moment of the first two changes, and of what follows the first fault."""
    for first, second in itertools.product(range(20), range(14)):
        play = Play(["no"] * first + [kinds[0]] + ["no"] * second + [kinds[1]])
        play.passes(2)
        play.contents = {"slurm": {"slurm.conf": b"1"}, "topology": {"topology.conf": b"0"}}
        play.passes(14)
        play.passes(140, step=20.0)

        assert play.root == {"/etc/slurm/slurm.conf": b"1", "/etc/slurm/topology.conf": b"0"}
        assert play.read_by_slurm == play.root, (first, second)
        assert {condition.status for pair in play.statuses.values() for condition in pair} == {Truth.TRUE}
