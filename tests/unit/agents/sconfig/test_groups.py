"""Which files the JailedConfigs ask for, and who wins where two ask for one."""

import pytest
from writer_cases import CONTENTS, RECONFIGURE, config, one_group, topology

from slurm_operator.agents.sconfig.groups import GroupKey, Item, grouped
from slurm_operator.conditions import Reason


def files_of(group) -> dict[str, tuple[bytes, int]]:
    return {file.path: (file.content, file.mode) for file in group.files}


def troubles(*configs, contents=CONTENTS) -> dict[str, str]:
    found = {member.name: member.trouble for group in grouped(configs, contents) for member in group.members}
    return {name: trouble.reason for name, trouble in found.items() if trouble is not None}


def test_items_say_which_key_goes_where_and_with_which_mode():
    items = (Item("slurm.conf", "/etc/slurm/slurm.conf", 0o600), Item("gres.conf", "//etc/./slurm/gres.conf"))

    group = one_group(config(items=items, default_mode=0o640))

    assert files_of(group) == {
        "/etc/slurm/slurm.conf": (b"slurm", 0o600),
        "/etc/slurm/gres.conf": (b"gres", 0o640),
    }


def test_without_any_mode_a_file_is_readable_by_all():
    assert files_of(one_group(config())) == {"/etc/slurm/slurm.conf": (b"slurm", 0o644)}


def test_one_label_is_one_group_and_no_label_is_a_group_of_one():
    groups = grouped(
        [config(aggregation="common"), topology(aggregation="common"), config("x", "/x", config_map="slurm"), config("y", "/y", config_map="slurm")],
        CONTENTS,
    )  # fmt: skip

    assert {group.key: [member.name for member in group.members] for group in groups} == {
        GroupKey("", "x"): ["x"],
        GroupKey("", "y"): ["y"],
        GroupKey("common"): ["slurm", "topology"],
    }


def test_an_ungrouped_one_is_not_in_the_group_of_that_name():
    groups = grouped([config("common", "/x", config_map="slurm"), config(aggregation="common")], CONTENTS)

    assert len(groups) == 2


@pytest.mark.parametrize(
    ("members", "wants"),
    [
        pytest.param([config(actions=RECONFIGURE), topology()], True, id="any member asks for all"),
        pytest.param([config(), topology()], False, id="nobody asks"),
        pytest.param(
            [config(actions=RECONFIGURE, config_map="gone"), topology()],
            True,
            id="also one that cannot be read",
        ),
        pytest.param(
            [config(), config("late", actions=RECONFIGURE, minutes=1)], False, id="not one that is left out"
        ),
    ],
)
def test_a_group_is_reconfigured_when_a_member_asks_for_it(members, wants):
    (group,) = grouped([_in_common(member) for member in members], CONTENTS)

    assert group.wants_reconfigure is wants


def _in_common(member):
    return type(member)(**(vars(member) | {"aggregation": "common"}))


