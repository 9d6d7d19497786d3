import pytest

from slurm_operator.slurm.conf.changes import changes, cost, restarts
from slurm_operator.slurm.conf.costs import EXCEPTIONS, Cost, Daemon, rule
from slurm_operator.slurm.conf.grammar import TABLES
from slurm_operator.slurm.conf.lines import render
from slurm_operator.slurm.conf.merge import merged_options, merged_settings, worker_conf

BASE = "ClusterName=demo\nSlurmctldPort=6817\nKillWait=30\nNodeSet=gpu Feature=gpu\nPartitionName=gpu Nodes=gpu\n"


def changed(new, file="slurm.conf", old=BASE):
    return changes({file: old}, {file: new}, TABLES)


@pytest.mark.parametrize(
    "same",
    [
        BASE,
        "# a comment\n" + BASE,
        BASE.replace("KillWait", "killwait"),
        BASE.replace("KillWait=30", "KillWait=10\nKillWait=30  # last one counts"),
        BASE.replace("NodeSet=gpu Feature", "NodeSet=gpu \\\n  feature"),
        "KillWait=30\n" + BASE.replace("KillWait=30\n", ""),
    ],
)
def test_what_slurm_reads_the_same_costs_nothing(same):
    assert changed(same) == []
    assert cost(changed(same)) is Cost.NOTHING


@pytest.mark.parametrize(
    ("new", "keys", "price", "daemons"),
    [
        (BASE.replace("30", "31"), ["KillWait"], Cost.RECONFIGURE, set()),
        (BASE + "MinJobAge=5\n", ["MinJobAge"], Cost.RECONFIGURE, set()),
        (BASE + "NodeSet=cpu Feature=cpu\n", ["NodeSet"], Cost.RECONFIGURE, set()),
        (BASE.replace("Feature=gpu", "Feature=GPU"), ["NodeSet"], Cost.RECONFIGURE, set()),
        (
            BASE.replace("6817", "7000"),
            ["SlurmctldPort"],
            Cost.RESTART,
            {"slurmctld", "slurmd", "slurmrestd", "sackd"},
        ),
        (BASE + "selecttype=select/linear\n", ["SelectType"], Cost.RESTART, {"slurmctld"}),
    ],
)
def test_a_change_costs_what_its_key_needs(new, keys, price, daemons):
    found = changed(new)

    assert [change.key for change in found] == keys
    assert cost(found) is price
    assert restarts(found) == {Daemon(name) for name in daemons}


def test_a_partition_that_goes_away_says_what_it_does_to_jobs():
    (change,) = changed(BASE.replace("PartitionName=gpu Nodes=gpu\n", ""))

    assert change.key == "PartitionName"
    assert "end at once" in change.rule.jobs


# What costs jobs that wait in the queue too; all the others cost only what has started.
LOSES_QUEUE = {"SelectType", "StateSaveLocation", "ClusterName", "PartitionName"}
COSTS_STEPS = {
    "AuthType",
    "CredType",
    "TLSType",
    "SwitchType",
    "SlurmdSpoolDir",
    "NodeName",
    "CgroupSlice",
    "CgroupPlugin",
}


def test_each_change_that_costs_jobs_says_whether_those_in_the_queue_are_lost_too():
    rules = {name: rule for rules in EXCEPTIONS.values() for name, rule in rules.items() if rule.jobs}

    assert {name for name, rule in rules.items() if rule.loses_queue} == LOSES_QUEUE
    assert {name for name, rule in rules.items() if not rule.loses_queue} == COSTS_STEPS


def test_an_option_that_needs_a_restart_is_found_within_its_line():
    found = changed("Name=gpu File=/dev/null Cores=1\n", "gres.conf", "Name=gpu File=/dev/null Cores=0\n")

    assert [(change.key, change.rule.cost) for change in found] == [
        ("Name", Cost.RECONFIGURE),
        ("Cores", Cost.RESTART),
    ]


def test_an_included_file_counts_as_part_of_the_file():
    old = {"slurm.conf": "Include a.conf\n", "a.conf": "KillWait=5\n"}

    found = changes(old, {**old, "a.conf": "KillWait=6\n"}, TABLES)

    assert [(change.file, change.key) for change in found] == [("slurm.conf", "KillWait")]
    assert changes(old, {**old, "a.conf": "# a comment\nKillWait=5\n"}, TABLES) == []


def test_a_file_without_keys_is_compared_whole():
    (change,) = changes({"job_submit.lua": "a"}, {"job_submit.lua": "b"}, TABLES)

    assert change.rule.cost is Cost.RECONFIGURE


def test_every_exception_is_a_key_of_its_file_and_says_where_it_was_learnt():
    for file, exceptions in EXCEPTIONS.items():
        options = {option for key in TABLES[file].values() for option in key.options}
        for name, found in exceptions.items():
            assert name.lower() in TABLES[file] or name.lower() in options
            assert found.learnt
            assert rule(file, name.upper()) is found


@pytest.mark.parametrize(
    ("ours", "theirs", "union"),
    [
        (
            "enable_configless",
            "Cloud_DNS,idle_on_node_suspend",
            "Cloud_DNS,enable_configless,idle_on_node_suspend",
        ),
        ("jwt_key=/a", "JWT_KEY=/B,jwks=/C", "jwks=/C,jwt_key=/a"),
        ("a", "", "a"),
        ("a", " a , b ", "a,b"),
        ("use_client_ids", "cred_expire=5,Socket=/Run/X", "cred_expire=5,Socket=/Run/X,use_client_ids"),
    ],
)
def test_lists_are_united_and_keep_the_users_spelling(ours, theirs, union):
    assert merged_options(ours, theirs) == union


OURS = {"AuthInfo": "use_client_ids", "SlurmctldParameters": "enable_configless", "ClusterName": "x"}


def test_only_lists_that_both_sides_set_are_written_again():
    extra = "slurmctldparameters=Power_Save_Interval=5 # x\nAuthAltParameters=a\nClusterName=y\nAuthInfo=\\\n  ttl=5\n"

    text = render(merged_settings(OURS, extra))

    assert text == (
        "AuthInfo=ttl=5,use_client_ids\nSlurmctldParameters=enable_configless,Power_Save_Interval=5\n"
    )


@pytest.mark.parametrize("extra", ["", "KillWait=5\n", 'SlurmctldParameters="two words"\n', "garbage"])
def test_nothing_is_merged_where_nothing_is_set(extra):
    assert merged_settings(OURS, extra) == ()


@pytest.mark.parametrize(
    ("extra", "topology", "line"),
    [
        ("", "", "Features=gpu"),
        ("", "default:sw1", "Features=gpu Topology=default:sw1"),
        ("Topology=mine:a", "default:sw1", "Features=gpu Topology=mine:a"),
        ("feature=b,a Features=a\nWeight=5", "", "Features=a,b,gpu Weight=5"),
        ("gres=gpu:2 Gres=nvme:1", "", "Features=gpu Gres=gpu:2,nvme:1"),
        ("garbage", "default:sw1", "Features=gpu Topology=default:sw1"),
        ("Gres=gpu:8 Feature= Weight=5", "", "Features=gpu Gres=gpu:8 Weight=5"),
        ("Gres=gpu:8 =x a-b=1 topology=", "default:sw1", "Features=gpu Gres=gpu:8 Topology=default:sw1"),
        ('Reason="two words"', "", 'Features=gpu Reason="two words"'),
    ],
)
def test_a_worker_says_its_features_its_place_and_what_the_user_added(extra, topology, line):
    assert worker_conf("gpu", extra, topology) == line