@pytest.mark.parametrize(
    ("bad", "reason", "message"),
    [
        pytest.param(config(config_map="gone"), Reason.NOT_FOUND, "There is no ConfigMap gone.", id="no ConfigMap"),
        pytest.param(config("slurm", "/etc/nodes.conf"), Reason.INVALID_ITEM, "has no key nodes.conf. It has gres.conf, slurm.conf.", id="no such key"),
        pytest.param(config(items=()), Reason.INVALID_ITEM, "spec.items is empty", id="no items: a key is no absolute path"),
        pytest.param(config("slurm", "slurm.conf"), Reason.INVALID_ITEM, "spec.items[0].path: 'slurm.conf' is not absolute", id="relative"),
        pytest.param(config("slurm", "/a", "/../a"), Reason.INVALID_ITEM, "spec.items[1].path: '/../a' contains `..`", id="dots"),
        pytest.param(config("slurm", "/a", "//a"), Reason.INVALID_ITEM, "spec.items[1].path: /a is named twice", id="twice"),
        pytest.param(config(default_mode=0o1777), Reason.INVALID_ITEM, "mode 1777 (octal) is not allowed", id="sticky"),
        pytest.param(config(default_mode=-1), Reason.INVALID_ITEM, "is not allowed", id="negative"),
        pytest.param(config(default_mode=0o222), Reason.INVALID_ITEM, "is not allowed", id="nobody could compare it"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_jailedconfig_is_said(bad, reason, message):
    (member,) = one_group(bad).members

    assert member.trouble.reason is reason
    assert message in member.trouble.message
    assert member.files == ()


def test_a_configmap_that_was_not_read_yet_is_not_a_missing_one():
    group = one_group(config(config_map="later"))

    assert [member.name for member in group.unread] == ["slurm"]
    assert group.blockers == ()


@pytest.mark.parametrize(
    ("configs", "loser"),
    [
        pytest.param([config("a", minutes=1, config_map="slurm"), config("b", config_map="slurm")], "a", id="the older one keeps the path"),
        pytest.param([config("b", config_map="slurm"), config("a", config_map="slurm")], "b", id="equally old: by name"),
        pytest.param([config("a", config_map="slurm"), config("b", config_map="slurm", minutes=1, is_managed=True)], "a", id="the cluster's own before any age"),
        pytest.param([config("a", "/etc//slurm/./slurm.conf", config_map="slurm"), config("b", minutes=1, config_map="slurm")], "b", id="one path in two spellings"),
        pytest.param([config("a", "/etc/slurm", config_map="slurm"), config("b", minutes=1, config_map="slurm")], "b", id="a file where the other needs a directory"),
        pytest.param([config("a", config_map="slurm"), config("b", "/etc/slurm", minutes=1, config_map="slurm")], "b", id="and the other way round"),
        pytest.param([config("a", config_map="gone"), config("b", minutes=1, config_map="slurm")], "b", id="also while the first has no ConfigMap"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("aggregation", ["", "common"])
def test_of_two_who_name_one_path_one_has_it_and_both_are_told(configs, loser, aggregation):
    configs = [type(each)(**(vars(each) | {"aggregation": aggregation})) for each in configs]

    for order in (configs, configs[::-1]):
        members = {member.name: member for group in grouped(order, CONTENTS) for member in group.members}

        left_out = members.pop(loser)
        (winner,) = members.values()
        assert left_out.trouble.reason is Reason.PATH_CONFLICT
        assert f"belongs to JailedConfig {winner.name}" in left_out.trouble.message
        assert [f"JailedConfig {loser} also names" in note for note in winner.notes] == [True]


def test_one_that_is_left_out_holds_up_nobody():
    group = one_group(
        config(aggregation="common"), config("late", minutes=1, config_map="slurm", aggregation="common")
    )

    assert group.blockers == ()
    assert list(files_of(group)) == ["/etc/slurm/slurm.conf"]


def test_who_is_left_out_takes_no_path_from_a_third():
    first = config("a", "/a", config_map="slurm", items=(Item("slurm.conf", "/a"),))
    second = config(
        "b", config_map="slurm", minutes=1, items=(Item("slurm.conf", "/a"), Item("slurm.conf", "/b"))
    )
    third = config("c", config_map="slurm", minutes=2, items=(Item("slurm.conf", "/b"),))

    assert troubles(first, second, third) == {"b": Reason.PATH_CONFLICT}


def test_neighbours_are_no_conflict():
    assert (
        troubles(
            config("slurm", "/etc/slurm.conf"),
            topology(minutes=1, items=(Item("topology.conf", "/etc/slurm.conf.d/x"),)),
        )
        == {}
    )


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda: (config(), {"slurm": {"slurm.conf": b"other"}}), id="content"),
        pytest.param(lambda: (config(default_mode=0o600), CONTENTS), id="mode"),
        pytest.param(lambda: (config("slurm", "/slurm.conf"), CONTENTS), id="path"),
        pytest.param(lambda: (config(actions=RECONFIGURE), CONTENTS), id="actions"),
        pytest.param(lambda: (config(), {"slurm": None}), id="ConfigMap gone"),
        pytest.param(lambda: (config(), {}), id="ConfigMap unread"),
    ],
)
def test_the_digest_changes_with_whatever_is_wanted(change):
    changed, contents = change()

    assert one_group(changed, contents=contents).digest != one_group(config()).digest
    assert one_group(config()).digest == one_group(config(minutes=3)).digest
